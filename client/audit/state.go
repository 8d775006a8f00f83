package audit

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/lookup"
)

// state is a session, and what this package has to know of its state.
type state struct {
	*auditor
	stock
	trial

	ctx     context.Context //nolint:containedctx // A state lives for one audit.
	session *client.Session
	tasks   []place
	jobs    []job
	// byQueue lists the jobs of each queue in the order in which they are served, of is the job of each task.
	byQueue map[uint32][]*job
	of      []*job
	// pending counts the tasks that wait, on lists those that run on each node, and running identifies what runs where.
	pending int
	on      [][]uint32
	running fingerprint
	// journal lists where tasks were before each move.
	journal []moved
	// queued and listed are the memory of inOrder and waiting.
	queued []*job
	listed [][]uint32
	// plansVictims says that the policy reclaims by plans, fullAnswers that the server tells of plans only with all that they spare.
	plansVictims, fullAnswers bool
}

// stock is what tasks ask for and what nodes have left.
type stock struct {
	// request of each task, equal ones being the same row, its number in fit, and what each node has left.
	request, free [][]float64
	shape         []int
	fit           []fit
	// emptier are nodes that were given something back since reopen, best is the memory of tightest.
	emptier []int
	best    []spare
}

// trial is what was tried so far, and what need not be tried again yet.
type trial struct {
	// moves counts allocations and plans, tries the blocks for which victims were sought, considered the tasks that were considered, rounds
	// the rounds of evictions before this one, and roundMoves the moves before it.
	moves, tries, considered, rounds, roundMoves int
	// roomless, refused and looked tell of the first tasks of blocks that they have no room, may not start, and that victims were sought
	// for them in this round; see Waiting. within has those that the limits let try; nil: all.
	roomless, refused, looked []bool
	within                    map[uint32]bool
	// hopeless are claims for which no victims were found since the last move, by what they ask for.
	hopeless map[string]bool
	// plans are those that were carried out, seen has the states after them with the number of plans before.
	plans []plan
	seen  map[fingerprint]int
	// ended says that evictions end: a state repeats, or not everything was tried.
	ended bool
}

// place is a task's status and node; -1: none.
type place struct {
	status apportionv1.TaskStatus
	node   int
}

// job is a job with its tasks that may be placed and may be victims.
type job struct {
	*apportionv1.Job

	index, queue uint32
	// held counts tasks given as counts that hold resources.
	held  int
	tasks []lookup.Task
	// waits is what blocks returned, if current.
	waits   [][]uint32
	current bool
}

// moved is a task with the place that it left.
type moved struct {
	task uint32
	from place
}

// plan is an eviction that was carried out.
type plan struct {
	claimant uint32
	victims  []uint32
}

// ask has steps answered; an error of a step ends the audit.
func (s *state) ask(steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := s.session.Do(s.ctx, steps...)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a.GetError() != nil {
			return nil, status.FromProto(a.GetError()).Err()
		}
	}
	return answers, nil
}

