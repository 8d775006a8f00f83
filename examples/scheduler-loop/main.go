// Command scheduler-loop is a small scheduler that leaves its decisions to Apportion: who may enter, who may use more, where it fits.
// It decides in process, or asks the service whose address is its argument: the calls are the same.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// now describes the cluster as it is. Apportion keeps nothing.
func now(jobs []client.Job) (client.Input, error) {
	offer := client.Resources{"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n0", Allocatable: offer}, client.Node{Name: "n1", Allocatable: offer}).
		Queue(client.Queue{Name: "research", Weight: 3}, client.Queue{Name: "batch", Weight: 1}).
		Job(jobs...).Build()
	return client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault()}, err
}

// cycle admits jobs, then places those that may use what they ask for, each of them whole or not at all.
func cycle(ctx context.Context, decide client.Decider, jobs []client.Job) error {
	in, err := now(jobs)
	if err != nil {
		return err
	}
	admissions, err := decide.Enqueue(ctx, in, client.EnqueueQuestion{AsAction: true})
	if err != nil {
		return err
	}
	for i, verdict := range admissions.Jobs {
		job, why := &jobs[admissions.Answer.GetJobs()[i].GetJob()], verdict.Why
		before, tasks := *job, slices.Clone(job.Groups[0].Tasks)
		job.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
		for k := 0; k < len(tasks) && why == "" && err == nil; k++ {
			task := &job.Groups[0].Tasks[k]
			task.Node, why, err = node(ctx, decide, jobs, task.Name)
			task.Status = apportionv1.TaskStatus_TASK_STATUS_RUNNING
		}
		if why != "" {
			*job, job.Groups[0].Tasks = before, tasks
		}
		fmt.Printf("  %s: %s\n", job.Name, cmp.Or(why, "runs"))
	}
	return err
}

// node is the best node for a task, or why there is none.
func node(ctx context.Context, decide client.Decider, jobs []client.Job, task string) (node, why string, err error) {
	in, err := now(jobs)
	if err != nil {
		return "", "", err
	}
	allowances, err := decide.Allocatable(ctx, in, client.AllocatableQuestion{Tasks: []string{task}})
	if err != nil || !allowances.Permitted() {
		return "", allowances.Why(), err
	}
	scores, err := decide.ScoreNodes(ctx, in, client.NodesQuestion{Tasks: []string{task}, Top: 1})
	if err != nil || len(scores.Tasks[0].Nodes) == 0 {
		return "", "no node has room", err
	}
	return scores.Tasks[0].Nodes[0].Node, "", nil
}

// gang is a job of workers with one GPU each.
func gang(name, queue string, workers int) client.Job {
	group := client.Group{Request: client.Resources{"cpu": "2", "nvidia.com/gpu": "1"}, Tasks: make([]client.Task, workers)}
	for i := range workers {
		group.Tasks[i].Name = fmt.Sprintf("%s-%d", name, i)
	}
	minimum := client.Resources{"nvidia.com/gpu": fmt.Sprint(workers)}
	return client.Job{Name: name, Queue: queue, MinAvailable: uint32(workers), MinResources: minimum, Groups: []client.Group{group}}
}

func main() {
	decide, err := client.InProcess(), error(nil)
	if len(os.Args) > 1 {
		decide, err = client.Dial(os.Args[1], client.WithPlaintext())
	}
	jobs := []client.Job{gang("train", "research", 5), gang("tune", "research", 2), gang("sweep", "batch", 3)}
	for n := 1; n <= 2 && err == nil; n++ {
		fmt.Println("cycle", n)
		err = cycle(context.Background(), decide, jobs)
		jobs = slices.DeleteFunc(jobs, func(j client.Job) bool { return j.Phase == apportionv1.JobPhase_JOB_PHASE_RUNNING }) // done
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, client.Describe(err))
		os.Exit(1)
	}
}
