package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/tree"
)

func translator(t *testing.T) *scenario.Translator {
	t.Helper()
	built, err := client.NewSnapshot().
		Node(client.Node{Name: "n0"}).Node(client.Node{Name: "n1"}).
		Queue(client.Queue{Name: "q0"}).Queue(client.Queue{Name: "q1"}).
		Job(client.Job{Name: "a", Queue: "q0", Groups: []client.Group{{Role: "w", Tasks: []client.Task{{Name: "a-w-0"}, {Name: "a-w-1"}}}}}).
		Job(client.Job{Name: "b", Queue: "q1", Groups: []client.Group{{Role: "w", Tasks: []client.Task{{Name: "b-w-0"}}}}}).
		Build()
	require.NoError(t, err)
	return scenario.NewTranslator(lookup.Of(built))
}

func TestAStepIsTheMessageOfItsKeys(t *testing.T) {
	for text, want := range map[string]string{
		`shares`:     `shares {}`,
		`shares: q1`: `shares { queues { indices: 1 } }`,
		`shares: {jobs: true, explain: true, fields: [deserved, real capability]}`: `shares { jobs {} explain {} fields: [SHARE_FIELD_DESERVED, SHARE_FIELD_REAL_CAPABILITY] }`,
		`shares: {jobs: false, explain: false}`:                                    `shares {}`,
		`jobs: [b, a]`:                                                             `jobs { jobs { indices: [1, 0] } }`,
		`jobs: true`:                                                               `jobs { jobs {} }`,
		`enqueue: {mode: action}`:                                                  `enqueue { mode: ENQUEUE_MODE_ACTION }`,
		`order`:                                                                    `order { queues {} }`,
		`order: {jobs: []}`:                                                        `order { jobs {} }`,
		`order: {claimantQueue: q1}`:                                               `order { queues {} claimant_queue: 1 }`,
		`order: {tasks: true, claimantTask: b-w-0}`:                                `order { tasks {} claimant_task: 2 }`,
		`nodes: {tasks: a-w-1, nodes: n1, top: 3, jointly: true}`:                  `nodes { tasks { indices: 1 } nodes { indices: 1 } top: 3 jointly: true }`,
		`inspect: {jobs: true}`:                                                    `inspect { jobs: true }`,
		`admit: [b]`:                                                               `event { admit { jobs { indices: 1 } } }`,
		`place: {tasks: [a-w-0, a-w-1], nodes: [n1, n0]}`:                          `event { place { tasks { indices: [0, 1] } nodes { indices: [1, 0] } } }`,
		`evict: a-w-0`:                                                             `event { evict { tasks { indices: 0 } } }`,
		`status: {tasks: a-w-0, status: running}`:                                  `event { status { tasks { indices: 0 } status: TASK_STATUS_RUNNING } }`,
		`removeJob: a`:                                                             `event { change { remove_jobs: "a" } }`,
		`edit: queue/q1.weight=5`:                                                  `event { edit { edits { kind: EDIT_KIND_WEIGHT queue { index: 1 name: "q1" } amount: 5 } } }`,
		`edit: [node/n1.removed=true, job/b.role.w.minAvailable=1]`: `event { edit {
			edits { kind: EDIT_KIND_REMOVE node { index: 1 name: "n1" } }
			edits { kind: EDIT_KIND_MINIMUM job { index: 1 } role: "w" amount: 1 }
		} }`,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := step(t, text)
			require.NoError(t, err)
			var expected apportionv1.Step
			require.NoError(t, prototext.Unmarshal([]byte(want), &expected))
			require.True(t, proto.Equal(&expected, got.Step), "%v", got.Step)
		})
	}
}

func TestWhatIsWrongWithAStepIsTold(t *testing.T) {
	for text, want := range map[string]string{
		`reclaim`:                                      `f:1: reclaim.claimant: is needed`,
		`allocatable: []`:                              `f:1: allocatable.tasks: is needed`,
		`admit: []`:                                    `f:1: admit.jobs: is needed`,
		`addJob: {name: a, queue: q0}`:                 `f:1: addJob.name: a job of this name is there already, or was`,
		`removeJob: {}`:                                `f:1: removeJob.jobs: is needed`,
		`place: {tasks: a-w-0, nodes: [n0, n1]}`:       `f:1: place.nodes: one node for each task is expected`,
		`order: {queues: q0, jobs: a}`:                 `f:1: order.jobs: excludes queues, which is given too`,
		`order: {claimantQueue: [q0, q1]}`:             `f:1: order.claimantQueue: one name is expected`,
		`nodes: {tasks: a-w-0, top: -1}`:               `f:1: nodes.top: not a whole number that is possible here: -1`,
		`shares: {tree: 3}`:                            `f:1: shares.tree: neither true nor false`,
		`shares: {fields: mass}`:                       `f:1: shares.fields: one of these is expected: allocated, capability, deserved, elastic, guarantee, inqueue, real_capability, request, reserved, share, weight, with_memory`,
		`order: {claimantTaskUid: x}`:                  `f:1: order.claimantTaskUid: no such key; did you mean "claimantTask"?`,
		`edit: [queue/q1.weight=5, queue/q2.weight=5]`: `f:1: edit.edits: no queue "q2"; queues are q0, q1`,
		`edit: []`:                                     `f:1: edit.edits: is needed`,
		`rollback`:                                     `f:1: rollback: no such mark was set: there is none at all`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := step(t, text)
			require.EqualError(t, err, want)
		})
	}
}

func step(t *testing.T, text string) (*scenario.Step, error) {
	t.Helper()
	n, err := tree.Parse("f", []byte(text))
	require.NoError(t, err)
	return translator(t).Step(n)
}

func TestEveryKindOfStepCanBeWritten(t *testing.T) {
	fields := (&apportionv1.Step{}).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()
	names := []string{"addJob", "removeJob", "admit", "place", "evict", "status", "edit"}
	for i := range fields.Len() {
		if name := fields.Get(i).JSONName(); name != "event" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		_, err := step(t, name+": {unknown: 1}")
		require.ErrorContains(t, err, "no such key", name)
	}
}
