package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// SnapshotOf returns a snapshot whose model answers as the given one: what was built of something else than a snapshot can so be kept, and
// asked again. Things keep their numbers; what the model does not know, as the cluster's name, is not in it. It shares strings with the
// model.
func SnapshotOf(m *model.Model) *apportionv1.Snapshot {
	out := &apportionv1.Snapshot{AsOf: m.AsOf, Dimensions: m.Dims.Names(), Total: resourceOf(m.Total)}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		node := &apportionv1.Node{Name: n.Name, Allocatable: resourceOf(n.Allocatable), UsedByOthers: resourceOf(n.UsedByOthers)}
		if n.Labelled {
			node.Group = &n.Group
		}
		if u := n.Unschedulable; u != nil {
			node.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause(u.Cause), Detail: u.Detail}
		}
		out.Nodes = append(out.Nodes, node)
	}
	for i := range m.NodeSets {
		if s := &m.NodeSets[i]; model.NodeSetID(i) != model.AllNodes {
			out.NodeSets = append(out.NodeSets, describeNodeSet(s))
		}
	}
	for i := range m.Queues {
		out.Queues = append(out.Queues, describeQueue(&m.Queues[i]))
	}
	for i := range m.Jobs {
		out.Jobs = append(out.Jobs, describeJob(m, &m.Jobs[i]))
	}
	return out
}

func describeNodeSet(s *model.NodeSet) *apportionv1.NodeSet {
	out := &apportionv1.NodeSet{Name: s.Name, Rule: s.Rule, Nodes: make([]uint32, len(s.Nodes))}
	for i, n := range s.Nodes {
		out.Nodes[i] = uint32(n)
	}
	return out
}

// resourceOf is the Resource of a row, nil for an absent one.
func resourceOf(row resource.Row) *apportionv1.Resource {
	if row.Absent() {
		return nil
	}
	r := &apportionv1.Resource{}
	for m := row.Has; m != 0; m = m.Rest() {
		d := m.First()
		r.Dimension, r.Amount = append(r.Dimension, uint32(d)), append(r.Amount, row.V[d])
	}
	return r
}

func describeQueue(q *model.Queue) *apportionv1.Queue {
	weight, reclaimable := uint32(q.Weight), q.Reclaimable
	out := &apportionv1.Queue{
		Name: q.Name, Parent: q.Parent, Weight: &weight, Priority: q.Priority, State: apportionv1.QueueState(q.State) + 1,
		Reclaimable: &reclaimable, Capability: resourceOf(q.Capability), Guarantee: resourceOf(q.Guarantee),
		Deserved: resourceOf(q.Deserved), CreateTime: q.CreateTime,
	}
	if a := q.Affinity; a != nil {
		out.NodeGroupAffinity = &apportionv1.NodeGroupAffinity{
			Affinity: describeTerms(a.Affinity), AntiAffinity: describeTerms(a.AntiAffinity),
		}
	}
	if h := q.Hierarchy; h != nil {
		out.FairShareHierarchy = &apportionv1.FairShareHierarchy{Path: h.Path, Weights: h.Weights}
	}
	return out
}

func describeTerms(t *model.Terms) *apportionv1.NodeGroupTerms {
	if t == nil {
		return nil
	}
	return &apportionv1.NodeGroupTerms{Required: t.Required, Preferred: t.Preferred}
}

func describeJob(m *model.Model, j *model.Job) *apportionv1.Job {
	out := &apportionv1.Job{
		Uid: j.UID, Name: j.Name, Namespace: j.Namespace, Queue: m.Queues[j.Queue].Name, Priority: j.Priority, Phase: wirePhase(j.Phase),
		MinAvailable: uint32(j.MinAvailable), MinResources: resourceOf(j.MinResources), CreateTime: j.CreateTime,
		Condition: j.Condition,
	}
	for g := j.FirstGroup; g < j.EndGroup; g++ {
		out.Groups = append(out.Groups, describeGroup(m, &m.Groups[g]))
	}
	for t := j.FirstTask; t < j.EndTask; t++ {
		group := out.Groups[m.Tasks[t].Group-j.FirstGroup]
		group.Tasks = append(group.Tasks, describeTask(m, t))
	}
	return out
}

func describeGroup(m *model.Model, g *model.Group) *apportionv1.TaskGroup {
	out := &apportionv1.TaskGroup{Role: g.Role, Request: resourceOf(m.Requests[g.Request]), Unjudged: wireConstraints(g.Unjudged)}
	if g.NodeSet != model.AllNodes {
		out.NodeSet = m.NodeSets[g.NodeSet].Name
	}
	if g.MinAvailable >= 0 {
		least := uint32(g.MinAvailable)
		out.MinAvailable = &least
	}
	for _, c := range m.Counts[g.FirstCount:g.EndCount] {
		out.Counts = append(out.Counts, &apportionv1.TaskCount{
			Status: wireStatus(c.Status), Gate: apportionv1.TaskGate(c.Gate), Count: uint32(c.N),
		})
	}
	return out
}

func describeTask(m *model.Model, id model.TaskID) *apportionv1.Task {
	t := &m.Tasks[id]
	priority := t.Priority
	out := &apportionv1.Task{
		Uid: m.TaskUID(id), Name: m.TaskName(id), Status: wireStatus(t.Status), Priority: &priority, CreateTime: t.CreateTime,
	}
	if t.Node != model.None {
		node := uint32(t.Node)
		out.Node = &node
	}
	if t.Index >= 0 {
		index := uint32(t.Index)
		out.Index = &index
	}
	own := t.Request != m.Groups[t.Group].Request
	if t.Preemptable && t.Gate == model.GateNone && t.Detail == model.None && !own {
		return out
	}
	preemptable := t.Preemptable
	out.Detail = &apportionv1.TaskDetail{Preemptable: &preemptable, Gate: apportionv1.TaskGate(t.Gate)}
	if own {
		out.Detail.Request = resourceOf(m.Requests[t.Request])
	}
	if t.Detail != model.None {
		d := &m.Details[t.Detail]
		out.Detail.PriorityClass = d.PriorityClass
		if d.HasScheduleTime {
			out.Detail.ScheduleTime = &d.ScheduleTime
		}
		if d.HasCooldown {
			out.Detail.Cooldown = &d.Cooldown
		}
		if d.NodeSet != model.AllNodes {
			out.Detail.NodeSet = m.NodeSets[d.NodeSet].Name
		}
		out.Detail.Unjudged, out.Detail.Condition = wireConstraints(d.Unjudged), d.Condition
	}
	return out
}
