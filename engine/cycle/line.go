package cycle

import "container/heap"

// Line is a heap of those that wait, the first to be served on top. As in Volcano, one whose place in the order changes while it stands in
// line is not sorted anew. A nil Line is empty.
type Line[ID ~int32] struct {
	// Before reports whether l is served before r, in the present state.
	Before func(l, r ID) bool

	ids []ID
}

// Empty reports whether nobody stands in line.
func (l *Line[ID]) Empty() bool { return l == nil || len(l.ids) == 0 }

// Put adds one.
func (l *Line[ID]) Put(id ID) { heap.Push((*heaped[ID])(l), id) }

// sort makes a heap of those that were added in any order.
func (l *Line[ID]) sort() { heap.Init((*heaped[ID])(l)) }

// Take removes the first and returns it; the line is not empty.
func (l *Line[ID]) Take() ID {
	first, _ := heap.Pop((*heaped[ID])(l)).(ID)
	return first
}

// heaped is a Line for package heap.
type heaped[ID ~int32] Line[ID]

// Len, Less, Swap, Push and Pop are for package heap.
func (h *heaped[ID]) Len() int { return len(h.ids) }

func (h *heaped[ID]) Less(i, k int) bool { return h.Before(h.ids[i], h.ids[k]) }

func (h *heaped[ID]) Swap(i, k int) { h.ids[i], h.ids[k] = h.ids[k], h.ids[i] }

// Push is for package heap.
func (h *heaped[ID]) Push(x any) {
	if id, ok := x.(ID); ok {
		h.ids = append(h.ids, id)
	}
}

// Pop is for package heap.
func (h *heaped[ID]) Pop() any {
	last := h.ids[len(h.ids)-1]
	h.ids = h.ids[:len(h.ids)-1]
	return last
}
