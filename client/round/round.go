// Package round runs one cycle of decisions through a client, remote or in process: it admits jobs, and makes a plan for each, in a session
// in which every plan counts for those after it. It asks step by step, in the order of package cycle, because the contract has no question
// for a whole cycle. Callers carry the plans out, as bindings or evictions.
package round

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
)

// Job is a job that has tasks without a place.
type Job struct {
	UID, Queue string
	// Shape is equal for jobs of a queue that differ in nothing that a place depends on: where one has no plan, the others have none.
	Shape string
	// Begun is true if a part of its gang is placed and the rest is not: it goes first.
	Begun bool
	// Admitted is true if its queue has let it in.
	Admitted bool
	// Least is the minimum of its gang, Placed and Pending count its tasks with and without a place.
	Least, Placed, Pending int
}

// block is the number of tasks that are placed together.
func (j *Job) block() int { return max(1, j.Least-j.Placed) }

// Plan is a plan that was made for a job.
type Plan struct {
	Job, Sentence string
	Placements    []Placement
	Victims       []Victim
}

// Victim is a task that leaves. Own: it belongs to the queue of the job.
type Victim struct {
	Task string
	Own  bool
}

// Placement is the place of a task.
type Placement struct{ Task, Node string }

// Told has the functions that Decide calls with each decision when it is made. It does not call nil functions.
type Told struct {
	// Admitted names the jobs that their queues let in.
	Admitted func(jobs []string)
	// Planned receives a plan, which assumes that those before it are carried out.
	Planned func(*Plan)
}

// Decide runs the actions of a cycle about jobs. It changes the jobs as it decides.
func Decide(ctx context.Context, decide *client.Client, in client.Input, jobs []*Job, told Told, actions ...cycle.Action) error {
	r := &round{ctx: ctx, told: told, waiting: make(map[string]*Job, len(jobs)), queues: map[string]model.QueueID{}}
	for _, j := range jobs {
		r.waiting[j.UID] = j
	}
	if err := r.open(decide, in); err != nil {
		return err
	}
	defer func() { _ = r.session.Close() }()
	return (&cycle.Loop{Scheduler: r}).Run(actions...)
}

// round is a cycle in a session. Jobs have the numbers of the session, queues numbers of its own.
type round struct {
	ctx     context.Context //nolint:containedctx // A round is one conversation.
	session *client.Session
	policy  *apportionv1.Policy
	waiting map[string]*Job
	// jobs are those that wait by number, number the opposite. listed are those in line, ranks their places in the order of service.
	jobs   map[model.JobID]*Job
	number map[string]model.JobID
	listed *apportionv1.Selector
	ranks  map[model.JobID]int
	queues map[string]model.QueueID

	told Told
	// missed are shapes without a plan since something was freed or the order began.
	missed map[string]bool
}

func (r *round) open(decide *client.Client, in client.Input) (err error) {
	r.policy = in.Policy
	if r.session, err = decide.OpenSession(r.ctx, in); err != nil {
		return err
	}
	answers, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{
		Jobs: &apportionv1.Selector{Names: slices.Sorted(maps.Keys(r.waiting))},
	}}})
	if err != nil {
		return err
	}
	r.jobs, r.number = map[model.JobID]*Job{}, map[string]model.JobID{}
	for _, standing := range answers[0].GetJobs().GetJobs() {
		j := r.waiting[standing.GetUid()]
		r.jobs[model.JobID(standing.GetJob())], r.number[j.UID] = j, model.JobID(standing.GetJob())
		if _, known := r.queues[j.Queue]; !known {
			r.queues[j.Queue] = model.QueueID(len(r.queues))
		}
	}
	return nil
}

// Plans reports whether the policy reclaims by plans. That of a service is not known here: asking again costs a question and no more.
func (r *round) Plans() bool {
	if r.policy == nil {
		return true
	}
	for _, tier := range r.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetFair() != nil {
				return true
			}
		}
	}
	return false
}

func (r *round) ask(steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := r.session.Do(r.ctx, steps...)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		if fault := answers[i].GetError(); fault != nil {
			return nil, fmt.Errorf("%v: %w", step, status.FromProto(fault).Err())
		}
	}
	return answers, nil
}

// Enqueue lets jobs in.
func (r *round) Enqueue() error {
	answers, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION,
	}}})
	if err != nil {
		return err
	}
	var admitted []string
	for _, verdict := range answers[0].GetEnqueue().GetJobs() {
		if c := r.waiting[verdict.GetUid()]; c != nil && verdict.GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT {
			c.Admitted = true
			admitted = append(admitted, c.UID)
		}
	}
	if r.told.Admitted != nil {
		r.told.Admitted(admitted)
	}
	return nil
}

// Waiting lists the admitted jobs with pending tasks, those whose gang has begun apart, in the order of service.
func (r *round) Waiting(cycle.Action) (begun, others []model.JobID, err error) {
	r.missed, r.listed = map[string]bool{}, &apportionv1.Selector{}
	for _, id := range slices.Sorted(maps.Keys(r.waiting)) {
		if j := r.waiting[id]; j.Admitted && j.Pending > 0 {
			r.listed.Indices = append(r.listed.Indices, uint32(r.number[id]))
		}
	}
	if len(r.listed.GetIndices()) == 0 {
		return nil, nil, nil
	}
	answers, err := r.ask(r.jobOrder())
	if err != nil {
		return nil, nil, err
	}
	for _, j := range r.rank(answers[0]) {
		if r.jobs[j].Begun {
			begun = append(begun, j)
		} else {
			others = append(others, j)
		}
	}
	return begun, others, nil
}

