package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newEnqueue is `apportion enqueue`.
func newEnqueue(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "enqueue [JOB...]",
		Short: "Decide which jobs may enter their queues",
		Long: `Decide for each job, in the given order, whether it may enter its queue; each permitted job affects the
next decisions. Without jobs, all pending jobs are checked in the order of Volcano's enqueue action,
queue by queue. Jobs are named NAMESPACE/NAME, or NAME alone.`,
		Example: `  apportion enqueue -f cluster.yaml
  apportion enqueue ml/train ml/evaluate -f cluster.yaml`,
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				ask := client.EnqueueQuestion{AsAction: len(names) == 0}
				for _, name := range names {
					id, err := jobID(q.snapshot, name)
					if err != nil {
						return err
					}
					ask.Jobs = append(ask.Jobs, id)
				}
				admissions, err := q.decider.Enqueue(ctx, q.Input, ask)
				if err != nil {
					return err
				}
				response := &apportionv1.CheckEnqueueResponse{Basis: admissions.Basis, Enqueue: admissions.Answer}
				if err := q.write(admissions.Basis, response, func(p *render.Printer) { p.Enqueue(admissions.Answer) }); err != nil {
					return err
				}
				all := true
				for _, job := range admissions.Jobs {
					all = all && job.Permitted
				}
				return verdict(all)
			})
		},
	}
	a.register(command, false)
	a.completeArgs(command, 0, jobNames)
	return command
}

// newAllocatable is `apportion allocatable`.
func newAllocatable(s streams) *cobra.Command {
	a := &asking{streams: s}
	var ask client.AllocatableQuestion
	command := &cobra.Command{
		Use:   "allocatable TASK...",
		Short: "Decide whether the queues of tasks may use that much more",
		Long: `Decide for each task, or for all together, whether its queue may use what it requests, and whether the
queue may take it from others. Tasks are named NAMESPACE/NAME of the pod, or NAME alone.`,
		Example: `  apportion allocatable ml/train-worker-0 ml/train-worker-1 --jointly -f cluster.yaml`,
		Args:    atLeastOne("one task or more"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				ids, err := taskIDs(q.snapshot, names)
				if err != nil {
					return err
				}
				ask.Tasks, ask.Preemptive = ids, true
				allowances, err := q.decider.Allocatable(ctx, q.Input, ask)
				if err != nil {
					return err
				}
				err = q.write(allowances.Basis, allowances.Response, func(p *render.Printer) {
					p.Tasks("ALLOCATABLE", allowances.Response.GetAllocatable().GetTasks())
					p.Line("")
					p.Tasks("MAY TAKE FROM OTHERS", allowances.Response.GetPreemptive().GetTasks())
				})
				if err != nil {
					return err
				}
				all := true
				for _, task := range allowances.Allocatable {
					all = all && task.Permitted
				}
				return verdict(all)
			})
		},
	}
	a.register(command, false)
	a.completeArgs(command, 0, waitingTaskNames)
	command.Flags().BoolVar(&ask.Jointly, "jointly", false, "check all tasks together; they must belong to one queue")
	command.Flags().BoolVar(&ask.Simulation, "simulation", false,
		"use only the numbers, regardless of the queue's state, as in Volcano's preemption simulation")
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add every comparison")
	return command
}

// newNodes is `apportion nodes`.
func newNodes(s streams) *cobra.Command {
	a := &asking{streams: s}
	ask := client.NodesQuestion{ByPlugin: true, Explain: true}
	command := &cobra.Command{
		Use:   "nodes TASK...",
		Short: "Show the nodes on which tasks fit, with scores",
		Long: `Show for each task the nodes on which it fits (the policy admits it, and there is room) and their scores.
The exit code is 2 if a task fits no node.`,
		Example: `  apportion nodes ml/train-worker-0 --top 3 -f cluster.yaml --config volcano-scheduler.conf`,
		Args:    atLeastOne("one task or more"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				ids, err := taskIDs(q.snapshot, names)
				if err != nil {
					return err
				}
				ask.Tasks = ids
				scores, err := q.decider.ScoreNodes(ctx, q.Input, ask)
				if err != nil {
					return err
				}
				response := &apportionv1.ScoreNodesResponse{Basis: scores.Basis, Nodes: scores.Answer}
				err = q.write(scores.Basis, response, func(p *render.Printer) { p.Nodes(scores.Answer) })
				if err != nil {
					return err
				}
				return verdict(fitting(scores.Answer))
			})
		},
	}
	a.register(command, false)
	a.completeArgs(command, 0, waitingTaskNames)
	command.Flags().BoolVar(&ask.Jointly, "jointly", false, "also check whether all tasks have room together")
	command.Flags().Uint32Var(&ask.Top, "top", 0, "show only this number of best nodes for each task; 0: all")
	command.Flags().StringSliceVar(&ask.Nodes, "node", nil, "consider only this node (repeatable)")
	a.complete(command, "node", nodeNames)
	return command
}

