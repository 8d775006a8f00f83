package wire_test

import (
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// mirrored is the plain twin of a chain of changes: lists with holes, each thing a whole message. Resources refer to dimensions by their
// position in dimensions, nodes by their position in nodes.
type mirrored struct {
	asOf       int64
	dimensions []string
	nodes      []*apportionv1.Node
	nodeSets   []*apportionv1.NodeSet
	queues     []*apportionv1.Queue
	jobs       []*apportionv1.Job
	// first is the number of the first task of each job, tasks how many numbers were given away.
	first []int
	tasks int
	total *apportionv1.Resource
}

func tasksOf(j *apportionv1.Job) []*apportionv1.Task {
	var list []*apportionv1.Task
	for _, g := range j.GetGroups() {
		list = append(list, g.GetTasks()...)
	}
	return list
}

func mirror(s *apportionv1.Snapshot) *mirrored {
	s = proto.CloneOf(s)
	m := &mirrored{
		asOf: s.GetAsOf(), dimensions: s.GetDimensions(), nodes: s.GetNodes(), nodeSets: s.GetNodeSets(), queues: s.GetQueues(), total: s.GetTotal(),
	}
	for _, j := range s.GetJobs() {
		m.setJob(j)
	}
	return m
}

func uidOf(j *apportionv1.Job) string {
	switch {
	case j.GetUid() != "":
		return j.GetUid()
	case j.GetNamespace() == "":
		return j.GetName()
	}
	return j.GetNamespace() + "/" + j.GetName()
}

func (m *mirrored) setJob(j *apportionv1.Job) {
	at := slices.IndexFunc(m.jobs, func(o *apportionv1.Job) bool { return o != nil && uidOf(o) == uidOf(j) })
	if at < 0 {
		at = len(m.jobs)
		m.jobs, m.first = append(m.jobs, nil), append(m.first, 0)
	}
	m.jobs[at], m.first[at] = j, m.tasks
	m.tasks += len(tasksOf(j))
}

func set[T any](list []*T, named func(*T) string, to *T) []*T {
	at := slices.IndexFunc(list, func(o *T) bool { return o != nil && named(o) == named(to) })
	if at < 0 {
		return append(list, to)
	}
	list[at] = to
	return list
}

func remove[T any](list []*T, named func(*T) string, name string) {
	list[slices.IndexFunc(list, func(o *T) bool { return o != nil && named(o) == name })] = nil
}

// apply applies a valid change.
func (m *mirrored) apply(c *apportionv1.Change) {
	c = proto.CloneOf(c)
	own := c.GetDimensions()
	if len(own) == 0 {
		own = m.dimensions
	}
	for _, name := range own {
		if !slices.Contains(m.dimensions, name) {
			m.dimensions = append(slices.Clone(m.dimensions), name)
		}
	}
	translate := func(r *apportionv1.Resource) {
		for i, d := range r.GetDimensions() {
			r.Dimensions[i] = uint32(slices.Index(m.dimensions, own[d]))
		}
	}
	if c.AsOf != nil {
		m.asOf = c.GetAsOf()
	}
	for _, name := range c.GetRemoveNodes() {
		remove(m.nodes, (*apportionv1.Node).GetName, name)
	}
	for _, n := range c.GetNodes() {
		translate(n.GetAllocatable())
		translate(n.GetUsedByOthers())
		m.nodes = set(m.nodes, (*apportionv1.Node).GetName, n)
	}
	for _, name := range c.GetRemoveNodeSets() {
		remove(m.nodeSets, (*apportionv1.NodeSet).GetName, name)
	}
	for _, s := range c.GetNodeSets() {
		m.nodeSets = set(m.nodeSets, (*apportionv1.NodeSet).GetName, s)
	}
	for _, name := range c.GetRemoveQueues() {
		remove(m.queues, (*apportionv1.Queue).GetName, name)
	}
	for _, q := range c.GetQueues() {
		translate(q.GetCapability())
		translate(q.GetGuarantee())
		translate(q.GetDeserved())
		m.queues = set(m.queues, (*apportionv1.Queue).GetName, q)
	}
	for _, uid := range c.GetRemoveJobs() {
		remove(m.jobs, uidOf, uid)
	}
	for _, u := range c.GetTasks() {
		m.update(u)
	}
	for _, j := range c.GetJobs() {
		translate(j.GetMinResources())
		for _, g := range j.GetGroups() {
			translate(g.GetRequest())
			for _, t := range g.GetTasks() {
				translate(t.GetDetail().GetRequest())
			}
		}
		m.setJob(j)
	}
	if c.GetClearTotal() {
		m.total = nil
	}
	if c.GetTotal() != nil {
		translate(c.GetTotal())
		m.total = c.GetTotal()
	}
}

func (m *mirrored) update(u *apportionv1.TaskUpdate) {
	for j, job := range m.jobs {
		if job == nil {
			continue
		}
		for i, t := range tasksOf(job) {
			if m.first[j]+i != int(u.GetNumber()) && (u.GetUid() == "" || t.GetUid() != u.GetUid()) {
				continue
			}
			if u.GetUid() != "" && t.GetUid() != u.GetUid() {
				continue
			}
			if u.GetStatus() != 0 {
				t.Status = u.GetStatus()
			}
			switch u.GetPlace().(type) {
			case *apportionv1.TaskUpdate_Node:
				t.Node = new(u.GetNode())
			case *apportionv1.TaskUpdate_NoNode:
				t.Node = nil
			}
		}
	}
}

// whole returns the snapshot without holes, and where everything lies in it.
func (m *mirrored) whole() (*apportionv1.Snapshot, numbers) {
	out := &apportionv1.Snapshot{AsOf: m.asOf, Dimensions: m.dimensions, Total: m.total}
	n := numbers{map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]uint64{}}
	for i, node := range m.nodes {
		if node != nil {
			n.nodes[uint64(i)] = uint64(len(out.GetNodes()))
			out.Nodes = append(out.Nodes, node)
		}
	}
	for _, s := range m.nodeSets {
		if s == nil {
			continue
		}
		s := proto.CloneOf(s)
		nodes := s.GetNodes()
		s.Nodes = nil
		for _, at := range nodes {
			if to, there := n.nodes[uint64(at)]; there {
				s.Nodes = append(s.Nodes, uint32(to))
			}
		}
		out.NodeSets = append(out.NodeSets, s)
	}
	for i, q := range m.queues {
		if q != nil {
			n.queues[uint64(i)] = uint64(len(out.GetQueues()))
			out.Queues = append(out.Queues, q)
		}
	}
	number := 0
	for i, j := range m.jobs {
		if j == nil {
			continue
		}
		n.jobs[uint64(i)] = uint64(len(out.GetJobs()))
		j := proto.CloneOf(j)
		for k, t := range tasksOf(j) {
			n.tasks[uint64(m.first[i]+k)] = uint64(number)
			number++
			if t.Node == nil {
				continue
			}
			to, there := n.nodes[uint64(t.GetNode())]
			t.Node = new(uint32(to))
			if !there {
				t.Node = nil
			}
		}
		out.Jobs = append(out.Jobs, j)
	}
	return out, n
}