// jobOrder asks for the order of the jobs that are listed, and rank notes it.
func (r *round) jobOrder() *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
		Subject: &apportionv1.OrderStep_Jobs{Jobs: r.listed},
	}}}
}

func (r *round) rank(answer *apportionv1.Answer) []model.JobID {
	r.ranks = map[model.JobID]int{}
	var order []model.JobID
	for rank, number := range answer.GetOrder().GetItems() {
		j := model.JobID(number)
		r.ranks[j], order = rank, append(order, j)
	}
	return order
}

// QueueOf returns the queue of a job.
func (r *round) QueueOf(j model.JobID) model.QueueID { return r.queues[r.jobs[j].Queue] }

// Before compares jobs as they are ordered since the latest plan.
func (r *round) Before(left, right model.JobID) bool { return r.ranks[left] < r.ranks[right] }

// Queues returns some queues in the order of service, without those that use all they may unless all is set.
func (r *round) Queues(queues []model.QueueID, all bool) ([]model.QueueID, error) {
	answers, err := r.ask(r.jobOrder(), &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
		Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_SHARE},
	}}})
	if err != nil {
		return nil, err
	}
	r.rank(answers[0])
	standings := slices.Clone(answers[1].GetShares().GetStandings())
	slices.SortStableFunc(standings, func(a, b *apportionv1.QueueStanding) int { return int(a.GetRank()) - int(b.GetRank()) })
	var order []model.QueueID
	for _, standing := range standings {
		q, known := r.queues[standing.GetName()]
		if known && slices.Contains(queues, q) && standing.Rank != nil && (all || !standing.GetOverused()) {
			order = append(order, q)
		}
	}
	return order, nil
}

// Serve plans a job on what is free, or in the place of others.
func (r *round) Serve(number model.JobID, action cycle.Action) (done, more bool, err error) {
	means := apportionv1.PlanMeans_PLAN_MEANS_PLACE
	switch action { //nolint:exhaustive // The others place.
	case cycle.Preempt:
		means = apportionv1.PlanMeans_PLAN_MEANS_PREEMPT
	case cycle.Reclaim:
		means = apportionv1.PlanMeans_PLAN_MEANS_RECLAIM
	}
	done, err = r.plan(number, means)
	return done, r.jobs[number].Pending > 0, err
}

// plan asks for a plan, and carries it out in the session. A job that equals one of its queue without a plan has none either.
func (r *round) plan(number model.JobID, means apportionv1.PlanMeans) (bool, error) {
	c := r.jobs[number]
	same := fmt.Sprintf("%v %s %d %s", means, c.Queue, c.block(), c.Shape)
	if c.Pending == 0 || r.missed[same] {
		return false, nil
	}
	answers, err := r.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
			Job: &apportionv1.Selector{Indices: []uint32{uint32(number)}}, Means: means,
		}}},
	)
	if err != nil {
		return false, err
	}
	plan := answers[1].GetPlan()
	later := slices.ContainsFunc(plan.GetPlacements(), (*apportionv1.PlannedPlacement).GetAfterRelease)
	if plan.GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE || later || plan.GetEnters() {
		r.missed[same] = true
		return false, nil
	}
	done, err := r.carryOut(plan, answers[0].GetMark().GetMark())
	if err != nil || !done {
		r.missed[same] = true
		return false, err
	}
	decided := &Plan{Job: c.UID, Sentence: plan.GetText()}
	for _, p := range plan.GetPlacements() {
		decided.Placements = append(decided.Placements, Placement{p.GetUid(), p.GetNodeName()})
	}
	for _, v := range plan.GetVictims() {
		decided.Victims = append(decided.Victims, Victim{v.GetUid(), v.GetOwnQueue()})
	}
	if len(decided.Victims) > 0 {
		clear(r.missed)
	}
	c.Placed += len(decided.Placements)
	c.Pending -= len(decided.Placements)
	if r.told.Planned != nil {
		r.told.Planned(decided)
	}
	return true, nil
}

// carryOut changes the state of the session to that after a plan; if that fails, the state is as before.
func (r *round) carryOut(plan *apportionv1.PlanAnswer, mark uint32) (bool, error) {
	var steps []*apportionv1.Step
	if len(plan.GetVictims()) > 0 {
		victims := &apportionv1.Selector{}
		for _, v := range plan.GetVictims() {
			victims.Indices = append(victims.Indices, v.GetTask())
		}
		steps = append(steps, event.Evict(victims, apportionv1.TaskStatus_TASK_STATUS_PENDING))
	}
	placed, nodes := &apportionv1.Selector{}, &apportionv1.Selector{}
	for _, p := range plan.GetPlacements() {
		placed.Indices, nodes.Indices = append(placed.Indices, p.GetTask()), append(nodes.Indices, p.GetNode())
	}
	steps = append(steps, event.Place(placed, nodes))
	answers, err := r.session.Do(r.ctx, steps...)
	if err != nil {
		return false, err
	}
	for _, answer := range answers {
		if answer.GetError() != nil {
			_, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}})
			return false, err
		}
	}
	return true, nil
}
