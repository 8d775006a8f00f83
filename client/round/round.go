// Package round runs a cycle of decisions about a State: who is admitted, who is first, and a plan for each job, in a session in which
// every plan counts for those after it. Package cycle says in which order it asks; the answers are Apportion's. What the plans become, such
// as bindings or evictions, is the caller's.
package round

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/cycle"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
	// Victims are the uids of the tasks that leave for it.
	Victims []string
}

// Placement is the place of a task.
type Placement struct{ Task, Node string }

// Told has the functions that Decide calls with each decision when it is made. It does not call nil functions.
type Told struct {
	// Admitted names the jobs that their queues let in.
	Admitted func(jobs []string)
	// Planned has a plan, which counts on those before it.
	Planned func(*Plan)
}

// Decide runs the actions of a cycle about jobs. It changes the jobs as it decides.
func Decide(ctx context.Context, decide *client.Client, in client.Input, jobs []*Job, told Told, actions ...cycle.Action) error {
	r := &round{ctx: ctx, told: told, waiting: make(map[string]*Job, len(jobs))}
	for _, j := range jobs {
		r.waiting[j.UID] = j
	}
	if err := r.open(decide, in); err != nil {
		return err
	}
	defer func() { _ = r.session.Close() }()
	c := cycle.Cycle[*Job]{Scheduler: r, Plans: r.plans()}
	return c.Run(actions...)
}

// round is a cycle in a session.
type round struct {
	ctx     context.Context //nolint:containedctx // A round is one conversation.
	session *client.Session
	policy  *apportionv1.Policy
	waiting map[string]*Job
	// number is the index of each job, id the opposite.
	number map[string]uint32
	id     map[uint32]string

	told Told
	// made counts the plans.
	made int
	// missed are shapes without a plan since something was freed or the order began.
	missed map[string]bool
}

func (r *round) open(decide *client.Client, in client.Input) (err error) {
	r.policy = in.Policy
	if r.session, err = decide.OpenSession(r.ctx, in); err != nil {
		return err
	}
	answers, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{
		Jobs: &apportionv1.Jobs{Uid: slices.Sorted(maps.Keys(r.waiting))},
	}}})
	if err != nil {
		return err
	}
	r.number, r.id = map[string]uint32{}, map[uint32]string{}
	for _, standing := range answers[0].GetJobs().GetJobs() {
		r.number[standing.GetUid()], r.id[standing.GetJob()] = standing.GetJob(), standing.GetUid()
	}
	return nil
}

// plans reports whether the policy reclaims by plans. That of a service is not known here: asking again costs a question and no more.
func (r *round) plans() bool {
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

// Waiting yields the admitted jobs: those whose gang has begun, then the first job of the first queue. Some actions also serve queues
// that use all they may.
func (r *round) Waiting(action cycle.Action) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		r.missed = map[string]bool{}
		begun, lines, err := r.lines()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range begun {
			if !yield(c, nil) {
				return
			}
		}
		var order []string
		for stale := true; ; {
			if stale {
				if order, err = r.order(action.ServesOverused(r.plans())); err != nil {
					yield(nil, err)
					return
				}
			}
			at := slices.IndexFunc(order, func(queue string) bool { return len(lines[queue]) > 0 })
			if at < 0 {
				return
			}
			c, before := lines[order[at]][0], r.made
			if !yield(c, nil) {
				return
			}
			stale = r.made > before
			if !stale || c.Pending == 0 || action != cycle.Allocate {
				lines[c.Queue] = lines[c.Queue][1:]
			}
		}
	}
}

// lines returns the admitted jobs with pending pods: those whose gang has begun, and the others by queue, each in the order of service.
func (r *round) lines() (begun []*Job, lines map[string][]*Job, err error) {
	jobs := &apportionv1.Jobs{}
	for _, id := range slices.Sorted(maps.Keys(r.waiting)) {
		if c := r.waiting[id]; c.Admitted && c.Pending > 0 {
			jobs.Index = append(jobs.Index, r.number[id])
		}
	}
	lines = map[string][]*Job{}
	if len(jobs.GetIndex()) == 0 {
		return nil, lines, nil
	}
	answers, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
		Subject: &apportionv1.OrderStep_Jobs{Jobs: jobs},
	}}})
	if err != nil {
		return nil, nil, err
	}
	for _, number := range answers[0].GetOrder().GetSorted() {
		c := r.waiting[r.id[number]]
		if c.Begun {
			begun = append(begun, c)
		} else {
			lines[c.Queue] = append(lines[c.Queue], c)
		}
	}
	return begun, lines, nil
}

// order returns the queues in the order of service, without those that use all they may unless all is set.
func (r *round) order(all bool) ([]string, error) {
	answers, err := r.ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
		Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_SHARE},
	}}})
	if err != nil {
		return nil, err
	}
	standings := slices.Clone(answers[0].GetShares().GetStandings())
	slices.SortStableFunc(standings, func(a, b *apportionv1.QueueStanding) int { return int(a.GetRank()) - int(b.GetRank()) })
	var order []string
	for _, standing := range standings {
		if standing.Rank != nil && (all || !standing.GetOverused()) {
			order = append(order, standing.GetName())
		}
	}
	return order, nil
}

// Allocate plans a job on what is free.
func (r *round) Allocate(c *Job) (bool, error) {
	return r.plan(c, apportionv1.PlanMeans_PLAN_MEANS_PLACE)
}

// Evict plans a job in the place of other pods.
func (r *round) Evict(c *Job, action cycle.Action) (bool, error) {
	if action == cycle.Preempt {
		return r.plan(c, apportionv1.PlanMeans_PLAN_MEANS_PREEMPT)
	}
	return r.plan(c, apportionv1.PlanMeans_PLAN_MEANS_RECLAIM)
}

// plan asks for a plan, and carries it out in the session. A job that equals one of its queue without a plan has none either.
func (r *round) plan(c *Job, means apportionv1.PlanMeans) (bool, error) {
	same := fmt.Sprintf("%v %s %d %s", means, c.Queue, c.block(), c.Shape)
	if c.Pending == 0 || r.missed[same] {
		return false, nil
	}
	answers, err := r.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
			Job: &apportionv1.Jobs{Index: []uint32{r.number[c.UID]}}, Means: means,
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
		decided.Victims = append(decided.Victims, v.GetUid())
	}
	if len(decided.Victims) > 0 {
		clear(r.missed)
	}
	c.Placed += len(decided.Placements)
	c.Pending -= len(decided.Placements)
	r.made++
	if r.told.Planned != nil {
		r.told.Planned(decided)
	}
	return true, nil
}

// carryOut changes the state of the session to that after a plan; if that fails, the state is as before.
func (r *round) carryOut(plan *apportionv1.PlanAnswer, mark uint32) (bool, error) {
	var steps []*apportionv1.Step
	if len(plan.GetVictims()) > 0 {
		victims := &apportionv1.Tasks{}
		for _, v := range plan.GetVictims() {
			victims.Index = append(victims.Index, v.GetTask())
		}
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Deallocate{Deallocate: &apportionv1.DeallocateStep{
			Tasks: victims, Status: apportionv1.TaskStatus_TASK_STATUS_PENDING,
		}}})
	}
	placed := &apportionv1.AllocateStep{Tasks: &apportionv1.Tasks{}}
	for _, p := range plan.GetPlacements() {
		placed.Tasks.Index = append(placed.Tasks.Index, p.GetTask())
		placed.Node = append(placed.Node, p.GetNode())
	}
	steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Allocate{Allocate: placed}})
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
