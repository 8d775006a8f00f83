package engine

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Nodes answers which nodes take which tasks.
type Nodes struct{ s *Session }

// Nodes returns the questions about nodes.
func (s *Session) Nodes() Nodes { return Nodes{s} }

// Fits reports whether every plugin permits a task on a node, the node takes new tasks, and is among those that the task may use. The first
// failed condition gives the reason, a plugin's before the node's, so that plugins answer as they do for nodes that take all tasks. It does
// not test the node's free resources: see HasRoom. The rules on other pods count the pods that are on nodes in the present state.
func (m Nodes) Fits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	return m.s.Host().FitsWhen(t, n, false, why)
}

// FitsWhen is Fits now, or later: once what is being released is gone.
func (h Host) FitsWhen(t model.TaskID, n model.NodeID, later bool, why *policy.Reasons) bool {
	if !h.Admits(t, n, why) {
		return false
	}
	pods := h.view.CountPods()
	return pods == nil || pods.Fits(t, n, later, why)
}

// Admits is Fits without the rules on other pods.
func (h Host) Admits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	return h.PolicyFits(t, n, why) && h.Takes(t, n, why)
}

// PolicyFits reports whether every plugin permits a task on a node.
func (h Host) PolicyFits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	for _, p := range h.by.predicate {
		if !p.Fits(t, n, why) {
			return false
		}
	}
	return true
}

// Predicates returns the plugins that permit tasks on nodes, in order of the policy.
func (h Host) Predicates() []policy.Predicater { return h.by.predicate }

// filter says whether a policy.NodeFilter is in the policy.
type filter uint8

const (
	noFilter filter = iota
	filtersNodes
	// placesNothing: it is there, and is excluded from its decision.
	placesNothing
)

// FiltersNodes reports whether Volcano filters nodes by what they and the pods say under this policy: without its plugin `predicates` it
// heeds neither selectors, taints and cordons nor the number of pods. The questions of Nodes heed them always.
func (h Host) FiltersNodes() bool { return h.by.filter == filtersNodes }

// PlacesNothing reports whether Volcano's allocate, preempt and reclaim place no task under this policy: `predicates` takes back each task
// that it has not prepared, and prepares none where `enablePredicate` is false.
func (h Host) PlacesNothing() bool { return h.by.filter == placesNothing }

// NodeBounder returns the plugin that bounds what queues use of groups of nodes; false if there is none. No two have bounds, since no
// plugin occurs twice.
func (h Host) NodeBounder() (policy.NodeBounder, bool) {
	if len(h.by.bounds) == 0 {
		return nil, false
	}
	return h.by.bounds[0], true
}

// Takes reports whether a node takes new tasks, is among those that a task may use, and is not kept for others while the task runs.
func (h Host) Takes(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	return h.Opens(t, n, why) && h.view.Reservations().Fits(t, n, resource.Row{}, why)
}

// Opens is takes without what is kept of the node.
func (h Host) Opens(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	v := h.view
	set := v.NodeSetOf(t)
	if u := v.Closed(n, set); u != nil {
		reason := policy.Because("", policy.NodeUnschedulable, model.None)
		reason.Detail = u.String()
		why.Add(reason)
		return false
	}
	if v.InSet(set, n) {
		return true
	}
	reason := policy.Because("", policy.NodeNotInSet, model.None)
	reason.Detail = v.NodeSets[set].Exclusion(n).Rule
	why.Add(reason)
	return false
}

// Scorer is a plugin that scores nodes.
type Scorer struct {
	Name string
	policy.NodeScorer
}

// Scorers returns the plugins that score nodes, in order of the policy.
func (m Nodes) Scorers() []Scorer {
	list := make([]Scorer, len(m.s.by.score))
	for i, p := range m.s.by.score {
		list[i] = Scorer{p.name, p.part}
	}
	return list
}

// HasRoom reports whether a node has enough free resources for a task, with Volcano's tolerance (Resource.LessEqual on NodeInfo.Idle).
func (m Nodes) HasRoom(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	v := m.s.view
	idle := &m.s.scratch
	v.Idle(n, idle)
	request := v.Request(t)
	d := resource.FirstUncovered(*idle, request)
	if d < 0 {
		return true
	}
	reason := policy.Because("", policy.InsufficientResource, model.None)
	reason.Dimension = d
	reason.Have, reason.Need, reason.Limit = v.Used(n).V[d], request.V[d], v.Nodes[n].Allocatable.V[d]
	why.Add(reason)
	return false
}

// BestNodes appends to dst the positions of the top nodes that fit, the highest score first; ties are broken by the lowest rank, then by
// position. With top <= 0 it appends all positions in the order of the list.
func BestNodes(fits []bool, score []float64, rank []int32, top int, dst []int) []int {
	if top <= 0 {
		for i := range fits {
			dst = append(dst, i)
		}
		return dst
	}
	best := func() {
		slices.SortFunc(dst, func(l, r int) int {
			return cmp.Or(cmp.Compare(score[r], score[l]), cmp.Compare(rank[l], rank[r]), cmp.Compare(l, r))
		})
		dst = dst[:min(top, len(dst))]
	}
	// Never sort more than twice the requested number.
	for i, fit := range fits {
		if !fit {
			continue
		}
		if dst = append(dst, i); len(dst)/2 >= top {
			best()
		}
	}
	best()
	return dst
}

// Released sums by node what is being released and not promised to tasks that wait for it.
func (h Host) Released() map[model.NodeID]*resource.Row {
	v := h.view
	released := map[model.NodeID]*resource.Row{}
	for _, j := range v.Present() {
		account := v.Account(j)
		if account.Tasks[model.Releasing]+account.Tasks[model.Pipelined] == 0 {
			continue
		}
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			status, n := v.Status(t), v.NodeOf(t)
			if n == model.None || status != model.Releasing && status != model.Pipelined {
				continue
			}
			row := released[n]
			if row == nil {
				made := resource.NewRow(v.Dims.Len())
				row, released[n] = &made, &made
			}
			if status == model.Releasing {
				row.Add(v.Request(t))
			} else {
				row.Sub(v.Request(t))
			}
		}
	}
	for n, row := range released {
		if row.FloorAtZero(); row.Positive() == 0 {
			delete(released, n)
		}
	}
	return released
}

// Bounded reports whether a plugin bounds what a queue uses of some groups of nodes, or reservations what is used of some nodes.
func (h Host) Bounded(q model.QueueID) bool {
	return h.view.Reservations() != nil || len(h.by.bounds) > 0 && h.by.bounds[0].Bounded(q)
}
