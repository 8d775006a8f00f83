package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// amounts reads a resource of a snapshot by name.
func amounts(s *apportionv1.Snapshot, r *apportionv1.Resource) client.Resources {
	return client.Amounts(&apportionv1.Basis{Dimensions: s.GetDimensions()}, r)
}

func TestAnEmptySnapshotIsValid(t *testing.T) {
	snapshot, err := client.NewSnapshot().Build()
	require.NoError(t, err)
	require.Empty(t, snapshot.GetQueues())
}

func TestSnapshotTranslatesNamesAndQuantities(t *testing.T) {
	created := time.Unix(1000, 0)
	snapshot, err := client.NewSnapshot().
		AsOf(time.Unix(2000, 0)).
		Job(client.Job{
			Name: "train", Namespace: "ml", Queue: "research", MinAvailable: 2, Created: created,
			MinResources: client.Resources{"nvidia.com/gpu": "16", "cpu": "2500m"},
			Groups: []client.Group{{
				Role: "worker", Request: client.Resources{"nvidia.com/gpu": "8", "cpu": "1250m", "memory": "64Gi"},
				Tasks: []client.Task{
					{Name: "train-worker-0", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: "gpu-1"},
					{Name: "train-worker-1", Request: client.Resources{}, NotPreemptable: true, Cooldown: new(time.Minute)},
				},
				Pending: 3,
			}},
		}).
		Queue(
			client.Queue{Name: "research", Weight: 3, Capability: client.Resources{"memory": "1Ti", "cpu": client.Unlimited}},
			client.Queue{Name: "guest", Weightless: true, NotReclaimable: true},
		).
		Node(client.Node{Name: "gpu-0"}, client.Node{Name: "gpu-1", Allocatable: client.Resources{"cpu": "64", "pods": "110"}, Group: "a100"}).
		Build()
	require.NoError(t, err)

	require.Equal(t, []string{"cpu", "memory", "nvidia.com/gpu", "pods"}, snapshot.GetDimensions())
	require.Equal(t, int64(2000e9), snapshot.GetAsOf())
	job := snapshot.GetJobs()[0]
	require.Equal(t, int64(1000e9), job.GetCreateTime())
	require.Equal(t, client.Resources{"nvidia.com/gpu": "16", "cpu": "2500m"}, amounts(snapshot, job.GetMinResources()))
	group := job.GetGroups()[0]
	require.Equal(t, client.Resources{"nvidia.com/gpu": "8", "cpu": "1250m", "memory": "64Gi"}, amounts(snapshot, group.GetRequest()))
	require.Equal(t, uint32(3), group.GetCounts()[0].GetCount())
	require.Equal(t, uint32(1), group.GetTasks()[0].GetNode())
	require.Nil(t, group.GetTasks()[0].GetDetail())
	other := group.GetTasks()[1]
	require.Nil(t, other.Node)
	require.NotNil(t, other.GetDetail().GetRequest(), "an empty request is a request for nothing, not the group's")
	require.False(t, other.GetDetail().GetPreemptable())
	require.Equal(t, int64(time.Minute), other.GetDetail().GetCooldown())

	research, guest := snapshot.GetQueues()[0], snapshot.GetQueues()[1]
	require.Equal(t, client.Resources{"memory": "1Ti", "cpu": client.Unlimited}, amounts(snapshot, research.GetCapability()))
	require.Nil(t, research.GetGuarantee(), "absent is not empty")
	require.Nil(t, research.Reclaimable)
	require.Equal(t, uint32(0), *guest.Weight)
	require.False(t, *guest.Reclaimable)
	require.Equal(t, "a100", snapshot.GetNodes()[1].GetGroup())
}

func TestFaultsAreCollected(t *testing.T) {
	_, err := client.NewSnapshot().
		Queue(client.Queue{Name: "a", Capability: client.Resources{"cpu": "-1", "memory": "lots"}, Weight: 2, Weightless: true}).
		Job(client.Job{Name: "j", Queue: "a", Groups: []client.Group{{
			Request: client.Resources{"cpu": "NaN"}, Tasks: []client.Task{{Name: "j-0", Node: "gone"}},
		}}}).
		Build()
	var faults *client.SnapshotError
	require.ErrorAs(t, err, &faults)
	require.Equal(t, []string{
		`queues[0].capability.cpu: negative: "-1"`,
		`queues[0].capability.memory: not a quantity: "lots"`,
		`queues[0].weight: both weightless and of weight 2`,
		`jobs[0].groups[0].request.cpu: not a quantity: "NaN"`,
		`jobs[0]: task "j-0" is on node "gone", which is not in the snapshot`,
	}, faults.Faults)
}

