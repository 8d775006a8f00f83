package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newDecide is `apportion decide`.
func newDecide(s cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "decide KIND",
		Short: "Ask for one decision: may a job enter, may a task be allocated, what may it evict, where does it fit",
		Long: `Ask for one decision, as a scheduler asks for it. Jobs are named NAMESPACE/NAME, or NAME alone; tasks are
named NAMESPACE/NAME of the pod, or NAME.`,
		Example: `  apportion decide enqueue -f cluster.yaml
  apportion decide reclaim ml/train-worker-0 -f cluster.yaml --explain`,
	}
	return cli.WithKinds(command, newEnqueue(s), newAllocatable(s), newVictims(s, false), newVictims(s, true), newNodes(s))
}

// newEnqueue is `apportion decide enqueue`.
func newEnqueue(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	command := a.Command(&cobra.Command{
		Use:   "enqueue [JOB...]",
		Short: "Decide which jobs may enter their queues",
		Long: `Decide for each job, in the given order, whether it may enter its queue; each permitted job affects the
next decisions. Without jobs, all pending jobs are checked in the order of Volcano's enqueue action,
queue by queue. The exit code is 2 if a job may not enter.`,
		Example: `  apportion decide enqueue -f cluster.yaml
  apportion decide enqueue ml/train ml/evaluate -f cluster.yaml`,
	}, question.Divided(func(ctx context.Context, q *question.Question, names []string) error {
		ask := client.EnqueueQuestion{AsAction: len(names) == 0}
		for _, name := range names {
			_, _, id, err := q.JobNamed(name)
			if err != nil {
				return err
			}
			ask.Jobs = append(ask.Jobs, id)
		}
		admissions, err := q.Decider.Enqueue(ctx, q.Input, ask)
		if err != nil {
			return err
		}
		response := &apportionv1.CheckEnqueueResponse{Basis: admissions.Basis, Enqueue: admissions.Answer}
		err = q.Answer(admissions.Basis, response, func(p *render.Printer) { p.Enqueue(admissions.Answer) })
		refused := slices.ContainsFunc(admissions.Jobs, func(d client.Admission) bool { return !d.Permitted })
		return cmp.Or(err, cli.Verdict(!refused))
	}))
	a.CompleteArgs(command, 0, question.JobNames)
	return command
}

// simulated is the response with the answers to the steps of a question, as Simulate gives it.
func simulated(basis *apportionv1.Basis, answers ...*apportionv1.Answer) *apportionv1.SimulateResponse {
	return &apportionv1.SimulateResponse{Basis: basis, Answers: answers}
}

// newAllocatable is `apportion decide allocatable`.
func newAllocatable(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	ask := client.AllocatableQuestion{Preemptive: true}
	command := a.Command(&cobra.Command{
		Use:   "allocatable TASK...",
		Short: "Decide whether the queues of tasks may use what the tasks request",
		Long: `Decide for each task, or for all together, whether its queue may use what it requests, and whether the
queue may take it from others. The exit code is 2 if a queue may not use it.`,
		Example: `  apportion decide allocatable ml/train-worker-0 ml/train-worker-1 --jointly -f cluster.yaml`,
		Args:    cli.Arguments(1, 0, "one task or more"),
	}, question.Divided(func(ctx context.Context, q *question.Question, names []string) (err error) {
		if ask.Tasks, err = question.TaskIDs(q.Lookup, names); err != nil {
			return err
		}
		allowances, err := q.Decider.Allocatable(ctx, q.Input, ask)
		if err != nil {
			return err
		}
		err = q.Answer(allowances.Basis, simulated(allowances.Basis,
			&apportionv1.Answer{Answer: &apportionv1.Answer_Allocatable{Allocatable: allowances.Answer}},
			&apportionv1.Answer{Answer: &apportionv1.Answer_Preemptive{Preemptive: allowances.PreemptiveAnswer}},
		), func(p *render.Printer) {
			p.Tasks("ALLOCATABLE", allowances.Answer.GetTasks())
			p.Line("")
			p.Tasks("MAY TAKE FROM OTHERS", allowances.PreemptiveAnswer.GetTasks())
		})
		refused := slices.ContainsFunc(allowances.Allocatable, func(d client.Allowance) bool { return !d.Permitted })
		return cmp.Or(err, cli.Verdict(!refused))
	}))
	a.CompleteArgs(command, 0, question.WaitingTaskNames)
	command.Flags().BoolVar(&ask.Jointly, "jointly", false, "check all tasks together; they must belong to one queue")
	command.Flags().BoolVar(&ask.Simulation, "simulation", false,
		"use only the numbers, regardless of the queue's state, as in Volcano's preemption simulation")
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add every comparison")
	return command
}

