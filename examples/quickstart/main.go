// Command quickstart asks a server what queues deserve, and how a waiting job can start: docs/quickstart.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func main() {
	if err := ask("localhost:7171"); err != nil {
		fmt.Fprintln(os.Stderr, client.Describe(err))
		os.Exit(1)
	}
}

func ask(address string) error {
	decide, err := client.Dial(address, client.WithPlaintext()) // or client.InProcess(): no server
	if err != nil {
		return err
	}
	defer func() { _ = decide.Close() }()
	running, waiting := gang("research"), gang("serving")
	for i := range running.Groups[0].Tasks {
		task := &running.Groups[0].Tasks[i]
		task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, "n1"
	}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n1", Allocatable: client.Resources{"cpu": "16"}}).
		Queue(client.Queue{Name: "research", Weight: 1}, client.Queue{Name: "serving", Weight: 3}).
		Job(running, waiting).
		Build()
	if err != nil {
		return err
	}
	in := client.Input{Snapshot: snapshot, PolicyName: "fair"}
	shares, err := decide.Shares(context.Background(), in, client.SharesQuestion{})
	if err != nil {
		return err
	}
	for _, name := range []string{"research", "serving"} {
		queue, _ := shares.Queue(name)
		fmt.Println(name, queue.Deserved["cpu"]) // research 4, serving 12
	}
	plan, err := decide.Plan(context.Background(), in, client.PlanQuestion{Job: "serving"})
	if err != nil {
		return err
	}
	for _, victim := range plan.Answer.GetVictims() {
		fmt.Println("evict", victim.GetUid()) // research-0, research-1
	}
	for _, task := range plan.Answer.GetPlacements() {
		fmt.Println("place", task.GetUid(), "on", task.GetNodeName()) // serving-0 and serving-1 on n1
	}
	if plan.Answer.GetMiss() != nil {
		fmt.Println(plan.Answer.GetText()) // no plan: what is missing
	}
	return nil
}

// gang returns a job of four tasks of four cores each, of which at least two must run together.
func gang(queue string) client.Job {
	group := client.Group{Request: client.Resources{"cpu": "4"}}
	for i := range 4 {
		group.Tasks = append(group.Tasks, client.Task{UID: fmt.Sprintf("%s-%d", queue, i)})
	}
	return client.Job{Name: queue, Queue: queue, MinAvailable: 2, Groups: []client.Group{group}}
}
