package decode

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue"
)

// SnapshotOf returns a snapshot that compiles to a model with the same answers, so that a model that was built otherwise can be stored.
// Entities keep their order, and their numbers unless a Change removed or replaced something; data that is not in the model, such as the
// cluster's name, is missing. It shares strings with the model.
func SnapshotOf(m *model.Model) *apportionv1.Snapshot {
	d := description{Model: m, nodes: make([]uint32, len(m.Nodes))}
	out := &apportionv1.Snapshot{AsOf: m.AsOf, Dimensions: m.Dims.OrderedNames(), Total: resourceOf(m, m.Total), Memory: MemoryOf(m)}
	out.Pods = wirePods(m.Pods)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if !m.HasNode(model.NodeID(i)) {
			continue
		}
		d.nodes[i] = uint32(len(out.Nodes))
		node := &apportionv1.Node{Name: n.Name, Allocatable: resourceOf(m, n.Allocatable), UsedByOthers: resourceOf(m, n.UsedByOthers)}
		node.RevocableZone = m.ZoneOf(model.NodeID(i))
		if n.Labelled {
			node.Group = new(n.Group)
		}
		if u := n.Unschedulable; u != nil {
			node.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause(u.Cause), Detail: u.Detail}
		}
		if p := n.Pods; p != nil {
			node.Domains, node.OtherPods, node.LeavingPods = p.Domains, p.Others, p.Leaving
		}
		node.Reservations = wireReservations(m, n.Reservations())
		out.Nodes = append(out.Nodes, node)
	}
	for i := range m.NodeSets {
		if s := &m.NodeSets[i]; s.Name != "" {
			out.NodeSets = append(out.NodeSets, d.nodeSet(s))
		}
	}
	for i := range m.Queues {
		if m.HasQueue(model.QueueID(i)) {
			out.Queues = append(out.Queues, DescribeQueue(m, &m.Queues[i]))
		}
	}
	for i := range m.LeftOut {
		out.LeftOuts = append(out.LeftOuts, WireLeftOut(&m.LeftOut[i]))
	}
	wireEntries(m, out)
	for j := range model.JobID(m.Jobs.Len()) {
		if m.HasJob(j) {
			out.Jobs = append(out.Jobs, d.job(m.Jobs.At(j)))
		}
	}
	return out
}

func (m *description) nodeSet(s *model.NodeSet) *apportionv1.NodeSet {
	out := &apportionv1.NodeSet{
		Name: s.Name, Rule: s.Rule, Nodes: m.positions(s.Nodes), ToleratesCordon: s.ToleratesCordon, Fixed: s.Fixed,
		Flavor: kueue.Extra[*apportionv1.KueueFlavor](s.Extra),
	}
	for i := range s.Exclusions {
		e := &s.Exclusions[i]
		if nodes := m.positions(e.Nodes); len(nodes) > 0 || len(e.Nodes) == 0 {
			out.Exclusions = append(out.Exclusions, &apportionv1.NodeExclusion{
				Rule: e.Rule, Nodes: nodes, Firm: e.Firm, OtherRole: e.OtherRole,
			})
		}
	}
	for _, p := range s.Preferences {
		out.Preferences = append(out.Preferences, &apportionv1.NodePreference{
			Untolerated: p.Untolerated, Affinity: p.Affinity, Nodes: m.positions(p.Nodes),
		})
	}
	return out
}

// positions returns the positions of nodes in the snapshot, without those that a Change has removed.
func (m *description) positions(nodes []model.NodeID) (list []uint32) {
	for _, n := range nodes {
		if m.HasNode(n) {
			list = append(list, m.nodes[n])
		}
	}
	return list
}

// description is a model that is being described.
type description struct {
	*model.Model
	// nodes are the positions of the nodes in the snapshot.
	nodes []uint32
}

// resourceOf is the Resource of a row, nil for an absent one.
func resourceOf(m *model.Model, row resource.Row) *apportionv1.Resource {
	if row.Absent() {
		return nil
	}
	r := &apportionv1.Resource{}
	for position, d := range m.Dims.Order() {
		if row.Has.Has(d) {
			r.Dimensions, r.Amounts = append(r.Dimensions, uint32(position)), append(r.Amounts, row.V[d])
		}
	}
	return r
}

// DescribeQueue returns the message of a queue.
func DescribeQueue(m *model.Model, q *model.Queue) *apportionv1.Queue {
	weight, reclaimable := uint32(q.Weight), q.Reclaimable
	out := &apportionv1.Queue{
		Name: q.Name, Parent: q.Parent, Weight: &weight, Priority: q.Priority, State: apportionv1.QueueState(q.State) + 1,
		Reclaimable: &reclaimable, Capability: resourceOf(m, q.Capability), Guarantee: resourceOf(m, q.Guarantee),
		Deserved: resourceOf(m, q.Deserved), CreateTime: q.CreateTime, Kueue: kueue.Extra[*apportionv1.KueueQueue](q.Extra),
	}
	if a := q.Affinity; a != nil {
		out.NodeGroupAffinity = &apportionv1.NodeGroupAffinity{
			Affinity: describeTerms(a.Affinity), AntiAffinity: describeTerms(a.AntiAffinity),
		}
	}
	if h := q.Hierarchy; h != nil {
		out.FairShareHierarchy = &apportionv1.FairShareHierarchy{Path: h.Path, Weights: h.Weights}
	}
	describeMemory(m, q.Memory, out)
	if l := q.NodeLimits; l != nil {
		limits := &apportionv1.NodeGroupLimits{Invalid: l.Invalid}
		for _, g := range l.Groups {
			limits.Groups = append(limits.Groups, &apportionv1.NodeGroupLimit{Group: g.Group, Limit: resourceOf(m, g.Limit)})
		}
		out.NodeGroupLimits = limits
	}
	return out
}

