package wire_test

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// drawn draws a valid change of the mirrored snapshot. other lends jobs, queues and nodes.
func (m *mirrored) drawn(t *rapid.T, other *apportionv1.Snapshot) *apportionv1.Change {
	few := func(what string, n int) int { return rapid.IntRange(0, n).Draw(t, what) }
	c := &apportionv1.Change{}
	if few("new time", 1) == 1 {
		c.AsOf = new(rapid.Int64().Draw(t, "time"))
	}
	if few("own dimensions", 2) > 0 {
		c.Dimensions = other.GetDimensions()
	} else {
		other = proto.CloneOf(other)
		other.Dimensions = m.dimensions
		withinDimensions(other, len(m.dimensions))
	}
	m.drawNodes(t, c, other)
	left := map[string]bool{}
	for _, q := range m.queues {
		if q != nil {
			left[q.GetName()] = true
		}
	}
	used := map[string]bool{}
	taken := map[string]bool{}
	for k := few("queues", 2); k > 0 && len(other.GetQueues()) > 0; k-- {
		q := proto.CloneOf(rapid.SampledFrom(other.GetQueues()).Draw(t, "queue"))
		if few("known queue", 1) == 1 {
			if known := rapid.SampledFrom(m.queues).Draw(t, "known"); known != nil {
				q.Name, q.Parent = known.GetName(), known.GetParent()
			}
		}
		if !taken[q.GetName()] {
			taken[q.GetName()], left[q.GetName()] = true, true
			c.Queues = append(c.Queues, q)
		}
	}
	byUID := map[string]bool{}
	m.drawNodeSets(t, c, other)
	m.drawJobs(t, c, other, left, byUID)
	for i, j := range m.jobs {
		if j == nil || byUID[uidOf(j)] {
			continue
		}
		used[j.GetQueue()] = true
		m.drawUpdates(t, c, i)
	}
	for _, j := range c.GetJobs() {
		used[j.GetQueue()] = true
	}
	m.drawRemovedNodeSets(t, c, byUID)
	for _, q := range m.queues {
		if q != nil && !used[q.GetName()] && !taken[q.GetName()] && q.GetName() != "root" && few("remove queue", 3) == 0 {
			c.RemoveQueues = append(c.RemoveQueues, q.GetName())
		}
	}
	switch few("total", 7) {
	case 0:
		c.ClearTotal = true
	case 1:
		if len(other.GetNodes()) > 0 {
			c.Total = other.GetNodes()[0].GetAllocatable()
		}
	}
	return c
}

func (m *mirrored) drawNodes(t *rapid.T, c *apportionv1.Change, other *apportionv1.Snapshot) {
	taken := map[string]bool{}
	for k := rapid.IntRange(0, 2).Draw(t, "nodes"); k > 0 && len(other.GetNodes()) > 0; k-- {
		n := proto.CloneOf(rapid.SampledFrom(other.GetNodes()).Draw(t, "node"))
		if rapid.Bool().Draw(t, "rename") {
			n.Name += "-more"
		}
		if !taken[n.GetName()] {
			taken[n.GetName()] = true
			c.Nodes = append(c.Nodes, n)
		}
	}
	for _, n := range m.nodes {
		if n != nil && !taken[n.GetName()] && rapid.IntRange(0, 7).Draw(t, "remove node") == 0 {
			c.RemoveNodes = append(c.RemoveNodes, n.GetName())
		}
	}
}

// places lists the nodes of the result.
func (m *mirrored) places(c *apportionv1.Change) []uint32 {
	after := &mirrored{nodes: slices.Clone(m.nodes), dimensions: m.dimensions}
	after.apply(&apportionv1.Change{RemoveNodes: c.GetRemoveNodes(), Nodes: c.GetNodes(), Dimensions: c.GetDimensions()})
	var list []uint32
	for i, n := range after.nodes {
		if n != nil {
			list = append(list, uint32(i))
		}
	}
	return list
}

func (m *mirrored) drawNodeSets(t *rapid.T, c *apportionv1.Change, other *apportionv1.Snapshot) {
	places := m.places(c)
	for _, s := range other.GetNodeSets() {
		if rapid.Bool().Draw(t, "set") {
			continue
		}
		s = proto.CloneOf(s)
		s.Nodes = nil
		for _, n := range places {
			if rapid.Bool().Draw(t, "in the set") {
				s.Nodes = append(s.Nodes, n)
			}
		}
		c.NodeSets = append(c.NodeSets, s)
	}
}

