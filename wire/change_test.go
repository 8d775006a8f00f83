package wire_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/wire"
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
		for i, d := range r.GetDimension() {
			r.Dimension[i] = uint32(slices.Index(m.dimensions, own[d]))
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
		for r != nil && len(r.Dimension) > 0 && slices.Max(r.GetDimension()) >= uint32(n) {
			at := slices.IndexFunc(r.GetDimension(), func(d uint32) bool { return d >= uint32(n) })
			r.Dimension, r.Amount = slices.Delete(r.Dimension, at, at+1), slices.Delete(r.Amount, at, at+1)
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

var positions = regexp.MustCompile(`(queues|jobs)\[(\d+)\]`)

// basis is a Basis with its positions as n has them, and without the warning that only the result of a change has.
func (n numbers) basis(b *apportionv1.Basis) string {
	b.Warnings = slices.DeleteFunc(b.Warnings, func(w *apportionv1.Warning) bool {
		return w.GetCode() == apportionv1.WarningCode_WARNING_CODE_TASKS_OFF_NODE
	})
	n.renumber(b.ProtoReflect(), nil)
	for _, w := range b.GetWarnings() {
		w.Path = positions.ReplaceAllStringFunc(w.GetPath(), func(s string) string {
			part := positions.FindStringSubmatch(s)
			at, _ := strconv.ParseUint(part[2], 10, 64)
			if to := map[string]map[uint64]uint64{"queues": n.queues, "jobs": n.jobs}[part[1]]; to != nil {
				at = to[at]
			}
			return fmt.Sprintf("%s[%d]", part[1], at)
		})
	}
	return prototext.Format(b)
}

// aResultAnswersAsTheWhole draws a snapshot and a chain of changes, and requires that each result answers as its snapshot sent whole.
func aResultAnswersAsTheWhole(t *rapid.T, policy string) {
	aChainAnswersAsTheWhole(t, rapid.IntRange(1, 4).Draw(t, "changes"), 1, policy)
}

// aChainAnswersAsTheWhole draws a snapshot and so many changes, and requires that every so many of the results, and the last, answer as
// their snapshots sent whole.
func aChainAnswersAsTheWhole(t *rapid.T, changes, every int, asked ...string) {
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	rough := rapid.Bool().Draw(t, "rough")
	if rough {
		roughen(snapshot, rapid.Uint64().Draw(t, "roughness"))
	}
	twin := mirror(snapshot)
	m, err := wire.Compile(snapshot)
	require.NoError(t, err)
	var decoder wire.Decoder
	for i := range changes {
		other := drawSnapshot(t, rapid.Bool().Draw(t, "other uids"))
		if rough {
			roughen(other, rapid.Uint64().Draw(t, "other roughness"))
		}
		change := twin.drawn(t, other)
		data, err := proto.Marshal(change)
		require.NoError(t, err)
		base := wire.SnapshotOf(m)
		result, err := decoder.CompileChangeInParts(m, data, rapid.IntRange(1, 3).Draw(t, "parts"))
		require.NoError(t, err, "%v", change)
		require.Equal(t, prototext.Format(base), prototext.Format(wire.SnapshotOf(m)), "the base stays as it is")
		m = result
		twin.apply(change)
		if (i+1)%every != 0 && i+1 < changes {
			continue
		}
		for _, policy := range asked {
			requireSame(t, twin, m, policy)
		}
	}
}

func TestALongChainOfChangesAnswersAsTheWhole(t *testing.T) {
	asked := []string{`tiers { plugins { fair {} } }`}
	for _, name := range policyNames {
		asked = append(asked, policies[name])
	}
	rapid.Check(t, func(t *rapid.T) { aChainAnswersAsTheWhole(t, 24, 24, asked...) })
}

func requireSame(t *rapid.T, twin *mirrored, m *model.Model, policy string) {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	state, n := twin.whole()
	whole, err := wire.Compile(state)
	require.NoError(t, err)
	fresh, wrong := wire.Open(whole, p, wire.Options{})
	s, err := wire.Open(m, p, wire.Options{})
	if wrong != nil {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	requireAnswers(t, fresh, s, state, n)
}

// requireAnswers compares what two sessions say of a state, whose numbers in the second one n replaces by those of the first one.
func requireAnswers(t *rapid.T, fresh, s *wire.Session, state *apportionv1.Snapshot, n numbers) {
	require.Equal(t, numbers{}.basis(fresh.Basis()), n.basis(s.Basis()))
	for _, step := range everything(state) {
		here := proto.CloneOf(step)
		n.inverse().renumber(here.ProtoReflect(), nil)
		got := s.Do(here)
		ordered := n.queues
		if step.GetOrder().GetJobs() != nil {
			ordered = n.jobs
		}
		n.renumber(got.ProtoReflect(), ordered)
		require.Equal(t, prototext.Format(fresh.Do(step)), prototext.Format(got), "%v", step)
	}
}

func TestTheResultOfAChangeAnswersAsTheWholeBitForBit(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, aResultAnswersAsTheWhole)
	t.Run("fair", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { aResultAnswersAsTheWhole(t, `tiers { plugins { fair {} } }`) })
	})
}

