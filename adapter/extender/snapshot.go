package extender

import (
	"context"
	"math"
	"strings"
	"sync"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire"
)

// snapshot is a session of the engine, opened for one push and updated by the events of Volcano's session.
type snapshot struct {
	mu     sync.Mutex
	engine engine.Host
	wire   *wire.Session
	record *record
	// booked holds for each task whether the plugins have booked it. It prevents booking a task twice after an event was lost.
	booked []bool

	// Scratch of one question.
	reasons       policy.Reasons
	scores, total []float64
}

func newSnapshot(m *model.Model, p *apportionv1.Policy, stop func() bool) (*snapshot, error) {
	s, err := wire.Open(m, p, wire.Options{Stop: stop})
	if err != nil {
		return nil, err
	}
	s.Stop(nil)
	booked := make([]bool, m.Tasks.Len())
	for t, task := range m.Tasks.All() {
		booked[t] = task.Status.Holds()
	}
	return &snapshot{engine: s.Engine(), wire: s, booked: booked}, nil
}

// taskState is the current state of a task in a message of Volcano's.
type taskState struct {
	uid, node string
	status    model.Status
}

// effect says whether an event referred to a task or job of the snapshot and changed it.
type effect uint8

const (
	notFound effect = iota
	unchanged
	applied
)

// allocate applies an event of allocation: the task now holds its request, or it is promised.
func (s *snapshot) allocate(now taskState) effect {
	t, ok := s.engine.View().TaskOf(now.uid)
	if !ok {
		return notFound
	}
	if !now.status.Granted() {
		now.status = model.Allocated
	}
	return s.book(t, now)
}

// deallocate applies an event of deallocation: a task is evicted, or its allocation is undone.
func (s *snapshot) deallocate(now taskState) effect {
	t, ok := s.engine.View().TaskOf(now.uid)
	if !ok {
		return notFound
	}
	if now.status.Granted() {
		now.status = model.Releasing
	}
	return s.unbook(t, now)
}

// agree sets the statuses of tasks that a question about their job states. If no event is lost, this has no effect on decisions.
func (s *snapshot) agree(tasks []taskState) {
	v := s.engine.View()
	for _, now := range tasks {
		t, ok := v.TaskOf(now.uid)
		switch {
		case !ok || v.Status(t) == now.status:
		case now.status.Granted():
			s.book(t, now)
		default:
			s.unbook(t, now)
		}
	}
}

func (s *snapshot) book(t model.TaskID, now taskState) effect {
	v := s.engine.View()
	if s.booked[t] {
		s.setStatus(t, now)
		return unchanged
	}
	node, ok := v.Node(now.node)
	if !ok {
		node = model.None
	}
	s.booked[t] = true
	s.record.booked(now.uid, v.Status(t), now.status, node)
	s.engine.Book(t, now.status, node)
	return applied
}

func (s *snapshot) unbook(t model.TaskID, now taskState) effect {
	if !s.booked[t] {
		s.setStatus(t, now)
		return unchanged
	}
	s.booked[t] = false
	s.record.unbooked(now.uid, s.engine.View().Status(t), now.status)
	s.engine.Unbook(t, now.status)
	return applied
}

// setStatus applies a change that no plugin books.
func (s *snapshot) setStatus(t model.TaskID, now taskState) {
	if s.engine.View().Status(t) != now.status {
		s.record.changed(func() *apportionv1.Step { return statusStep(now.uid, now.status) })
		s.engine.SetStatus(t, now.status)
	}
}

// overused reports whether Volcano is to pass a queue over, when it allocates and when it reclaims; ok is false if there is no such queue.
func (s *snapshot) overused(name string) (overused, ok bool) {
	q, ok := s.engine.View().Queue(name)
	if !ok {
		return false, false
	}
	overused = s.engine.IsPassedOver(q, s.why())
	s.record.ask(func() *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
			Queues: &apportionv1.Selector{Names: []string{name}},
		}}}
	})
	return overused, true
}

// enqueueable votes on the admission of a job. For Volcano 1.15, which does not tell an extender which jobs it admits, a permit books the
// job as if it were admitted; Volcano 1.16 sends jobEnqueued.
func (s *snapshot) enqueueable(job jobState) (vote policy.Vote, ok bool) {
	j, ok := s.engine.View().Job(job.uid)
	if !ok {
		return policy.Abstain, false
	}
	s.agree(job.tasks)
	if s.record == nil {
		vote = s.engine.Job(j).EnqueueVote(s.why())
	} else {
		var answer *apportionv1.Answer
		vote, answer = s.wire.EnqueueVote(j, s.why())
		s.record.asked(enqueueStep(job.uid, apportionv1.EnqueueMode_ENQUEUE_MODE_UNSPECIFIED), answer)
	}
	if vote == policy.Permit && s.engine.View().Release < policy.V116 {
		s.admit(j, job.uid)
	}
	return vote, true
}

// enqueued applies the event that a job was admitted.
func (s *snapshot) enqueued(job jobState) effect {
	j, ok := s.engine.View().Job(job.uid)
	if !ok {
		return notFound
	}
	s.agree(job.tasks)
	return s.admit(j, job.uid)
}

// admit books an admitted job. It does so once, because the job is not pending afterwards.
func (s *snapshot) admit(j model.JobID, uid string) effect {
	if s.engine.View().Phase(j) != model.PhasePending {
		return unchanged
	}
	s.engine.Job(j).Admit(nil)
	s.record.changed(func() *apportionv1.Step { return event.Admit(jobsOf(uid)) })
	return applied
}

