package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/service"
)

// office is a cluster of one node with 8 CPUs, of which build uses 6 where it deserves 4. A job of test waits.
func office() *apportionv1.Snapshot {
	one := client.Resources{"cpu": "2"}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n0", Allocatable: client.Resources{"cpu": "8"}}).
		Queue(client.Queue{Name: "build"}, client.Queue{Name: "test"}).
		Job(
			client.Job{
				Name: "compile", Queue: "build", Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING, MinAvailable: 1,
				Groups: []client.Group{{Request: one, Tasks: []client.Task{
					{Name: "compile-0", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: "n0"},
					{Name: "compile-1", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: "n0"},
					{Name: "compile-2", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: "n0"},
				}}},
			},
			client.Job{
				Name: "suite", Queue: "test", MinAvailable: 2, MinResources: client.Resources{"cpu": "4"},
				Groups: []client.Group{{Request: one, Tasks: []client.Task{{Name: "suite-0"}, {Name: "suite-1"}}}},
			},
		).Build()
	if err != nil {
		return nil
	}
	return snapshot
}

// A scheduler that would rather keep jobs out than let in too many when no server answers, but does not want to stand still: whether a job
// may enter is then decided in its own process.
func ExampleDial() {
	decide, err := client.Dial("dns:///apportion.example:7171",
		client.WithPlaintext(),
		client.WithToken(client.TokenFile("/var/run/secrets/apportion/token")),
		client.WithDeadline(2*time.Second),
		client.WithFallback(client.FailClosed),
		client.WithFallback(client.FallbackEngine, client.KindEnqueue),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decide.Close()
	var asked client.Decider = decide
	fmt.Printf("%T\n", asked)
	// Output: *client.Client
}

// A server answers many clients, in whatever language they are written. Here it listens on a free port of this machine.
func ExampleDial_server() {
	server, err := service.New(service.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	stopped := make(chan error)
	go func() { stopped <- server.Serve(ctx, listener) }()

	decide, err := client.Dial(listener.Addr().String(), client.WithPlaintext())
	if err != nil {
		fmt.Println(err)
		return
	}
	in := client.Input{Snapshot: office(), Policy: client.VolcanoDefault()}
	admissions, err := decide.Enqueue(ctx, in, client.EnqueueQuestion{Jobs: []string{"suite"}})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	fmt.Println("may suite enter?", admissions.Jobs[0].Permitted, "-", admissions.Jobs[0].Why)

	decide.Close()
	stop()
	fmt.Println("the server stopped:", <-stopped)
	// Output:
	// may suite enter? false - the cluster admits 3.6 of cpu to waiting jobs, overcommitment included: 0 promised, 4 more asked (overcommit)
	// the server stopped: <nil>
}

// An answer that no server gave says so.
func ExampleWithFallback() {
	quiet := client.WithLogger(slog.New(slog.DiscardHandler))
	decide, err := client.Dial("localhost:1", client.WithPlaintext(), quiet, client.WithAttempts(1), client.WithFallback(client.FailClosed))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decide.Close()
	in := client.Input{Snapshot: office(), Policy: client.VolcanoDefault()}
	admissions, err := decide.Enqueue(context.Background(), in, client.EnqueueQuestion{Jobs: []string{"suite"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admissions.Jobs[0].Permitted, admissions.Jobs[0].Why, "-", admissions.Fallback)
	// Output: false the service did not answer - closed
}

// Which tasks may a waiting task evict, and why are the others spared?
func ExampleClient_Victims() {
	in := client.Input{Snapshot: office(), Policy: client.VolcanoDefault()}
	victims, err := client.InProcess().Victims(context.Background(), in, client.VictimsQuestion{Claimant: "suite-0"})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	fmt.Println("evict", victims.Tasks)
	for _, spared := range victims.Spared {
		fmt.Println("not", spared.Task, "because", spared.Why)
	}
	// Output:
	// evict [compile-0 compile-1]
	// not compile-2 because its job has 1 task ready and must keep 1 (gang)
}

// A session answers what a cycle asks, step by step; what is only tried is taken back.
func ExampleClient_OpenSession() {
	ctx := context.Background()
	session, err := client.InProcess().OpenSession(ctx, client.Input{Snapshot: office(), Policy: client.VolcanoDefault()})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	defer session.Close()
	used := func(when string, steps ...*apportionv1.Step) {
		answers, err := session.Do(ctx, append(steps, &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})...)
		if err != nil {
			fmt.Println(client.Describe(err))
			return
		}
		shares := client.Shares{Basis: session.Basis(), Answer: answers[len(steps)].GetShares()}
		build, _ := shares.Queue("build")
		fmt.Println(when, "build has", build.Allocated["cpu"], "of", build.Deserved["cpu"], "CPUs")
	}
	used("now", &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
	used("without compile-2", event.Evict(&apportionv1.Selector{Names: []string{"compile-2"}}, 0))
	used("after all", &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: 0}}})
	// Output:
	// now build has 6 of 4 CPUs
	// without compile-2 build has 4 of 4 CPUs
	// after all build has 6 of 4 CPUs
}

// All faults of a snapshot are named at once, each by its path.
func ExampleViolations() {
	snapshot, err := client.NewSnapshot().Queue(client.Queue{Name: "build"}).Job(client.Job{Name: "compile", Queue: "biuld"}).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	in := client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault()}
	_, err = client.InProcess().Shares(context.Background(), in, client.SharesQuestion{})
	violations, total := client.Violations(err)
	fmt.Println(total, violations[0].Path, violations[0].Detail)
	// Output: 1 input.snapshot.jobs[0].queue no queue "biuld"
}
