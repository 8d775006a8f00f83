package fair

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Turns keep room for one gang at a time. This file derives that reservation from the state alone; no event writes it.
//
//   - For one version of the state there is one reservation, or none: a rollback to a version returns to the same one. The two that are
//     kept are a memory of results, and forgetting one changes no answer.
//   - The gang is that which waits longest among the first of each queue that waits long enough, may start at some end of running jobs
//     that is known, and has earned it. It starts at the earliest such time, on the first nodes with room.
//   - Where work runs out, the question fails (short); it is never answered as if there were no reservation.

// reservation is the room that is kept for one gang. It follows from the state of the session.
type reservation struct {
	version uint64
	known   bool
	// job is model.None if there is none.
	job  model.JobID
	leaf place
	// from is when the gang can start, in Unix nanoseconds; tasks start then on nodes, which are none where there are no nodes. Those that
	// have started since are seats.
	from  int64
	tasks []model.TaskID
	nodes []model.NodeID
	seats seats
	// need is what the tasks ask for together.
	need     []int64
	positive resource.Mask
	// spare is what each node, and left what the cluster has at that time beside the reservation. tasksOn counts the tasks of the
	// reservation on each node. held is what the places on the gang's path hold then, without it.
	spare   []int64
	tasksOn []int32
	left    []int64
	held    map[place][]int64
}

// spareOn returns what a node of the reservation has then beside it, nil for another node or none.
func (s *State) spareOn(r *reservation, n model.NodeID) []int64 {
	if n == model.None || len(r.nodes) == 0 || r.tasksOn[n] == 0 {
		return nil
	}
	return s.roomOf(r.spare, n)
}

// reservations are those of two states, of which rollbacks return to one.
type reservations struct {
	kept [2]reservation
	// next is the one to replace.
	next int
	// short says that too little work was left for one of them. The question fails, whatever is derived from it until then.
	short bool
}

// reserved returns the reservation of the present state; nil if there is none. It is formed when it is first asked for. If that costs more
// than the work that is left, it is nil until the question has failed.
func (s *State) reserved() *reservation {
	if s.turns == nil {
		return nil
	}
	if r := s.reservationOf(s.version); r.job != model.None {
		return r
	}
	return nil
}

// forgetUnpaid forgets what was derived without a reservation that could not be paid, once there is work again.
func (s *State) forgetUnpaid() {
	if k := &s.reservations; k.short && s.v.Work.Use(1, 1) {
		*k = reservations{}
		s.claims.forget()
	}
}

// reservationOf returns that of the present version, which may be one of no job.
func (s *State) reservationOf(version uint64) *reservation {
	s.forgetUnpaid()
	k := &s.reservations
	for i := range k.kept {
		if r := &k.kept[i]; r.known && r.version == version {
			// What is tried and rolled back again and again returns to one version.
			k.next = 1 - i
			return r
		}
	}
	r := &k.kept[k.next]
	*r = reservation{version: version, known: true, job: model.None}
	if !s.reserve(r) {
		k.short = true
	}
	k.next = 1 - k.next
	return r
}

// gangWait is a gang that may hold a reservation.
type gangWait struct {
	leaf place
	*wait
}

// reserve reserves room for the gang that waits longest among those that can start at some time, of which each queue has one: the first in
// its order. It returns false if there is too little work left.
func (s *State) reserve(r *reservation) bool {
	s.settle()
	s.openRooms()
	gangs, paid := s.waitingGangs()
	if !paid {
		return false
	}
	slices.SortFunc(gangs, func(l, r gangWait) int {
		lj, rj := s.v.Jobs.At(l.job), s.v.Jobs.At(r.job)
		return cmp.Or(cmp.Compare(lj.CreateTime, rj.CreateTime), cmp.Compare(lj.UID, rj.UID))
	})
	r.openSeats(gangs)
	for _, g := range gangs {
		if reserved, paid := s.reserveFor(r, g); reserved || !paid {
			return paid
		}
	}
	return true
}

// waitingGangs returns the candidate of each queue; false if there is too little work left.
func (s *State) waitingGangs() ([]gangWait, bool) {
	if !s.v.Work.Use(len(s.tree.leaves), 1) {
		return nil, false
	}
	var gangs []gangWait
	for _, p := range s.tree.leaves {
		for _, w := range s.waitsOf(p) {
			if !s.v.Work.Use(1, s.width) {
				return nil, false
			}
			if s.refresh(w); w.gang > 0 && w.positive != 0 && s.hasWaited(w) {
				gangs = append(gangs, gangWait{p, w})
				break
			}
		}
	}
	return gangs, true
}

