package plan

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

const (
	// planSets bounds the sets of victims that a search tries one by one, planSetNodes the nodes of all of them together.
	planSets     = 1 << 12
	planSetNodes = 1 << 19
	// planAsked bounds the tasks that the policy is asked about one by one before sets of them are tried.
	planAsked = 64
)

// sets tries sets of victims.
type sets struct {
	*planner

	pool []model.TaskID
	best **draft
	// need is the sum of the requests, idle the idle amount of all nodes that may take some of the tasks. inside reports for each task of
	// the pool whether it is on such a node.
	need, idle, left resource.Row
	inside           []bool
	// trials is the number of placements that the search may still try.
	trials int
	// unknown: some set was not decided.
	unknown bool
	chosen  []int
	stopped error
}

// smaller tries all sets of at most as many victims as the best plan has, those with fewer first, and of one size in the order of rather.
// all is true if it has tried all sets that are smaller than the best plan's, or all sets if there is no plan. proven is true if it is
// certain that there is no plan without victims.
func (p *planner) smaller(best **draft, proven bool) (all bool, err error) {
	s := &sets{planner: p, best: best, trials: place.Trials}
	if err := s.begin(); err != nil {
		return false, err
	}
	budget := min(planSets, planSetNodes/(len(p.View().NodeOrder)+len(p.tasks)))
	for size := 1; size <= len(s.pool); size++ {
		if *best != nil && size > len((*best).victims) {
			break
		}
		combinations := binomial(len(s.pool), size, budget)
		if budget -= combinations; budget < 0 {
			return *best != nil && size == len((*best).victims) && proven && !s.unknown, nil
		}
		found := s.ofSize(size, len(s.pool))
		switch {
		case s.stopped != nil:
			return false, s.stopped
		case found:
			return proven && !s.unknown, nil
		}
	}
	return proven && !s.unknown, nil
}

// binomial returns how many sets of k there are of n, or more than most if that are more than most.
func binomial(n, k, most int) int {
	c := 1
	for i := range k {
		if c = c * (n - i) / (i + 1); c > most {
			return most + 1
		}
	}
	return c
}

// begin sorts the pool without the tasks whose eviction the policy does not permit even individually.
func (s *sets) begin() error {
	v := s.View()
	s.pool = append([]model.TaskID(nil), s.planner.pool.tasks...)
	if err := s.sortPool(); err != nil {
		return err
	}
	width := v.Dims.Len()
	s.need, s.idle, s.left = resource.NewAccount(width), resource.NewAccount(width), resource.NewAccount(width)
	for _, t := range s.tasks {
		s.need.Add(v.Request(t))
	}
	takes := make([]bool, len(v.Nodes))
	row := resource.NewAccount(width)
	for _, n := range v.NodeOrder {
		for _, kind := range s.kinds() {
			t := s.tasks[kind[0]]
			takes[n] = takes[n] || s.Admits(t, n, nil) || s.yields(t, n)
		}
		if !takes[n] {
			continue
		}
		s.Future(n, &row)
		row.FloorAtZero()
		s.idle.Add(row)
	}
	s.inside = make([]bool, len(s.pool))
	for i, t := range s.pool {
		n := v.NodeOf(t)
		s.inside[i] = n != model.None && takes[n]
	}
	return nil
}

func (s *sets) sortPool() error {
	if len(s.pool) > planSets {
		// Not even all single tasks are tried.
		return nil
	}
	slices.SortFunc(s.pool, s.compareByStay)
	if len(s.pool) > planAsked || 1<<len(s.pool) <= planSets || s.Policy().Walk == engine.Volcano {
		// All sets are tried anyway, or too few. If tiers are combined as in Volcano, a set of tasks may be evictable although no single
		// one of them is.
		return nil
	}
	s.unknown = s.Reclaim().Plans()
	return s.Tried(func() error {
		s.enter()
		let := s.pool[:0]
		kinds := s.kinds()
		for _, t := range s.pool {
			if slices.ContainsFunc(kinds, func(kind []int32) bool {
				by := s.tasks[kind[0]]
				return len(s.consented(by, s.together(by), []model.TaskID{t}, s.View().NodeOf(t))) == 1
			}) {
				let = append(let, t)
			}
		}
		s.pool = let
		return nil
	})
}

// ofSize tries the sets of so many of the first n tasks of the pool beside those chosen. The task that stays longest decides first. It
// reports whether one makes a plan, which is then the best.
func (s *sets) ofSize(size, n int) bool {
	if size == 0 {
		return s.try()
	}
	for i := size - 1; i < n; i++ {
		s.chosen = append(s.chosen, i)
		found := s.ofSize(size-1, i)
		s.chosen = s.chosen[:len(s.chosen)-1]
		if found || s.stopped != nil {
			return found
		}
	}
	return false
}

// try tries the tasks chosen as victims.
func (s *sets) try() bool {
	s.plan.Looked++
	if s.plan.Looked&15 == 15 && s.View().Stop != nil && s.View().Stop() {
		s.stopped = policy.ErrStopped
		return false
	}
	if !s.enough() {
		return false
	}
	d := &draft{victims: make([]model.TaskID, len(s.chosen))}
	for k, i := range s.chosen {
		d.victims[len(d.victims)-1-k] = s.pool[i]
	}
	if s.stopped = s.Tried(func() error { return s.placeWithout(d) }); s.stopped != nil || d.nodes == nil {
		return false
	}
	d, err := s.checked(d)
	switch {
	case err != nil:
		s.stopped = err
		return false
	case d == nil:
		// The policy may let the same tasks go in another order, or for other nodes.
		s.unknown = true
		return false
	case *s.best != nil && s.compareVictimSets((*s.best).victims, d.victims) <= 0:
		return false
	}
	*s.best = d
	return true
}

// enough reports whether all nodes together have room for all tasks without the victims.
func (s *sets) enough() bool {
	s.left.CopyFrom(s.idle)
	for _, i := range s.chosen {
		if s.inside[i] {
			s.left.Add(s.View().Request(s.pool[i]))
		}
	}
	// For each node, the excess over its room is below the tolerance.
	slack := resource.Threshold * float64(len(s.View().NodeOrder)+1)
	for m := s.need.AtLeastThreshold(); m != 0; m = m.Rest() {
		if d := m.First(); s.need.V[d]*(1-1e-9) > s.left.V[d]+slack {
			return false
		}
	}
	return true
}

// placeWithout places all tasks once the victims are gone; the draft gets no nodes if that is not possible.
func (s *sets) placeWithout(d *draft) error {
	s.enter()
	for _, t := range d.victims {
		s.Unbook(t, model.Pending)
	}
	if !s.Allocatable(s.tasks, policy.InSession, nil, nil) {
		return nil
	}
	placer := place.Placer{Host: s.Host, Tasks: s.tasks, Nodes: s.View().NodeOrder, Room: s.Future, Trials: max(s.trials, 0), Later: true}
	placement, err := placer.Place()
	s.trials = placer.Trials
	s.unknown = s.unknown || placement.Outcome == place.Unknown
	d.nodes = placement.Nodes
	return err
}
