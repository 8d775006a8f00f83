package audit_test

import (
	"context"
	"fmt"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
)

// Two queues are guaranteed more than the cluster has.
func ExampleCheck() {
	half := client.Resources{"cpu": "6"}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8", "memory": "8Gi"}}).
		Queue(client.Queue{Name: "web", Guarantee: half}, client.Queue{Name: "batch", Guarantee: half}).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, _ := client.Preset("capacity")
	in := client.Input{Snapshot: snapshot, Policy: policy}
	findings, _, err := audit.Check(context.Background(), client.InProcess(), in, audit.Limits{})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	for _, f := range findings {
		fmt.Printf("%s %s: %s\n", f.Severity, f.Rule, f.Witness)
	}
	// Output:
	// error guarantees-do-not-fit: queues are guaranteed 12 of cpu together, the cluster has 8
}
