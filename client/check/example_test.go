package check_test

import (
	"fmt"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// waiting is a job of eight single tasks that wait.
func waiting(name, queue string) client.Job {
	return client.Job{
		Name: name, Queue: queue, MinAvailable: 1, Groups: []client.Group{{Request: client.Resources{"cpu": "1"}, Pending: 8}},
	}
}

// A share that was changed on its way does not follow from the snapshot.
func ExampleCheck() {
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8"}}).
		Queue(client.Queue{Name: "web", Weight: 3}, client.Queue{Name: "batch", Weight: 1}).
		Job(waiting("site", "web"), waiting("report", "batch")).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, _ := client.Preset("fair")
	request := &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
		},
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}},
	}
	compiled, err := decode.Compile(snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := wire.Open(compiled, policy, wire.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	answers, err := session.DoAll(request.GetSteps())
	if err != nil {
		fmt.Println(err)
		return
	}
	response := &apportionv1.SimulateResponse{Basis: session.Basis(), Answers: answers}
	report, err := check.Response(request, response)
	fmt.Println(len(report.Faults), "faults,", err)

	answers[0].GetShares().GetPlugins()[0].GetFair().GetDivisions()[0].GetChildren()[0].Share++
	report, _ = check.Response(request, response)
	for _, fault := range report.Faults[:3] {
		fmt.Println(fault)
	}
	// Output:
	// 0 faults, <nil>
	// divisions[0]: sum of shares is 8001, not 8000
	// divisions[0]: owner of a quantum is 0, not 1
	// divisions[0]: level is 11999/6, not 4001/2
}
