package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Two teams of the same weight want all 16 GPUs. Research used three times as much as serving, so that serving is given first what becomes
// free; a ledger fills in what was used.
func ExampleSnapshot_Memory() {
	const gpu, day = "nvidia.com/gpu", 24 * 3600
	job := func(queue string) client.Job {
		return client.Job{
			Name: queue, Queue: queue, Groups: []client.Group{{Request: client.Resources{gpu: "1"}, Pending: 16}},
		}
	}
	snapshot, err := client.NewSnapshot().
		Memory(client.Memory{Epoch: 6 * time.Hour, Number: 82000, HalfLife: 28, Offered: client.Usage{gpu: 160 * day}}).
		Node(client.Node{Name: "n0", Allocatable: client.Resources{gpu: "16"}}).
		Queue(client.Queue{Name: "research", Usage: client.Usage{gpu: 120 * day}}, client.Queue{Name: "serving", Usage: client.Usage{gpu: 40 * day}}).
		Job(job("research"), job("serving")).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}}, {Plugin: &apportionv1.Plugin_Fair{Fair: &apportionv1.Fair{}}},
	}}}}
	shares, err := client.InProcess().Shares(context.Background(), client.Input{Snapshot: snapshot, Policy: policy}, client.SharesQuestion{})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	for _, name := range []string{"research", "serving"} {
		queue, _ := shares.Queue(name)
		fmt.Printf("%s is entitled to %s GPUs, and is given first what becomes free up to %s\n", name, queue.Deserved[gpu], queue.WithMemory[gpu])
	}
	// Output:
	// research is entitled to 8 GPUs, and is given first what becomes free up to 3
	// serving is entitled to 8 GPUs, and is given first what becomes free up to 13
}
