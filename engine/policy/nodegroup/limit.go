package nodegroup

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// limits bound what the tasks of queues hold on groups of nodes, from policy.V116 on.
type limits struct {
	*state

	// of has the bounds of each queue by number of the group.
	of [][]bound
	// left is the node of the task that moved last before it moved, or model.None.
	left model.NodeID
}

type bound struct {
	group groupID
	policy.NodeBound
}

var (
	_ policy.NodeBounder   = (*limits)(nil)
	_ policy.EventHandler  = (*limits)(nil)
	_ policy.StatusHandler = (*limits)(nil)
)

// limited returns the state with the limits of its queues, or as it is if there are none.
func (s *state) limited(known names) policy.State {
	v := s.view
	if !slices.ContainsFunc(v.Queues, func(q model.Queue) bool { return q.NodeLimits != nil }) {
		return s
	}
	l := &limits{state: s, of: make([][]bound, len(v.Queues)), left: model.None}
	s.limits = l
	for q := range v.Queues {
		if v.Queues[q].NodeLimits.Len() == 0 {
			continue
		}
		used := resource.NewAccounts(len(v.Queues[q].NodeLimits.Groups), v.Dims.Len())
		for i, g := range v.Queues[q].NodeLimits.Groups {
			l.of[q] = append(l.of[q], bound{known.id(g.Group), policy.NodeBound{Group: g.Group, Used: used[i], Limit: g.Limit}})
		}
		slices.SortFunc(l.of[q], func(l, r bound) int { return cmp.Compare(l.group, r.group) })
	}
	l.count()
	return l
}

// count adds the tasks that hold resources to what is used of their bounds.
func (l *limits) count() {
	v, passed := l.view, 0
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		if !l.Bounded(job.Queue) {
			continue
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(passed)
			passed++
			if !v.Status(t).Holds() {
				continue
			}
			if b := l.boundAt(job.Queue, v.NodeOf(t)); b != nil {
				b.Used.Add(v.Request(t))
			}
		}
	}
}

// Bounded reports whether a queue itself has limits: it inherits none.
func (l *limits) Bounded(q model.QueueID) bool { return len(l.of[q]) > 0 }

// NodeBound returns the limit of a queue for the group of a node, nil if there is none.
func (l *limits) NodeBound(q model.QueueID, n model.NodeID) *policy.NodeBound { return l.boundAt(q, n) }

func (l *limits) boundAt(q model.QueueID, n model.NodeID) *policy.NodeBound {
	if n == model.None || len(l.of[q]) == 0 || l.groups[n] == unlabelled {
		return nil
	}
	i, found := slices.BinarySearchFunc(l.of[q], l.groups[n], func(b bound, group groupID) int { return cmp.Compare(b.group, group) })
	if !found {
		return nil
	}
	return &l.of[q][i].NodeBound
}

// takes reports whether the limit of the task's queue for the group of a node leaves room for it. A nil *limits takes every task.
func (l *limits) takes(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	if l == nil {
		return true
	}
	q, request := l.view.QueueOf(t), l.view.Request(t)
	b := l.boundAt(q, n)
	if b == nil {
		return true
	}
	d := b.Exceeded(b.Used, request)
	if d < 0 {
		return true
	}
	reason := policy.Because(Name, policy.AboveNodeGroupLimit, q)
	reason.Dimension, reason.Have, reason.Need, reason.Limit, reason.Detail = d, b.Used.V[d], request.V[d], b.Limit.V[d], b.Group
	why.Add(reason)
	return false
}

// Allocate adds a task to what is used of its bound.
func (l *limits) Allocate(t model.TaskID) {
	if b := l.boundAt(l.view.QueueOf(t), l.view.NodeOf(t)); b != nil {
		l.view.Journal.Row(&b.Used)
		b.Used.Add(l.view.Request(t))
	}
}

// Moved notes the node that a task was on: a task may leave its node as it ceases to hold resources.
func (l *limits) Moved(_ model.TaskID, _ model.Status, node model.NodeID) { l.left = node }

// Deallocate subtracts a task, which moved last, from what is used of the bound of its former node.
func (l *limits) Deallocate(t model.TaskID) {
	if b := l.boundAt(l.view.QueueOf(t), l.left); b != nil {
		l.view.Journal.Row(&b.Used)
		b.Used.SubWithin(l.view.Request(t))
	}
}
