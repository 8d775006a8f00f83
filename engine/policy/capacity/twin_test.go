package capacity_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
)

// draw returns some of the dimensions with small amounts, or nothing.
func draw(t *rapid.T, label string, base bool) amounts {
	if rapid.IntRange(0, 3).Draw(t, label) == 0 && !base {
		return nil
	}
	a := amounts{}
	for _, name := range names {
		if rapid.Bool().Draw(t, label+name) {
			a[name] = float64(rapid.IntRange(0, 8).Draw(t, label+name+"amount"))
		}
	}
	return a
}

// drawCluster returns a tree of queues with jobs on leaves.
func drawCluster(t *rapid.T) cluster {
	c := cluster{total: amounts{"cpu": 20, "memory": 20, "gpu": 10, "pods": 20}}
	inner := map[string]bool{}
	n := rapid.IntRange(1, 9).Draw(t, "queues")
	for i := range n {
		q := queue{
			name: fmt.Sprint("q", i), priority: int32(rapid.IntRange(0, 1).Draw(t, "priority")),
			capability: draw(t, "capability", false), guarantee: draw(t, "guarantee", false), deserved: draw(t, "deserved", false),
		}
		if up := rapid.IntRange(-1, i-1).Draw(t, "parent"); up >= 0 {
			q.parent = fmt.Sprint("q", up)
			inner[q.parent] = true
		}
		c.queues = append(c.queues, q)
	}
	c.queues = append(c.queues, queue{name: "root", capability: rapid.SampledFrom([]amounts{nil, nil, {"cpu": 30, "gpu": 5}}).Draw(t, "root")})
	for _, q := range c.queues[:n] {
		for range rapid.IntRange(0, 2).Draw(t, "jobs") {
			if inner[q.name] {
				break
			}
			j := job{queue: q.name, phase: model.Phase(rapid.IntRange(0, 2).Draw(t, "phase")), min: draw(t, "min", false)}
			for range rapid.IntRange(1, 3).Draw(t, "tasks") {
				j.tasks = append(j.tasks, task{
					status: rapid.SampledFrom([]model.Status{model.Running, model.Pending, model.Bound}).Draw(t, "status"),
					gate:   model.Gate(rapid.IntRange(0, 2).Draw(t, "gate")), request: draw(t, "request", true),
				})
			}
			c.jobs = append(c.jobs, j)
		}
	}
	return c
}

// plain is a queue of the twin: everything in maps, found by recursion and by lists of ancestors.
type plain struct {
	queue
	ancestors                                          []string // root first
	children                                           []string
	allocated, guarantee, deserved, capability, limits amounts
}

func with(base amounts) amounts {
	a := amounts{"cpu": 0, "memory": 0}
	maps.Copy(a, base)
	return a
}

func add(a, b amounts) {
	for name, x := range b {
		a[name] += x
	}
}

func largest(a, b amounts) amounts {
	m := with(a)
	for name, x := range b {
		m[name] = math.Max(m[name], x)
	}
	return m
}

// twin builds the tree of queues.
func twin(c cluster) map[string]*plain {
	qs := map[string]*plain{}
	for _, q := range c.queues {
		qs[q.name] = &plain{
			queue: q, allocated: with(nil), guarantee: with(q.guarantee), deserved: with(q.deserved), capability: with(q.capability),
		}
	}
	for _, q := range qs {
		for at := q; at.name != "root"; {
			up := at.parent
			if up == "" {
				up = "root"
			}
			if at == q {
				qs[up].children = append(qs[up].children, q.name)
			}
			q.ancestors = append([]string{up}, q.ancestors...)
			at = qs[up]
		}
	}
	for _, j := range c.jobs {
		for _, each := range j.tasks {
			if each.status != model.Pending {
				for _, name := range append([]string{j.queue}, qs[j.queue].ancestors...) {
					add(qs[name].allocated, with(each.request))
				}
			}
		}
	}
	root := qs["root"]
	if root.queue.capability == nil {
		root.capability = amounts{}
		for name := range c.total {
			root.capability[name] = math.Inf(1)
		}
	}
	root.limits = root.capability
	root.guarantee, root.deserved = with(nil), with(nil)
	descend(qs, root)
	return qs
}