func describeTerms(t *model.Terms) *apportionv1.NodeGroupTerms {
	if t == nil {
		return nil
	}
	return &apportionv1.NodeGroupTerms{RequiredGroups: t.Required, PreferredGroups: t.Preferred}
}

func (m *description) job(j *model.Job) *apportionv1.Job {
	out := &apportionv1.Job{
		Uid: j.UID, Name: j.Name, Namespace: j.Namespace, Queue: m.Queues[j.Queue].Name, Priority: j.Priority, Phase: WirePhase(j.Phase),
		MinAvailable: uint32(j.MinAvailable), MinResources: resourceOf(m.Model, j.MinResources), CreateTime: j.CreateTime,
		Condition: j.Condition, ExpectedEnd: j.ExpectedEnd, EndIsDeadline: j.EndIsDeadline,
		Kueue: kueue.Extra[*apportionv1.KueueWorkload](j.Extra), Owner: j.Owner, ExpectedRuntime: j.ExpectedRuntime,
		Detail: wireJobDetail(j.Detail),
	}
	for g := j.FirstGroup; g < j.EndGroup; g++ {
		out.Groups = append(out.Groups, m.group(g))
	}
	for t := j.FirstTask; t < j.EndTask; t++ {
		group := out.Groups[m.Tasks.At(t).Group-j.FirstGroup]
		group.Tasks = append(group.Tasks, m.task(t))
	}
	return out
}

func (m *description) group(id model.GroupID) *apportionv1.TaskGroup {
	g := m.Groups.At(id)
	out := &apportionv1.TaskGroup{
		Role: g.Role, Request: resourceOf(m.Model, m.Requests[g.Request]), UnjudgedConstraints: WireConstraints(g.Unjudged),
	}
	out.PodClass = uint32(g.PodClass)
	if g.Unstated != (model.Unstated{}) {
		out.Unstated = wireUnstated(g.Unstated)
	}
	if g.NodeSet != model.AllNodes {
		out.NodeSet = m.NodeSets[g.NodeSet].Name
	}
	if g.MinAvailable >= 0 {
		least := uint32(g.MinAvailable)
		out.MinAvailable = &least
	}
	for c := range m.CountsOf(id) {
		out.Counts = append(out.Counts, &apportionv1.TaskCount{
			Status: WireStatus(c.Status), Gate: apportionv1.TaskGate(c.Gate), Count: uint32(c.N),
		})
	}
	return out
}

func (m *description) task(id model.TaskID) *apportionv1.Task {
	t := m.Tasks.At(id)
	priority := t.Priority
	out := &apportionv1.Task{
		Uid: m.TaskUID(id), Name: m.TaskName(id), Status: WireStatus(t.Status), Priority: &priority, CreateTime: t.CreateTime,
	}
	if t.Node != model.None {
		node := m.nodes[t.Node]
		out.Node = &node
	}
	if t.Index >= 0 {
		index := uint32(t.Index)
		out.Index = &index
	}
	own := t.Request != m.Groups.At(t.Group).Request
	if t.Preemptable && t.Gate == model.GateNone && t.Detail == model.None && !own {
		return out
	}
	preemptable := t.Preemptable
	out.Detail = &apportionv1.TaskDetail{Preemptable: &preemptable, Gate: apportionv1.TaskGate(t.Gate)}
	if own {
		out.Detail.Request = resourceOf(m.Model, m.Requests[t.Request])
	}
	if t.Detail != model.None {
		d := m.Details.At(t.Detail)
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
		out.Detail.UnjudgedConstraints = WireConstraints(d.Unjudged)
		out.Detail.Condition, out.Detail.PodClass = d.Condition, uint32(d.PodClass)
		out.Detail.NeverPreempts, out.Detail.Unlabelled = d.NeverPreempts, d.Unlabelled
		wireRare(m.RareSpecOf(id), out.Detail)
	}
	return out
}

// WireLeftOut is the message of what is left out.
func WireLeftOut(l *model.LeftOut) *apportionv1.LeftOut {
	return &apportionv1.LeftOut{
		Cause: apportionv1.LeftOutCause(l.Cause), Namespace: l.Namespace, Name: l.Name, Queue: l.Queue, Job: l.Job, Scheduler: l.Scheduler,
		Kind: l.Kind, Detail: l.Detail,
	}
}