func FuzzTheResultOfAChangeAnswersAsTheWhole(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		names := make([]string, 0, len(policies))
		for name := range policies {
			names = append(names, name)
		}
		slices.Sort(names)
		aResultAnswersAsTheWhole(t, policies[rapid.SampledFrom(names).Draw(t, "policy")])
	}))
}

// flaws make a valid change faulty, each under the path that it returns. n is the number of tasks of the snapshot that is changed.
var flaws = []func(c *apportionv1.Change, n int) string{
	func(c *apportionv1.Change, _ int) string {
		c.RemoveNodes = append(c.RemoveNodes, "no such node")
		return fmt.Sprintf("change.remove_nodes[%d]", len(c.GetRemoveNodes())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveQueues = append(c.RemoveQueues, "no such queue")
		return fmt.Sprintf("change.remove_queues[%d]", len(c.GetRemoveQueues())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveNodeSets = append(c.RemoveNodeSets, "no such set")
		return fmt.Sprintf("change.remove_node_sets[%d]", len(c.GetRemoveNodeSets())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveJobs = append(c.RemoveJobs, "no such job")
		return fmt.Sprintf("change.remove_jobs[%d]", len(c.GetRemoveJobs())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Nodes = append(c.Nodes, &apportionv1.Node{Name: "twice"}, &apportionv1.Node{Name: "twice"})
		return fmt.Sprintf("change.nodes[%d].name", len(c.GetNodes())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Queues = append(c.Queues, &apportionv1.Queue{})
		return fmt.Sprintf("change.queues[%d].name", len(c.GetQueues())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Jobs = append(c.Jobs, &apportionv1.Job{Name: "flawed", Queue: "no such queue"})
		return fmt.Sprintf("change.jobs[%d].queue", len(c.GetJobs())-1)
	},
	func(c *apportionv1.Change, n int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Task: &apportionv1.TaskUpdate_Number{Number: uint32(n)}})
		return fmt.Sprintf("change.tasks[%d].number", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Status: apportionv1.TaskStatus_TASK_STATUS_FAILED})
		return fmt.Sprintf("change.tasks[%d].uid", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Status: 77})
		return fmt.Sprintf("change.tasks[%d].status", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.ClearTotal, c.Total = true, &apportionv1.Resource{}
		return "change.clear_total"
	},
	func(c *apportionv1.Change, _ int) string {
		c.Nodes = append(c.Nodes, &apportionv1.Node{Name: "flawed", Allocatable: &apportionv1.Resource{Dimension: []uint32{999}, Amount: []float64{1}}})
		return fmt.Sprintf("change.nodes[%d].allocatable.dimension", len(c.GetNodes())-1)
	},
}

// aFlawedChangeIsRefused draws a snapshot and a change with some flaws, and requires that each flaw is named and that the snapshot stays as
// it is: the same change without them has the same result as before.
func aFlawedChangeIsRefused(t *rapid.T) {
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	m, err := wire.Compile(snapshot)
	require.NoError(t, err)
	change := mirror(snapshot).drawn(t, drawSnapshot(t, rapid.Bool().Draw(t, "other uids")))
	result := func(c *apportionv1.Change) (*model.Model, error) {
		data, err := proto.Marshal(c)
		require.NoError(t, err)
		n := rapid.IntRange(1, 3).Draw(t, "parts")
		return new(wire.Decoder).CompileChangeInParts(m, data, n)
	}
	want, err := result(change)
	require.NoError(t, err)
	before := prototext.Format(wire.SnapshotOf(m))
	flawed := proto.CloneOf(change)
	var paths []string
	for _, flaw := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(flaws)-1), 1, len(flaws), rapid.ID[int]).Draw(t, "flaws") {
		paths = append(paths, flaws[flaw](flawed, m.Tasks.Len()))
	}
	_, err = result(flawed)
	var fault *wire.Fault
	require.ErrorAs(t, err, &fault)
	named := map[string]bool{}
	for _, v := range fault.Violations.Violations {
		named[v.Path] = true
	}
	for _, path := range paths {
		require.True(t, named[path], "%s is not among %v", path, fault)
	}
	require.Equal(t, before, prototext.Format(wire.SnapshotOf(m)))
	again, err := result(change)
	require.NoError(t, err)
	require.Equal(t, prototext.Format(wire.SnapshotOf(want)), prototext.Format(wire.SnapshotOf(again)))
}

func TestAFlawedChangeIsRefusedAndLeavesTheSnapshotAsItIs(t *testing.T) {
	rapid.Check(t, aFlawedChangeIsRefused)
}

func FuzzAFlawedChangeIsRefused(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(aFlawedChangeIsRefused))
}

