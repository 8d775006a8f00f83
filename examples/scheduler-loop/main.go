// Command scheduler-loop is a small scheduler that leaves its decisions to Apportion: which jobs may enter, which queues may use more, and
// where tasks fit. It decides in process, or asks the service whose address is its argument: the calls are the same.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// loop is a scheduler and the cluster that it follows: who asks sends what changed since the last question.
type loop struct {
	decide *client.Client
	mirror *client.Mirror
}

// newLoop follows a cluster of two nodes and two queues.
func newLoop(decide *client.Client) (*loop, error) {
	l := &loop{decide, client.NewMirror(decide)}
	offer := client.Resources{"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"}
	return l, errors.Join(
		l.mirror.SetNode(client.Node{Name: "n0", Allocatable: offer}), l.mirror.SetNode(client.Node{Name: "n1", Allocatable: offer}),
		l.mirror.SetQueue(client.Queue{Name: "research", Weight: 3}), l.mirror.SetQueue(client.Queue{Name: "batch", Weight: 1}))
}

// now is the cluster as it is.
func (l *loop) now() client.Input {
	return client.Input{State: l.mirror.State(), Policy: client.VolcanoDefault()}
}

// cycle admits jobs, then places the jobs whose queues may use what they request, each as a whole or not at all.
func (l *loop) cycle(ctx context.Context, jobs []client.Job) error {
	for _, job := range jobs {
		if err := l.mirror.SetJob(job); err != nil {
			return err
		}
	}
	admissions, err := l.decide.Enqueue(ctx, l.now(), client.EnqueueQuestion{AsAction: true})
	if err != nil {
		return err
	}
	for _, verdict := range admissions.Jobs {
		job, why := &jobs[slices.IndexFunc(jobs, func(j client.Job) bool { return j.Name == verdict.Job })], verdict.Why
		before, tasks := *job, slices.Clone(job.Groups[0].Tasks)
		job.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
		err = l.mirror.SetJob(*job)
		for k := 0; k < len(tasks) && why == "" && err == nil; k++ {
			task := &job.Groups[0].Tasks[k]
			if task.Node, why, err = l.node(ctx, task.UID); err == nil && why == "" {
				task.Status = apportionv1.TaskStatus_TASK_STATUS_RUNNING
				err = l.mirror.SetTask(task.UID, task.Status, task.Node)
			}
		}
		if why != "" {
			*job, job.Groups[0].Tasks = before, tasks
			err = l.mirror.SetJob(*job)
		}
		if err != nil {
			return err
		}
		fmt.Printf("  %s: %s\n", job.Name, cmp.Or(why, "runs"))
	}
	return nil
}

// node is the best node for a task, or why there is none.
func (l *loop) node(ctx context.Context, task string) (node, why string, err error) {
	allowances, err := l.decide.Allocatable(ctx, l.now(), client.AllocatableQuestion{Tasks: []string{task}})
	if err != nil || !allowances.Permitted() {
		return "", allowances.Why(), err
	}
	scores, err := l.decide.ScoreNodes(ctx, l.now(), client.NodesQuestion{Tasks: []string{task}, Top: 1})
	if err != nil || len(scores.Tasks[0].Nodes) == 0 {
		return "", "no node has room", err
	}
	return scores.Tasks[0].Nodes[0].Node, "", nil
}

// gang is a job of workers with one GPU each.
func gang(name, queue string, workers int) client.Job {
	group := client.Group{Request: client.Resources{"cpu": "2", "nvidia.com/gpu": "1"}, Tasks: make([]client.Task, workers)}
	for i := range workers {
		group.Tasks[i].UID = fmt.Sprintf("%s-%d", name, i)
	}
	minimum := client.Resources{"nvidia.com/gpu": fmt.Sprint(workers)}
	return client.Job{Name: name, Queue: queue, MinAvailable: uint32(workers), MinResources: minimum, Groups: []client.Group{group}}
}

func main() {
	decide, err := client.InProcess(), error(nil)
	if len(os.Args) > 1 {
		decide, err = client.Dial(os.Args[1], client.WithPlaintext())
	}
	var l *loop
	if err == nil {
		l, err = newLoop(decide)
	}
	jobs := []client.Job{gang("train", "research", 5), gang("tune", "research", 2), gang("sweep", "batch", 3)}
	for n := 1; n <= 2 && err == nil; n++ {
		fmt.Println("cycle", n)
		err = l.cycle(context.Background(), jobs)
		jobs = slices.DeleteFunc(jobs, func(j client.Job) bool {
			done := err == nil && j.Phase == apportionv1.JobPhase_JOB_PHASE_RUNNING
			if done {
				err = l.mirror.RemoveJob(j.Name)
			}
			return done
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, client.Describe(err))
		os.Exit(1)
	}
}
