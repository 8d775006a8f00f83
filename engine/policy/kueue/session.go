package kueue

import (
	"slices"

	"github.com/apportion/apportion/engine/policy"
)

// Session judges workloads of a model. What it assumes for a question it undoes: between questions it is as it was. It is for one
// goroutine.
type Session struct {
	*Model

	// usage is the usage of each node in its row.
	usage []Amount
	// gone are workloads that are assumed to have left.
	gone []bool
	// booked says which pending workloads have usage that is counted already, bookings how many.
	booked   []bool
	bookings int
	// shares are the shares of nodes where they are known.
	shares []share
	known  []bool
	// restricted, if not nil, has the only flavors that may be tried: by pod set and resource.
	restricted []flavoredSet

	scratch scratch

	// view has the work that questions may take; nil: any. spends counts how often some was spent.
	view   *policy.View
	spends uint
}

// scratch holds memory that questions use again.
type scratch struct {
	asked  []request
	needed []int32
	wanted []Use
	cells  []cell
}

// NewSession returns a session in the state of the model.
func (m *Model) NewSession() *Session {
	return &Session{
		Model: m, usage: slices.Clone(m.usage), gone: make([]bool, len(m.workloads)), shares: make([]share, len(m.nodes)),
		known: make([]bool, len(m.nodes)), booked: make([]bool, len(m.workloads)),
	}
}

// localAvailable returns the unused part of the quota that a node never lends.
func (s *Session) localAvailable(n *node, fr int32) Amount {
	return max(0, s.quotas.local[n.row+fr].minus(s.usage[n.row+fr]))
}

// available returns what a node can still use; negative where more is used than there is.
func (s *Session) available(id, fr int32) Amount {
	n, a := &s.nodes[id], &s.quotas
	at := n.row + fr
	if n.parent == none {
		return a.subtree[at].minus(s.usage[at])
	}
	above := s.available(n.parent, fr)
	if a.kept[at]&hasBorrowing != 0 {
		stored := a.subtree[at].minus(a.local[at])
		used := max(0, s.usage[at].minus(a.local[at]))
		above = min(above, stored.minus(used).plus(a.borrowing[at]))
	}
	return s.localAvailable(n, fr).plus(above)
}

// borrows reports whether a node would use more than its own quota with an additional amount.
func (s *Session) borrows(id, fr int32, extra Amount) bool {
	at := s.nodes[id].row + fr
	return s.quotas.subtree[at] < s.usage[at].plus(extra)
}

// withinQuota reports whether a node uses no more than its own quota of each of these flavor-resources.
func (s *Session) withinQuota(id int32, frs []int32) bool {
	row := s.nodes[id].row
	for _, fr := range frs {
		if s.quotas.subtree[row+fr] < s.usage[row+fr] {
			return false
		}
	}
	return true
}

// add adds usage to a node, and what exceeds the node's own quota to the nodes above it.
func (s *Session) add(id, fr int32, amount Amount) {
	for {
		n := &s.nodes[id]
		room := s.localAvailable(n, fr)
		s.usage[n.row+fr] = s.usage[n.row+fr].plus(amount)
		s.known[id] = false
		if n.parent == none || amount <= room {
			return
		}
		id, amount = n.parent, amount.minus(room)
	}
}

// remove removes usage from a node, and from those above what the node held there.
func (s *Session) remove(id, fr int32, amount Amount) {
	for {
		n := &s.nodes[id]
		above := s.usage[n.row+fr].minus(s.quotas.local[n.row+fr])
		s.usage[n.row+fr] = s.usage[n.row+fr].minus(amount)
		s.known[id] = false
		if above <= 0 || n.parent == none {
			return
		}
		id, amount = n.parent, min(amount, above)
	}
}

func (s *Session) addAll(id int32, uses []Use) {
	for _, u := range uses {
		s.add(id, u.FR, u.Amount)
	}
}

func (s *Session) removeAll(id int32, uses []Use) {
	for _, u := range uses {
		s.remove(id, u.FR, u.Amount)
	}
}

// release takes the usage of a workload away, restore gives it back.
func (s *Session) release(w int32) { s.removeAll(s.workloads[w].queue, s.workloads[w].usage) }
func (s *Session) restore(w int32) { s.addAll(s.workloads[w].queue, s.workloads[w].usage) }

// level returns the height of the lowest cohort within whose quota an amount is for a queue, 0 if it is within the queue's own, and whether
// there is a cohort above from which more could be reclaimed.
func (s *Session) level(queue, fr int32, amount Amount) (height int32, mayReclaim bool) {
	n := &s.nodes[queue]
	if n.parent == none || !s.borrows(queue, fr, amount) {
		return 0, n.parent != none
	}
	amount = amount.minus(s.localAvailable(n, fr))
	top := n.parent
	for id := n.parent; id != none; id = s.nodes[id].parent {
		if !s.borrows(id, fr, amount) {
			return s.nodes[id].height, s.nodes[id].parent != none
		}
		amount = amount.minus(s.localAvailable(&s.nodes[id], fr))
		top = id
	}
	return s.nodes[top].height, false
}
