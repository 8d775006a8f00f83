package judge

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// The check of nodes is the last, and the only one that tries. Each step returns only what it has proven, and leaves the rest to the next:
// quickly proves by one kind that nothing fits, or for tasks of one kind that all do; seat finds places for the chosen tasks; otherwise
// does so for other choices; and without says why there are none. Not known is said where a bound ended the search. Whatever was booked in
// a trial is undone before the step returns.

// kindRoom is the room of the nodes for one kind of task.
type kindRoom struct {
	// tasks is how many of the kind have room at the same time, up to limit.
	tasks, limit int
	// reasons are the reasons why no node has room for one of them, each with its number of nodes; those of nodes that have enough left
	// first, then those that are closest. byNode counts each node once.
	reasons []policy.Reason
	counts  []int
	byNode  []place.NodeCount
}

// nodesFor decides whether the nodes have room for the tasks that the gang needs, now or after tasks that are being released have ended. It
// chooses tasks that fit, if there are such, and among these the tasks that the queue may use.
func (g *Judge) nodesFor(d *Judgement, w *engine.Need, o *place.Options) error {
	share := &d.Findings[len(d.Findings)-1]
	allowed := share.Outcome == Passed
	g.borrows = allowed && g.Booked == nil &&
		slices.ContainsFunc(share.Reasons, func(r policy.Reason) bool { return r.Code == policy.Borrowed })
	if nothing := NothingOffered(g.Host); nothing != nil {
		g.blind(d, *nothing)
		return nil
	}
	if done, err := g.quickly(d, w, o); done || err != nil {
		return err
	}
	if err := g.spendOnNodes(); err != nil {
		return err
	}
	base := d.Tasks
	best := seating{}
	for _, later := range []bool{false, true} {
		if later && !slices.ContainsFunc(w.Kinds, g.gains) {
			break
		}
		found, err := g.seat(base, later, allowed)
		if err == nil && found.Outcome != place.Placed && o != nil {
			found, err = g.otherwise(d, o, later, allowed, found)
		}
		if err != nil {
			return err
		}
		if best = found; best.Outcome == place.Placed {
			return g.found(d, best, later)
		}
	}
	return g.without(d, w, best.Placement)
}

// quickly judges tasks of which one kind has no room at all, and tasks of one kind that have room: what a node takes of one kind does not
// depend on the other nodes.
func (g *Judge) quickly(d *Judgement, w *engine.Need, o *place.Options) (done bool, _ error) {
	if g.Once || g.Booked != nil || o != nil {
		return false, nil
	}
	related := slices.ContainsFunc(w.Kinds, func(t model.TaskID) bool { return g.View().PodKind(t) != 0 })
	if related && len(w.Kinds) > 1 {
		// One may fit because of the other.
		return false, nil
	}
	for _, t := range w.Kinds {
		room, err := g.roomFor(t, len(w.Needed))
		switch {
		case err != nil:
			return false, err
		case room.tasks == 0 && !g.gains(t):
			g.noRoom(d, t, room)
			return true, nil
		case len(w.Kinds) == 1 && !related && room.tasks >= len(w.Needed) && (!g.borrows || len(w.Needed) == 1):
			d.Find(CheckNodes, Passed).Amount = g.Sum(w.Needed)
			return true, nil
		}
	}
	return false, nil
}

// noRoom notes that no node has room for a task.
func (g *Judge) noRoom(d *Judgement, t model.TaskID, room *kindRoom) {
	f := d.Find(CheckNodes, Failed, room.reasons...)
	f.Counts, f.NodeCounts, f.Task, f.Amount = room.counts, room.byNode, t, g.View().Request(t)
}

// gains reports whether a node on which tasks are being released has room for a task like t once they are gone, or had before tasks were
// booked.
func (g *Judge) gains(t model.TaskID) bool {
	releases := len(g.beingReleased()) > 0
	nodes := g.releasing
	if g.View().PodKind(t) != 0 {
		// A pod that leaves one node may let the task on others.
		nodes, releases = g.View().NodeOrder, true
	}
	if !releases {
		return false
	}
	key := g.KindOf(t)
	if known, ok := g.gaining[key]; ok {
		return known
	}
	gains := false
	row, request := resource.NewAccount(g.View().Dims.Len()), g.View().Request(t)
	for _, n := range nodes {
		if g.Future(n, &row); resource.Covers(row, request) && g.FitsWhen(t, n, true, nil) {
			gains = true
			break
		}
	}
	if len(g.Booked) == 0 {
		g.gaining[key] = gains
	}
	return gains
}

