package service_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// changed is a change of the snapshot of tests, and that snapshot changed.
func changed(t *testing.T) (change *apportionv1.Change, whole *apportionv1.Snapshot) {
	t.Helper()
	change = parse(t, &apportionv1.Change{}, `
nodes { name: "n1" allocatable { dimensions: 0 amounts: 4000 } }
jobs { uid: "more" queue: "web" groups { request { dimensions: 0 amounts: 500 } tasks { uid: "m0" status: TASK_STATUS_RUNNING node: 1 } } }
tasks { uid: "t2" status: TASK_STATUS_SUCCEEDED no_node: true }
remove_jobs: "serve"`)
	whole = proto.CloneOf(inputOf(t).GetSnapshot())
	whole.Nodes = append(whole.Nodes, change.GetNodes()...)
	whole.Jobs = append(whole.Jobs[:1], change.GetJobs()...)
	last := whole.GetJobs()[0].GetGroups()[0].GetTasks()[2]
	last.Status, last.Node = apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED, nil
	return change, whole
}

// happened returns a change as the one event since a snapshot.
func happened(change *apportionv1.Change) []*apportionv1.Event {
	return []*apportionv1.Event{event.Change(change).GetEvent()}
}

func TestAChangeIsTakenInFourPlaces(t *testing.T) {
	r := start(t, service.Options{})
	base := encoded(t)
	_, err := upload(t.Context(), t, r, header("", 0), chunk(base, true))
	require.NoError(t, err)
	digest := decode.Digest([]byte(base))
	change, whole := changed(t)
	data, err := proto.Marshal(change)
	require.NoError(t, err)
	result := decode.ChangeDigest(digest, data)
	in := inputOf(t)
	in.Source = &apportionv1.Input_Snapshot{Snapshot: whole}
	ask := func(in *apportionv1.Input) *apportionv1.EvaluateSharesResponse {
		response, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
		return response
	}
	want := ask(in).GetShares()
	require.Equal(t, []float64{6000}, want.GetPlugins()[0].GetQueues()[0].GetAllocated().GetAmounts()[:1])

	t.Run("with a question", func(t *testing.T) {
		in := byDigest(t, digest)
		in.Events = happened(change)
		got := ask(in)
		require.Equal(t, result, got.GetBasis().GetSnapshotDigest())
		require.Empty(t, changedNames(want, got.GetShares()))
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, result)})
		requireFault(t, err, codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	})
	t.Run("in an upload", func(t *testing.T) {
		announced := &apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{
			Header: &apportionv1.UploadHeader{BaseDigest: digest, Digest: result},
		}}
		response, err := upload(t.Context(), t, r, announced, chunk(string(data[:9]), false), chunk(string(data[9:]), true))
		require.NoError(t, err)
		require.Equal(t, result, response.GetDigest())
		require.False(t, response.GetAlreadyHeld())
		got := ask(byDigest(t, result))
		require.Equal(t, result, got.GetBasis().GetSnapshotDigest())
		require.Empty(t, changedNames(want, got.GetShares()))
		response, err = upload(t.Context(), t, r, announced)
		require.NoError(t, err)
		require.True(t, response.GetAlreadyHeld())
	})
	for name, open := range map[string][]*apportionv1.RunSessionRequest{
		"as a session opens": {opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: in.GetRule(), Events: happened(change),
		}})},
		"in chunks as a session opens": {
			opening(&apportionv1.OpenSession{
				Input: &apportionv1.Input{Rule: in.GetRule()}, Chunked: &apportionv1.UploadHeader{BaseDigest: digest},
			}),
			{Message: &apportionv1.RunSessionRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := startSession(t, r)
			for _, m := range open {
				session.send(m)
			}
			require.Equal(t, result, session.hear().GetOpened().GetBasis().GetSnapshotDigest())
			session.say(t, `batch { steps { shares {} } }`)
			require.Empty(t, changedNames(want, session.hear().GetAnswers().GetAnswers()[0].GetShares()))
		})
	}
	t.Run("as a step", func(t *testing.T) {
		session := startSession(t, r)
		session.open(t)
		session.send(batch(1,
			event.Change(change),
			&apportionv1.Step{Step: &apportionv1.Step_Shares{}}))
		answers := session.hear().GetAnswers().GetAnswers()
		require.True(t, proto.Equal(&apportionv1.EventAnswer{Nodes: []uint32{1}, Jobs: []uint32{2}, FirstTask: 4}, answers[0].GetEvent()),
			"%v", answers[0])
		require.Empty(t, changedNames(want, answers[1].GetShares()))
	})
}

