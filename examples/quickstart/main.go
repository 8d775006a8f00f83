// Command quickstart asks a server who deserves what: docs/quickstart.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apportion/apportion/client"
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
	core := []client.Group{{Request: client.Resources{"cpu": "1"}, Pending: 16}}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n1", Allocatable: client.Resources{"cpu": "16"}}).
		Queue(client.Queue{Name: "research", Weight: 1}, client.Queue{Name: "serving", Weight: 3}).
		Job(client.Job{Name: "a", Queue: "research", Groups: core}, client.Job{Name: "b", Queue: "serving", Groups: core}).
		Build()
	if err != nil {
		return err
	}
	shares, err := decide.Shares(context.Background(), client.Input{Snapshot: snapshot, PolicyName: "fair"}, client.SharesQuestion{})
	if err != nil {
		return err
	}
	for _, name := range []string{"research", "serving"} {
		queue, _ := shares.Queue(name)
		fmt.Println(name, queue.Deserved["cpu"]) // research 4, serving 12
	}
	return nil
}