// found notes that chosen tasks have places.
func (g *Judge) found(d *Judgement, s seating, later bool) error {
	d.Tasks, d.Nodes = s.tasks, s.Nodes
	if !later {
		d.Find(CheckNodes, Passed).Amount = g.Sum(s.tasks)
		return nil
	}
	released, err := g.releases(s)
	if err == nil {
		d.Find(CheckNodes, Noted, released...).Amount = g.Sum(s.tasks)
	}
	return err
}

// without notes why the chosen tasks have no places: no task of one kind has a place, or not all tasks have one together.
func (g *Judge) without(d *Judgement, w *engine.Need, p place.Placement) error {
	outcome, code := Failed, policy.NoJointPlacement
	if p.Outcome == place.Unknown {
		outcome, code = NotKnown, policy.JointPlacementNotFound
	}
	for _, t := range w.Kinds {
		if g.Once || g.Booked != nil || outcome != Failed {
			break
		}
		room, err := g.roomFor(t, len(w.Needed))
		if err != nil {
			return err
		}
		if room.tasks == 0 && !g.gains(t) {
			g.noRoom(d, t, room)
			return nil
		}
	}
	reason := policy.Because("", code, model.None)
	reason.Have, reason.Limit = float64(p.Most), float64(len(d.Tasks))
	d.Find(CheckNodes, outcome, reason).Amount = g.Sum(d.Tasks)
	return nil
}

// seating is the placement of some tasks.
type seating struct {
	place.Placement

	tasks []model.TaskID
}

// otherwise looks for another choice of tasks that has places. Without one it returns the previous finding, as unknown if not every choice
// was tried completely.
func (g *Judge) otherwise(d *Judgement, o *place.Options, later, allowed bool, known seating) (seating, error) {
	var failed error
	for i := range o.Classes {
		c := &o.Classes[i]
		if c.Most = min(len(c.Tasks), len(d.Tasks)); allowed && !g.Allocatable(c.Tasks[:1], policy.InSession, nil, nil) {
			c.Most = 0
		}
		if c.Most == 0 {
			continue
		}
		alone, err := g.seat(c.Tasks[:c.Most], later, false)
		if err != nil {
			return known, err
		}
		if alone.Outcome != place.Unknown {
			c.Most = alone.Most
		}
	}
	found := known
	_, all := first(o, func(tasks []model.TaskID) bool {
		if slices.Equal(tasks, d.Tasks) || allowed && !g.Allocatable(tasks, policy.InSession, nil, nil) {
			return false
		}
		if failed = g.spendOnNodes(); failed != nil {
			return true
		}
		var at seating
		if at, failed = g.seat(tasks, later, allowed); failed != nil || at.Outcome == place.Placed {
			found = at
			return true
		}
		if found.Most = max(found.Most, at.Most); at.Outcome == place.Unknown {
			found.Outcome = place.Unknown
		}
		return false
	})
	if !all {
		found.Outcome = place.Unknown
	}
	return found, failed
}

// seat chooses nodes for tasks, later also where room is being released. If the tasks are allowed, the policy must let them be placed there
// one after the other.
func (g *Judge) seat(tasks []model.TaskID, later, allowed bool) (seating, error) {
	placement, err := g.place(tasks, later)
	s := seating{placement, tasks}
	if err != nil || s.Outcome != place.Placed || !allowed || !g.Once && (!g.borrows || len(tasks) == 1) {
		return s, err
	}
	settles, err := g.settles(tasks, s.Nodes)
	if err != nil || settles {
		return s, err
	}
	if g.Reclaim().Plans() {
		if s.Nodes, err = g.elsewhere(tasks, later); err != nil || s.Nodes != nil {
			return s, err
		}
	}
	s.Outcome = place.Unknown
	return s, nil
}

