package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Ranks returns the positions of queues in the order of service of the queues that have jobs, and model.None for a queue that has
// none.
func (o Order) Ranks(queues []model.QueueID) []int32 {
	ranks := make([]int32, len(queues))
	s := o.s
	if keyer, ok := s.keyer(); ok && len(queues) <= len(s.view.Queues)/rankedByCounting {
		s.countRanks(keyer, queues, ranks)
		return ranks
	}
	busy := s.view.Busy()
	o.SortQueues(busy)
	all := make([]int32, len(s.view.Queues))
	for i, q := range busy {
		all[q] = int32(i) + 1
	}
	for i, q := range queues {
		ranks[i] = all[q] - 1
	}
	return ranks
}

// rankedByCounting is the part of the queues up to which it is cheaper to count what comes before each than to sort all.
const rankedByCounting = 8

// keyed is a queue with all that decides about its order but its name.
type keyed struct {
	policy.QueueKey

	created int64
	queue   model.QueueID
}

// keyer returns the plugin that orders queues, if it is the only one and compares them by numbers.
func (s *Session) keyer() (policy.QueueKeyer, bool) {
	if len(s.by.queueOrder) != 1 {
		return nil, false
	}
	keyer, ok := s.by.queueOrder[0].(policy.QueueKeyer)
	return keyer, ok
}

func (s *Session) keyOf(keyer policy.QueueKeyer, q model.QueueID) keyed {
	return keyed{keyer.QueueKey(q), s.view.Queues[q].CreateTime, q}
}

// compareKeyed is CompareQueues where keys decide.
func (s *Session) compareKeyed(l, r keyed) int {
	if c := l.Compare(r.QueueKey); c != 0 {
		return c
	}
	if l.created != r.created {
		return cmp.Compare(l.created, r.created)
	}
	return strings.Compare(s.view.Queues[l.queue].Name, s.view.Queues[r.queue].Name)
}

// sortKeyed sorts queues by order of service, and returns them with their keys. No two are equal, so that the order does not depend on the
// algorithm.
func (s *Session) sortKeyed(keyer policy.QueueKeyer, queues []model.QueueID) []keyed {
	list := make([]keyed, len(queues))
	for i, q := range queues {
		list[i] = s.keyOf(keyer, q)
	}
	slices.SortFunc(list, s.compareKeyed)
	for i := range list {
		queues[i] = list[i].queue
	}
	return list
}

// sortPlaced sorts queues by the places that the only plugin which orders them gives them, if it can.
func (s *Session) sortPlaced(queues []model.QueueID) bool {
	if len(s.by.queueOrder) != 1 {
		return false
	}
	placer, ok := s.by.queueOrder[0].(policy.QueuePlacer)
	places := make([]policy.QueuePlace, len(queues))
	if !ok || !placer.PlaceQueues(queues, places) {
		return false
	}
	order := make([]int, len(queues))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(l, r int) int {
		lq, rq := &s.view.Queues[queues[l]], &s.view.Queues[queues[r]]
		return cmp.Or(cmp.Compare(places[l].High, places[r].High), cmp.Compare(places[l].Low, places[r].Low),
			cmp.Compare(lq.CreateTime, rq.CreateTime), strings.Compare(lq.Name, rq.Name))
	})
	before := slices.Clone(queues)
	for i, at := range order {
		queues[i] = before[at]
	}
	return true
}

// countRanks sets the ranks of a few queues: the number of queues with jobs that come before each.
func (s *Session) countRanks(keyer policy.QueueKeyer, queues []model.QueueID, ranks []int32) {
	v := s.view
	sorted := make([]model.QueueID, 0, len(queues))
	for _, q := range queues {
		if v.QueueSumOf(q).Jobs > 0 {
			sorted = append(sorted, q)
		}
	}
	s.sortKeyed(keyer, sorted)
	sorted = slices.Compact(sorted)
	list, before := make([]keyed, len(sorted)), make([]int32, len(sorted)+1)
	for i, q := range sorted {
		list[i] = s.keyOf(keyer, q)
	}
	for i := range v.Queues {
		q := model.QueueID(i)
		if v.QueueSumOf(q).Jobs == 0 {
			continue
		}
		at, found := slices.BinarySearchFunc(list, s.keyOf(keyer, q), s.compareKeyed)
		if found {
			at++
		}
		before[at]++
	}
	for i := 1; i < len(sorted); i++ {
		before[i] += before[i-1]
	}
	for i, q := range queues {
		ranks[i] = model.None
		if k, found := slices.BinarySearchFunc(list, s.keyOf(keyer, q), s.compareKeyed); found {
			ranks[i] = before[k]
		}
	}
}
