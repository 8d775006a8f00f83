package place

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Bound is what limits the tasks of a job on a node together; the zero value limits nothing.
type Bound struct {
	// group is the policy's bound to which they count, nil if there is none.
	group *policy.NodeBound
	// reserved are the reservations of the node, nil if it has none.
	reserved *policy.NodeReservations
	task     model.TaskID
	node     model.NodeID
}

// BoundOf returns what limits tasks like one on a node.
func BoundOf(h engine.Host, t model.TaskID, n model.NodeID) (b Bound) {
	if bounder, ok := h.NodeBounder(); ok {
		b.group = bounder.NodeBound(h.View().QueueOf(t), n)
	}
	if r := h.View().Reservations(); r.Reserved(n) {
		b.reserved, b.task, b.node = r, t, n
	}
	return b
}

// ExceededBy reports whether the bound leaves no room for an amount on the node, or a part that is kept of the node none beside another
// amount.
func (b Bound) ExceededBy(amount, beside resource.Row) bool {
	kept := b.reserved.Against(b.task, b.node, beside)
	return kept != nil && !kept.Whole() || b.group != nil && b.group.Exceeded(b.group.Used, amount) >= 0
}

// Filling has what is used of bounds with the tasks that are to be placed; a bound that it does not have is used as at present.
type Filling map[filled]resource.Row

// filled is a policy's bound, or a node of which room is kept.
type filled struct {
	group *policy.NodeBound
	node  model.NodeID
}

// Takes reports whether bounds leave room for one more request.
func (f Filling) Takes(b Bound, request resource.Row) bool {
	if b.group != nil && b.group.Exceeded(f.used(b.group), request) >= 0 {
		return false
	}
	return b.reserved == nil || b.reserved.Fits(b.task, b.node, f[filled{node: b.node}], nil)
}

func (f Filling) used(b *policy.NodeBound) resource.Row {
	if used, ok := f[filled{b, model.None}]; ok {
		return used
	}
	return b.Used
}

// Put adds a request to what is used of bounds. undo restores what was used before.
func (f Filling) Put(b Bound, request resource.Row) (undo func()) {
	if b.group == nil && b.reserved == nil {
		return func() {}
	}
	undo = func() {}
	if b.group != nil {
		undo = f.add(filled{b.group, model.None}, f.used(b.group), request)
	}
	if b.reserved != nil {
		key, first := filled{node: b.node}, undo
		second := f.add(key, f[key], request)
		undo = func() { second(); first() }
	}
	return undo
}

func (f Filling) add(key filled, before, request resource.Row) (undo func()) {
	after := resource.NewRow(len(request.V))
	if !before.Absent() {
		after.CopyFrom(before)
	}
	after.Add(request)
	f[key] = after
	return func() { f[key] = before }
}
