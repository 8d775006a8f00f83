package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// aBatchFollowsItsChanges draws a change, and requires that one batch that changes the cluster, asks, rolls back and asks again has the
// answers of a session on the result and of one on the base, each asked step by step.
func aBatchFollowsItsChanges(t *rapid.T, policy string) {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	base, err := decode.Compile(snapshot)
	require.NoError(t, err)
	change := mirror(snapshot).drawn(t, drawSnapshot(t, rapid.Bool().Draw(t, "other uids")))
	data, err := proto.Marshal(change)
	require.NoError(t, err)
	result, err := new(decode.Decoder).CompileChange(base, data, decode.Guard{})
	require.NoError(t, err)
	s, err := wire.Open(base, p, wire.Options{})
	if err != nil {
		t.Skip("the policy cannot be opened")
	}
	changed, err := wire.Open(result, p, wire.Options{})
	if err != nil {
		t.Skip("the policy cannot be opened on the result")
	}
	now, then := everything(decode.SnapshotOf(result)), everything(snapshot)
	if len(change.GetRemoveJobs())+len(change.GetJobs()) > 0 {
		// The numbers of tasks in a description are not those of the result.
		now = now[:5]
	}
	texts := rapid.Bool().Draw(t, "texts")
	want := answered(t, changed, now, texts)
	want = append(want, answered(t, must(wire.Open(base, p, wire.Options{})), then, texts)...)

	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		event.Change(change),
	}
	steps = append(steps, now...)
	steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}})
	steps = append(steps, then...)
	s.Show(texts, false)
	answers, err := s.DoAll(steps)
	require.NoError(t, err)
	require.Nil(t, answers[1].GetError(), "%v", change)
	got := slices.Delete(slices.Clone(answers), 2+len(now), 3+len(now))[2:]
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], prototext.Format(got[i]), "answer %d", i)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// answered returns the answers to steps that are asked one by one.
func answered(t *rapid.T, s *wire.Session, steps []*apportionv1.Step, texts bool) []string {
	t.Helper()
	s.Show(texts, false)
	var list []string
	for _, step := range steps {
		list = append(list, prototext.Format(s.Do(step)))
	}
	return list
}

func TestABatchFollowsItsChanges(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, aBatchFollowsItsChanges)
	t.Run("fair", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { aBatchFollowsItsChanges(t, `tiers { plugins { fair {} } }`) })
	})
}

// aChangeFollowsWhatWasReached moves tasks in a session, changes the snapshot by a step, and requires the answers of a session on the
// resulting snapshot.
func aChangeFollowsWhatWasReached(t *rapid.T, policy string) {
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	s := opened(t, snapshot, policy)
	for range rapid.IntRange(1, 8).Draw(t, "moves") {
		s.Do(drawMove(t, snapshot))
	}
	state, _ := reached(t, s, snapshot, snapshot.GetJobs())
	twin := mirror(state)
	change := twin.drawn(t, drawSnapshot(t, rapid.Bool().Draw(t, "other uids")))
	twin.apply(change)
	whole, n := twin.whole()
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	fresh, wrong := wire.Open(must(decode.Compile(whole)), p, wire.Options{})
	answer := s.Do(event.Change(change))
	if wrong != nil {
		require.NotNil(t, answer.GetError())
		return
	}
	require.Nil(t, answer.GetError(), "%v", change)
	requireAnswers(t, fresh, s, whole, n)
}

func TestAChangeFollowsWhatASessionHasReached(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, aChangeFollowsWhatWasReached)
	t.Run("fair", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { aChangeFollowsWhatWasReached(t, `tiers { plugins { fair {} } }`) })
	})
}

