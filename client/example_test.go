package client_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Two teams share 16 GPUs. Research, with three times the weight, deserves 12 of them; a gang of 16 GPUs may not enter.
func Example() {
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n0", Allocatable: client.Resources{"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "16"}}).
		Queue(
			client.Queue{Name: "research", Weight: 3},
			client.Queue{Name: "batch", Weight: 1, Guarantee: client.Resources{"nvidia.com/gpu": "2"}},
		).
		Job(
			client.Job{
				Name: "train", Namespace: "ml", Queue: "research", MinAvailable: 8,
				MinResources: client.Resources{"cpu": "32", "nvidia.com/gpu": "16"},
				Groups: []client.Group{{
					Role: "worker", Request: client.Resources{"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "2"}, Pending: 8,
				}},
			},
			client.Job{
				Name: "render", Namespace: "film", Queue: "batch", Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
				Groups: []client.Group{{
					Role: "frame", Request: client.Resources{"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}, Running: 6,
				}},
			},
		).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	decide := client.InProcess() // or client.Dial("apportion:7171", client.WithPlaintext())
	in := client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault()}
	ctx := context.Background()

	shares, err := decide.Shares(ctx, in, client.SharesQuestion{})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	for _, name := range []string{"research", "batch"} {
		queue, _ := shares.Queue(name)
		gpu := "nvidia.com/gpu"
		fmt.Printf("%s deserves %s GPUs and has %s\n", name, queue.Deserved[gpu], cmp.Or(queue.Allocated[gpu], "none"))
	}

	admissions, err := decide.Enqueue(ctx, in, client.EnqueueQuestion{Jobs: []string{"ml/train"}})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	fmt.Println("may train enter?", admissions.Jobs[0].Permitted)
	fmt.Println(admissions.Jobs[0].Why)
	// Output:
	// research deserves 12 GPUs and has none
	// batch deserves 4 GPUs and has 6
	// may train enter? false
	// queue research may hold at most 14 of nvidia.com/gpu: 0 taken, 16 more asked (proportion)
}