// read prepares the tasks, jobs and nodes of the snapshot.
func (s *state) read(nodes []*apportionv1.InspectedNode) {
	s.free = make([][]float64, len(nodes))
	width := len(s.names.Dimensions)
	cells := make([]float64, len(nodes)*width)
	for i, n := range nodes {
		// Rows lie one behind the other, because many are looked at for each block.
		s.free[i] = cells[i*width : (i+1)*width : (i+1)*width]
		copy(s.free[i], s.row(n.GetIdle()))
	}
	s.on = make([][]uint32, len(nodes))
	byJob := map[*apportionv1.Job]*job{}
	s.jobs = make([]job, len(s.snapshot.GetJobs()))
	for i, j := range s.snapshot.GetJobs() {
		queue, err := s.snapshot.Queue(j.GetQueue())
		s.jobs[i] = job{Job: j, index: uint32(i), queue: queue}
		if err != nil {
			continue
		}
		byJob[j] = &s.jobs[i]
		for _, g := range j.GetGroups() {
			for _, c := range g.GetCounts() {
				if lookup.Granted(c.GetStatus()) {
					s.jobs[i].held += int(c.GetCount())
				}
			}
		}
	}
	for _, t := range s.snapshot.Tasks {
		at := place{t.GetStatus(), -1}
		if t.Node != nil {
			at.node = int(t.GetNode())
		}
		if t.Pending() {
			at.status = apportionv1.TaskStatus_TASK_STATUS_PENDING
		}
		s.tasks = append(s.tasks, at)
		s.enter(t.Number, at)
		j := byJob[t.Job]
		s.of = append(s.of, j)
		if j != nil {
			j.tasks = append(j.tasks, t)
		}
	}
	s.shapes()
	s.roomless, s.refused, s.looked = make([]bool, len(s.tasks)), make([]bool, len(s.tasks)), make([]bool, len(s.tasks))
	s.byQueue = map[uint32][]*job{}
	for _, j := range byJob {
		s.byQueue[j.queue] = append(s.byQueue[j.queue], j)
	}
	for _, jobs := range s.byQueue {
		slices.SortFunc(jobs, older)
	}
	for i := range s.jobs {
		slices.SortStableFunc(s.jobs[i].tasks, func(l, r lookup.Task) int {
			return cmp.Or(cmp.Compare(r.GetPriority(), l.GetPriority()), cmp.Compare(l.GetCreateTime(), r.GetCreateTime()))
		})
	}
}

// older compares jobs of a queue by the order in which they are served.
func older(l, r *job) int {
	return cmp.Or(cmp.Compare(r.GetPriority(), l.GetPriority()), cmp.Compare(l.GetCreateTime(), r.GetCreateTime()),
		cmp.Compare(l.index, r.index))
}

// amounts is row for a resource of the snapshot.
func (a *auditor) amounts(r *apportionv1.Resource) []float64 {
	row := make([]float64, len(a.names.Dimensions))
	for d := range row {
		if x := a.written(r, d); x > 0 {
			row[d] = x
		}
	}
	return row
}

// blocks lists what waits of a job: what its gang lacks, then single tasks; nil if the gang can never be complete. Where a gang of several
// waits, single tasks of its job do not count.
func (s *state) blocks(j *job) [][]uint32 {
	if !j.current {
		j.waits, j.current = s.blocksOf(j), true
		if len(j.waits) > 1 && len(j.waits[0]) > 1 {
			j.waits = j.waits[:1]
		}
	}
	return j.waits
}

func (s *state) blocksOf(j *job) [][]uint32 {
	held, waiting := j.held, []uint32{}
	for _, t := range j.tasks {
		gated := t.GetDetail().GetGate() == apportionv1.TaskGate_TASK_GATE_OTHER
		switch at := s.tasks[t.Number]; {
		case lookup.Granted(at.status):
			held++
		case at.status == apportionv1.TaskStatus_TASK_STATUS_PENDING && !gated && !zero(s.request[t.Number]):
			waiting = append(waiting, t.Number)
		}
	}
	rest := max(0, int(j.GetMinAvailable())-held)
	if rest > len(waiting) {
		return nil
	}
	var list [][]uint32
	if rest > 0 {
		list = append(list, waiting[:rest])
	}
	for _, t := range waiting[rest:] {
		list = append(list, []uint32{t})
	}
	return list
}

func zero(row []float64) bool {
	return !slices.ContainsFunc(row, func(x float64) bool { return x > 0 })
}

// queuesInOrder lists queues in the order of the policy; without a list, all that have jobs. Queues that are almost in order are sorted
// quickly.
func (s *state) queuesInOrder(queues []model.QueueID) ([]model.QueueID, error) {
	asked := &apportionv1.Selector{Indices: make([]uint32, len(queues))}
	for i, q := range queues {
		asked.Indices[i] = uint32(q)
	}
	answers, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
		Subject: &apportionv1.OrderStep_Queues{Queues: asked},
	}}})
	if err != nil {
		return nil, err
	}
	sorted := make([]model.QueueID, len(answers[0].GetOrder().GetItems()))
	for i, q := range answers[0].GetOrder().GetItems() {
		sorted[i] = model.QueueID(q)
	}
	return sorted, nil
}

