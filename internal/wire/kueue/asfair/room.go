package asfair

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
	wirekueue "github.com/apportion/apportion/internal/wire/kueue"
)

// limit bounds what all workloads take together.
type limit struct {
	what string
	most int64
	// cost is what a workload takes, at most costly.
	cost func(*apportionv1.KueueWorkload) int64
}

const (
	// costly is more than any limit, and as many of it as there are workloads are no more than an int64 holds.
	costly = 1 << 39
	// mostAmount bounds the sum of a resource in Mi, so that fair can divide it beside quotas.
	mostAmount = 1 << 38
)

// makeRoom leaves out the workloads for which there is no room: they have no pods then. Each namespace gets an equal part of a limit, and
// its small workloads come first, so that those of one tenant do not displace those of others.
func (t *translator) makeRoom() {
	covered := map[string]bool{"cpu": true, "memory": true}
	for _, groups := range t.quotas() {
		for _, g := range groups {
			for _, f := range g.GetFlavors() {
				for _, q := range f.GetResources() {
					covered[q.GetName()] = true
				}
			}
		}
	}
	for _, l := range []limit{
		{"pods", maxTasks, countPods},
		{"Mi of a resource", mostAmount, largestAmount},
		{"resources without quota", max(0, maxDimensions-int64(len(covered))), func(w *apportionv1.KueueWorkload) int64 {
			names := map[string]bool{}
			for _, p := range w.GetPodSets() {
				for _, r := range p.GetRequests() {
					if !covered[r.GetName()] {
						names[r.GetName()] = true
					}
				}
			}
			return int64(len(names))
		}},
	} {
		t.within(&l)
	}
}

// countPods returns the number of pods of a workload.
func countPods(w *apportionv1.KueueWorkload) (n int64) {
	for _, p := range w.GetPodSets() {
		n += int64(max(0, p.GetCount()))
	}
	return min(n, costly)
}

// largestAmount returns how much of a resource all pods of a workload request, in Mi of the contract's unit, of the one that they request
// most of.
func largestAmount(w *apportionv1.KueueWorkload) int64 {
	sums := map[string]float64{}
	for _, p := range w.GetPodSets() {
		for _, r := range p.GetRequests() {
			sums[r.GetName()] += float64(r.GetAmount()) * float64(max(0, p.GetCount())) * wirekueue.Unit(r.GetName())
		}
	}
	most := 0.0
	for _, sum := range sums {
		most = max(most, sum)
	}
	return int64(min(math.Ceil(most/(1<<20)), costly))
}

// within leaves out workloads until the others are within a limit.
func (t *translator) within(l *limit) {
	type ranked struct {
		at         int
		cost, rank int64
	}
	list, total := make([]ranked, 0, len(t.from.GetJobs())), int64(0)
	for i, j := range t.from.GetJobs() {
		cost := l.cost(j.GetKueue())
		total += cost
		list = append(list, ranked{at: i, cost: cost})
	}
	if total <= l.most {
		return
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(a.cost, b.cost) })
	sums := map[string]int64{}
	for i := range list {
		namespace := t.from.GetJobs()[list[i].at].GetNamespace()
		sums[namespace] += list[i].cost
		list[i].rank = sums[namespace]
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	total = 0
	var out []int
	for _, one := range list {
		if total+one.cost > l.most {
			out = append(out, one.at)
			continue
		}
		total += one.cost
	}
	t.leaveOut(out, l)
}

// leaveOut takes the pods of workloads away, names them among those that are left out, and notes how many there are.
func (t *translator) leaveOut(workloads []int, l *limit) {
	slices.Sort(workloads)
	from := &apportionv1.Snapshot{
		AsOf: t.from.GetAsOf(), Cluster: t.from.GetCluster(), Queues: t.from.GetQueues(), Kueue: t.from.GetKueue(),
		Jobs: slices.Clone(t.from.GetJobs()),
	}
	for _, at := range workloads {
		j := from.Jobs[at]
		from.Jobs[at] = &apportionv1.Job{
			Uid: j.GetUid(), Name: j.GetName(), Namespace: j.GetNamespace(), Queue: j.GetQueue(), Priority: j.GetPriority(),
			CreateTime: j.GetCreateTime(), Owner: j.GetOwner(), Kueue: &apportionv1.KueueWorkload{},
		}
		t.to.LeftOut = append(t.to.LeftOut, &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: "Workload", Namespace: j.GetNamespace(), Name: j.GetName(),
			Queue: j.GetQueue(), Detail: fmt.Sprintf("with it there would be more than %d %s", l.most, l.what),
		})
	}
	t.from = from
	first := from.GetJobs()[workloads[0]]
	t.note("%s left out here, because there would be more than %d %s; the first is %s/%s",
		text.Count(len(workloads), "workload"), l.most, l.what, first.GetNamespace(), first.GetName())
}
