package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// rankedQueues sorts queues by which loses tasks first.
type rankedQueues struct {
	ids []model.QueueID

	// order and victim are the numbers that the plugins' orders come to, by position in ids.
	order  []policy.QueuePlace
	victim []uint32
	keys   []uint64
	sorted []model.QueueID
}

// sort sorts the queues as lessVictimQueue has it. A sort by names that precedes a sort by comparisons makes the result depend on
// nothing else where these are not transitive. Places always are.
func (o *rankedQueues) sort(v *policy.View, t *table, claimant model.QueueID) {
	if len(o.ids) < 2 {
		return
	}
	if o.place(t, claimant) {
		o.sortPlaced(v)
		return
	}
	Sort(o.ids,
		func(l, r model.QueueID) int { return strings.Compare(v.Queues[l].Name, v.Queues[r].Name) },
		func(l, r model.QueueID) bool { return t.lessVictimQueue(v, l, r, claimant) })
}

// sortPlaced sorts the queues by their numbers. Most of the order comes from one integer for each, which is cheaper to sort than the
// numbers.
func (o *rankedQueues) sortPlaced(v *policy.View) {
	below := o.pack()
	slices.Sort(o.keys)
	at := uint64(1)<<below - 1
	compare := func(l, r uint64) int { return o.compare(v, int(l&at), int(r&at)) }
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
	for _, key := range o.keys {
		o.sorted = append(o.sorted, o.ids[key&at])
	}
	copy(o.ids, o.sorted)
}

// pack sets keys to an integer for each queue. Its lowest bits, whose number is returned, hold the position in ids; the bits above hold as
// many of the compared values as fit, the most significant first. Two queues are ordered by these bits, unless they are equal.
func (o *rankedQueues) pack() uint {
	var victim, high, low span
	victim.begin(uint64(o.victim[0]))
	high.begin(o.order[0].High)
	low.begin(o.order[0].Low)
	for i := range o.order {
		victim.include(uint64(o.victim[i]))
		high.include(o.order[i].High)
		low.include(o.order[i].Low)
	}
	below := uint(bits.Len(uint(len(o.ids) - 1)))
	o.keys = slices.Grow(o.keys[:0], len(o.ids))[:len(o.ids)]
	if victim.bits()+high.bits()+below > 64 {
		for i := range o.keys {
			o.keys[i] = uint64(i)
		}
		return below
	}
	room := 64 - victim.bits() - high.bits() - below
	cut := max(low.bits(), room) - room
	for i := range o.keys {
		place := &o.order[i]
		key := (uint64(o.victim[i])-victim.least)<<high.bits() | (high.most - place.High)
		o.keys[i] = (key<<(low.bits()-cut)|(low.most-place.Low)>>cut)<<below | uint64(i)
	}
	return below
}

// span is the least and the most of some numbers.
type span struct{ least, most uint64 }

func (s *span) begin(x uint64) { s.least, s.most = x, x }

func (s *span) include(x uint64) { s.least, s.most = min(s.least, x), max(s.most, x) }

// bits returns how many bits a number of the span less the least takes.
func (s *span) bits() uint { return uint(bits.Len64(s.most - s.least)) }

// compare compares the queues at two positions in ids.
func (o *rankedQueues) compare(v *policy.View, l, r int) int {
	switch lp, rp := &o.order[l], &o.order[r]; {
	case o.victim[l] != o.victim[r]:
		return cmp.Compare(o.victim[l], o.victim[r])
	case lp.High != rp.High:
		return cmp.Compare(rp.High, lp.High)
	case lp.Low != rp.Low:
		return cmp.Compare(rp.Low, lp.Low)
	case olderQueue(v, o.ids[l], o.ids[r]):
		return 1
	}
	return -1
}

// place gives each queue its places. It returns false if the plugins' orders cannot be expressed so.
func (o *rankedQueues) place(t *table, claimant model.QueueID) bool {
	n := len(o.ids)
	o.order, o.victim = slices.Grow(o.order[:0], n)[:n], slices.Grow(o.victim[:0], n)[:n]
	clear(o.order)
	clear(o.victim)
	switch len(t.queueOrder) {
	case 0:
	case 1:
		if by, ok := t.queueOrder[0].(policy.QueuePlacer); !ok || !by.PlaceQueues(o.ids, o.order) {
			return false
		}
	default:
		return false
	}
	switch len(t.victimQueueOrder) {
	case 0:
	case 1:
		by, ok := t.victimQueueOrder[0].(policy.VictimQueuePlacer)
		if !ok {
			return false
		}
		by.PlaceVictimQueues(o.ids, claimant, o.victim)
	default:
		return false
	}
	return true
}