func TestStepsCannotExceedTheLimitsOfASnapshot(t *testing.T) {
	limits := decode.Limits{Dimensions: 4, Nodes: 3, NodeSets: 2, Queues: 5, QueueDepth: 2, Jobs: 5, Groups: 4, Tasks: 12, TextBytes: 128}
	long := strings.Repeat("x", 129)
	for name, tt := range map[string]struct{ step, limit string }{
		"a job too many":        {`event { change { jobs { uid: "a" queue: "web" } jobs { uid: "b" queue: "web" } jobs { uid: "c" queue: "web" } jobs { uid: "d" queue: "web" } } }`, "jobs"},
		"a node too many":       {`event { change { nodes { name: "a" } nodes { name: "b" } nodes { name: "c" } } }`, "nodes"},
		"a queue too many":      {`event { change { queues { name: "a" } queues { name: "b" } queues { name: "c" } queues { name: "d" } } }`, "queues"},
		"queues too deep":       {`event { change { queues { name: "a" } queues { name: "b" parent: "a" } queues { name: "web" parent: "b" } } }`, "queue_depth"},
		"tasks too many":        {`event { change { jobs { uid: "a" queue: "web" groups { tasks {} tasks {} tasks {} tasks {} tasks {} tasks {} } } } }`, "tasks"},
		"a long name":           {`event { change { queues { name: "` + long + `" } } }`, "text_bytes"},
		"a long uid of a task":  {`event { change { jobs { uid: "a" queue: "web" groups { tasks { uid: "` + long + `" } } } } }`, "text_bytes"},
		"dimensions too many":   {`event { change { dimensions: ["cpu", "memory", "a", "b", "c"] } }`, "dimensions"},
		"node sets too many":    {`event { change { node_sets { name: "a" } node_sets { name: "b" } node_sets { name: "c" } } }`, "node_sets"},
		"groups of a job":       {`event { change { jobs { uid: "a" queue: "web" groups { role: "a" } groups { role: "b" } groups { role: "c" } } } }`, "groups"},
		"as much as is allowed": {`event { change { nodes { name: "a" } nodes { name: "b" } queues { name: "a" parent: "web" } queues { name: "b" } } }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, twoQueues, proportional, wire.Options{Limits: limits})
			before := prototext.Format(ask(t, s, `inspect { nodes: true jobs: true tasks: true queues: true }`))
			failed := ask(t, s, tt.step).GetError()
			if tt.limit == "" {
				require.Nil(t, failed)
				return
			}
			require.NotNil(t, failed)
			require.Equal(t, "LIMIT_EXCEEDED", errorInfo(t, failed).GetReason())
			require.Equal(t, tt.limit, errorInfo(t, failed).GetMetadata()["limit"])
			require.Equal(t, before, prototext.Format(ask(t, s, `inspect { nodes: true jobs: true tasks: true queues: true }`)))
		})
	}
}

// A batch that adds queues and asks about all of them is booked for all of them.
func TestABatchIsBookedForWhatItAdds(t *testing.T) {
	step := func(text string) *apportionv1.Step { return parse(t, &apportionv1.Step{}, text) }
	extent := decode.Extent{Dimensions: 2, Nodes: 1, Queues: 2, Jobs: 3, Tasks: 4, Plugins: 3, Voters: 2}
	alone, same := wire.StepMemory([]*apportionv1.Step{step(`shares {}`)}, extent, wire.Options{})
	require.Equal(t, extent, same)
	queues := &apportionv1.Change{Queues: make([]*apportionv1.Queue, 1000)}
	grown := event.Change(queues)
	_, after := wire.StepMemory([]*apportionv1.Step{grown, step(`event { change { jobs { groups { tasks {} tasks {} } } } }`)}, extent, wire.Options{})
	require.Equal(t, decode.Extent{Dimensions: 2, Nodes: 1, Queues: 1002, Jobs: 4, Tasks: 6, Plugins: 3, Voters: 2}, after)
	named := step(`event { change { dimensions: ["cpu", "memory", "gpu"] } }`)
	_, after = wire.StepMemory([]*apportionv1.Step{named, named, named}, extent, wire.Options{})
	require.Equal(t, int64(2+3), after.Dimensions, "each name once")
	together, _ := wire.StepMemory([]*apportionv1.Step{grown, step(`shares {}`)}, extent, wire.Options{})
	require.Greater(t, together, 100*alone)
}

func TestChangesBeyondWhatCanBeRememberedAreRefusedUntilTheyAreRolledBack(t *testing.T) {
	s := open(t, twoQueues, proportional, wire.Options{UndoBytes: 100_000})
	for range 1000 {
		requireAnswer(t, `event {} changed: true`, ask(t, s, `event { status { tasks { indices: 6 } status: TASK_STATUS_PIPELINED } }`))
	}
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `mark {}`))
	const change = `event { status { tasks { indices: 5 } status: TASK_STATUS_PIPELINED } }`
	requireFull := func() {
		t.Helper()
		st := ask(t, s, change).GetError()
		require.Equal(t, int32(codes.OutOfRange), st.GetCode())
		info := errorInfo(t, st)
		require.Equal(t, "LIMIT_EXCEEDED", info.GetReason())
		require.Equal(t, map[string]string{"limit": "undo_bytes", "maximum": "100000"}, info.GetMetadata())
	}
	changes := 0
	for ask(t, s, change).GetError() == nil {
		changes++
	}
	require.Greater(t, changes, 50)
	require.Less(t, changes, 5000)
	requireFull()
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `rollback {}`))
	requireAnswer(t, `event {} changed: true`, ask(t, s, change))

	jobs := 0
	for ask(t, s, `event { change { jobs { name: "new" namespace: "`+string(rune('a'+jobs%26))+string(rune('a'+jobs/26))+`" queue: "web" } } }`).GetError() == nil {
		jobs++
	}
	require.Greater(t, jobs, 5)
	requireFull()
	s.Keep()
	s.Restore()
	requireAnswer(t, `event {} changed: true`, ask(t, s, change))
}