func TestEventsSinceASnapshotHappenBeforeTheQuestion(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Steps: 5}})
	base := encoded(t)
	_, err := upload(t.Context(), t, r, header("", 0), chunk(base, true))
	require.NoError(t, err)
	digest := decode.Digest([]byte(base))
	change, _ := changed(t)
	data, err := proto.Marshal(change)
	require.NoError(t, err)
	steps := []*apportionv1.Step{
		event.Evict(&apportionv1.Selector{Names: []string{"t0"}}, apportionv1.TaskStatus_TASK_STATUS_PENDING),
		event.Change(change),
		event.Place(&apportionv1.Selector{Names: []string{"t0"}}, &apportionv1.Selector{Names: []string{"n1"}}),
	}
	shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
	for name, order := range map[string][]int{"a change first": {1, 0, 2}, "a task first": {0, 1, 2}, "a change alone": {1}} {
		t.Run(name, func(t *testing.T) {
			var happened []*apportionv1.Event
			var done []*apportionv1.Step
			for _, i := range order {
				happened, done = append(happened, steps[i].GetEvent()), append(done, steps[i])
			}
			simulated, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: byDigest(t, digest), Steps: append(done, shares)})
			require.NoError(t, err)
			want := simulated.GetAnswers()[len(done)].GetShares()
			require.NotNil(t, want)
			result := digest
			if order[0] == 1 {
				result = decode.ChangeDigest(digest, data)
			}
			inline, named := inputOf(t), byDigest(t, digest)
			inline.Events, named.Events = happened, happened
			for _, in := range []*apportionv1.Input{inline, named, named} {
				got, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
				require.NoError(t, err)
				require.True(t, proto.Equal(want, got.GetShares()), "%v", got)
			}
			session := startSession(t, r)
			session.send(opening(&apportionv1.OpenSession{Input: named}))
			require.Equal(t, result, session.hear().GetOpened().GetBasis().GetSnapshotDigest())
			session.send(batch(1, shares))
			require.True(t, proto.Equal(want, session.hear().GetAnswers().GetAnswers()[0].GetShares()))

			got, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, digest)})
			require.NoError(t, err)
			require.False(t, proto.Equal(want, got.GetShares()), "the snapshot that is held stays as it is")
		})
	}
	requireField := func(field string, err error) {
		t.Helper()
		requireFault(t, err, codes.InvalidArgument, "INVALID_STEP")
		require.ErrorContains(t, err, field)
	}
	absent := event.Evict(&apportionv1.Selector{Names: []string{"absent"}}, 0).GetEvent()
	in := byDigest(t, digest)
	in.Events = []*apportionv1.Event{event.Change(change).GetEvent(), absent}
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	requireField(`input.events[1].evict.tasks.names[0]: no task "absent"`, err)
	in.Events = []*apportionv1.Event{{}}
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	requireField(`input.events[0].event: no event is given`, err)
	in.Events = []*apportionv1.Event{event.Change(&apportionv1.Change{RemoveNodes: []string{"n7"}}).GetEvent()}
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	require.ErrorContains(t, err, `input.events[0].change.remove_nodes[0]: no node "n7"`)
	in.Events = []*apportionv1.Event{absent}
	session := startSession(t, r)
	session.send(opening(&apportionv1.OpenSession{Input: in}))
	_, err = session.stream.Recv()
	requireField(`open.input.events[0].evict.tasks.names[0]: no task "absent"`, err)
	in.Events = slices.Repeat(in.Events, 6)
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	requireLimit(t, err, "steps", "5")
}

// changedNames lists the queues whose shares differ.
func changedNames(want, got *apportionv1.SharesAnswer) []string {
	var names []string
	for i, q := range want.GetPlugins()[0].GetQueues() {
		if !proto.Equal(q, got.GetPlugins()[0].GetQueues()[i]) {
			names = append(names, q.GetName())
		}
	}
	return names
}