func TestOfManyFaultsTheFirstAreListedAndAllAreCounted(t *testing.T) {
	builder := client.NewSnapshot()
	for i := range 10_000 {
		builder.Queue(client.Queue{Name: fmt.Sprint(i), Capability: client.Resources{"cpu": "x"}})
	}
	_, err := builder.Build()
	var faults *client.SnapshotError
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults.Faults, 50)
	require.Equal(t, 10_000, faults.Total)
	require.ErrorContains(t, err, "and 9950 more")
}

func TestTasksAreRestrictedToNodeSetsByName(t *testing.T) {
	snapshot, err := client.NewSnapshot().
		NodeSet(client.NodeSet{Name: "h100", Nodes: []string{"n1"}, Rule: "node selector gpu=h100"}).
		Node(client.Node{Name: "n0"}, client.Node{Name: "n1", Unschedulable: &apportionv1.NodeUnschedulable{}}).
		Queue(client.Queue{Name: "q"}).
		Job(client.Job{Name: "j", Queue: "q", Condition: "waits", Groups: []client.Group{{
			NodeSet: "h100", Unjudged: []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES},
			Tasks: []client.Task{{Name: "a"}, {Name: "b", NodeSet: "h100", Condition: "Unschedulable"}},
		}}}).
		Build()
	require.NoError(t, err)
	require.Equal(t, []uint32{1}, snapshot.GetNodeSets()[0].GetNodes())
	require.NotNil(t, snapshot.GetNodes()[1].GetUnschedulable())
	group := snapshot.GetJobs()[0].GetGroups()[0]
	require.Equal(t, "h100", group.GetNodeSet())
	require.Nil(t, group.GetTasks()[0].GetDetail())
	require.Equal(t, "Unschedulable", group.GetTasks()[1].GetDetail().GetCondition())
	require.Equal(t, "waits", snapshot.GetJobs()[0].GetCondition())

	_, err = client.NewSnapshot().NodeSet(client.NodeSet{Name: "s", Nodes: []string{"x"}}).Build()
	require.ErrorContains(t, err, `node_sets[0]: node "x" is not in the snapshot`)
}

func TestWarningsAreThoseOfTheSnapshotWhateverStepsMakeOfIt(t *testing.T) {
	request := &apportionv1.SimulateRequest{}
	require.NoError(t, prototext.Unmarshal([]byte(`
		input {
		  policy { tiers { plugins { proportion {} } } }
		  snapshot { dimensions: "cpu" dimensions: "gpu" nodes { name: "n" allocatable { dimensions: 0 amounts: 1000 } } queues { name: "q" }
		    jobs { uid: "j" queue: "q" min_resources { dimensions: 0 amounts: 1 } } }
		}
		steps { event { change { jobs { uid: "more" queue: "q" min_resources { dimensions: 1 amounts: 1 } } } } }`), request))
	in := client.Input{Snapshot: request.GetInput().GetSnapshot(), Policy: request.GetInput().GetPolicy()}
	remote, err := dialAll(t, []*replica{startReplica(t, service.Options{})}).Simulate(t.Context(), in, request.GetSteps()...)
	require.NoError(t, err)
	local, err := client.InProcess().Simulate(t.Context(), in, request.GetSteps()...)
	require.NoError(t, err)
	require.NotNil(t, local.Answers[0].GetEvent())
	require.Empty(t, remote.Basis.GetWarnings())
	require.Equal(t, prototext.Format(remote.Basis), prototext.Format(local.Basis))
}

func TestAnAnswerThatIsMissingIsAnError(t *testing.T) {
	s := &client.Simulation{Answers: []*apportionv1.Answer{{}}}
	require.NoError(t, s.Err(0))
	require.ErrorContains(t, s.Err(1), "no answer to step 1")
	require.ErrorContains(t, s.Err(-1), "no answer to step -1")
}
