package fair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// player is a queue that always wants the whole cluster, and the sizes of the gangs that it asks for, in turn; size 1 is a task alone. most
// limits the nodes that it may hold; 0: nothing does.
type player struct {
	weight uint32
	sizes  []int
	most   int64
}

// game is a cluster of equal nodes in which every queue always has work for all of it. Each task takes a node, each job about 6 hours. It
// lasts 40 days in steps of half an hour.
type game struct {
	nodes, steps int
	players      []player
	memory       bool
	turns        *Turns

	// runs are the jobs that run, waiting those of each queue that wait, in order of age.
	runs    []played
	waiting [][]played
	asked   []int
	// usage and entitled are decayed until the beginning of the epoch; used and due are what came since.
	// reserved and kept are the same of what stood idle for their gangs.
	usage, entitled, used, due []float64
	reserved, kept             []float64
	held, idle                 []float64
	evictions                  int
}

type played struct{ queue, size, hours, left, began int }

const backlogOfGame = 3

func (g *game) run(t *testing.T) []float64 {
	t.Helper()
	n := len(g.players)
	random := rand.New(rand.NewPCG(*seed, 11))
	g.waiting, g.asked, g.held = make([][]played, n), make([]int, n), make([]float64, n)
	g.usage, g.entitled, g.used, g.due = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	g.idle, g.reserved, g.kept = make([]float64, n), make([]float64, n), make([]float64, n)
	for step := range g.steps {
		if step%stepsOfEpoch == 0 {
			for q := range n {
				g.usage[q], g.used[q] = g.usage[q]*math.Exp2(-1.0/halfLife)+g.used[q], 0
				g.entitled[q], g.due[q] = g.entitled[q]*math.Exp2(-1.0/halfLife)+g.due[q], 0
				g.reserved[q], g.kept[q] = g.reserved[q]*math.Exp2(-1.0/halfLife)+g.kept[q], 0
			}
		}
		left := g.runs[:0]
		for _, r := range g.runs {
			if r.left--; r.left > 0 {
				left = append(left, r)
			}
		}
		g.runs = left
		for q := range g.players {
			wants := 0
			for _, w := range g.waiting[q] {
				wants += w.size
			}
			for wants < g.nodes || len(g.waiting[q]) < backlogOfGame {
				size := g.players[q].sizes[g.asked[q]%len(g.players[q].sizes)]
				g.asked[q]++
				wants += size
				hours := 9 + random.IntN(7)
				g.waiting[q] = append(g.waiting[q], played{q, size, hours, hours, step})
			}
		}
		g.step(t, step)
	}
	for q := range g.held {
		g.held[q] /= float64(g.steps)
	}
	return g.held
}

func (g *game) step(t *testing.T, step int) {
	t.Helper()
	const half = 1800 * nanoseconds
	c := &cluster{width: 1, total: []int64{int64(g.nodes)}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: DefaultMemory()}}
	c.plugin.Turns = g.turns
	c.asOf = int64(step+1000) * half
	if g.memory {
		offered := 0.0
		for k := range 8 * halfLife {
			offered += float64(g.nodes) * 21600 * math.Exp2(-float64(k)/halfLife)
		}
		c.memory = &model.MemorySpec{
			EpochSeconds: 21600, HalfLife: halfLife, Epoch: int64((step + 1000) / stepsOfEpoch), Offered: integers([]int64{int64(offered)}),
		}
	}
	for q := range g.players {
		c.queues = append(c.queues, queue{name: fmt.Sprintf("q%d", q), weight: g.players[q].weight, memory: &model.QueueMemorySpec{
			Usage: integers([]int64{int64(g.usage[q])}), Entitled: integers([]int64{int64(g.entitled[q])}),
			Reserved: integers([]int64{int64(g.reserved[q])}),
		}})
		if most := g.players[q].most; most > 0 {
			c.queues[q].capability = []int64{most}
		}
	}
	var of []played
	add := func(p played, status model.Status) {
		j := job{
			queue: fmt.Sprintf("q%d", p.queue), request: []int64{1}, least: uint32(p.size), created: int64(p.began+900) * half,
			runtime: int64(p.hours) * half,
		}
		if status == model.Running {
			j.end = c.asOf + int64(p.left)*half
		}
		for range p.size {
			j.tasks = append(j.tasks, task{status: status, node: model.None, priority: 1, created: j.created, fixed: p.size > 1})
		}
		c.jobs, of = append(c.jobs, j), append(of, p)
	}
	for _, r := range g.runs {
		add(r, model.Running)
	}
	for q := range g.waiting {
		for _, w := range g.waiting[q] {
			add(w, model.Pending)
		}
	}
	s := c.open(t)
	r := &Rest{State: s}
	for r.move() {
		r.Steps++
	}
	g.evictions += r.Evictions
	g.runs = nil
	for q := range g.waiting {
		g.waiting[q] = nil
	}
	id := model.TaskID(0)
	for _, p := range of {
		if s.v.Status(id) == model.Running {
			g.runs = append(g.runs, p)
			g.held[p.queue] += float64(p.size)
			g.used[p.queue] += float64(p.size) * 1800
		} else {
			p.left = p.hours
			g.waiting[p.queue] = append(g.waiting[p.queue], p)
		}
		id += model.TaskID(p.size)
	}
	for q := range g.players {
		p := s.tree.at[q]
		s.settle()
		g.due[q] += float64(s.line(2, p, s.dims[0])) * 1800
		if row := s.ReservedFor(s.tree.queue[p]); !row.Absent() {
			g.kept[q] += row.V[s.dims[0]] * 1800
			g.idle[q] += row.V[s.dims[0]] / float64(g.steps)
		}
	}
}

