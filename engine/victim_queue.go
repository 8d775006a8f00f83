package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// rankedQueues sorts queues by which loses tasks first.
type rankedQueues struct {
	ids []model.QueueID

	placed []placedQueue
	order  []policy.QueuePlace
	victim []uint32
}

// placedQueue is a queue with the numbers that its plugins' orders come to.
type placedQueue struct {
	order  policy.QueuePlace
	victim uint32
	id     model.QueueID
}

// sort sorts the queues as lessVictimQueue has it. A sort by names that precedes a sort by comparisons makes the result depend on
// nothing else where these are not transitive. Places always are.
func (o *rankedQueues) sort(v *policy.View, t *table, claimant model.QueueID) {
	if len(o.ids) < 2 {
		return
	}
	if o.place(t, claimant) {
		slices.SortFunc(o.placed, func(l, r placedQueue) int {
			switch {
			case l.victim != r.victim:
				return cmp.Compare(l.victim, r.victim)
			case l.order.High != r.order.High:
				return cmp.Compare(r.order.High, l.order.High)
			case l.order.Low != r.order.Low:
				return cmp.Compare(r.order.Low, l.order.Low)
			case olderQueue(v, l.id, r.id):
				return 1
			}
			return -1
		})
		for i := range o.placed {
			o.ids[i] = o.placed[i].id
		}
		return
	}
	Sort(o.ids,
		func(l, r model.QueueID) int { return strings.Compare(v.Queues[l].Name, v.Queues[r].Name) },
		func(l, r model.QueueID) bool { return t.lessVictimQueue(v, l, r, claimant) })
}

// place gives each queue its places. It returns false if the plugins' orders do not come to such.
func (o *rankedQueues) place(t *table, claimant model.QueueID) bool {
	n := len(o.ids)
	o.placed = slices.Grow(o.placed[:0], n)[:n]
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
	for i, q := range o.ids {
		o.placed[i] = placedQueue{o.order[i], o.victim[i], q}
	}
	return true
}