// newNodes is `apportion decide nodes`.
func newNodes(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	ask := client.NodesQuestion{ByPlugin: true, Explain: true}
	command := a.Command(&cobra.Command{
		Use:   "nodes TASK...",
		Short: "Show the nodes on which tasks fit, with scores",
		Long: `Show for each task the nodes on which it fits (the policy admits it, and there is room) and their scores.
The exit code is 2 if a task fits no node.`,
		Example: `  apportion decide nodes ml/train-worker-0 --top 3 -f cluster.yaml --policy volcano-scheduler.conf`,
		Args:    cli.Arguments(1, 0, "one task or more"),
	}, question.Divided(func(ctx context.Context, q *question.Question, names []string) (err error) {
		if ask.Tasks, err = question.TaskIDs(q.Lookup, names); err != nil {
			return err
		}
		scores, err := q.Decider.ScoreNodes(ctx, q.Input, ask)
		if err != nil {
			return err
		}
		response := simulated(scores.Basis, &apportionv1.Answer{Answer: &apportionv1.Answer_Nodes{Nodes: scores.Answer}})
		err = q.Answer(scores.Basis, response, func(p *render.Printer) { p.Nodes(scores.Answer) })
		return cmp.Or(err, cli.Verdict(fitting(scores.Answer)))
	}))
	a.CompleteArgs(command, 0, question.WaitingTaskNames)
	command.Flags().BoolVar(&ask.Jointly, "jointly", false, "also check whether all tasks have room together")
	command.Flags().Uint32Var(&ask.Top, "top", 0, "show only this number of best nodes for each task; 0: all")
	command.Flags().StringSliceVar(&ask.Nodes, "node", nil, "consider only this node (repeatable)")
	a.Complete(command, "node", question.NodeNames)
	return command
}

// fitting reports whether every task fits on some node and, if requested, all of them at the same time.
func fitting(answer *apportionv1.NodesAnswer) bool {
	for _, row := range answer.GetTasks() {
		if !slices.Contains(row.GetFits(), true) {
			return false
		}
	}
	return answer.GetPlacement() == nil || answer.GetPlacement().GetOutcome() == apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_FOUND
}