// TestNoQueueGainsByTheSizesItAsksFor plays games in which every queue always has work for the whole cluster. With turns and a memory each
// has its part by weight of what all hold within a tenth, with what is kept idle for it, and no queue of gangs more of the cluster,
// whatever sizes it asks for. A queue of single nodes has more than that where gangs leave nodes that no other gang can use, as 2 of 10
// beside a gang of 8 where one of 4 waits: it holds 3.7 of its 3.3. If it is limited to its part, the others hold no more. Where gangs
// cannot run beside each other, nodes stay free, and the queue of the larger gangs has the greater part of the rest.
func TestNoQueueGainsByTheSizesItAsksFor(t *testing.T) {
	one := []int{1}
	for _, c := range []struct {
		name    string
		players []player
		// fits says that the sizes leave no nodes free together.
		fits bool
		long bool
	}{
		{"nodes against gangs of 2 of 10 nodes", []player{{1, one, 0}, {1, []int{2}, 0}}, true, true},
		{"nodes against gangs of 4", []player{{1, one, 0}, {1, []int{4}, 0}}, true, false},
		{"nodes against gangs of 7", []player{{1, one, 0}, {1, []int{7}, 0}}, true, true},
		{"nodes against gangs of 8, that got 64 of 80 by rounding", []player{{1, one, 0}, {1, []int{8}, 0}}, true, false},
		{"nodes against gangs of all nodes", []player{{1, one, 0}, {1, []int{10}, 0}}, true, false},
		{"nodes against mixed sizes", []player{{1, one, 0}, {1, []int{1, 4, 2, 8, 1, 7}, 0}}, true, true},
		{"nodes against nodes and gangs in turns", []player{{1, one, 0}, {1, []int{1, 8}, 0}}, true, true},
		{"gangs against gangs that never run beside them", []player{{1, []int{4}, 0}, {1, []int{7}, 0}}, false, true},
		{"equal gangs that never run beside each other", []player{{1, []int{8}, 0}, {1, []int{8}, 0}}, false, true},
		{"three queues", []player{{1, one, 0}, {1, []int{4}, 0}, {1, []int{8}, 0}}, true, true},
		{"three queues, of which two ask for gangs", []player{{1, one, 0}, {1, []int{10}, 0}, {1, []int{7}, 0}}, true, true},
		{"weights 2 and 1", []player{{2, one, 0}, {1, []int{8}, 0}}, true, true},
		{"weights 1 and 2", []player{{1, []int{2}, 0}, {2, []int{7}, 0}}, false, true},
	} {
		for _, single := range []int64{0, 12 * 3600 * nanoseconds} {
			t.Run(fmt.Sprintf("%s, jobs of one task after %d s", c.name, single/nanoseconds), func(t *testing.T) {
				if c.long && testing.Short() {
					t.Skip("it takes a second")
				}
				g := &game{nodes: 10, steps: 40 * stepsOfDay, players: c.players, memory: true, turns: &Turns{SingleWait: single}}
				held := g.run(t)
				weights, used := uint32(0), 0.0
				for q, p := range c.players {
					weights += p.weight
					used += held[q] + g.idle[q]
				}
				for q, p := range c.players {
					part := float64(p.weight) / float64(weights)
					if beyond := held[q] > 1.1*part*float64(g.nodes); beyond && slices.Equal(p.sizes, one) {
						requireNobodyElseUses(t, g, q, int64(math.Ceil(part*float64(g.nodes))))
					} else {
						require.False(t, beyond, "queue %d of %v", q, held)
					}
					if c.fits {
						require.GreaterOrEqual(t, held[q]+g.idle[q], .9*part*used, "queue %d of %v and %v", q, held, g.idle)
					}
				}
				t.Logf("nodes held: %.2f, kept idle: %.2f, evicted: %d", held, g.idle, g.evictions)
			})
		}
	}
}