// drawRemovedNodeSets removes node sets to which no job of the result refers. replaced are the jobs that are set or removed.
func (m *mirrored) drawRemovedNodeSets(t *rapid.T, c *apportionv1.Change, replaced map[string]bool) {
	used := map[string]bool{}
	for _, s := range c.GetNodeSets() {
		used[s.GetName()] = true
	}
	refer := func(j *apportionv1.Job) {
		for _, g := range j.GetGroups() {
			used[g.GetNodeSet()] = true
		}
		for _, task := range tasksOf(j) {
			used[task.GetDetail().GetNodeSet()] = true
		}
	}
	for _, j := range m.jobs {
		if j != nil && !replaced[uidOf(j)] {
			refer(j)
		}
	}
	for _, j := range c.GetJobs() {
		refer(j)
	}
	for _, s := range m.nodeSets {
		if s != nil && !used[s.GetName()] && rapid.Bool().Draw(t, "remove set") {
			c.RemoveNodeSets = append(c.RemoveNodeSets, s.GetName())
		}
	}
}

func (m *mirrored) drawJobs(
	t *rapid.T, c *apportionv1.Change, other *apportionv1.Snapshot, queues map[string]bool, taken map[string]bool,
) {
	places := m.places(c)
	sets := map[string]bool{}
	for _, s := range append(slices.Clone(m.nodeSets), c.GetNodeSets()...) {
		sets[s.GetName()] = true
	}
	for _, j := range m.jobs {
		if j != nil && rapid.IntRange(0, 7).Draw(t, "remove job") == 0 {
			c.RemoveJobs = append(c.RemoveJobs, uidOf(j))
			taken[uidOf(j)] = true
		}
	}
	names := make([]string, 0, len(queues))
	for name := range queues {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return
	}
	for k := rapid.IntRange(0, 3).Draw(t, "jobs"); k > 0 && len(other.GetJobs()) > 0; k-- {
		j := proto.CloneOf(rapid.SampledFrom(other.GetJobs()).Draw(t, "job"))
		if len(m.jobs) > 0 && rapid.Bool().Draw(t, "known job") {
			if known := rapid.SampledFrom(m.jobs).Draw(t, "known"); known != nil {
				j.Uid, j.Name, j.Namespace = known.GetUid(), known.GetName(), known.GetNamespace()
			}
		}
		if taken[uidOf(j)] {
			continue
		}
		taken[uidOf(j)] = true
		j.Queue = rapid.SampledFrom(names).Draw(t, "its queue")
		for _, g := range j.GetGroups() {
			if !sets[g.GetNodeSet()] {
				g.NodeSet = ""
			}
		}
		for _, task := range tasksOf(j) {
			if task.GetDetail() != nil && !sets[task.GetDetail().GetNodeSet()] {
				task.Detail.NodeSet = ""
			}
			if task.GetUid() != "" {
				task.Uid += "-" + strconv.Itoa(m.tasks) + "-" + strconv.Itoa(k)
			}
			task.Node = nil
			if len(places) > 0 && rapid.Bool().Draw(t, "placed") {
				task.Node = new(rapid.SampledFrom(places).Draw(t, "place"))
			}
		}
		c.Jobs = append(c.Jobs, j)
	}
}

func (m *mirrored) drawUpdates(t *rapid.T, c *apportionv1.Change, at int) {
	places := m.places(c)
	for i, task := range tasksOf(m.jobs[at]) {
		if rapid.IntRange(0, 15).Draw(t, "update") != 0 {
			continue
		}
		u := &apportionv1.TaskUpdate{Task: &apportionv1.TaskUpdate_Number{Number: uint32(m.first[at] + i)}}
		if task.GetUid() != "" && rapid.Bool().Draw(t, "by uid") {
			u.Task = &apportionv1.TaskUpdate_Uid{Uid: task.GetUid()}
		}
		u.Status = apportionv1.TaskStatus(rapid.Int32Range(0, 10).Draw(t, "status"))
		switch rapid.IntRange(0, 2).Draw(t, "move") {
		case 0:
			u.Place = &apportionv1.TaskUpdate_NoNode{NoNode: true}
		case 1:
			if len(places) > 0 {
				u.Place = &apportionv1.TaskUpdate_Node{Node: rapid.SampledFrom(places).Draw(t, "to")}
			}
		}
		c.Tasks = append(c.Tasks, u)
	}
}

// withinDimensions drops the amounts of a snapshot that lie beyond n dimensions.
func withinDimensions(s *apportionv1.Snapshot, n int) {
	cut := func(r *apportionv1.Resource) {
		for r != nil && len(r.Dimensions) > 0 && slices.Max(r.GetDimensions()) >= uint32(n) {
			at := slices.IndexFunc(r.GetDimensions(), func(d uint32) bool { return d >= uint32(n) })
			r.Dimensions, r.Amounts = slices.Delete(r.Dimensions, at, at+1), slices.Delete(r.Amounts, at, at+1)
		}
	}
	for _, node := range s.GetNodes() {
		cut(node.GetAllocatable())
		cut(node.GetUsedByOthers())
	}
	for _, q := range s.GetQueues() {
		cut(q.GetCapability())
		cut(q.GetGuarantee())
		cut(q.GetDeserved())
	}
	for _, j := range s.GetJobs() {
		cut(j.GetMinResources())
		for _, g := range j.GetGroups() {
			cut(g.GetRequest())
			for _, task := range g.GetTasks() {
				cut(task.GetDetail().GetRequest())
			}
		}
	}
}
