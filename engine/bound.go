package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// bounded reports whether a plugin bounds what a queue uses of some groups of nodes.
func (s *Session) bounded(q model.QueueID) bool {
	return len(s.by.bounds) > 0 && s.by.bounds[0].Bounded(q)
}

// nodeBound returns the bound to which a task counts on a node, nil if there is none. No two plugins have bounds, since none occurs twice.
func (s *Session) nodeBound(t model.TaskID, n model.NodeID) *policy.NodeBound {
	if len(s.by.bounds) == 0 {
		return nil
	}
	return s.by.bounds[0].NodeBound(s.view.QueueOf(t), n)
}

// exhausted reports whether a bound alone keeps a task that is to be placed off some node at present.
func (p *planner) exhausted() bool {
	if !p.bounded(p.queue) {
		return false
	}
	for _, kind := range p.kinds() {
		t := p.tasks[kind[0]]
		for i, n := range p.view.NodeOrder {
			p.view.Yield(i)
			if b := p.nodeBound(t, n); b != nil && b.Exceeded(b.Used, p.view.Request(t)) >= 0 {
				return true
			}
		}
	}
	return false
}

// filling has what is used of bounds with the tasks that are to be placed; a bound that it does not have is used as at present.
type filling map[*policy.NodeBound]resource.Row

// takes reports whether a bound, which may be nil, leaves room for one more request.
func (f filling) takes(b *policy.NodeBound, request resource.Row) bool {
	return b == nil || b.Exceeded(f.used(b), request) < 0
}

func (f filling) used(b *policy.NodeBound) resource.Row {
	if used, ok := f[b]; ok {
		return used
	}
	return b.Used
}

// put adds a request to what is used of a bound, which may be nil. undo restores what was used before.
func (f filling) put(b *policy.NodeBound, request resource.Row) (undo func()) {
	if b == nil {
		return func() {}
	}
	before := f.used(b)
	after := resource.NewRow(len(before.V))
	after.CopyFrom(before)
	after.Add(request)
	f[b] = after
	return func() { f[b] = before }
}