// requireNobodyElseUses plays a game again in which a queue is limited, and requires that no other queue holds more by a thirtieth then.
func requireNobodyElseUses(t *testing.T, g *game, limited int, most int64) {
	t.Helper()
	players := slices.Clone(g.players)
	players[limited].most = most
	again := &game{nodes: g.nodes, steps: g.steps, players: players, memory: g.memory, turns: g.turns}
	held := again.run(t)
	for q := range held {
		require.True(t, q == limited || held[q] <= g.held[q]*31/30, "queue %d of %v, and of %v if queue %d is limited", q, g.held, held, limited)
	}
	t.Logf("with queue %d limited to %d nodes: %.2f, kept idle: %.2f", limited, most, held, again.idle)
}

// TestWithoutWhatQueuesWereEntitledToTurnsChangeNothing compares answers with the setting and without, in clusters of which nothing says what
// queues were entitled to, some of them without a memory.
func TestWithoutWhatQueuesWereEntitledToTurnsChangeNothing(t *testing.T) {
	for i := range *runs {
		at := *seed + uint64(i)
		answers := func(turns bool) any {
			c := drawTurns(at)
			for i := range c.queues {
				c.queues[i].memory.Entitled = nil
			}
			if at%2 == 0 {
				c.memory = nil
			}
			if !turns {
				c.plugin.Turns = nil
			}
			r := &Rest{State: c.open(t)}
			_, reserved := r.Reservation()
			require.False(t, reserved)
			first := r.verdicts()
			for r.move() {
				r.Steps++
			}
			var placed []model.NodeID
			for task := range model.TaskID(r.v.Tasks.Len()) {
				placed = append(placed, r.v.NodeOf(task))
			}
			return []any{first, r.verdicts(), r.Steps, r.Evictions, placed}
		}
		require.Equal(t, answers(false), answers(true), "seed %d", at)
	}
}

// TestWithoutAMemoryNoQueueHasATurn: what nothing is known of is not earned.
func TestWithoutAMemoryNoQueueHasATurn(t *testing.T) {
	players := []player{{1, []int{1}, 0}, {1, []int{8}, 0}}
	without := (&game{nodes: 10, steps: 5 * stepsOfDay, players: players}).run(t)
	with := (&game{nodes: 10, steps: 5 * stepsOfDay, players: players, turns: &Turns{}}).run(t)
	require.Equal(t, without, with)
}

// drawTurns draws a cluster of which jobs state their ends, with turns.
func drawTurns(seed uint64) *cluster {
	const hour = 3600 * nanoseconds
	d := drawFrom(seed)
	c := d.remembering()
	known := false
	for i := range c.queues {
		of := c.queues[i].memory
		if d.chance(70) {
			of.Entitled = of.Usage
		}
		known = known || of.Entitled != nil
	}
	if i := slices.IndexFunc(c.queues, func(q queue) bool { return q.parent == "" }); !known && i >= 0 {
		c.queues[i].memory.Entitled = integers(d.row(c.width, 900, 20))
	}
	c.asOf = 100 * hour
	c.plugin.Turns = &Turns{Wait: d.Int64N(3) * hour, SingleWait: d.Int64N(3) * hour}
	for i := range c.jobs {
		j := &c.jobs[i]
		j.created = (90 + d.Int64N(11)) * hour
		if d.chance(80) {
			j.end, j.runtime = (98+d.Int64N(20))*hour, (1+d.Int64N(20))*hour
		}
		if len(j.tasks) > 1 && d.chance(50) {
			j.least = uint32(len(j.tasks))
		}
	}
	return c
}

// tryStart starts a block where it may start beside the reservation, task by task, and reports whether it did.
func (r *Rest) tryStart(q model.QueueID, block []model.TaskID) bool {
	if !r.Allocatable(q, policy.Request{Tasks: block}, policy.InSession, nil, nil) {
		return false
	}
	beside := &turning{r.State}
	if _, fits := r.FirstFit(block); !fits {
		return false
	}
	for i, t := range block {
		room, request := r.plainRoom(), r.requestOf(t)
		at := slices.IndexFunc(r.v.NodeOrder, func(n model.NodeID) bool {
			return r.v.Takes(n, r.setOf(t)) && covers(room.nodes[n], request.amount, request.positive) && beside.Fits(t, n, nil)
		})
		n := model.NodeID(model.None)
		if at >= 0 {
			n = r.v.NodeOrder[at]
		} else if len(r.v.NodeOrder) > 0 {
			for _, placed := range block[:i] {
				r.set(placed, model.Pending, model.None)
			}
			return false
		}
		r.set(t, model.Running, n)
	}
	return true
}