func TestAChangeThatCannotBeIsRefusedAsAWhole(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Jobs: 4}})
	base := encoded(t)
	_, err := upload(t.Context(), t, r, header("", 0), chunk(base, true))
	require.NoError(t, err)
	digest := decode.Digest([]byte(base))
	for name, tt := range map[string]struct {
		change string
		want   []string
	}{
		"what does not exist": {
			`remove_nodes: "n7" remove_queues: "q7" remove_jobs: "j7" tasks { uid: "t7" } tasks { number: 7 } tasks {}`,
			[]string{
				`change.remove_nodes[0]: no node "n7"`, `change.remove_queues[0]: no queue "q7"`, `change.remove_jobs[0]: no job "j7"`,
				`change.tasks[0].uid: no task "t7"`, `change.tasks[1].number: no task 7, there are 4`,
				`change.tasks[2].uid: a uid or a number is needed`,
			},
		},
		"a job whose queue is gone": {
			`remove_queues: "ml"`, []string{`change.remove_queues[0]: job "train" is in the queue, and 1 in all`},
		},
		"a job in a queue that is removed": {
			`remove_queues: "web" remove_jobs: "serve" jobs { uid: "x" queue: "web" }`, []string{`change.jobs[0].queue: no queue "web"`},
		},
		"what is named twice": {
			`nodes { name: "n0" } nodes { name: "n0" } queues { name: "new" } queues { name: "new" } remove_jobs: "train" remove_jobs: "train"
			 jobs { uid: "serve" queue: "ml" } jobs { uid: "serve" queue: "ml" } jobs { uid: "x" queue: "ml" } jobs { uid: "x" queue: "ml" }`,
			[]string{
				`change.nodes[1].name: node "n0" is nodes[0].name already`, `change.queues[1].name: queue "new" is queues[0].name already`,
				`change.remove_jobs[1]: job "train" is remove_jobs[0] already`, `change.jobs[1].uid: job "serve" is jobs[0].uid already`,
				`change.jobs[3].uid: job "x" is jobs[2] already`,
			},
		},
		"what is set and removed": {
			`remove_nodes: "n0" nodes { name: "n0" } remove_jobs: "serve" jobs { uid: "serve" queue: "ml" } tasks { uid: "s0" status: TASK_STATUS_FAILED }`,
			[]string{
				`change.nodes[0].name: node "n0" is remove_nodes[0] already`, `change.jobs[0].uid: job "serve" is remove_jobs[0] already`,
				`change.tasks[0]: the job of task 3 is remove_jobs[0]`,
			},
		},
		"a node that is removed, and one that never was": {
			`remove_nodes: "n0" tasks { uid: "t0" node: 0 } jobs { uid: "x" queue: "ml" groups { tasks { node: 1 } } }`,
			[]string{
				`change.jobs[0].groups[0].tasks[0].node: no node 1, there are 1 nodes`, `change.tasks[0].node: no node 0, there are 1 nodes`,
			},
		},
		"a uid that another task has": {
			`jobs { uid: "x" queue: "ml" groups { tasks { uid: "new" } tasks { uid: "s0" } tasks { uid: "new" } } }`,
			[]string{
				`change.jobs[0].groups[0].tasks[2].uid: uid "new" is that of task 4 already`,
				`change.jobs[0].groups[0].tasks[1].uid: uid "s0" is that of task 3 already`,
			},
		},
		"a total that is set and cleared": {
			`total { dimensions: 0 amounts: 1 } clear_total: true`, []string{`change.clear_total: a total is given too`},
		},
		"a dimension named twice": {
			`dimensions: "gpu" dimensions: "gpu"`, []string{`change.dimensions: dimensions[1]: dimension "gpu" is named twice`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := byDigest(t, digest)
			in.Events = happened(parse(t, &apportionv1.Change{}, tt.change))
			_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
			_, violations := requireFault(t, err, codes.InvalidArgument, "INVALID_STEP")
			for i, want := range tt.want {
				tt.want[i] = "input.events[0]." + want
			}
			require.ElementsMatch(t, tt.want, violations)
			inline := inputOf(t)
			inline.Events = in.GetEvents()
			_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inline})
			_, violations = requireFault(t, err, codes.InvalidArgument, "INVALID_STEP")
			require.ElementsMatch(t, tt.want, violations)
		})
	}
	ask := func(in *apportionv1.Input) error {
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		return err
	}
	t.Run("a result beyond a limit", func(t *testing.T) {
		in := byDigest(t, digest)
		in.Events = happened(parse(t, &apportionv1.Change{}, `jobs { uid: "x" queue: "ml" } jobs { uid: "y" queue: "ml" } jobs { uid: "z" queue: "ml" }`))
		metadata, _ := requireFault(t, ask(in), codes.OutOfRange, "LIMIT_EXCEEDED")
		require.Equal(t, "jobs", metadata["limit"])
	})
	t.Run("a base that is not held", func(t *testing.T) {
		_, err := upload(t.Context(), t, r, &apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{
			Header: &apportionv1.UploadHeader{BaseDigest: decode.Digest(nil)},
		}}, chunk("", true))
		metadata, _ := requireFault(t, err, codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
		require.Equal(t, "header.base_digest", metadata["field"])
	})
}