// fitting reports whether every task fits some node, and all of them together if that was asked.
func fitting(answer *apportionv1.NodesAnswer) bool {
	for _, row := range answer.GetTasks() {
		if !slices.Contains(row.GetFits(), true) {
			return false
		}
	}
	return answer.GetPlacement() == nil || answer.GetPlacement().GetOutcome() == apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_FOUND
}

// newReclaim is `apportion reclaim`.
func newReclaim(s streams) *cobra.Command {
	return newVictims(s, false, &cobra.Command{
		Use:   "reclaim TASK...",
		Short: "List the tasks of other queues that a task may evict",
		Long: `List the tasks of other queues that a task may evict to get what its queue deserves, and why the others
are protected. Without --candidate the tasks are those that Volcano's reclaim action would consider. The
task is named NAMESPACE/NAME of the pod, or NAME alone.

Policy fair returns a plan: which tasks to evict, all of them necessary, and where to place the claimant.
Several tasks of one job are one claimant.`,
		Example: `  apportion reclaim ml/train-worker-0 -f cluster.yaml --explain`,
	})
}

// newPreempt is `apportion preempt`.
func newPreempt(s streams) *cobra.Command {
	return newVictims(s, true, &cobra.Command{
		Use:   "preempt TASK",
		Short: "List the tasks of its own queue that a task may evict",
		Long: `List the tasks of its own queue that a task may evict, and why the others are protected. Without
--candidate the tasks are those that Volcano's preempt action would consider. The task is named
NAMESPACE/NAME of the pod, or NAME alone.`,
		Example: `  apportion preempt ml/urgent-worker-0 -f cluster.yaml`,
	})
}

func newVictims(s streams, preempt bool, command *cobra.Command) *cobra.Command {
	a := &asking{streams: s}
	ask := client.VictimsQuestion{Preempt: preempt, Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES}
	var candidates []string
	var all bool
	command.Args = exactly(1, "one task")
	if !preempt {
		command.Args = atLeastOne("one task or more")
	}
	command.RunE = func(command *cobra.Command, names []string) error {
		return a.ask(command.Context(), func(ctx context.Context, q *question) error {
			claimant, err := q.snapshot.Task(names[0])
			if err != nil {
				return err
			}
			ids, err := taskIDs(q.snapshot, slices.Concat(names, candidates))
			if err != nil {
				return err
			}
			ask.Claimant = ids[0]
			ask.With = ids[1:len(names)]
			if len(candidates) > 0 {
				ask.Candidates = ids[len(names):]
			}
			victims, err := q.decider.Victims(ctx, q.Input, ask)
			if err != nil {
				return err
			}
			response := &apportionv1.SelectVictimsResponse{Basis: victims.Basis, Victims: victims.Answer}
			err = q.write(victims.Basis, response, func(p *render.Printer) { p.Victims(claimant, victims.Answer, all) })
			if err != nil {
				return err
			}
			return verdict(len(victims.Tasks) > 0)
		})
	}
	a.register(command, false)
	a.completeArgs(command, 1, waitingTaskNames)
	command.Flags().StringSliceVar(&candidates, "candidate", nil, "consider only this `TASK` (repeatable), in the given order")
	a.complete(command, "candidate", placedTaskNames)
	command.Flags().BoolVar(&ask.EligibleOnly, "eligible-only", false, "first exclude candidates that Volcano's action excludes")
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add every check of every candidate")
	command.Flags().BoolVar(&all, "all", false, "list every protected candidate, not only a few for each reason")
	return command
}

// jobID is how the contract refers to a job.
func jobID(snapshot *lookup.Snapshot, name string) (string, error) {
	index, err := snapshot.Job(name)
	if err != nil {
		return "", err
	}
	job := snapshot.GetJobs()[index]
	if job.GetUid() != "" {
		return job.GetUid(), nil
	}
	return lookup.JobName(job), nil
}

// taskIDs are how the contract refers to tasks.
func taskIDs(snapshot *lookup.Snapshot, names []string) ([]string, error) {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		number, err := snapshot.Task(name)
		if err != nil {
			return nil, err
		}
		task := snapshot.Tasks[number]
		switch {
		case task.GetUid() != "":
			ids = append(ids, task.GetUid())
		case task.GetName() != "":
			ids = append(ids, task.Name())
		default:
			return nil, fmt.Errorf("task %q has neither uid nor name: ask about it with simulate", name)
		}
	}
	return ids, nil
}