// candidateBeside returns the candidate of a job's queue for a reservation.
func candidateBeside(s *State, j model.JobID) model.JobID {
	gangs, _ := s.waitingGangs()
	for _, g := range gangs {
		if g.leaf == s.leafOf(j) {
			return g.job
		}
	}
	return model.None
}

// TestNoStartMovesAReservationLater runs clusters to rest whose jobs end as expected: after every start of others and every plan the same
// gang can start as early as before, no state repeats, and plans lower the potential.
func TestNoStartMovesAReservationLater(t *testing.T) {
	reservations, moves, plans := 0, 0, 0
	for i := range *runs {
		c := drawTurns(*seed + uint64(i))
		s := c.open(t)
		r := &Rest{State: s, check: &checker{t: t, seen: map[string]bool{}}}
		for moved := true; moved; {
			before, is := s.Reservation()
			if is {
				reservations++
			}
			held := make([]int32, s.v.Jobs.Len())
			for _, j := range s.v.Present() {
				held[j] = s.v.Account(j).Holding()
			}
			r.check.look(r)
			if moved = r.moveBeside(&plans); !moved {
				break
			}
			moves++
			after, still := s.Reservation()
			// A plan may have evicted tasks of its queue: the gang itself needs more then, or another gang comes first in the queue.
			evicted := is && slices.ContainsFunc(s.v.Present(), func(j model.JobID) bool {
				return s.v.Jobs.At(j).Queue == s.v.Jobs.At(before.Job).Queue && s.v.Account(j).Holding() < held[j]
			})
			// By owners, a start can bring another job of the queue to its front.
			overtaken := is && c.plugin.Memory.Owners && candidateBeside(s, before.Job) != before.Job
			if is && !evicted && !overtaken && s.v.Status(before.Tasks[0]) == model.Pending {
				require.True(t, still, "seed %d: the reservation of %s is gone", *seed+uint64(i), s.v.Jobs.At(before.Job).UID)
				if before.Job == after.Job {
					require.LessOrEqual(t, after.From, before.From, "seed %d", *seed+uint64(i))
					continue
				}
				// An older gang was evicted, or those that it needs gone.
				require.Less(t, s.v.Jobs.At(after.Job).CreateTime, s.v.Jobs.At(before.Job).CreateTime+1, "seed %d", *seed+uint64(i))
			}
		}
	}
	t.Logf("%d moves, %d plans, %d states with a reservation", moves, plans, reservations)
	require.Positive(t, reservations)
	require.Positive(t, plans)
}

// moveBeside makes the first move there is.
func (r *Rest) moveBeside(plans *int) bool {
	for _, q := range r.Order() {
		for _, job := range r.Blocks(q) {
			block := job.Gang
			if len(block) == 0 {
				block = job.Loose[:1]
			}
			if r.tryStart(q, block) {
				return true
			}
			if !r.Preemptive(q, policy.Request{Tasks: block}, nil, nil) {
				continue
			}
			plan := r.Plan(&policy.Claim{Tasks: block, Candidates: r.candidates(), Room: policy.Room{Kind: policy.AnyNodes}}, nil)
			if plan.Made {
				before, division := r.Potential(), r.division.version
				for _, v := range plan.Victims {
					r.set(v, model.Pending, model.None)
				}
				r.start(block, plan.Nodes)
				if after := r.Potential(); r.division.version == division {
					require.Negative(r.check.t, compare(after, before), "a plan lowers the potential")
				}
				*plans++
				return true
			}
		}
	}
	return false
}

// gangBeside is a cluster of five nodes in which a gang of four waits in a queue of which an admitted job waits too, and which is limited to
// four nodes.
func gangBeside(change func(gang *job)) *cluster {
	const hour = 3600 * nanoseconds
	c := &cluster{width: 1, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: DefaultMemory(), Turns: &Turns{}}, asOf: 100 * hour, memory: &model.MemorySpec{
		EpochSeconds: 1, HalfLife: 10, Epoch: 100, Offered: integers([]int64{1000}),
	}}
	for range 5 {
		c.nodes = append(c.nodes, node{offered: []int64{1}})
	}
	c.queues = []queue{{name: "a", weight: 1, capability: []int64{4}, memory: &model.QueueMemorySpec{
		Usage: integers([]int64{0}), Entitled: integers([]int64{9}),
	}}}
	waiting := task{status: model.Pending, node: model.None}
	gang := job{queue: "a", request: []int64{1}, least: 4, created: hour, tasks: []task{waiting, waiting, waiting, waiting}, minimum: []int64{4}}
	change(&gang)
	c.jobs = []job{gang, {queue: "a", request: []int64{1}, least: 1, created: 2 * hour, tasks: []task{waiting}, minimum: []int64{1}, admitted: true}}
	return c
}