// newVictims is `apportion decide reclaim` or, with preempt, `apportion decide preempt`.
func newVictims(s cli.Streams, preempt bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "reclaim TASK...",
		Short: "List the tasks of other queues that a task may evict",
		Long: `List the tasks of other queues that a task may evict to get what its queue deserves, and why the others
are protected. Without --candidate the tasks are those that Volcano's reclaim action would consider. The
exit code is 2 if it may evict none. The table says if the action would not ask at all, because the queue
may take nothing from others, as decide allocatable says too.

Policy fair returns a plan: which tasks to evict, all of them necessary, and where to place the claimant.
Several tasks of one job are one claimant.`,
		Example: `  apportion decide reclaim ml/train-worker-0 -f cluster.yaml --explain`,
		Args:    cli.Arguments(1, 0, "one task or more"),
	}
	if preempt {
		command = &cobra.Command{
			Use:   "preempt TASK",
			Short: "List the tasks of its own queue that a task may evict",
			Long: `List the tasks of its own queue that a task may evict, and why the others are protected. Without
--candidate the tasks are those that Volcano's preempt action would consider. The exit code is 2 if it
may evict none.`,
			Example: `  apportion decide preempt ml/urgent-worker-0 -f cluster.yaml`,
			Args:    cli.Arguments(1, 1, "one task"),
		}
	}
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	ask := client.VictimsQuestion{Preempt: preempt, Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES}
	var candidates []string
	var all bool
	a.Command(command, question.Divided(func(ctx context.Context, q *question.Question, names []string) error {
		claimant, err := q.Lookup.Task(names[0])
		if err != nil {
			return err
		}
		ids, err := question.TaskIDs(q.Lookup, slices.Concat(names, candidates))
		if err != nil {
			return err
		}
		ask.Claimant, ask.With = ids[0], ids[1:len(names)]
		if len(candidates) > 0 {
			ask.Candidates = ids[len(names):]
		}
		victims, err := q.Decider.Victims(ctx, q.Input, ask)
		if err != nil {
			return err
		}
		refused, err := neverAsks(ctx, q, ask, victims)
		if err != nil {
			return err
		}
		answer := &apportionv1.Answer{Answer: &apportionv1.Answer_Reclaim{Reclaim: victims.Answer}}
		if preempt {
			answer = &apportionv1.Answer{Answer: &apportionv1.Answer_Preempt{Preempt: victims.Answer}}
		}
		response := simulated(victims.Basis, answer)
		err = q.Answer(victims.Basis, response, func(p *render.Printer) {
			p.Victims(claimant, victims.Answer, all)
			p.NeverAsks(refused)
		})
		return cmp.Or(err, cli.Verdict(len(victims.Tasks) > 0))
	}))
	a.CompleteArgs(command, 1, question.WaitingTaskNames)
	command.Flags().StringSliceVar(&candidates, "candidate", nil, "consider only this `TASK` (repeatable), in the given order")
	a.Complete(command, "candidate", question.PlacedTaskNames)
	command.Flags().BoolVar(&ask.EligibleOnly, "eligible-only", false, "first exclude candidates that Volcano's action excludes")
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add every check of every candidate")
	command.Flags().BoolVar(&all, "all", false, "list every protected candidate, not only a few for each reason")
	return command
}

// neverAsks returns why Volcano's reclaim action would not ask which tasks a claimant may evict; nil if it would, or if there are none.
// Whether a queue may take from others is a question of its own, which the action asks first.
func neverAsks(ctx context.Context, q *question.Question, ask client.VictimsQuestion, found *client.Victims) (*apportionv1.Verdict, error) {
	if ask.Preempt || len(found.Tasks) == 0 || found.Answer.GetPlan() != nil || q.Format != cli.FormatTable {
		return nil, nil //nolint:nilnil // Nothing refused, no error.
	}
	allowances, err := q.Decider.Allocatable(ctx, q.Input, client.AllocatableQuestion{Tasks: []string{ask.Claimant}, Preemptive: true})
	if err != nil {
		return nil, err
	}
	verdict := allowances.PreemptiveAnswer.GetTasks()[0].GetVerdict()
	if verdict.GetVote() == apportionv1.Vote_VOTE_PERMIT {
		return nil, nil //nolint:nilnil // As above.
	}
	return verdict, nil
}

// planMeans are the values of --by.
var planMeans = map[string]apportionv1.PlanMeans{
	"any": apportionv1.PlanMeans_PLAN_MEANS_ANY, "place": apportionv1.PlanMeans_PLAN_MEANS_PLACE,
	"reclaim": apportionv1.PlanMeans_PLAN_MEANS_RECLAIM, "preempt": apportionv1.PlanMeans_PLAN_MEANS_PREEMPT,
}

