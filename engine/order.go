package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Comparison is the result of comparing two items of one kind.
type Comparison struct {
	// Plugins is the first plugin's comparison that is not 0: negative if the left comes first.
	Plugins int
	// Less: the left comes first, including fallbacks.
	Less bool
}

// Order compares and sorts queues, jobs and tasks as a session's policy orders them.
type Order struct{ s *Session }

// Order returns the order of service and of eviction in the current state.
func (s *Session) Order() Order { return Order{s} }

// CompareQueues compares two queues by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller name.
func (o Order) CompareQueues(l, r model.QueueID) Comparison {
	c := o.s.by.compareQueues(l, r)
	return Comparison{c, c < 0 || c == 0 && olderQueue(o.s.view, l, r)}
}

// SortQueuesOnce sorts distinct queues as SortQueues does, if each queue has a place of its own in the order: then any two need not be
// compared to see whether there is an order. Otherwise it returns false and changes nothing. The plugins do not distinguish the queue at
// position i from the next one if tied(i), which is valid until queues are sorted again.
func (o Order) SortQueuesOnce(queues []model.QueueID) (tied func(i int) bool, ok bool) {
	by := &o.s.by
	return by.queues.tied, by.queues.sort(o.s.view, by, queues)
}

// Ranks returns the positions of queues in the order of service of the queues that have jobs, and model.None for a queue that has none.
func (o Order) Ranks(queues []model.QueueID) []int32 {
	busy := o.s.view.Busy()
	o.SortQueues(busy)
	all, ranks := make([]int32, len(o.s.view.Queues)), make([]int32, len(queues))
	for i, q := range busy {
		all[q] = int32(i) + 1
	}
	for i, q := range queues {
		ranks[i] = all[q] - 1
	}
	return ranks
}

// CompareVictimQueues compares two queues by the order in which they lose tasks to a claimant's queue. If no plugin distinguishes them, it
// is the reverse of CompareQueues.
func (o Order) CompareVictimQueues(l, r, claimant model.QueueID) Comparison {
	c := o.s.by.compareVictimQueues(l, r, claimant)
	return Comparison{c, o.s.by.lessVictimQueue(o.s.view, l, r, claimant)}
}

// CompareJobs compares two jobs by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller uid.
func (o Order) CompareJobs(l, r model.JobID) Comparison {
	c := o.s.by.compareJobs(l, r)
	if c != 0 {
		return Comparison{c, c < 0}
	}
	lj, rj := o.s.view.Jobs.At(l), o.s.view.Jobs.At(r)
	return Comparison{0, older(lj.CreateTime, rj.CreateTime, lj.UID, rj.UID)}
}

// CompareTasks compares two tasks by order of service. If no plugin distinguishes them, the smaller index within the role comes first, then
// the older one, then the one with the smaller uid.
func (o Order) CompareTasks(l, r model.TaskID) Comparison {
	c := o.s.by.compareTasks(l, r)
	return Comparison{c, o.s.by.lessTask(o.s.view, l, r)}
}

// CompareVictims compares two candidates by order of eviction for a claimant: by their queues, then by their jobs, then by themselves, the
// last in service first (Volcano's BuildVictimsPriorityQueue).
func (o Order) CompareVictims(l, r, claimant model.TaskID) Comparison {
	return o.s.by.compareVictims(o.s.view, l, r, o.s.view.QueueOf(claimant))
}

// SortVictims sorts candidates by order of eviction for a claimant.
func (o Order) SortVictims(claimant model.TaskID, candidates []model.TaskID) {
	sortVictims(o.s.view, &o.s.by, claimant, candidates)
}

// Sort sorts distinct ids by less, which orders any two. A comparison that is not transitive has no sorted order; the result then depends
// only on the comparison and the order of name.
func Sort[ID ~int32](ids []ID, name func(l, r ID) int, less func(l, r ID) bool) {
	slices.SortFunc(ids, name)
	slices.SortStableFunc(ids, func(l, r ID) int {
		switch {
		case l == r:
			return 0
		case less(l, r):
			return -1
		}
		return 1
	})
}

// SortQueues sorts queues by order of service.
func (o Order) SortQueues(queues []model.QueueID) {
	if _, sorted := o.SortQueuesOnce(queues); sorted {
		return
	}
	Sort(queues, o.s.queueName, func(l, r model.QueueID) bool { return o.CompareQueues(l, r).Less })
}