// hasWaited reports whether a job is a gang of several tasks, or of one task if these may hold reservations, that waits long enough and
// could start wherever its tasks have room: room that is kept for one that nevertheless cannot start would be lost.
func (s *State) hasWaited(w *wait) bool {
	job, least := s.v.Jobs.At(w.job), s.turns.Wait
	if job.MinAvailable <= 1 {
		if s.turns.SingleWait == 0 || job.EndTask-job.FirstTask != 1 {
			return false
		}
		least = s.turns.SingleWait
	}
	return !w.unsure && job.CreateTime > 0 && s.v.AsOf-job.CreateTime >= least
}

// future is what nodes, the cluster and the places on a gang's path have and hold at a later time.
type future struct {
	rooms, cluster []int64
	held           map[place][]int64
}

// reserveFor reserves room for a gang at the earliest time at which it can start: now, or when a job ends. paid is false if there is too
// little work left.
func (s *State) reserveFor(r *reservation, g gangWait) (reserved, paid bool) {
	depth := s.depthOf(g.leaf)
	if !s.v.Work.Use(len(s.v.NodeOrder)+int(g.gang)+depth, s.width) || !s.v.Work.Use(len(s.ends.jobs), 1) {
		return false, false
	}
	f := s.futureOf(g.leaf)
	tasks := make([]model.TaskID, 0, g.gang)
	for t := range s.first(g.wait, g.gang) {
		tasks = append(tasks, t)
	}
	at, jobs := s.v.AsOf, s.ends.jobs
	for i := 0; ; i++ {
		s.v.Yield(i)
		if !s.v.Work.Use(1+depth, s.width) {
			return false, false
		}
		if s.mayStart(g, f) {
			nodes, fits, paid := s.fitIn(tasks, f.rooms, at)
			if !paid {
				return false, false
			}
			if fits {
				s.keep(r, g, f, at, tasks, nodes)
				return true, true
			}
			r.seats.none = r.seats.none || len(g.kinds) > 1
		}
		// The end of tasks of its own makes no room for the others.
		for len(jobs) > 0 && (!s.runs(jobs[0]) || jobs[0] == g.job) {
			jobs = jobs[1:]
		}
		if len(jobs) == 0 {
			return false, true
		}
		at = s.ends.of[jobs[0]]
		for len(jobs) > 0 && s.ends.of[jobs[0]] == at {
			if jobs[0] != g.job && !s.end(jobs[0], f) {
				return false, false
			}
			jobs = jobs[1:]
		}
	}
}

// depthOf returns the number of places on the path of a leaf.
func (s *State) depthOf(p place) int {
	depth := 0
	for ; p != none; p = s.tree.parent[p] {
		depth++
	}
	return depth
}

// futureOf returns the future of now, for a gang of a leaf.
func (s *State) futureOf(leaf place) *future {
	f := &future{rooms: make([]int64, len(s.v.Nodes)*s.width), cluster: make([]int64, s.width), held: map[place][]int64{}}
	for _, n := range s.v.NodeOrder {
		row := s.roomOf(f.rooms, n)
		for d := range row {
			row[d] = s.futureOn(n, d)
		}
	}
	for d := range f.cluster {
		f.cluster[d] = s.future(d)
	}
	for p := leaf; p != none; p = s.tree.parent[p] {
		f.held[p] = slices.Clone(s.row(s.accounts.held, p))
	}
	return f
}

// end lets a job end, if it runs. It returns false if there is too little work left.
func (s *State) end(j model.JobID, f *future) bool {
	job := s.v.Jobs.At(j)
	visits := int(s.v.Account(j).Holding()) * (2 + s.depthOf(s.leafOf(j)))
	if !s.v.Work.Use(int(job.EndTask-job.FirstTask), 1) || !s.v.Work.Use(visits, s.width) {
		return false
	}
	for t := job.FirstTask; t < job.EndTask; t++ {
		if !s.v.Status(t).Holds() {
			continue
		}
		q := s.requestOf(t)
		if n := s.v.NodeOf(t); n != model.None {
			addTimes(s.roomOf(f.rooms, n), q, 1)
		}
		addTimes(f.cluster, q, 1)
		for p := s.leafOf(j); p != none; p = s.tree.parent[p] {
			if row := f.held[p]; row != nil {
				addTimes(row, q, -1)
			}
		}
	}
	return true
}

// mayStart reports whether, in a future, the cluster has room for a gang, limits leave room, and its queue has earned it.
func (s *State) mayStart(g gangWait, f *future) bool {
	if !covers(f.cluster, g.need, g.positive) {
		return false
	}
	for p := g.leaf; p != none; p = s.tree.parent[p] {
		l := &s.limits[p]
		for m := g.positive & l.limited; m != 0; m = m.Rest() {
			if d := m.First(); f.held[p][d]+g.need[d] > l.capability[d] {
				return false
			}
		}
	}
	return s.earned(g.job, g.leaf, func(p place) []int64 { return f.held[p] }, g.need, g.positive)
}

