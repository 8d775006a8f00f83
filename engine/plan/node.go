package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// offer is a node for a task, with what must be evicted there.
type offer struct {
	node model.NodeID
	// rank is the position of the node by name.
	rank int32
	// victims are sorted by rather; a bound has none.
	victims []model.TaskID
	// count is the number of victims and last the key that says how long the last of them stays; both may be lower bounds. hosts is the
	// number of like tasks that fit then.
	count, hosts int
	last         stay
	// slack is the part of the node that an offer without victims leaves, in proportion to the request.
	slack float64
	// state is the state of the search in which the offer was exact; 0: it is a bound.
	state int
}

// stay is the rank of a task in the order of eviction; names decide between equal ranks.
type stay struct {
	job, task int32
	created   int64
}

func (p *planner) stayOf(t model.TaskID) stay {
	task := p.View().Tasks.At(t)
	return stay{p.View().Jobs.At(task.Job).Priority, task.Priority, task.CreateTime}
}

func (s stay) compare(o stay) int {
	return cmp.Or(cmp.Compare(s.job, o.job), cmp.Compare(s.task, o.task), cmp.Compare(o.created, s.created))
}

// compareOffers is negative if l is better than r, or may be. Where offers are compared by what they host, victims for each task count. An
// offer that is known goes before a bound that it equals: the names of victims do not decide between nodes.
func (p *planner) compareOffers(l, r *offer, hosting bool) int {
	lc, rc := l.count, r.count
	if hosting {
		lc, rc = l.count*r.hosts, r.count*l.hosts
	}
	if c := cmp.Compare(lc, rc); c != 0 {
		return c
	}
	if l.count == 0 {
		return cmp.Or(cmp.Compare(l.slack, r.slack), cmp.Compare(l.rank, r.rank))
	}
	if c := cmp.Or(l.last.compare(r.last), cmp.Compare(len(r.victims), len(l.victims))); c != 0 {
		return c
	}
	return cmp.Compare(l.rank, r.rank)
}

// stall is the search for nodes that may take tasks of one kind.
type stall struct {
	*planner

	request resource.Row
	// first is a task of the kind.
	first model.TaskID
	// hosting compares offers by victims for each task, wanted is how many tasks are still to be placed.
	hosting bool
	wanted  int
	// row is scratch, list too.
	row   resource.Row
	list  []model.TaskID
	stays []stay
	// aside are offers of nodes off which other pods keep the task at present.
	aside []offer
}

// bound returns an offer that is at most as good as the best one of a node, and not known to be possible; false if the node offers nothing.
func (s *stall) bound(n model.NodeID, rank int32) (offer, bool) {
	s.Future(n, &s.row)
	o := offer{node: n, rank: rank, hosts: 1}
	short := resource.Uncovered(s.row, s.request)
	if short == 0 && s.keptOff(s.first, n) {
		return s.boundBeside(o)
	}
	if short == 0 {
		o.slack = s.slack()
		return o, true
	}
	s.list = s.candidates(n, s.list[:0])
	// gain sums in each dimension that is short what candidates hold, and most is the largest of it.
	var gain, most [resource.MaxDimensions]float64
	best := model.TaskID(model.None)
	for _, c := range s.list {
		request := s.View().Request(c)
		alone := true
		for m := short; m != 0; m = m.Rest() {
			d := m.First()
			gain[d] += request.V[d]
			most[d] = max(most[d], request.V[d])
			alone = alone && s.request.V[d]-s.row.V[d]-request.V[d] < resource.Threshold
		}
		if alone && (best == model.None || s.better(c, best)) {
			best = c
		}
	}
	for m := short; m != 0; m = m.Rest() {
		d := m.First()
		lacks := s.request.V[d] - s.row.V[d]
		if lacks-gain[d] >= resource.Threshold {
			return offer{}, false
		}
		o.count = max(o.count, int(math.Ceil((lacks-resource.Threshold)/most[d])))
	}
	if best != model.None {
		o.count, o.last = 1, s.stayOf(best)
		if s.hosting {
			o.hosts = s.hosted(best)
		} else if !s.hosts && s.wanted > 1 {
			s.hosts = s.hosted(best) > 1
		}
		return o, true
	}
	o.count = max(o.count, 2)
	if o.count > len(s.list) {
		return offer{}, false
	}
	s.stays = s.stays[:0]
	for _, c := range s.list {
		s.stays = append(s.stays, s.stayOf(c))
	}
	slices.SortFunc(s.stays, stay.compare)
	o.last = s.stays[o.count-1]
	return o, true
}

// better reports whether one candidate that makes room by itself is better than another.
func (s *stall) better(l, r model.TaskID) bool {
	if s.hosting {
		lh, rh := s.hosted(l), s.hosted(r)
		if lh != rh {
			return lh > rh
		}
	}
	return s.compareByStay(l, r) < 0
}