func enqueueStep(job string, mode apportionv1.EnqueueMode) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobsOf(job), Mode: mode}}}
}

// ready reports whether enough of a job runs.
func (s *snapshot) ready(job jobState) (ready, ok bool) {
	j, ok := s.engine.View().Job(job.uid)
	if !ok {
		return true, false
	}
	s.agree(job.tasks)
	ready = s.engine.Job(j).Ready(s.why())
	s.record.ask(func() *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{Jobs: jobsOf(job.uid)}}}
	})
	return ready, true
}

// fits reports whether a task may run on a node, and if not, the reason as text.
func (s *snapshot) fits(task, node string) (why string, fits, ok bool) {
	v := s.engine.View()
	t, known := v.TaskOf(task)
	n, offered := v.Node(node)
	if !known || !offered {
		return "", true, false
	}
	if fits = s.engine.Nodes().Fits(t, n, s.why()); !fits {
		why = s.words()
	}
	s.record.ask(func() *apportionv1.Step { return nodesStep(task, []string{node}) })
	return why, fits, true
}

// nodeScore is a node with its score.
type nodeScore struct {
	name  string
	score float64
}

// score scores nodes for a task; nodes that are not in the snapshot are left out; if no plugin scores nodes, all are left out.
func (s *snapshot) score(task string, nodes []string) ([]nodeScore, bool) {
	v := s.engine.View()
	t, ok := v.TaskOf(task)
	if !ok {
		return nil, false
	}
	scorers := s.engine.Nodes().Scorers()
	if len(scorers) == 0 {
		return nil, true
	}
	var known []model.NodeID
	scored := make([]nodeScore, 0, len(nodes))
	for _, name := range nodes {
		if n, ok := v.Node(name); ok {
			known = append(known, n)
			scored = append(scored, nodeScore{name: v.Nodes[n].Name})
		}
	}
	s.scores, s.total = resized(s.scores, len(known)), resized(s.total, len(known))
	clear(s.total)
	for _, scorer := range scorers {
		scorer.ScoreNodes(t, known, s.scores)
		for i, score := range s.scores {
			s.total[i] += score
		}
	}
	for i, score := range s.total {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			score = 0
		}
		scored[i].score = score
	}
	s.record.ask(func() *apportionv1.Step {
		names := make([]string, len(scored))
		for i := range scored {
			names[i] = scored[i].name
		}
		return nodesStep(task, names)
	})
	return scored, true
}

func nodesStep(task string, nodes []string) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{
		Tasks: tasksOf(task), Nodes: &apportionv1.Selector{Names: nodes}, Explain: true,
	}}}
}

func resized(list []float64, n int) []float64 {
	if cap(list) < n {
		return make([]float64, n)
	}
	return list[:n]
}

// victims chooses among candidates, of which those that are not in the snapshot are never chosen. It returns positions in the list, each at
// most once, in the order of eviction. decided is false if no plugin has an opinion; ok is false if the claimant, or every candidate, is
// unknown. A candidate without a uid must not be chosen.
func (s *snapshot) victims(claimant string, candidates []string, preempt bool) (chosen []int, decided, ok bool) {
	v := s.engine.View()
	c, ok := v.TaskOf(claimant)
	if !ok {
		return nil, false, false
	}
	position := make(map[model.TaskID]int, len(candidates))
	list := make([]model.TaskID, 0, len(candidates))
	for i, uid := range candidates {
		if uid == "" {
			continue
		}
		t, known := v.TaskOf(uid)
		if _, twice := position[t]; !known || twice {
			continue
		}
		position[t] = i
		list = append(list, t)
	}
	if len(list) == 0 {
		return nil, false, false
	}
	choose := s.engine.Reclaim().Choose
	if preempt {
		choose = s.engine.Preempt().Choose
	}
	choice := choose(&policy.Claim{Tasks: []model.TaskID{c}, Candidates: list}, false)
	s.record.ask(func() *apportionv1.Step {
		offered := make([]string, len(list))
		for i, t := range list {
			offered[i] = candidates[position[t]]
		}
		return victimsStep(claimant, offered, preempt)
	})
	for _, t := range choice.Victims {
		if i, offered := position[t]; offered {
			chosen = append(chosen, i)
			delete(position, t)
		}
	}
	return chosen, choice.Decided, true
}

func victimsStep(claimant string, candidates []string, preempt bool) *apportionv1.Step {
	if preempt {
		return &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{
			Claimant: tasksOf(claimant), Candidates: tasksOf(candidates...),
		}}}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
		Claimant: tasksOf(claimant), Candidates: tasksOf(candidates...),
	}}}
}

// closed ends the report to the observer: the session is over.
func (s *snapshot) closed(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record != nil {
		s.record.to.Closed(ctx)
		s.record = nil
	}
}

// why returns the cleared list of reasons for the next question.
func (s *snapshot) why() *policy.Reasons {
	s.reasons.List = s.reasons.List[:0]
	return &s.reasons
}

// words returns the first reason of the last question as text.
func (s *snapshot) words() string {
	if len(s.reasons.List) == 0 {
		return "refused"
	}
	reason := &s.reasons.List[0]
	code := strings.TrimPrefix(apportionv1.CauseCode(reason.Code).String(), "CAUSE_CODE_")
	words := strings.ToLower(strings.ReplaceAll(code, "_", " "))
	if reason.Plugin != "" {
		words = reason.Plugin + ": " + words
	}
	if v := s.engine.View(); reason.Queue >= 0 && int(reason.Queue) < len(v.Queues) {
		words += ", queue " + v.Queues[reason.Queue].Name
	}
	return words
}
