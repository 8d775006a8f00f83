package volcano

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// predicates is the plugin that filters nodes.
const predicates = "predicates"

// loaded reports whether the policy has a plugin.
func (r *run) loaded(name string) bool {
	return slices.ContainsFunc(r.Plugins(), func(p engine.Opened) bool { return p.Name == name })
}

// admits reports whether a node may take a task, whatever is free there. crowded lets it have more pods than it takes.
func (r *run) admits(t model.TaskID, n model.NodeID, crowded bool) bool {
	if !r.FiltersNodes() {
		return r.PolicyFits(t, n, nil)
	}
	return (crowded || !r.book.full(n)) && r.Nodes().Fits(t, n, nil)
}

// memory has the nodes that failed for a role, which are not looked at again for another task of it.
type memory map[model.GroupID][]bool

// search lists the nodes that a task may use: they admit it, and have enough in one of their accounts, if one is given.
func (r *run) search(t model.TaskID, nodes []model.NodeID, m memory, crowded bool, room func(*node) *resource.Row) []model.NodeID {
	r.prepared[t] = true
	r.spend(len(nodes))
	var known []bool
	if g, ok := r.role(t); ok && m != nil {
		if m[g] == nil {
			m[g] = make([]bool, len(r.nodes))
		}
		known = m[g]
	}
	request := r.view.Request(t)
	fits := r.fits[:0]
	for _, n := range nodes {
		if r.stop() {
			break
		}
		if known != nil && known[n] {
			continue
		}
		if (room == nil || resource.FirstUncovered(*room(&r.nodes[n]), request) < 0) && r.admits(t, n, crowded) {
			fits = append(fits, n)
		} else if known != nil {
			known[n] = true
		}
	}
	r.fits = fits
	return fits
}

func idle(n *node) *resource.Row   { return &n.idle }
func future(n *node) *resource.Row { return &n.future }

// fitsIn reports whether a task has room in an account of a node.
func (r *run) fitsIn(t model.TaskID, n model.NodeID, room func(*node) *resource.Row) bool {
	return resource.FirstUncovered(*room(&r.nodes[n]), r.view.Request(t)) < 0
}

// choose returns the node that a task goes to: of those where it fits now, or if there are none of all, the one with the highest score, and
// of equal ones the first.
func (r *run) choose(t model.TaskID, fits []model.NodeID) (n model.NodeID, as kind) {
	now := make([]model.NodeID, 0, len(fits))
	for _, n := range fits {
		if r.fitsIn(t, n, idle) {
			now = append(now, n)
		}
	}
	if len(now) > 0 {
		return r.best(t, now), allocated
	}
	return r.best(t, fits), pipelined
}

// best returns the node with the highest score, the first of equal ones.
func (r *run) best(t model.TaskID, nodes []model.NodeID) model.NodeID {
	if len(nodes) == 1 {
		return nodes[0]
	}
	at := 0
	for i, score := range r.score(t, nodes) {
		if score > r.total[at] {
			at = i
		}
	}
	return nodes[at]
}

// score returns the score of each node for a task; the list is valid until the next call.
func (r *run) score(t model.TaskID, nodes []model.NodeID) []float64 {
	r.total, r.scores = slices.Grow(r.total[:0], len(nodes))[:len(nodes)], slices.Grow(r.scores[:0], len(nodes))[:len(nodes)]
	clear(r.total)
	for _, scorer := range r.Nodes().Scorers() {
		scorer.ScoreNodes(t, nodes, r.scores)
		for i, score := range r.scores {
			r.total[i] += score
		}
	}
	return r.total
}

// byScore sorts nodes by their score for a task, the highest first, and equal ones as they are.
func (r *run) byScore(t model.TaskID, nodes []model.NodeID) []model.NodeID {
	scores := r.score(t, nodes)
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(l, k int) int {
		switch {
		case scores[l] > scores[k]:
			return -1
		case scores[l] < scores[k]:
			return 1
		}
		return 0
	})
	sorted := make([]model.NodeID, len(nodes))
	for i, at := range order {
		sorted[i] = nodes[at]
	}
	return sorted
}
