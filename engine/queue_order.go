package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// queueOrder sorts queues by numbers, in memory that is used again. There is one order: queues lose tasks in the reverse order of service,
// the nearest to the claimant's before all others.
type queueOrder struct {
	// near and places are what is compared, by position in the list that is sorted; then the older queue is served first, and the one with
	// the smaller name.
	near   []uint32
	places []policy.QueuePlace
	keys   []uint64
	slots  []model.QueueID
	sorted []model.QueueID
}

// sort sorts distinct queues by order of service. It returns false and changes nothing if no numbers express the order that the plugins
// have.
func (o *queueOrder) sort(v *policy.View, t *table, queues []model.QueueID) bool {
	if !o.place(t, queues) {
		return false
	}
	if !o.scatter(queues) {
		o.sortPlaced(v, queues)
	}
	if len(t.queueOrder) > 1 {
		// The first plugin decides if it tells all queues apart.
		for i := range len(queues) - 1 {
			if o.tied(i) {
				return false
			}
		}
	}
	copy(queues, o.sorted)
	return true
}

// tied reports whether the plugins do not tell the queue at position i of the list that was sorted last from the next one.
func (o *queueOrder) tied(i int) bool {
	return len(o.keys) > 0 && o.places[o.at(i)] == o.places[o.at(i+1)]
}

// sortVictims sorts queues by which loses tasks first to a claimant's queue, as lessVictimQueue has it.
func (o *queueOrder) sortVictims(v *policy.View, t *table, queues []model.QueueID, claimant model.QueueID) {
	if len(queues) < 2 {
		return
	}
	if len(t.queueOrder) > 1 || len(t.victimQueueOrder) > 1 || !o.place(t, queues) {
		Sort(queues,
			func(l, r model.QueueID) int { return strings.Compare(v.Queues[l].Name, v.Queues[r].Name) },
			func(l, r model.QueueID) bool { return t.lessVictimQueue(v, l, r, claimant) })
		return
	}
	for _, by := range t.victimQueueOrder {
		for i, q := range queues {
			o.near[i] = by.Nearness(q, claimant)
		}
	}
	o.sortPlaced(v, queues)
	slices.Reverse(o.sorted)
	copy(queues, o.sorted)
}

// place gives each queue its place, and none is near. It returns false if there are no places.
func (o *queueOrder) place(t *table, queues []model.QueueID) bool {
	n := len(queues)
	o.near, o.places = slices.Grow(o.near[:0], n)[:n], slices.Grow(o.places[:0], n)[:n]
	clear(o.near)
	if len(t.queueOrder) == 0 {
		clear(o.places)
		return true
	}
	return t.queueOrder[0].PlaceQueues(queues, o.places)
}

// sortPlaced sets sorted to the queues, the least first. Most of the order comes from one integer for each, which is cheaper to sort than
// the numbers.
func (o *queueOrder) sortPlaced(v *policy.View, queues []model.QueueID) {
	below := o.pack()
	slices.Sort(o.keys)
	mask := uint64(1)<<below - 1
	compare := func(l, r uint64) int { return o.compare(v, queues, int(l&mask), int(r&mask)) }
	for from := 0; from < len(o.keys); {
		to := from + 1
		for to < len(o.keys) && o.keys[to]>>below == o.keys[from]>>below {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(o.keys[from:to], compare)
		}
		from = to
	}
	o.sorted = o.sorted[:0]
	for i := range o.keys {
		o.sorted = append(o.sorted, queues[o.at(i)])
	}
}

// scatter sorts the queues without comparing them if their places are small numbers, no two alike, as those of an order are that a plugin
// keeps; else it returns false.
func (o *queueOrder) scatter(queues []model.QueueID) bool {
	const sparse = 4
	n := sparse * len(queues)
	o.slots = slices.Grow(o.slots[:0], n)[:n]
	clear(o.slots)
	for i := range o.places {
		p := &o.places[i]
		if p.High != 0 || p.Low >= uint64(n) || o.slots[p.Low] != 0 {
			return false
		}
		o.slots[p.Low] = queues[i] + 1
	}
	o.keys, o.sorted = o.keys[:0], slices.Grow(o.sorted[:0], len(queues))
	for i := 0; len(o.sorted) < len(queues); i++ {
		if q := o.slots[i]; q != 0 {
			o.sorted = append(o.sorted, q-1)
		}
	}
	return true
}

// at returns the position in the list of the queue that is at position i of the sorted one.
func (o *queueOrder) at(i int) int { return int(o.keys[i] & (1<<positionBits(len(o.keys)) - 1)) }

func positionBits(n int) uint { return uint(bits.Len(uint(max(n, 1) - 1))) }

// pack sets keys to an integer for each queue. Its lowest bits, whose number is returned, hold the position in the list; the bits above
// hold as many of the compared values as fit, the most significant first. Two queues are ordered by these bits, unless they are equal.
func (o *queueOrder) pack() uint {
	near, high, low := newSpan(), newSpan(), newSpan()
	for i := range o.places {
		near.include(uint64(o.near[i]))
		high.include(o.places[i].High)
		low.include(o.places[i].Low)
	}
	below := positionBits(len(o.places))
	o.keys = slices.Grow(o.keys[:0], len(o.places))[:len(o.places)]
	if near.bits()+high.bits()+below > 64 {
		for i := range o.keys {
			o.keys[i] = uint64(i)
		}
		return below
	}
	room := 64 - near.bits() - high.bits() - below
	cut := max(low.bits(), room) - room
	for i := range o.keys {
		place := &o.places[i]
		key := (uint64(o.near[i])-near.least)<<high.bits() | (place.High - high.least)
		o.keys[i] = (key<<(low.bits()-cut)|(place.Low-low.least)>>cut)<<below | uint64(i)
	}
	return below
}

// span is the least and the most of some numbers.
type span struct{ least, most uint64 }

func newSpan() span { return span{least: 1<<64 - 1} }

func (s *span) include(x uint64) { s.least, s.most = min(s.least, x), max(s.most, x) }

// bits returns how many bits a number of the span less the least takes.
func (s *span) bits() uint { return uint(bits.Len64(s.most - s.least)) }

// compare compares the queues at two positions in the list.
func (o *queueOrder) compare(v *policy.View, queues []model.QueueID, l, r int) int {
	lq, rq := &v.Queues[queues[l]], &v.Queues[queues[r]]
	return cmp.Or(cmp.Compare(o.near[l], o.near[r]), o.places[l].Compare(o.places[r]),
		cmp.Compare(lq.CreateTime, rq.CreateTime), strings.Compare(lq.Name, rq.Name))
}
