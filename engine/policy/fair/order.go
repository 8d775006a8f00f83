package fair

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// order keeps siblings sorted in the order of service. A leaf that an event may have moved is put in its place when the order is next
// needed.
type order struct {
	known bool
	// division is that which the order rests on.
	division uint64
	// sorted lists the children of p at sorted[first[p]:end[p]]; position is where a place stands in it.
	sorted   []place
	position []int32
	// wants reports whether a leaf has a block, not of best effort, that it is entitled to; wanting counts the children of a place that
	// want.
	wants   []bool
	wanting []int32
	ratio   []ratio
	// With a memory: over is the weight by which ratio is divided, and eased the least weight with memory over the queue's own.
	over  []int64
	eased []ratio
	// dirty are the leaves that events touched.
	dirty   []place
	isDirty []bool
	// leaves are all leaves in order, and rank is the position in it of a queue, of others than leaves the greatest number: both are valid
	// unless moved.
	leaves []place
	rank   []uint32
	moved  bool
	walk   []place
}

// ratio is held / total of the dimension in which a place holds most in proportion.
type ratio struct{ held, total int64 }

// touch says that a leaf, or what it holds, has changed.
func (o *order) touch(p place) {
	if o.known && !o.isDirty[p] {
		o.isDirty[p] = true
		o.dirty = append(o.dirty, p)
	}
}

// sortQueues brings the order up to date.
func (s *State) sortQueues() {
	s.settle()
	o := &s.order
	if !o.known || o.division != s.division.version {
		s.sortAll()
		return
	}
	for _, p := range o.dirty {
		o.isDirty[p] = false
		s.reposition(p)
	}
	o.dirty = o.dirty[:0]
}

// manySiblings are as many as take about a tenth of a millisecond to sort.
const manySiblings = 256

// sortAll sorts all siblings.
func (s *State) sortAll() {
	o, t, n := &s.order, &s.tree, s.tree.len()
	if !o.known {
		o.sorted, o.position, o.rank = make([]place, n+1), make([]int32, n), slices.Repeat([]uint32{math.MaxUint32}, len(s.v.Queues))
		o.wants, o.wanting, o.ratio, o.isDirty = make([]bool, n), make([]int32, n), make([]ratio, n), make([]bool, n)
		if s.memory != nil {
			o.over, o.eased = make([]int64, n), make([]ratio, n)
		}
		for p := range o.sorted {
			o.sorted[p] = place(p)
		}
	}
	s.v.Work.Use(n*bits.Len(uint(n))+len(s.v.Present()), s.width)
	o.known, o.division, o.moved, o.dirty = true, s.division.version, true, o.dirty[:0]
	clear(o.wanting)
	clear(o.isDirty)
	for p := place(n) - 1; p >= 0; p-- {
		s.v.Yield(int(p))
		s.rate(p)
		if o.wants[p] = o.wanting[p] > 0; s.memory != nil {
			o.eased[p] = s.easeOf(p)
		}
		if t.isLeaf(p) {
			o.wants[p] = s.wants(p)
		}
		if p > 0 && o.wants[p] {
			o.wanting[t.parent[p]]++
		}
		siblings := o.sorted[t.first[p]:t.end[p]]
		if len(siblings) > manySiblings {
			s.v.Look()
		}
		slices.SortFunc(siblings, s.compareSiblings)
		for i, k := range siblings {
			o.position[k] = int32(t.first[p]) + int32(i)
		}
	}
}

// reposition moves a leaf, and the places above it, to where they belong.
func (s *State) reposition(p place) {
	o, t := &s.order, &s.tree
	wants := s.wants(p)
	for ; ; p = t.parent[p] {
		changed := o.wants[p] != wants
		s.rate(p)
		o.wants[p] = wants
		if p == 0 {
			return
		}
		parent := t.parent[p]
		if changed {
			o.wanting[parent] += int32(sign(wants))
		}
		wants = o.wanting[parent] > 0
		o.insert(p, int32(t.first[parent]), int32(t.end[parent]), s.compareSiblings)
	}
}

