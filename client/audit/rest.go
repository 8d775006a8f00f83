package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// rest lets the policy start what it permits, judges what waits then, and lets it evict until nothing moves or a state repeats.
func (a *auditor) rest(ctx context.Context, decider Decider, in client.Input, nodes []*apportionv1.InspectedNode) (err error) {
	in.OmitNames = true
	session, err := decider.OpenSession(ctx, in)
	if err != nil {
		return err
	}
	s := &state{auditor: a, ctx: ctx, session: session, trial: trial{seen: map[fingerprint]int{}, hopeless: map[string]bool{}}}
	defer func() {
		if closed := session.Close(); err == nil {
			err = closed
		}
	}()
	s.read(nodes)
	loop := &cycle.Loop{Scheduler: s, Settled: s.settled}
	if err := loop.Run(cycle.Enqueue, cycle.Allocate); err != nil {
		return err
	}
	if err := s.idle(); err != nil {
		return err
	}
	s.roundMoves = s.moves
	s.seen[s.running] = 0
	// Without an action that evicts nothing moves any more.
	p := configuration{in.Policy}
	evicts := len(p.GetVolcano().GetActions()) == 0 || p.acts(engine.ActionReclaim, engine.ActionGangReclaim)
	for more := s.report.Partial == "" && evicts; more; s.rounds++ {
		if err := loop.Run(cycle.Reclaim); err != nil {
			return err
		}
		// Another round follows each in which something moved.
		more = !s.ended && s.roundMoves != s.moves
		s.roundMoves = s.moves
		clear(s.looked)
	}
	s.conclude()
	return s.guarantees()
}

// conclude reports what queues hold in the end.
func (s *state) conclude() {
	held := s.held()
	s.report.Held = map[string]map[string]float64{}
	for queue, row := range held {
		amounts := map[string]float64{}
		for d, x := range row {
			if x != 0 {
				amounts[s.names.Dimensions[d]] = x
			}
		}
		s.report.Held[queue] = amounts
	}
	for _, p := range s.plans {
		s.report.Evictions += len(p.victims)
	}
}

// Enqueue lets jobs enter; jobs that may not enter take no part.
func (s *state) Enqueue() error {
	answers, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION,
	}}})
	if err != nil {
		return err
	}
	for _, verdict := range answers[0].GetEnqueue().GetJobs() {
		if verdict.GetVerdict().GetVote() != apportionv1.Vote_VOTE_PERMIT {
			s.jobs[verdict.GetJob()].tasks, s.jobs[verdict.GetJob()].current = nil, false
		}
	}
	return nil
}

// allowed asks whether the queue of a block may use what it asks for.
func (s *state) allowed(block []uint32) (*apportionv1.Verdict, error) {
	answers, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{
		Tasks: &apportionv1.Selector{Indices: block}, Jointly: true,
	}}})
	if err != nil {
		return nil, err
	}
	return answers[0].GetAllocatable().GetTasks()[0].GetVerdict(), nil
}

// allocate starts a block if it may and fits, and notes it if it does not fit or may not.
func (s *state) allocate(block []uint32) (bool, error) {
	allowed, err := s.allowed(block)
	if err != nil {
		return false, err
	}
	if allowed.GetVote() != apportionv1.Vote_VOTE_PERMIT {
		s.refused[block[0]] = true
		return false, nil
	}
	nodes, err := s.room(block)
	if err != nil {
		return false, err
	}
	if nodes == nil {
		s.roomless[block[0]] = true
		return false, nil
	}
	s.moves++
	return true, s.start(block, nodes)
}

// idle finds blocks that wait although they fit and are within their limits: one for each queue.
func (s *state) idle() error {
	blocks, err := s.waiting()
	if err != nil || s.report.Partial != "" {
		return err
	}
	held := s.held()
	said := map[string]bool{}
	for _, block := range blocks {
		task := s.snapshot.Tasks[block[0]]
		queue := task.Job.GetQueue()
		// What has no room has got none since.
		if said[queue] || s.roomless[block[0]] || s.limited(queue, block, held) {
			continue
		}
		allowed, err := s.allowed(block)
		if err != nil {
			return err
		}
		if allowed.GetVote() == apportionv1.Vote_VOTE_PERMIT || excused(allowed) {
			continue
		}
		nodes, err := s.room(block)
		if err != nil {
			return err
		}
		if nodes == nil {
			s.roomless[block[0]] = true
			continue
		}
		said[queue] = true
		s.add(Breach{Property: NothingWantedIsIdle, Queue: queue, Job: lookup.JobName(task.Job)},
			"%s asks for %s; %s has room, nothing else may start, and yet it waits: %s", s.who(block), s.asks(block),
			s.where(nodes), text.Reasons(s.names, allowed.GetCauses()))
	}
	return nil
}

