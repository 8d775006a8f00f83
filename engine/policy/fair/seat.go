package fair

import (
	"iter"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// seats follow the starts of tasks that leave a reservation in place, so that a gang whose tasks start one by one has it formed once. It is
// the reservation that would be formed anew, for these reasons:
//   - A start takes from limits and from what is earned, of its own gang as much as the gang needs less after it. Of others it only takes,
//     so that no gang can start earlier than before.
//   - Equal tasks are placed by how many fit each node. A start where there is room takes one of these places: of the others of its gang,
//     as many fit as before, less one. Of a gang of unequal tasks only the first start on its own node is followed.
//   - The candidates stay the same while each lacks tasks, of the same dimensions: limits are looked at in these alone.
type seats struct {
	// none: unequal tasks of a gang did not fit at some time. With less room, some might fit.
	none bool
	// equal: the tasks of the reservation are alike.
	equal bool
	// gangs are the candidates for the reservation, with what they ask for: if their tasks are unequal, in amounts too.
	gangs map[model.JobID]lack
	// order are the nodes of equal tasks, each once; those up to last have places.
	order []model.NodeID
	last  int
	// at is the position of each task of the reservation; filled in when the first one starts. started marks those that have started, and
	// no task before first has not.
	at      map[model.TaskID]int32
	started []bool
	first   int
	taken   []seat
}

// lack is what a gang needs.
type lack struct {
	positive resource.Mask
	need     []int64
}

// seat is a start that was followed.
type seat struct {
	task model.TaskID
	// version is that of the state before it, last the reservation's.
	version uint64
	last    int
	// own is a task of the gang, which gave up a place on a node. beside is one that still runs when the reservation begins.
	own, beside bool
	node        model.NodeID
	// asks is a task of a candidate.
	asks bool
}

// openSeats begins to follow starts.
func (r *reservation) openSeats(gangs []gangWait) {
	r.seats.gangs = make(map[model.JobID]lack, len(gangs))
	for _, g := range gangs {
		of := lack{positive: g.positive}
		if len(g.kinds) > 1 {
			of.need = slices.Clone(g.need)
		}
		r.seats.gangs[g.job] = of
	}
}

// follow makes the reservation of a state that of the present one, which differs by the change of one task, if that is a start that leaves
// the reservation in place.
func (s *State) follow(version uint64, t model.TaskID, from, to model.Status) {
	k := &s.reservations
	if s.turns == nil || k.short || from != model.Pending || !to.Holds() {
		return
	}
	for i := range k.kept {
		if r := &k.kept[i]; r.known && r.version == version && s.seat(r, t) {
			r.version = s.version
		}
	}
}

// seat follows the start of a task; false if the reservation must be formed anew.
func (s *State) seat(r *reservation, t model.TaskID) bool {
	j, on, q := s.v.Tasks.At(t).Job, s.v.NodeOf(t), s.requestOf(t)
	p := s.leafOf(j)
	if r.seats.none || s.owned != nil || p == none || !s.tree.open[p] || !s.waits(t) {
		return false
	}
	asked, asks := r.seats.gangs[j]
	if asks && (!s.lacksAllBut(j, q, asked) || !s.hadRoom(t, on)) {
		return false
	}
	taken := seat{task: t, version: r.version, last: r.seats.last, node: model.None, asks: asks}
	switch {
	case r.job == model.None:
	case j == r.job:
		if !s.takePlace(r, &taken, on) {
			return false
		}
	case s.ends.of[j] > r.from:
		spare := s.spareOn(r, on)
		if s.disturbs(r, p, q.amount, q.positive) || spare != nil && !covers(spare, q.amount, q.positive) {
			return false
		}
		taken.beside = true
		s.runBeside(r, p, on, q, 1)
	}
	if asked.need != nil {
		addTimes(asked.need, q, -1)
	}
	r.seats.taken = append(r.seats.taken, taken)
	return true
}

// lacksAllBut reports whether a gang whose task has started still needs what it asked for, less that, and has the tasks.
func (s *State) lacksAllBut(j model.JobID, q *request, asked lack) bool {
	tasks, w := s.v.Account(j), s.waitOf(j)
	lacking := s.v.Jobs.At(j).MinAvailable - tasks.Holding() - tasks.Tasks[model.Pipelined]
	if w == nil || lacking < 1 || lacking > w.pending {
		return false
	}
	if asked.need == nil {
		return true
	}
	if !s.v.Work.Use(int(lacking), 1) {
		return false
	}
	s.refresh(w)
	for d, x := range asked.need {
		if w.need[d]+q.amount[d] != x {
			return false
		}
	}
	return w.positive == asked.positive
}

// hadRoom reports whether a task that has started had room on its node.
func (s *State) hadRoom(t model.TaskID, on model.NodeID) bool {
	if len(s.v.NodeOrder) == 0 {
		return true
	}
	if on == model.None || !s.v.Takes(on, s.setOf(t)) {
		return false
	}
	for m := s.requestOf(t).positive; m != 0; m = m.Rest() {
		if s.futureOn(on, m.First()) < 0 {
			return false
		}
	}
	return true
}

// runBeside counts n tasks on a node that run when a reservation begins.
func (s *State) runBeside(r *reservation, p place, on model.NodeID, q *request, n int64) {
	addTimes(r.left, q, -n)
	if on != model.None {
		addTimes(s.roomOf(r.spare, on), q, -n)
	}
	for ; p != none; p = s.tree.parent[p] {
		if held := r.held[p]; held != nil {
			addTimes(held, q, n)
		}
	}
}

// takePlace takes the place of a task of the reservation; false if its other tasks might have other places then.
func (s *State) takePlace(r *reservation, taken *seat, on model.NodeID) bool {
	of := &r.seats
	if of.at == nil {
		if !s.v.Work.Use(len(r.tasks), 2) {
			return false
		}
		of.at, of.started = make(map[model.TaskID]int32, len(r.tasks)), make([]bool, len(r.tasks))
		for i, t := range r.tasks {
			of.at[t] = int32(i)
		}
	}
	at, is := of.at[taken.task]
	if !is || !of.equal && int(at) != of.first {
		return false
	}
	if len(r.nodes) > 0 {
		switch {
		case !of.equal && r.nodes[at] != on:
			return false
		case r.tasksOn[on] > 0:
			taken.node = on
		default:
			taken.node = of.order[of.last]
		}
	}
	taken.own, of.started[at] = true, true
	for of.first < len(of.started) && of.started[of.first] {
		of.first++
	}
	s.movePlace(r, taken, on, 1)
	for of.equal && of.last > 0 && r.tasksOn[of.order[of.last]] == 0 {
		of.last--
	}
	return true
}

// movePlace takes n times the place of a seat from the reservation, for a task that runs on a node.
func (s *State) movePlace(r *reservation, taken *seat, on model.NodeID, n int64) {
	q := s.requestOf(taken.task)
	addTimes(r.need, q, -n)
	for _, held := range r.held {
		addTimes(held, q, n)
	}
	if taken.node == model.None {
		return
	}
	r.tasksOn[taken.node] -= int32(n)
	addTimes(s.roomOf(r.spare, taken.node), q, n)
	addTimes(s.roomOf(r.spare, on), q, -n)
}

// unfollow undoes follow for the latest start, of a task on a node.
func (s *State) unfollow(t model.TaskID, on model.NodeID) {
	for i := range s.reservations.kept {
		r := &s.reservations.kept[i]
		last := len(r.seats.taken) - 1
		if !r.known || r.version != s.version || last < 0 || r.seats.taken[last].task != t {
			continue
		}
		taken := r.seats.taken[last]
		switch {
		case taken.own:
			at := r.seats.at[t]
			r.seats.started[at] = false
			r.seats.first = min(r.seats.first, int(at))
			s.movePlace(r, &taken, on, -1)
		case taken.beside:
			s.runBeside(r, s.leafOf(s.v.Tasks.At(t).Job), on, s.requestOf(t), -1)
		}
		if asked := r.seats.gangs[s.v.Tasks.At(t).Job]; taken.asks && asked.need != nil {
			addTimes(asked.need, s.requestOf(t), 1)
		}
		r.version, r.seats.last, r.seats.taken = taken.version, taken.last, r.seats.taken[:last]
	}
}

// waiting returns the tasks that have not started, and their nodes, which are nil if there are none.
func (r *reservation) waiting() ([]model.TaskID, []model.NodeID) {
	of := &r.seats
	if of.at == nil {
		return slices.Clone(r.tasks), slices.Clone(r.nodes)
	}
	var tasks []model.TaskID
	var nodes []model.NodeID
	for i, t := range r.tasks {
		if of.started[i] {
			continue
		}
		tasks = append(tasks, t)
		if len(r.nodes) > 0 && !of.equal {
			nodes = append(nodes, r.nodes[i])
		}
	}
	if len(r.nodes) > 0 && of.equal {
		for _, n := range of.order {
			for range r.tasksOn[n] {
				nodes = append(nodes, n)
			}
		}
	}
	return tasks, nodes
}

// several are tasks with one request on a node.
type several struct {
	node  model.NodeID
	tasks int64
}

// placesOf yields how many tasks of a reservation wait for a node, with what each asks for.
func (s *State) placesOf(r *reservation) iter.Seq2[several, *request] {
	return func(yield func(several, *request) bool) {
		if r.seats.equal {
			for _, n := range r.seats.order {
				if tasks := r.tasksOn[n]; tasks > 0 && !yield(several{n, int64(tasks)}, s.requestOf(r.tasks[0])) {
					return
				}
			}
			return
		}
		for i, n := range r.nodes {
			started := r.seats.at != nil && r.seats.started[i]
			if !started && !yield(several{n, 1}, s.requestOf(r.tasks[i])) {
				return
			}
		}
	}
}