// settles reports whether the policy lets tasks be placed on nodes one after the other. What it sets aside on nodes for others may keep a
// task off a node that has room for it.
func (g *Judge) settles(tasks []model.TaskID, nodes []model.NodeID) (settles bool, _ error) {
	err := g.Tried(func() error {
		for i, t := range tasks {
			// What is left for the last is the least.
			asked := g.Once || i == len(tasks)-1
			if asked && (!g.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) || !g.PolicyFits(t, nodes[i], nil)) {
				return nil
			}
			g.Book(t, model.Allocated, nodes[i])
		}
		settles = true
		return nil
	})
	return settles, err
}

// maxSeats bounds the nodes on which tasks are booked to see whether the policy lets the others be placed.
const maxSeats = 256

// elsewhere looks for other nodes on which the policy lets tasks be placed one after the other: what it sets aside for others depends on
// the nodes that are left. It returns nil if it finds none within its bound.
func (g *Judge) elsewhere(tasks []model.TaskID, later bool) (nodes []model.NodeID, _ error) {
	left := maxSeats
	err := g.Tried(func() error {
		nodes = g.seatRest(tasks, nil, later, &left)
		return nil
	})
	if g.View().Stop != nil && g.View().Stop() {
		return nil, policy.ErrStopped
	}
	return nodes, err
}

// seatRest places the tasks that follow those on nodes.
func (g *Judge) seatRest(tasks []model.TaskID, nodes []model.NodeID, later bool, left *int) []model.NodeID {
	if len(nodes) == len(tasks) {
		return nodes
	}
	t := tasks[len(nodes)]
	if !g.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) {
		return nil
	}
	row, request, room := resource.NewAccount(g.View().Dims.Len()), g.View().Request(t), g.left(later)
	for _, n := range g.View().NodeOrder {
		if *left == 0 {
			return nil
		}
		if room(n, &row); !resource.Covers(row, request) || !g.FitsWhen(t, n, later, nil) {
			continue
		}
		*left--
		g.Book(t, model.Allocated, n)
		if found := g.seatRest(tasks, append(slices.Clip(nodes), n), later, left); found != nil {
			return found
		}
		g.Unbook(t, model.Pending)
	}
	return nil
}

// roomFor counts, up to limit, how many tasks like t the nodes have room for at the same time.
func (g *Judge) roomFor(t model.TaskID, limit int) (*kindRoom, error) {
	key := g.KindOf(t)
	if len(g.Predicates()) == 0 {
		// Then Fits looks at no queue.
		key.Queue = 0
	}
	room := g.room[key]
	if room != nil && (room.tasks < room.limit || room.tasks >= limit) {
		return room, nil
	}
	v := g.View()
	if err := g.spendOnNodes(); err != nil {
		return nil, err
	}
	free, err := g.index(false)
	if err != nil {
		return nil, err
	}
	room = &kindRoom{limit: limit}
	g.room[key] = room
	idle, request, together := resource.NewAccount(v.Dims.Len()), v.Request(t), place.Filling{}
	for i, n := range g.View().NodeOrder {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		if free != nil {
			idle.CopyFrom(free.idle[i])
		} else {
			v.Idle(n, &idle)
		}
		if !resource.Covers(idle, request) || !g.Nodes().Fits(t, n, nil) {
			continue
		}
		b := place.BoundOf(g.Host, t, n)
		for ; room.tasks < limit && resource.Covers(idle, request) && together.Takes(b, request); room.tasks++ {
			idle.SubWithin(request)
			together.Put(b, request)
		}
		if room.tasks >= limit {
			return room, nil
		}
	}
	if room.tasks == 0 {
		if err := g.spendOnNodes(); err != nil {
			return nil, err
		}
		g.refusals(t, room)
	}
	return room, nil
}

// spendOnNodes counts the work of checking every node for a task.
func (g *Judge) spendOnNodes() error {
	const rules = 32
	if g.Once || g.Booked != nil {
		// The whole question is paid for.
		return nil
	}
	return g.View().Work.Spend(len(g.View().NodeOrder), g.View().Dims.Len()+rules)
}
