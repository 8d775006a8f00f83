package asfair

import (
	"fmt"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/room"
	"github.com/apportion/apportion/internal/text"
)

// limit bounds what all workloads take together. Of a namespace the small ones come first.
type limit = room.Limit[*apportionv1.Job, string]

// makeRoom leaves out the workloads for which there is no room: they have no pods then. Each namespace gets an equal part of a limit, and
// its small workloads come first, so that those of one tenant do not displace those of others.
func (t *translator) makeRoom() {
	type cost = func(*apportionv1.KueueWorkload) int64
	bound := func(what string, most int64, cost cost) {
		l := limit{
			What: what, Most: most, Namespace: (*apportionv1.Job).GetNamespace,
			Takes: func(j *apportionv1.Job, _ func(string, int64)) int64 { return cost(j.GetKueue()) },
		}
		if out := l.Exceeding(t.from.GetJobs()); len(out) > 0 {
			t.leaveOut(out, &l)
		}
	}
	bound("pods", maxTasks, countPods)
	bound("Mi of a resource", room.MostAmount, largestAmount)
}

// countPods returns the number of pods of a workload.
func countPods(w *apportionv1.KueueWorkload) (n int64) {
	for _, p := range w.GetPodSets() {
		n += int64(max(0, p.GetCount()))
	}
	return min(n, room.Costly)
}

// largestAmount returns how much of a resource all pods of a workload request, in Mi of the contract's unit, of the one that they request
// most of.
func largestAmount(w *apportionv1.KueueWorkload) int64 {
	sums := amounts{}
	for _, p := range w.GetPodSets() {
		sums.add(p.GetRequest(), float64(max(0, p.GetCount())))
	}
	most := 0.0
	for _, sum := range sums {
		most = max(most, sum)
	}
	return room.Mi(most)
}

// leaveOut takes the pods of workloads away, names them among those that are left out, and notes how many there are.
func (t *translator) leaveOut(workloads []int, l *limit) {
	from := &apportionv1.Snapshot{
		AsOf: t.from.GetAsOf(), Cluster: t.from.GetCluster(), Dimensions: t.from.GetDimensions(), Queues: t.from.GetQueues(),
		NodeSets: t.from.GetNodeSets(), Jobs: slices.Clone(t.from.GetJobs()),
	}
	for _, at := range workloads {
		j := from.Jobs[at]
		from.Jobs[at] = &apportionv1.Job{
			Uid: j.GetUid(), Name: j.GetName(), Namespace: j.GetNamespace(), Queue: j.GetQueue(), Priority: j.GetPriority(),
			CreateTime: j.GetCreateTime(), Owner: j.GetOwner(), Kueue: &apportionv1.KueueWorkload{},
		}
		t.to.LeftOuts = append(t.to.LeftOuts, &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: "Workload", Namespace: j.GetNamespace(), Name: j.GetName(),
			Queue: j.GetQueue(), Detail: fmt.Sprintf("with it there would be more than %d %s", l.Most, l.What),
		})
	}
	t.from = from
	first := from.GetJobs()[workloads[0]]
	t.note("%s left out here, because there would be more than %d %s; the first is %s/%s",
		text.Count(len(workloads), "workload"), l.Most, l.What, first.GetNamespace(), first.GetName())
}