// inOrder lists the jobs of open queues in the order of the policy: queue by queue, in a queue by priority and age.
func (s *state) inOrder() ([]*job, error) {
	queues, err := s.queuesInOrder(nil)
	s.queued = s.queued[:0]
	for _, queue := range queues {
		s.queued = append(s.queued, s.byQueue[uint32(queue)]...)
	}
	return s.queued, err
}

// start places tasks and lets them run.
func (s *state) start(tasks, nodes []uint32) error {
	selected := &apportionv1.Selector{Indices: tasks}
	_, err := s.ask(
		event.Place(selected, &apportionv1.Selector{Indices: nodes}),
		event.SetStatus(selected, apportionv1.TaskStatus_TASK_STATUS_RUNNING))
	if err != nil {
		return err
	}
	for i, t := range tasks {
		s.move(t, place{apportionv1.TaskStatus_TASK_STATUS_RUNNING, int(nodes[i])})
	}
	return nil
}

// move notes where a task is from now on, and what its nodes have left.
func (s *state) move(task uint32, to place) {
	s.use(s.tasks[task].node, task, 1)
	s.use(to.node, task, -1)
	s.journal = append(s.journal, moved{task, s.tasks[task]})
	s.leave(task, s.tasks[task])
	s.enter(task, to)
	s.tasks[task] = to
	if j := s.of[task]; j != nil {
		j.current = false
	}
}

// undo moves tasks back to where they were when the journal was empty.
func (s *state) undo() {
	journal := slices.Clone(s.journal)
	for _, m := range slices.Backward(journal) {
		s.move(m.task, m.from)
	}
	s.journal = s.journal[:0]
}

// enter notes that a task is at a place, leave that it is no longer there.
func (s *state) enter(task uint32, at place) {
	if lookup.Granted(at.status) {
		s.running.turn(task, at.node)
	}
	if at.status == apportionv1.TaskStatus_TASK_STATUS_PENDING {
		s.pending++
	}
	if at.status == apportionv1.TaskStatus_TASK_STATUS_RUNNING && at.node >= 0 && at.node < len(s.on) {
		s.on[at.node] = append(s.on[at.node], task)
	}
}

func (s *state) leave(task uint32, at place) {
	if lookup.Granted(at.status) {
		s.running.turn(task, at.node)
	}
	if at.status == apportionv1.TaskStatus_TASK_STATUS_PENDING {
		s.pending--
	}
	if at.node < 0 || at.node >= len(s.on) {
		return
	}
	if i := slices.Index(s.on[at.node], task); i >= 0 {
		s.on[at.node] = slices.Delete(s.on[at.node], i, i+1)
	}
}

// evict takes tasks off; they are pending again.
func (s *state) evict(tasks []uint32) error {
	_, err := s.ask(event.Evict(&apportionv1.Selector{Indices: tasks}, apportionv1.TaskStatus_TASK_STATUS_PENDING))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		s.move(t, place{apportionv1.TaskStatus_TASK_STATUS_PENDING, -1})
	}
	return nil
}

// use adds times a task's request to what a node has left.
func (s *state) use(node int, task uint32, times float64) {
	if node < 0 || node >= len(s.free) {
		return
	}
	for d, x := range s.request[task] {
		s.free[node][d] += times * x
	}
	if times > 0 {
		s.freed(node)
	}
}

// fits reports whether a node has room for a task once others are gone.
func (s *state) fits(node int, task uint32, gone []uint32) bool {
	for d, x := range s.request[task] {
		left := s.free[node][d]
		for _, v := range gone {
			left += s.request[v][d]
		}
		if x > 0 && x > left {
			return false
		}
	}
	return true
}

// fingerprint is a digest of a set of tasks with their nodes.
type fingerprint [2]uint64

// turn adds a task on a node, or removes it.
func (f *fingerprint) turn(task uint32, node int) {
	x := uint64(task)<<32 | uint64(uint32(node+1))
	for i := range f {
		// The finalizer of SplitMix64, in which every bit of the argument changes half of the result.
		x += 0x9e3779b97f4a7c15
		y := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		y = (y ^ y>>27) * 0x94d049bb133111eb
		f[i] ^= y ^ y>>31
	}
}