// SortJobs sorts jobs by order of service.
func (o Order) SortJobs(jobs []model.JobID) {
	Sort(jobs, o.s.jobName, func(l, r model.JobID) bool { return o.CompareJobs(l, r).Less })
}

// Pending lists the pending jobs in the order of the enqueue action: queue by queue, job by job. Volcano puts a queue back after each of
// its jobs, but enqueueing does not change the order of queues or jobs.
func (o Order) Pending() []model.JobID {
	pending := o.s.byQueue(func(j model.JobID) bool { return o.s.view.Phase(j) == model.PhasePending })
	return slices.Concat(pending...)
}

func (s *Session) queueName(l, r model.QueueID) int {
	return strings.Compare(s.view.Queues[l].Name, s.view.Queues[r].Name)
}

func (s *Session) jobName(l, r model.JobID) int {
	return strings.Compare(s.view.Jobs.At(l).UID, s.view.Jobs.At(r).UID)
}

func (t *table) compareQueues(l, r model.QueueID) int {
	for _, p := range t.queueOrder {
		if c := p.CompareQueues(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareVictimQueues(l, r, claimant model.QueueID) int {
	for _, p := range t.victimQueueOrder {
		if c := cmp.Compare(p.Nearness(r, claimant), p.Nearness(l, claimant)); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareJobs(l, r model.JobID) int {
	for _, p := range t.jobOrder {
		if c := p.CompareJobs(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareTasks(l, r model.TaskID) int {
	for _, p := range t.taskOrder {
		if c := p.CompareTasks(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) lessVictimQueue(v *policy.View, l, r, claimant model.QueueID) bool {
	if c := t.compareVictimQueues(l, r, claimant); c != 0 {
		return c < 0
	}
	c := t.compareQueues(l, r)
	return c > 0 || c == 0 && !olderQueue(v, l, r)
}

func (t *table) lessTask(v *policy.View, l, r model.TaskID) bool {
	if c := t.compareTasks(l, r); c != 0 {
		return c < 0
	}
	lt, rt := v.Tasks.At(l), v.Tasks.At(r)
	switch {
	case lt.Index >= 0 && rt.Index >= 0 && lt.Index != rt.Index:
		return lt.Index < rt.Index
	case lt.CreateTime != rt.CreateTime:
		return lt.CreateTime < rt.CreateTime
	}
	return v.CompareTasks(l, r) < 0
}

// compareVictims compares jobs only by the plugins, without Volcano's fallback between jobs.
func (t *table) compareVictims(v *policy.View, l, r model.TaskID, claimant model.QueueID) Comparison {
	lj, rj := v.Tasks.At(l).Job, v.Tasks.At(r).Job
	if lq, rq := v.Jobs.At(lj).Queue, v.Jobs.At(rj).Queue; lq != rq {
		c := t.compareVictimQueues(lq, rq, claimant)
		if c == 0 {
			c = -t.compareQueues(lq, rq)
		}
		return Comparison{c, t.lessVictimQueue(v, lq, rq, claimant)}
	}
	if lj != rj {
		if c := t.compareJobs(lj, rj); c != 0 {
			return Comparison{-c, c > 0}
		}
	}
	return Comparison{-t.compareTasks(l, r), !t.lessTask(v, l, r)}
}

func olderQueue(v *policy.View, l, r model.QueueID) bool {
	lq, rq := &v.Queues[l], &v.Queues[r]
	return older(lq.CreateTime, rq.CreateTime, lq.Name, rq.Name)
}

func older(l, r int64, lName, rName string) bool {
	if l != r {
		return l < r
	}
	return lName < rName
}

// byQueue lists the jobs that a condition holds for: a list for each queue that has some, in queue order, each in job order.
func (s *Session) byQueue(holds func(model.JobID) bool) [][]model.JobID {
	of := make(map[model.QueueID][]model.JobID)
	var queues []model.QueueID
	for _, j := range s.view.Present() {
		if !holds(j) {
			continue
		}
		q := s.view.Jobs.At(j).Queue
		if of[q] == nil {
			queues = append(queues, q)
		}
		of[q] = append(of[q], j)
	}
	s.Order().SortQueues(queues)
	lists := make([][]model.JobID, len(queues))
	for i, q := range queues {
		s.Order().SortJobs(of[q])
		lists[i] = of[q]
	}
	return lists
}

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