// insert moves a place whose siblings are sorted to where it belongs among them.
func (o *order) insert(p place, first, end int32, compare func(l, r place) int) {
	at := o.position[p]
	to := at
	for to > first && compare(p, o.sorted[to-1]) < 0 {
		low, high := first, to
		for low < high {
			if mid := (low + high) / 2; compare(p, o.sorted[mid]) < 0 {
				high = mid
			} else {
				low = mid + 1
			}
		}
		to = low
	}
	if to == at && at+1 < end && compare(p, o.sorted[at+1]) > 0 {
		low, high := at+1, end
		for low < high {
			if mid := (low + high) / 2; compare(p, o.sorted[mid]) > 0 {
				low = mid + 1
			} else {
				high = mid
			}
		}
		to = low - 1
	}
	if to == at {
		return
	}
	o.moved = true
	if to < at {
		copy(o.sorted[to+1:at+1], o.sorted[to:at])
	} else {
		copy(o.sorted[at:to], o.sorted[at+1:to+1])
	}
	o.sorted[to] = p
	for i := min(at, to); i <= max(at, to); i++ {
		o.position[o.sorted[i]] = i
	}
}

// ordered returns the leaves as they are served.
func (s *State) ordered() []place {
	s.sortQueues()
	o, t := &s.order, &s.tree
	if !o.moved {
		return o.leaves
	}
	o.moved = false
	o.leaves, o.walk = o.leaves[:0], append(o.walk[:0], 0)
	for len(o.walk) > 0 {
		p := o.walk[len(o.walk)-1]
		o.walk = o.walk[:len(o.walk)-1]
		if t.isLeaf(p) {
			if q := t.queue[p]; q != model.None {
				o.rank[q] = uint32(len(o.leaves))
			}
			o.leaves = append(o.leaves, p)
			continue
		}
		for i := t.end[p] - 1; i >= t.first[p]; i-- {
			o.walk = append(o.walk, o.sorted[i])
		}
	}
	return o.leaves
}

// wants reports whether a leaf has a block, not of best effort, that it is entitled to.
func (s *State) wants(p place) bool {
	for _, w := range s.waitsOf(p) {
		if s.refresh(w); w.gang < 0 {
			continue
		}
		if w.gang > 0 && w.positive != 0 && s.entitled(p, w.need, w.positive) {
			return true
		}
		for i := range w.kinds {
			k := &w.kinds[i]
			if r := &s.requests[k.request]; k.pending > k.ganged && r.positive != 0 && s.entitled(p, r.amount, r.positive) {
				return true
			}
		}
	}
	return false
}

// rate sets the ratio by which a place is ordered.
func (s *State) rate(p place) {
	o := &s.order
	if s.memory == nil {
		o.ratio[p] = s.ratioOf(p)
		return
	}
	o.ratio[p], o.over[p] = ratio{0, 1}, 1
	for d, held := range s.row(s.accounts.held, p) {
		if total := s.divided(d); total > 0 && held > 0 {
			r, weight := ratio{held, total}, max(1, s.weighed(d).weight[p])
			if r.compareOver(weight, o.ratio[p], o.over[p]) > 0 {
				o.ratio[p], o.over[p] = r, weight
			}
		}
	}
}

// easeOf returns the least weight with memory over the queue's own, in the dimensions that there is something of.
func (s *State) easeOf(p place) ratio {
	weight, least := s.weights()[p], int64(unlimited)
	for d := range s.width {
		if s.divided(d) > 0 {
			least = min(least, s.weighed(d).weight[p])
		}
	}
	switch {
	case least == unlimited:
		return ratio{1, 1}
	case weight == 0:
		return ratio{0, 1}
	}
	return ratio{least, weight}
}

// ratioOf returns the greatest held / total over the dimensions that there is something of.
func (s *State) ratioOf(p place) ratio {
	greatest := ratio{0, 1}
	for d, held := range s.row(s.accounts.held, p) {
		if total := s.divided(d); total > 0 && held > 0 {
			if r := (ratio{held, total}); r.compare(greatest) > 0 {
				greatest = r
			}
		}
	}
	return greatest
}

func (r ratio) compare(o ratio) int {
	lHigh, lLow := bits.Mul64(uint64(r.held), uint64(o.total))
	rHigh, rLow := bits.Mul64(uint64(o.held), uint64(r.total))
	return cmp.Or(cmp.Compare(lHigh, rHigh), cmp.Compare(lLow, rLow))
}