// TestTheHolderOfAReservationIsAdmittedBesideJobsThatWaitForIt: what admitted jobs lack would keep the gang out, and its reservation keeps
// them from starting, so that neither would ever run.
func TestTheHolderOfAReservationIsAdmittedBesideJobsThatWaitForIt(t *testing.T) {
	s := gangBeside(func(*job) {}).open(t)
	reserved, is := s.Reservation()
	require.True(t, is)
	require.Equal(t, s.v.AsOf, reserved.From)
	require.Equal(t, policy.Permit, s.Enqueueable(reserved.Job, nil))
	s.turns = nil
	s.reservations = reservations{}
	require.Equal(t, policy.Reject, s.Enqueueable(reserved.Job, nil), "without turns the admitted job comes first")
}

func TestAGangThatMayHaveNoPlaceHoldsNoReservation(t *testing.T) {
	s := gangBeside(func(gang *job) { gang.unjudged = 2 }).open(t)
	_, is := s.Reservation()
	require.False(t, is, "whether it could start is not known")
}

// TestAGangHasATurnWhileItsQueueUsedAThirtySecondMoreThanItWasEntitledTo: a gang of four of five nodes exceeds its queue's line beside a queue
// that wants all of them. What was kept idle for its gangs counts as used.
func TestAGangHasATurnWhileItsQueueUsedAThirtySecondMoreThanItWasEntitledTo(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		used, reserved int64
		turn           bool
	}{
		{0, 0, true},
		{320, 0, true},
		{330, 0, true},
		{331, 0, false},
		{most / 2, 0, false},
		{0, 330, true},
		{0, 331, false},
		{200, 130, true},
		{200, 131, false},
		{0, most, false},
		{most, most, false},
	} {
		g := gangBeside(func(*job) {})
		g.queues[0].memory = &model.QueueMemorySpec{
			Usage: integers([]int64{c.used}), Entitled: integers([]int64{320}), Reserved: integers([]int64{c.reserved}),
		}
		g.queues = append(g.queues, queue{name: "b", weight: 1, memory: &model.QueueMemorySpec{
			Usage: integers([]int64{320}), Entitled: integers([]int64{320}),
		}})
		for range 5 {
			g.jobs = append(g.jobs, job{queue: "b", request: []int64{1}, least: 1, tasks: []task{{status: model.Pending, node: model.None}}})
		}
		_, is := g.open(t).Reservation()
		require.Equal(t, c.turn, is, "used %d, reserved %d", c.used, c.reserved)
	}
}

// TestWhatAReservationKeepsIdleIsWhatOthersWaitFor: a gang of four of five nodes waits for a job that runs on one of them.
func TestWhatAReservationKeepsIdleIsWhatOthersWaitFor(t *testing.T) {
	const hour = 3600 * nanoseconds
	for _, c := range []struct {
		name        string
		runs, waits int
		idle        float64
	}{
		{"nobody waits", 2, 0, 0},
		{"one waits for the two of its nodes that are free", 2, 1, 1},
		{"two of its four nodes are free", 2, 9, 2},
		{"a node beside it is free", 4, 9, 0},
		{"it could start now", 0, 9, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gangBeside(func(*job) {})
			g.jobs = g.jobs[:1]
			g.queues = append(g.queues, queue{name: "b", weight: 1, memory: &model.QueueMemorySpec{}})
			for n := range c.runs {
				g.jobs = append(g.jobs, job{
					queue: "b", request: []int64{1}, least: 1, end: g.asOf + 2*hour,
					tasks: []task{{status: model.Running, node: model.NodeID(n)}},
				})
			}
			for range c.waits {
				g.jobs = append(g.jobs, job{
					queue: "b", request: []int64{1}, least: 1, tasks: []task{{status: model.Pending, node: model.None}},
				})
			}
			s := g.open(t)
			require.True(t, s.ReservedFor(s.tree.queue[s.tree.leaves[1]]).Absent(), "b holds none")
			row := s.ReservedFor(s.v.Jobs.At(0).Queue)
			require.False(t, row.Absent())
			require.InDelta(t, c.idle, row.V[s.dims[0]], 0)
		})
	}
}