// excused reports whether a refusal is none of idle wanted resources: the queue is closed, or keeps room for tasks that are entitled to it.
func excused(v *apportionv1.Verdict) bool {
	return slices.ContainsFunc(v.GetCauses(), func(r *apportionv1.Cause) bool {
		switch r.GetCode() {
		case apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_OPEN, apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED:
			return true
		case apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE:
			return r.GetHave() > 0
		default:
			return false
		}
	})
}

// held returns what each queue and all below it hold.
func (s *state) held() map[string][]float64 {
	held := map[string][]float64{}
	parents := map[string]string{}
	for _, q := range s.snapshot.GetQueues() {
		held[q.GetName()] = make([]float64, len(s.names.Dimensions))
		parents[q.GetName()] = q.GetParent()
	}
	book := func(queue string, request []float64, times float64) {
		// A path has no more queues than there are; a cycle ends.
		for range parents {
			row := held[queue]
			for d, x := range request {
				if row != nil {
					row[d] += times * x
				}
			}
			if queue = parents[queue]; queue == "" {
				break
			}
		}
	}
	for i, t := range s.tasks {
		if lookup.Granted(t.status) {
			book(s.snapshot.Tasks[i].Job.GetQueue(), s.request[i], 1)
		}
	}
	for i := range s.jobs {
		for _, g := range s.jobs[i].GetGroups() {
			for _, c := range g.GetCounts() {
				if lookup.Granted(c.GetStatus()) {
					book(s.jobs[i].GetQueue(), s.amounts(g.GetRequest()), float64(c.GetCount()))
				}
			}
		}
	}
	return held
}

// limited reports whether a block would take its queue, or a queue above, beyond a capability.
func (s *state) limited(queue string, block []uint32, held map[string][]float64) bool {
	need := s.sum(block)
	for range s.snapshot.GetQueues() {
		index, err := s.snapshot.Queue(queue)
		if err != nil {
			return false
		}
		q := s.snapshot.GetQueues()[index]
		for d, x := range need {
			limit := s.written(q.GetCapability(), d)
			if name := s.names.Dimensions[d]; limit == 0 && (name == "cpu" || name == "memory") {
				// As Volcano reads it: written, but not a limit.
				limit = math.NaN()
			}
			if x > 0 && held[queue][d]+x > limit {
				return true
			}
		}
		if queue = q.GetParent(); queue == "" {
			break
		}
	}
	return false
}

func (s *state) sum(tasks []uint32) []float64 {
	sum := make([]float64, len(s.names.Dimensions))
	for _, t := range tasks {
		for d, x := range s.request[t] {
			sum[d] += x
		}
	}
	return sum
}

// who names a block: its task, or its job and how many tasks.
func (s *state) who(block []uint32) string {
	task := s.snapshot.Tasks[block[0]]
	if len(block) == 1 {
		return fmt.Sprintf("%s of queue %s", task.Name(), task.Job.GetQueue())
	}
	return fmt.Sprintf("a gang of %s of %s of queue %s", text.Count(len(block), "task"), lookup.JobName(task.Job), task.Job.GetQueue())
}

func (s *state) asks(block []uint32) string {
	var parts []string
	for d, x := range s.sum(block) {
		if x > 0 && s.names.Dimensions[d] != pods {
			parts = append(parts, s.short(d, x)+" "+s.names.Dimensions[d])
		}
	}
	return strings.Join(parts, ", ")
}

func (s *state) where(nodes []uint32) string {
	var names []string
	for _, n := range nodes {
		if name := s.snapshot.NodeName(n); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "node " + few(names)
}

// few lists at most four names.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}
