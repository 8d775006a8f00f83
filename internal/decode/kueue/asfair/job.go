package asfair

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// job makes a gang of a workload: a role of each pod set, of which the minimum must run together. It states no minimum resources, because
// Kueue has no admission before that of the quota, and so it may enter its queue while that is full. Pods that need no quota any more are
// left out, and so are those with which a partially admitted workload was not admitted.
func (t *translator) job(from *apportionv1.Job) *apportionv1.Job {
	own := from.GetKueue()
	out := &apportionv1.Job{
		Uid: from.GetUid(), Name: from.GetName(), Namespace: from.GetNamespace(), Queue: from.GetQueue(), Priority: from.GetPriority(),
		CreateTime: from.GetCreateTime(), Owner: from.GetOwner(), ExpectedEnd: from.GetExpectedEnd(),
		EndIsDeadline: from.GetEndIsDeadline(), ExpectedRuntime: from.GetExpectedRuntime(), Phase: apportionv1.JobPhase_JOB_PHASE_PENDING,
	}
	queue := t.byName[from.GetQueue()]
	if own.GetAdmitted() {
		out.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
	}
	for _, p := range own.GetPodSets() {
		count, least := pods(p, own.GetAdmitted())
		g := &apportionv1.TaskGroup{Role: p.GetName(), Request: resource(t.request(queue, p)), MinAvailable: new(uint32(least))}
		if !own.GetAdmitted() {
			g.NodeSet = t.nodeSet(queue, p)
		}
		node := t.nodeOf(p)
		for i := range count {
			task := t.task(from, own, p, i)
			if own.GetAdmitted() {
				task.Node = node
			}
			g.Tasks = append(g.Tasks, task)
		}
		out.MinAvailable += uint32(least)
		out.Groups = append(out.Groups, g)
	}
	return out
}

// pods returns how many pods of a set there are, at most as many as it has, and how many of them must run together.
func pods(p *apportionv1.KueuePodSet, admitted bool) (count, least int32) {
	count, least = p.GetCount(), p.GetCount()
	if p.MinCount != nil {
		least = p.GetMinCount()
	}
	if admitted && p.AdmittedCount != nil {
		count = p.GetAdmittedCount()
		least = min(least, count)
	}
	count = max(0, min(count, p.GetCount()-max(0, p.GetReclaimable())))
	return count, max(0, min(least, count))
}

// nodeOf returns the node of the first flavor that an admitted pod set uses and that has one, or nil.
func (t *translator) nodeOf(p *apportionv1.KueuePodSet) *uint32 {
	for _, u := range p.GetUses() {
		if node, ok := t.node[u.GetNodeSet()]; ok {
			return new(node)
		}
	}
	return nil
}

// request returns what a pod requests. A group that covers pods counts it.
func (t *translator) request(queue *apportionv1.Queue, p *apportionv1.KueuePodSet) amounts {
	out := amounts{}
	out.add(p.GetRequest(), 1)
	if t.pods < 0 {
		return out
	}
	d := uint32(t.pods)
	delete(out, d)
	for _, q := range queue.GetKueue().GetQuotas() {
		if slices.Contains(q.GetNominal().GetDimensions(), d) {
			out[d] = 1
		}
	}
	return out
}

// task makes a task of the i-th pod of a set. That of an admitted workload has no node yet.
func (t *translator) task(job *apportionv1.Job, own *apportionv1.KueueWorkload, p *apportionv1.KueuePodSet, i int32) *apportionv1.Task {
	task := &apportionv1.Task{
		Name: job.GetName() + "-" + p.GetName() + "-" + strconv.Itoa(int(i)), Status: apportionv1.TaskStatus_TASK_STATUS_PENDING,
		CreateTime: job.GetCreateTime(), Index: new(uint32(i)),
	}
	switch {
	case !own.GetAdmitted() && own.GetWithheld() != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED:
		task.Detail = &apportionv1.TaskDetail{Gate: apportionv1.TaskGate_TASK_GATE_OTHER}
	case !own.GetAdmitted():
	case own.GetEvicted():
		task.Status = apportionv1.TaskStatus_TASK_STATUS_RELEASING
	default:
		task.Status = apportionv1.TaskStatus_TASK_STATUS_RUNNING
	}
	return task
}

// nodeSet returns the name of the set of nodes whose flavors the queue has and the pods of a set may use.
func (t *translator) nodeSet(queue *apportionv1.Queue, p *apportionv1.KueuePodSet) string {
	pods := wirekueue.PodSet(p, nil)
	in := map[uint32]bool{}
	var nodes []uint32
	var named []string
	for _, q := range queue.GetKueue().GetQuotas() {
		of, exists := t.flavors[q.GetNodeSet()]
		if node := t.node[q.GetNodeSet()]; exists && !in[node] && kueue.Suits(of, &pods) {
			in[node] = true
			nodes, named = append(nodes, node), append(named, q.GetNodeSet())
		}
	}
	slices.Sort(nodes)
	slices.Sort(named)
	name := "flavors " + strings.Join(named, ", ")
	if known, ok := t.sets[name]; ok {
		// Groups of the same set share its name, which has the names of all flavors.
		return known
	}
	t.sets[name] = name
	t.to.NodeSets = append(t.to.NodeSets, &apportionv1.NodeSet{
		Name: name, Nodes: nodes, Rule: "flavors of its queue that suit its pods: " + strings.Join(named, ", "),
	})
	return name
}