// compareOver compares r / lw with o / rw.
func (r ratio) compareOver(lw int64, o ratio, rw int64) int {
	l := product(uint64(r.held), uint64(o.total), uint64(rw))
	return slices.Compare(l[:], product(uint64(o.held), uint64(r.total), uint64(lw))[:])
}

// product returns a product, the most significant word first.
func product(a, b, c uint64) *[3]uint64 {
	high, low := bits.Mul64(a, b)
	carry, least := bits.Mul64(low, c)
	most, middle := bits.Mul64(high, c)
	middle, over := bits.Add64(middle, carry, 0)
	return &[3]uint64{most + over, middle, least}
}

// compareSiblings puts first what is served first of two siblings.
func (s *State) compareSiblings(l, r place) int {
	o, v := &s.order, s.v
	lq, rq := &v.Queues[s.tree.queue[l]], &v.Queues[s.tree.queue[r]]
	switch {
	case lq.Priority != rq.Priority:
		return cmp.Compare(rq.Priority, lq.Priority)
	case o.wants[l] != o.wants[r]:
		return first(o.wants[l])
	case (lq.Weight == 0) != (rq.Weight == 0):
		return first(rq.Weight == 0)
	}
	if c := s.compareRatios(l, r); c != 0 {
		return c
	}
	if lq.CreateTime != rq.CreateTime {
		return compareAge(lq.CreateTime, rq.CreateTime)
	}
	// Siblings are listed by priority, age and name: places of equal priority and age are in order of their names.
	return cmp.Compare(l, r)
}

// compareRatios puts first which of two siblings holds less for its weight; with a memory, then which has used less.
func (s *State) compareRatios(l, r place) int {
	o := &s.order
	if s.memory != nil {
		return cmp.Or(o.ratio[l].compareOver(o.over[l], o.ratio[r], o.over[r]), o.eased[r].compare(o.eased[l]))
	}
	return o.ratio[l].compareOver(max(s.weights()[l], 1), o.ratio[r], max(s.weights()[r], 1))
}

func first(l bool) int {
	if l {
		return -1
	}
	return 1
}

// CompareQueues compares two queues by priority of service. Queues that serve no jobs come last.
func (s *State) CompareQueues(l, r model.QueueID) int {
	lp, rp, by := s.branching(l, r)
	if by != 0 || lp == rp {
		return by
	}
	s.sortQueues()
	return cmp.Compare(s.order.position[lp], s.order.position[rp])
}

// branching returns the places that lead to two queues from where their paths part, equal ones if neither of two serves jobs; by is not 0
// if one does.
func (s *State) branching(l, r model.QueueID) (lp, rp place, by int) {
	lp, rp = s.servingPlace(l), s.servingPlace(r)
	switch {
	case lp == rp:
		return lp, rp, 0
	case lp == none || rp == none:
		return lp, rp, first(rp == none)
	}
	lp, rp = s.tree.branches(lp, rp)
	return lp, rp, 0
}

// servingPlace returns the place of a queue that serves jobs, or none.
func (s *State) servingPlace(q model.QueueID) place {
	if p := s.tree.at[q]; p != none && s.tree.isLeaf(p) {
		return p
	}
	return none
}

// PlaceQueues is policy.QueueOrderer.PlaceQueues. A few queues are compared instead, because all may have to be ranked anew.
func (s *State) PlaceQueues(queues []model.QueueID, places []policy.QueuePlace) bool {
	if len(queues) < s.tree.len()/8 {
		return false
	}
	s.ordered()
	for i, q := range queues {
		places[i] = policy.QueuePlace{Low: uint64(s.order.rank[q])}
	}
	return true
}

// Order lists the queues without children as they are served.
func (s *State) Order() []model.QueueID {
	leaves := s.ordered()
	list := make([]model.QueueID, 0, len(leaves))
	for _, p := range leaves {
		if q := s.tree.queue[p]; q != model.None {
			list = append(list, q)
		}
	}
	return list
}

// Wants reports whether a queue without children has a block, not of best effort, that it is entitled to.
func (s *State) Wants(q model.QueueID) bool {
	s.sortQueues()
	return s.order.wants[s.tree.at[q]]
}