// fitIn places tasks, which start at a time, in rooms by first fit and takes their room; if not all fit, it takes none. Without nodes all
// fit. paid is false if there is too little work left.
func (s *State) fitIn(tasks []model.TaskID, rooms []int64, at int64) (nodes []model.NodeID, fits, paid bool) {
	if len(s.v.NodeOrder) == 0 {
		return nil, true, true
	}
	if !s.v.Work.Use(len(tasks), s.width) {
		return nil, false, false
	}
	nodes = make([]model.NodeID, 0, len(tasks))
	// No node before it has room for tasks like the last one.
	from, last := 0, restricted{-1, model.AllNodes}
	for _, t := range tasks {
		if like := s.restricted(t); like != last {
			if from, last = 0, like; !s.v.Work.Use(len(s.v.NodeOrder), s.width) {
				return nil, false, false
			}
		}
		q := s.requestOf(t)
		for from < len(s.v.NodeOrder) {
			n := s.v.NodeOrder[from]
			if s.v.MayUse(t, n, at) && covers(s.roomOf(rooms, n), q.amount, q.positive) {
				break
			}
			from++
		}
		if from == len(s.v.NodeOrder) {
			for i, n := range nodes {
				addTimes(s.roomOf(rooms, n), s.requestOf(tasks[i]), 1)
			}
			return nil, false, true
		}
		n := s.v.NodeOrder[from]
		addTimes(s.roomOf(rooms, n), q, -1)
		nodes = append(nodes, n)
	}
	return nodes, true, true
}

// keep fills in a reservation whose tasks were placed in a future.
func (s *State) keep(r *reservation, g gangWait, f *future, at int64, tasks []model.TaskID, nodes []model.NodeID) {
	r.job, r.leaf, r.from, r.tasks, r.nodes = g.job, g.leaf, at, tasks, nodes
	r.need, r.positive = slices.Clone(g.need), g.positive
	r.spare, r.tasksOn = f.rooms, make([]int32, len(s.v.Nodes))
	for _, n := range nodes {
		r.tasksOn[n]++
	}
	if r.seats.equal = len(g.kinds) == 1; r.seats.equal && len(nodes) > 0 {
		r.seats.order = slices.Compact(slices.Clone(nodes))
		r.seats.last = len(r.seats.order) - 1
	}
	r.left, r.held = f.cluster, f.held
	for d := range r.left {
		r.left[d] -= r.need[d]
	}
}

// withholdReserved keeps claims out of the room of the reservation: what may not start claims nothing.
func (s *State) withholdReserved(r *reservation) {
	c := &s.claims
	if len(r.nodes) == 0 {
		for d := range c.cluster {
			c.cluster[d] -= r.need[d]
		}
		return
	}
	for n, q := range s.placesOf(r) {
		row := c.nodes.Row(int(c.nodes.slot[n.node]))
		for m := q.positive; m != 0; m = m.Rest() {
			d := m.First()
			c.cluster[d] -= max(0, min(row[d], n.tasks*q.amount[d]))
		}
		c.nodes.take(int(c.nodes.slot[n.node]), q, n.tasks)
	}
}

// idleBeside returns what a reservation keeps idle now: on each of its nodes what is idle, but no more than its tasks ask for there.
func (s *State) idleBeside(r *reservation) []int64 {
	sum := make([]int64, s.width)
	if len(r.nodes) == 0 {
		for d := range sum {
			sum[d] = min(s.idle(d), r.need[d])
		}
		return sum
	}
	left := map[model.NodeID][]int64{}
	for n, q := range s.placesOf(r) {
		row := left[n.node]
		if row == nil {
			row = slices.Clone(s.idleOf(n.node))
			left[n.node] = row
		}
		for m := q.positive; m != 0; m = m.Rest() {
			d := m.First()
			kept := max(0, min(row[d], n.tasks*q.amount[d]))
			row[d] -= kept
			sum[d] += kept
		}
	}
	return sum
}

// ReservationOf returns the room that is kept for a gang; false if there is none.
func (s *State) ReservationOf(j model.JobID) (policy.Reservation, bool) {
	r, ok := s.Reservation()
	return r, ok && r.Job == j
}

// Reservation returns the room that is kept for a gang; false if there is none.
func (s *State) Reservation() (policy.Reservation, bool) {
	r := s.reserved()
	if r == nil {
		return policy.Reservation{}, false
	}
	out := policy.Reservation{Job: r.job, From: r.from, Until: endless}
	out.Tasks, out.Nodes = r.waiting()
	if runtime := s.v.Jobs.At(r.job).ExpectedRuntime; runtime > 0 && runtime < endless-max(r.from, 0) {
		out.Until = r.from + runtime
	}
	return out, true
}