func TestAChangeReadInPartsIsThatReadInOneGo(t *testing.T) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: 1, Depth: 2, Dimensions: 5, UIDs: true})
	base, err := wire.Compile(snapshot)
	require.NoError(t, err)
	first := func(j *apportionv1.Job) *apportionv1.Task { return j.GetGroups()[0].GetTasks()[0] }
	for name, spoil := range map[string]func(c *apportionv1.Change){
		"sound":                 func(*apportionv1.Change) {},
		"a uid in two parts":    func(c *apportionv1.Change) { first(c.GetJobs()[19]).Uid = first(c.GetJobs()[0]).GetUid() },
		"a uid twice in a part": func(c *apportionv1.Change) { first(c.GetJobs()[19]).Uid = first(c.GetJobs()[18]).GetUid() },
		"a uid of a job that stays": func(c *apportionv1.Change) {
			c.GetJobs()[12].Uid, first(c.GetJobs()[19]).Uid = "another", first(c.GetJobs()[12]).GetUid()
		},
		"a job in two parts":               func(c *apportionv1.Change) { c.GetJobs()[19].Uid = c.GetJobs()[0].GetUid() },
		"a job removed too":                func(c *apportionv1.Change) { c.RemoveJobs = append(c.RemoveJobs, c.GetJobs()[19].GetUid()) },
		"no such queue, in two parts":      func(c *apportionv1.Change) { c.GetJobs()[0].Queue, c.GetJobs()[19].Queue = "none", "neither" },
		"a number that stands for nothing": func(c *apportionv1.Change) { first(c.GetJobs()[19]).Status = 99 },
	} {
		t.Run(name, func(t *testing.T) {
			change := generate.Change(proto.CloneOf(snapshot), 20, 1)
			spoil(change)
			data, err := proto.Marshal(change)
			require.NoError(t, err)
			d := new(wire.Decoder)
			want, wrong := d.CompileChangeInParts(base, data, 1)
			for _, n := range []int{2, 3, 5, 2} {
				got, err := d.CompileChangeInParts(base, data, n)
				if wrong != nil {
					require.EqualError(t, err, wrong.Error())
					continue
				}
				require.NoError(t, err)
				require.Equal(t, public(want), public(got))
				for _, j := range change.GetJobs() {
					uid := first(j).GetUid()
					at, found := got.TaskOf(uid)
					require.True(t, found)
					require.Equal(t, uid, got.TaskUID(at))
				}
			}
		})
	}
}