func descend(qs map[string]*plain, q *plain) {
	guaranteed := with(nil)
	for _, name := range q.children {
		child := qs[name]
		child.deserved = largest(child.deserved, child.guarantee)
		add(guaranteed, child.guarantee)
		if q.name == "root" {
			add(q.deserved, child.deserved)
		}
		for name, x := range q.capability {
			if _, named := child.capability[name]; !named || (name == "cpu" || name == "memory") && child.capability[name] <= 0 {
				child.capability[name] = x
			}
		}
	}
	if q.name == "root" {
		q.guarantee = guaranteed
	}
	for _, name := range q.children {
		child := qs[name]
		child.limits = with(nil)
		for name, x := range q.limits {
			if x > guaranteed[name] {
				child.limits[name] = x - guaranteed[name]
			}
		}
		add(child.limits, child.guarantee)
		for name, x := range child.limits {
			if limit, named := child.capability[name]; named {
				child.limits[name] = math.Min(x, limit)
			}
		}
		descend(qs, child)
	}
}

func common(a, b amounts) bool {
	for name, x := range a {
		if x >= 0.1 && b[name] >= 0.1 {
			return true
		}
	}
	return false
}

// exceeds is the test at one queue.
func (q *plain) exceeds(left, request amounts) bool {
	if !common(request, q.deserved) {
		return true
	}
	for name, x := range request {
		deserved, named := q.deserved[name]
		if name == "cpu" || name == "memory" {
			named = deserved >= 0.1
		}
		if name != "pods" && x > 0 && named && left[name] > deserved {
			return true
		}
	}
	return false
}

// nearest lists the level nearest ancestors, the parent first.
func (q *plain) nearest(level int) []string {
	up := slices.Clone(q.ancestors)
	slices.Reverse(up)
	return up[:min(level, len(up))]
}

type candidate struct {
	uid, queue string
	request    amounts
}

func plainReclaim(qs map[string]*plain, claimant candidate, candidates []candidate, level int) []string {
	var victims []string
	left := map[string]amounts{}
	for name, q := range qs {
		left[name] = maps.Clone(q.allocated)
	}
	mine := qs[claimant.queue]
	asked := maps.Clone(claimant.request)
	delete(asked, "pods")
next:
	for _, c := range candidates {
		q := qs[c.queue]
		if !common(asked, c.request) {
			continue
		}
		for name, x := range q.guarantee {
			if x-(left[c.queue][name]-c.request[name]) >= 0.1 {
				continue next
			}
		}
		if !q.exceeds(left[c.queue], c.request) {
			continue
		}
		if !common(c.request, q.deserved) && !common(claimant.request, mine.deserved) {
			for _, name := range q.nearest(level) {
				if name != "root" && slices.Contains(mine.nearest(level), name) {
					continue next
				}
			}
		}
		tested := []string{c.queue}
		for i, name := range q.nearest(level) {
			if own := mine.nearest(level); name == "root" || i < len(own) && own[i] == name {
				continue
			}
			if !qs[name].exceeds(left[name], c.request) {
				continue next
			}
			tested = append(tested, name)
		}
		for _, name := range tested {
			for d, x := range c.request {
				left[name][d] -= x
			}
		}
		victims = append(victims, c.uid)
	}
	return victims
}

func TestTheTreeAgreesWithItsPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		level := rapid.IntRange(0, 4).Draw(t, "level")
		s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: level})
		qs := twin(c)
		for name, q := range qs {
			got := s.share(name)
			require.Equal(t, q.allocated, s.row(got.Allocated), "allocated of %s", name)
			require.Equal(t, q.guarantee, s.row(got.Guarantee), "guarantee of %s", name)
			require.Equal(t, q.deserved, s.row(got.Deserved), "deserved of %s", name)
			require.Equal(t, q.capability, s.row(got.Capability), "capability of %s", name)
			require.Equal(t, q.limits, s.row(got.RealCapability), "real capability of %s", name)
		}
		var all []candidate
		for i, j := range c.jobs {
			for k, each := range j.tasks {
				all = append(all, candidate{fmt.Sprintf("j%d.%d", i, k), j.queue, each.request})
			}
		}
		for _, claimant := range all {
			checkAllocatable(t, s, qs, claimant)
			var candidates []candidate
			var uids []string
			for _, c := range rapid.Permutation(all).Draw(t, "candidates") {
				if s.v.Status(s.task(c.uid)) != model.Pending {
					candidates, uids = append(candidates, c), append(uids, c.uid)
				}
			}
			victims, _, vote := s.reclaimable(claimant.uid, uids...)
			require.Equal(t, policy.Permit, vote)
			require.Equal(t, plainReclaim(qs, claimant, candidates, level), victims)
		}
		for name, q := range qs {
			require.Equal(t, q.allocated, s.row(s.share(name).Allocated), "allocated of %s, untouched", name)
		}
	})
}

func checkAllocatable(t *rapid.T, s session, qs map[string]*plain, task candidate) {
	fits := true
	for _, name := range append([]string{task.queue}, qs[task.queue].ancestors...) {
		for d, x := range task.request {
			fits = fits && (d == "pods" || x == 0 || qs[name].allocated[d]+x <= qs[name].limits[d])
		}
	}
	got, _ := s.allocatable(task.uid, policy.InSession)
	require.Equal(t, fits, got, "allocatable %s", task.uid)
}

func TestQueueOrderIsAntisymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCluster(t).tree(t)
		for l := range s.v.Queues {
			for r := range s.v.Queues {
				l, r := model.QueueID(l), model.QueueID(r)
				require.Equal(t, s.CompareQueues(l, r), -s.CompareQueues(r, l))
			}
		}
	})
}

func TestNearnessAgreesWithListsOfAncestors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		s, qs := c.tree(t), twin(c)
		order := s.decider.(policy.VictimQueueOrderer)
		near := func(q, claimant string) int {
			n := 0
			for i, name := range qs[q].ancestors {
				if i >= len(qs[claimant].ancestors) || qs[claimant].ancestors[i] != name {
					break
				}
				n = i
			}
			return n
		}
		pick := rapid.SampledFrom(slices.Sorted(maps.Keys(qs)))
		for range 20 {
			q, claimant := pick.Draw(t, "queue"), pick.Draw(t, "claimant")
			require.Equal(t, near(q, claimant), int(order.Nearness(s.queue(q), s.queue(claimant))))
		}
	})
}

func TestEventsAndPermitsAreUndoneToTheBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		s := c.open(t, capacity.Plugin{Hierarchical: rapid.Bool().Draw(t, "hierarchical")})
		look := func() []any {
			var seen []any
			for q := range s.v.Queues {
				share, takesPart := s.Share(model.QueueID(q))
				seen = append(seen, takesPart, share.Share, share.Dominant, s.row(share.Allocated), s.row(share.Inqueue))
			}
			return seen
		}
		before := look()
		mark := s.v.Journal.Mark()
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			if s.v.Tasks.Len() == 0 {
				break
			}
			task := model.TaskID(rapid.IntRange(0, s.v.Tasks.Len()-1).Draw(t, "task"))
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				s.Allocate(task)
			case 1:
				s.Deallocate(task)
			default:
				s.Enqueueable(s.v.Tasks.At(task).Job, nil)
			}
		}
		s.v.Journal.Rollback(mark)
		require.Equal(t, before, look())
	})
}