// hosted returns how many of the tasks still to be placed have room in the row once a task is gone; at least 1.
func (s *stall) hosted(victim model.TaskID) int {
	n, gone := s.wanted, s.View().Request(victim)
	for m := s.request.AtLeastThreshold(); m != 0; m = m.Rest() {
		d := m.First()
		n = min(n, int((s.row.V[d]+gone.V[d]+resource.Threshold)/s.request.V[d]))
	}
	return max(n, 1)
}

// slack returns what the row leaves, in proportion to the request.
func (s *stall) slack() float64 {
	slack := 0.0
	for m := s.request.Positive(); m != 0; m = m.Rest() {
		d := m.First()
		slack += s.row.V[d] / s.request.V[d]
	}
	return slack
}

// exact returns the best offer found for a node, with victims that the policy permits; false if there is none.
func (s *stall) exact(t model.TaskID, rest []model.TaskID, n model.NodeID, rank int32) (offer, bool) {
	s.Future(n, &s.row)
	o := offer{node: n, rank: rank, hosts: 1}
	switch {
	case s.FitsWhen(t, n, true, nil):
	case s.keptOff(t, n):
		return s.exactBeside(t, rest, o)
	default:
		return s.clearing(t, rest, o)
	}
	if resource.Covers(s.row, s.request) {
		o.slack = s.slack()
		return o, true
	}
	s.list = s.candidates(n, s.list[:0])
	s.ordered(s.list)
	let := s.consented(t, rest, s.list, n)
	if len(let) == 0 {
		return offer{}, false
	}
	if s.covered(let[:1]) {
		o.victims = let[:1]
	} else if o.victims = s.fewest(let); o.victims == nil {
		return offer{}, false
	} else if len(o.victims) < len(let) && len(s.consented(t, rest, o.victims, n)) < len(o.victims) {
		return offer{}, false
	}
	o.count, o.last = len(o.victims), s.stayOf(o.victims[len(o.victims)-1])
	if s.hosting && o.count == 1 {
		o.hosts = s.hosted(o.victims[0])
	}
	return o, true
}

// ordered sorts candidates: tasks that make room alone come first, then the order of rather.
func (s *stall) ordered(list []model.TaskID) {
	slices.SortFunc(list, func(l, r model.TaskID) int {
		la, ra := s.covered([]model.TaskID{l}), s.covered([]model.TaskID{r})
		switch {
		case la && !ra:
			return -1
		case ra && !la:
			return 1
		case la && s.hosting && s.better(l, r) != s.better(r, l):
			if s.better(l, r) {
				return -1
			}
			return 1
		}
		return s.compareByStay(l, r)
	})
}

// covered reports whether the row has room for the request once victims are gone.
func (s *stall) covered(victims []model.TaskID) bool {
	for m := s.request.Has; m != 0; m = m.Rest() {
		d := m.First()
		left := s.row.V[d]
		for _, c := range victims {
			left += s.View().Request(c).V[d]
		}
		if s.request.V[d]-left >= resource.Threshold {
			return false
		}
	}
	return true
}

// maxPairs bounds the candidates of one node of which every pair is tried.
const maxPairs = 64

// fewest chooses few of the tasks that may go, sorted by rather: a pair if one makes room, else what is left of them taken in order, or
// the largest first, without those that turn out not to be needed. nil if all together do not make room.
func (s *stall) fewest(let []model.TaskID) []model.TaskID {
	if !s.covered(let) {
		return nil
	}
	byRather := slices.Clone(let)
	slices.SortFunc(byRather, s.compareByStay)
	if len(let) <= maxPairs {
		// The later of two decides, so that pairs are tried by their later member.
		for r := range byRather {
			for l := range r {
				if pair := []model.TaskID{byRather[l], byRather[r]}; s.covered(pair) {
					return pair
				}
			}
		}
	}
	inOrder := s.needed(byRather)
	short := resource.Uncovered(s.row, s.request)
	slices.SortStableFunc(byRather, func(l, r model.TaskID) int { return cmp.Compare(s.weight(r, short), s.weight(l, short)) })
	if largest := s.needed(byRather); s.compareVictimSets(largest, inOrder) < 0 {
		return largest
	}
	return inOrder
}

// weight is the part of the missing amount that a task holds.
func (s *stall) weight(t model.TaskID, short resource.Mask) float64 {
	weight := 0.0
	for m := short; m != 0; m = m.Rest() {
		d := m.First()
		weight += min(1, s.View().Request(t).V[d]/(s.request.V[d]-s.row.V[d]))
	}
	return weight
}

// needed takes tasks in order until there is room, and puts those back that are not needed, the one that stays longest first. The result is
// sorted by rather.
func (s *stall) needed(list []model.TaskID) []model.TaskID {
	left := s.row.Clone()
	n := 0
	for ; n < len(list) && !resource.Covers(left, s.request); n++ {
		left.Add(s.View().Request(list[n]))
	}
	taken := slices.Clone(list[:n])
	slices.SortFunc(taken, s.compareByStay)
	for i, t := range slices.Backward(taken) {
		left.Sub(s.View().Request(t))
		if resource.Covers(left, s.request) {
			taken = slices.Delete(taken, i, i+1)
		} else {
			left.Add(s.View().Request(t))
		}
	}
	return taken
}
