package audit

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// state is a session and what this package has to know of its state: where tasks are, and what nodes have left.
type state struct {
	*auditor

	ctx     context.Context //nolint:containedctx // A state lives for one audit.
	session *client.Session
	tasks   []place
	// request of each task, and what each node has left.
	request, free [][]float64
	jobs          []job
	// byQueue lists the jobs of each queue in the order in which they are served, of is the job of each task.
	byQueue map[uint32][]*job
	of      []*job
	// running identifies what runs where; seen has such states with the number of plans made before.
	running fingerprint
	seen    map[fingerprint]int
	plans   []plan
	// roomless and refused tell of the first tasks of blocks whether they have no room, or may not start; see Waiting.
	roomless, refused []bool
	// queued and listed are the memory of inOrder and waiting.
	queued []*job
	listed [][]uint32
	// nodesInUse and byNode are what occupied returned when the same ran as in occupiedAt.
	nodesInUse []int
	byNode     map[int][]uint32
	occupiedAt fingerprint
	// hopeless are claims for which no victims were found since the last move, by what they ask for.
	hopeless map[string]bool
	// moves counts allocations and plans, tries the blocks for which victims were sought, considered the tasks that were considered.
	moves, tries, considered int
	// plansVictims says that the policy reclaims by plans.
	plansVictims bool
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
	for i, n := range nodes {
		s.free[i] = s.row(n.GetIdle())
	}
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
				if holds(c.GetStatus()) {
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
		s.tasks, s.request = append(s.tasks, at), append(s.request, s.amounts(t.Request()))
		if holds(at.status) {
			s.running.turn(t.Number, at.node)
		}
		j := byJob[t.Job]
		s.of = append(s.of, j)
		if j != nil {
			j.tasks = append(j.tasks, t)
		}
	}
	s.roomless, s.refused = make([]bool, len(s.tasks)), make([]bool, len(s.tasks))
	s.byQueue = map[uint32][]*job{}
	for _, j := range byJob {
		s.byQueue[j.queue] = append(s.byQueue[j.queue], j)
	}
	for _, jobs := range s.byQueue {
		slices.SortFunc(jobs, func(l, r *job) int {
			return cmp.Or(cmp.Compare(r.GetPriority(), l.GetPriority()), cmp.Compare(l.GetCreateTime(), r.GetCreateTime()),
				cmp.Compare(l.index, r.index))
		})
	}
	for i := range s.jobs {
		slices.SortStableFunc(s.jobs[i].tasks, func(l, r lookup.Task) int {
			return cmp.Or(cmp.Compare(r.GetPriority(), l.GetPriority()), cmp.Compare(l.GetCreateTime(), r.GetCreateTime()))
		})
	}
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

func holds(status apportionv1.TaskStatus) bool {
	switch status {
	case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_BINDING, apportionv1.TaskStatus_TASK_STATUS_BOUND,
		apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.TaskStatus_TASK_STATUS_PIPELINED:
		return true
	default:
		return false
	}
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
		case holds(at.status):
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

// queuesInOrder lists the queues in the order of the policy.
func (s *state) queuesInOrder() ([]uint32, error) {
	answers, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
		Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Queues{}},
	}}})
	if err != nil {
		return nil, err
	}
	return answers[0].GetOrder().GetSorted(), nil
}

// inOrder lists the jobs of open queues in the order of the policy: queue by queue, in a queue by priority and age.
func (s *state) inOrder() ([]*job, error) {
	queues, err := s.queuesInOrder()
	s.queued = s.queued[:0]
	for _, queue := range queues {
		s.queued = append(s.queued, s.byQueue[queue]...)
	}
	return s.queued, err
}

// start places tasks and lets them run.
func (s *state) start(tasks, nodes []uint32) error {
	selected := &apportionv1.Tasks{Index: tasks}
	_, err := s.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Allocate{Allocate: &apportionv1.AllocateStep{Tasks: selected, Node: nodes}}},
		&apportionv1.Step{Step: &apportionv1.Step_SetStatus{SetStatus: &apportionv1.SetStatusStep{
			Tasks: selected, Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING,
		}}})
	if err != nil {
		return err
	}
	for i, t := range tasks {
		s.move(t, place{apportionv1.TaskStatus_TASK_STATUS_RUNNING, int(nodes[i])})
		s.use(int(nodes[i]), t, -1)
	}
	return nil
}

// move notes where a task is from now on.
func (s *state) move(task uint32, to place) {
	if from := s.tasks[task]; holds(from.status) {
		s.running.turn(task, from.node)
	}
	if holds(to.status) {
		s.running.turn(task, to.node)
	}
	s.tasks[task] = to
	if j := s.of[task]; j != nil {
		j.current = false
	}
}

// evict takes tasks off; they are pending again.
func (s *state) evict(tasks []uint32) error {
	_, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Deallocate{Deallocate: &apportionv1.DeallocateStep{
		Tasks: &apportionv1.Tasks{Index: tasks}, Status: apportionv1.TaskStatus_TASK_STATUS_PENDING,
	}}})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		s.use(s.tasks[t].node, t, 1)
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