// newPlan is `apportion plan`.
func newPlan(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}
	var ask client.PlanQuestion
	var ends question.EndFlags
	by, when := "any", false
	command := a.Command(&cobra.Command{
		Use:   "plan JOB",
		Short: "Find a place for a job and the fewest tasks to evict for it",
		Long: `Find a place for the tasks that the gang of a job needs, and the smallest set of running tasks to evict
for them: fewer tasks first, then lower priorities, then younger tasks. The plan places all tasks or
none. Before it is shown, it is executed by the policy's own rules and undone.

If there is no plan, the last lines show what is missing on the nearest node, and what protects the
tasks there. The exit code is then 2, and also if the plan depends on constraints that are not judged.

With --when, evict nothing, and say when the job could start at the earliest and on which nodes, if running jobs end
as expected and nothing else changes. Ends come from the annotations and fields that explain reads, and from --ends
and --runtime. The exit code is 2 if no time is foreseen.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods. About a cluster with Kueue, it may be
KIND/NAME as for explain; the plan then names the flavors of the workload and the workloads that are evicted
for it, and says which of these would return.`,
		Example: `  apportion plan ml/train -f cluster.yaml --policy volcano-scheduler.conf
  apportion plan ml/train --by place -f cluster.yaml
  apportion plan ml/train --when --runtime vision=8h -f cluster.yaml`,
		Args: cli.Arguments(1, 1, "one job"),
	}, func(ctx context.Context, q *question.Question, names []string) (err error) {
		ask.Means = planMeans[by]
		if err := ends.Set(q.Loaded, a.From.Live.On); err != nil {
			return err
		}
		q, name, err := q.AboutJob("", names[0])
		if err != nil {
			return err
		}
		if _, _, ask.Job, err = q.JobNamed(name); err != nil {
			return err
		}
		if when {
			return showWhen(ctx, q, ask.Job)
		}
		end := cli.ShowWaiting(q.Err, "planning")
		made, err := q.Decider.Plan(ctx, q.Input, ask)
		end()
		if err != nil {
			return err
		}
		response := &apportionv1.PlanResponse{Basis: made.Basis, Plan: made.Answer}
		err = q.Answer(made.Basis, response, func(p *render.Printer) { p.Plan(made.Answer) })
		return cmp.Or(err, cli.Verdict(made.Made() && made.Judged()))
	})
	a.CompleteArgs(command, 1, question.WaitingJobNames)
	cli.Choose(command, &by, "by", "", "how to make room; place evicts no task, reclaim tasks of other queues, preempt of its own",
		"any", "place", "reclaim", "preempt")
	flags := command.Flags()
	flags.Uint32Var(&ask.MaxVictims, "max-victims", 0, "evict at most `N` tasks; 0: no bound")
	flags.BoolVar(&when, "when", false, "say when the job could start at the earliest, and where, without evictions")
	ends.Register(flags)
	command.MarkFlagsMutuallyExclusive("when", "by")
	command.MarkFlagsMutuallyExclusive("when", "max-victims")
	return command
}

// showWhen shows when a job could start at the earliest, and on which nodes.
func showWhen(ctx context.Context, q *question.Question, job string) error {
	end := cli.ShowWaiting(q.Err, "looking ahead")
	made, err := q.Decider.Explain(ctx, q.Input, client.ExplainQuestion{Jobs: []string{job}})
	end()
	if err != nil {
		return err
	}
	found := made.Answer.GetJobs()[0]
	response := &apportionv1.ExplainResponse{Basis: made.Basis, Explain: made.Answer}
	err = q.Answer(made.Basis, response, func(p *render.Printer) { p.When(found) })
	starts := found.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN
	switch found.GetForecast().GetOutcome() {
	case apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOW, apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT:
		starts = true
	default:
	}
	return cmp.Or(err, cli.Verdict(starts && len(found.GetUnjudgedConstraints()) == 0))
}
