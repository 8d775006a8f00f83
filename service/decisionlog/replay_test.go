package decisionlog_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/servicetest"
)

var record = flag.Bool("record", false, "record testdata/replay anew: only where answers are meant to change")

// recorded is the log that every change of the engine is held to.
const recorded = "../../testdata/replay"

// ask makes calls of every kind, and two sessions.
func ask(t *testing.T, r *servicetest.Replica) {
	t.Helper()
	ctx := t.Context()
	for _, policy := range []string{"proportion", "capacity"} {
		for seed := range uint64(2) {
			input := servicetest.Named(servicetest.Snapshot(seed), policy)
			_, err := r.EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: input, Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}})
			require.NoError(t, err)
			_, err = r.CheckEnqueue(ctx, &apportionv1.CheckEnqueueRequest{Input: input})
			require.NoError(t, err)
			tasks := &apportionv1.Selector{Indices: []uint32{0, 5, 9}}
			for _, step := range []*apportionv1.Step{
				{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: tasks}}},
				{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: tasks}}},
				{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
					Claimant: &apportionv1.Selector{Indices: []uint32{uint32(seed)}}, Explain: true,
				}}},
				{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: tasks, Explain: true}}},
			} {
				_, err = r.Simulate(ctx, &apportionv1.SimulateRequest{Input: input, Steps: []*apportionv1.Step{step}})
				require.NoError(t, err)
			}
			_, err = r.Simulate(ctx, &apportionv1.SimulateRequest{Input: input, Steps: servicetest.Steps()})
			require.NoError(t, err)
		}
		// Faults of the input are answers too.
		_, err := r.Plan(ctx, &apportionv1.PlanRequest{
			Input: servicetest.Named(servicetest.Snapshot(0), policy),
			Plan:  &apportionv1.PlanStep{Job: &apportionv1.Selector{Names: []string{"absent"}}},
		})
		require.Error(t, err)
		broken := servicetest.Snapshot(0)
		broken.Jobs[0].Queue = "nowhere"
		_, err = r.EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(broken, policy)})
		require.Error(t, err)

		digest := r.Upload(t, servicetest.Snapshot(7))
		steps := servicetest.Steps()
		r.Converse(t, digest, policy, steps[:4], steps[4:8], nil, steps[2:])
	}
}

// askOfResults makes calls about a snapshot after changes, and about changes of these results.
func askOfResults(t *testing.T, r *servicetest.Replica) {
	t.Helper()
	snapshot := servicetest.Snapshot(3)
	digest := r.Upload(t, snapshot)
	for _, weight := range []float64{9, -1} {
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "proportion"},
			Edits: []*apportionv1.Edit{{
				Kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: new(uint32(1))}},
				Amount: new(weight),
			}},
		}})
		require.Equal(t, weight < 0, err != nil)
	}
	for i := range uint64(3) {
		change := generate.Change(snapshot, 2, i)
		input := &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "proportion"},
			Events: []*apportionv1.Event{event.Change(change).GetEvent()},
		}
		answer, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: input})
		require.NoError(t, err)
		digest = r.UploadChange(t, digest, change)
		require.Equal(t, answer.GetBasis().GetSnapshotDigest(), digest)
		r.Converse(t, digest, "proportion", servicetest.Steps()[:2], []*apportionv1.Step{
			event.Change(generate.Change(servicetest.Snapshot(3), 1, i)),
		}, servicetest.Steps()[:2])
	}
}

func TestCallsAboutResultsAreDecidedAgain(t *testing.T) {
	sink, directory := &memory{}, t.TempDir()
	serveTo(t, sink, directory, askOfResults)
	require.Greater(t, len(sink.lines), 12)
	for _, o := range replay(t, strings.Join(sink.lines, "\n"), directory) {
		require.Empty(t, o.Skipped, "line %d", o.Line)
		require.Empty(t, o.Differences, "line %d", o.Line)
	}
}

func serve(t *testing.T, sink decisionlog.Sink, directory string) {
	t.Helper()
	serveTo(t, sink, directory, ask)
}

func serveTo(t *testing.T, sink decisionlog.Sink, directory string, ask func(*testing.T, *servicetest.Replica)) {
	t.Helper()
	store, err := decisionlog.OpenStore(directory, 0)
	require.NoError(t, err)
	log := decisionlog.New(decisionlog.Options{Sink: sink, Store: store})
	r := servicetest.Start(t, service.Options{
		Policies:  map[string]*apportionv1.Policy{"proportion": servicetest.Proportion(), "capacity": servicetest.Capacity()},
		Observers: []service.Observer{log},
	})
	ask(t, r)
	r.Stop()
	require.NoError(t, log.Close(t.Context()))
}

func replay(t *testing.T, lines, directory string) []decisionlog.Outcome {
	t.Helper()
	var outcomes []decisionlog.Outcome
	require.NoError(t, decisionlog.NewReplayer(directory).Replay(strings.NewReader(lines), func(o decisionlog.Outcome) error {
		outcomes = append(outcomes, o)
		return nil
	}))
	return outcomes
}

func TestWhatWasRecordedIsDecidedTheSameToday(t *testing.T) {
	if *record {
		require.NoError(t, os.RemoveAll(recorded))
		require.NoError(t, os.MkdirAll(recorded, 0o755))
		sink, err := decisionlog.NewFileSink(setting.DecisionLog{File: filepath.Join(recorded, "decisions.jsonl")})
		require.NoError(t, err)
		serve(t, sink, filepath.Join(recorded, "store"))
	}
	data, err := os.ReadFile(filepath.Join(recorded, "decisions.jsonl"))
	require.NoError(t, err)
	outcomes := replay(t, string(data), filepath.Join(recorded, "store"))
	require.Len(t, outcomes, strings.Count(string(data), "\n"))
	require.Greater(t, len(outcomes), 35)
	for _, o := range outcomes {
		require.Empty(t, o.Skipped, "line %d", o.Line)
		require.Empty(t, o.Differences, "line %d of testdata/replay/decisions.jsonl was decided otherwise by engine %s", o.Line, o.Entry.EngineVersion)
	}
}

func TestALogIsDecidedAgainEntryForEntry(t *testing.T) {
	sink, directory := &memory{}, t.TempDir()
	serve(t, sink, directory)
	lines := sink.lines
	for _, o := range replay(t, strings.Join(lines, "\n"), directory) {
		require.Empty(t, o.Skipped, "line %d", o.Line)
		require.Empty(t, o.Differences, "line %d", o.Line)
	}

	t.Run("another answer is a difference, with its path", func(t *testing.T) {
		changed := strings.Replace(lines[0], `"overused":true`, `"overused":false`, 1)
		if changed == lines[0] {
			changed = strings.Replace(lines[0], `"weight":`, `"weight":1`, 1)
		}
		require.NotEqual(t, lines[0], changed)
		outcomes := replay(t, changed, directory)
		require.NotEmpty(t, outcomes[0].Differences)
		require.Contains(t, outcomes[0].Differences[0].Path, "answers[0].shares.")
	})
	t.Run("what is not stored is skipped", func(t *testing.T) {
		require.Equal(t, "its snapshot or policy is not stored", replay(t, lines[0], t.TempDir())[0].Skipped)
	})
	t.Run("a session with a hole is not decided beyond it", func(t *testing.T) {
		var session []string
		for _, line := range lines {
			if strings.Contains(line, `"session":`) {
				session = append(session, line)
			}
			if len(session) == 6 {
				break
			}
		}
		holed := append([]string{session[0], session[1]}, session[3:]...)
		outcomes := replay(t, strings.Join(holed, "\n"), directory)
		require.Empty(t, outcomes[1].Skipped)
		for _, o := range outcomes[2:] {
			require.Equal(t, "an entry of its session is missing", o.Skipped)
		}
	})
	t.Run("a line that is no entry is skipped, and what follows it is decided", func(t *testing.T) {
		for garbage, fault := range map[string]string{
			"\x00\x01\xff\xfe": "invalid character", "[": "unexpected end", "null": "no method is given", `{"time":7}`: "Time.UnmarshalJSON",
			`{"method":"Simulate","steps":["x"]}`: "proto", `{"method":"Simulate","answers":[{"of":1}]}`: "unknown field",
			`{"method":"Simulate","error":[]}`: "unexpected token", strings.Repeat("x", 1<<20): "invalid character",
		} {
			outcomes := replay(t, lines[0]+"\n"+garbage+"\r\n\n"+lines[1], directory)
			require.Len(t, outcomes, 3)
			require.Equal(t, "the line is not an entry", outcomes[1].Skipped)
			require.Contains(t, outcomes[1].Fault, fault)
			require.Equal(t, []int{1, 2, 4}, []int{outcomes[0].Line, outcomes[1].Line, outcomes[2].Line})
			for _, o := range []decisionlog.Outcome{outcomes[0], outcomes[2]} {
				require.Empty(t, o.Skipped)
				require.Empty(t, o.Differences)
			}
		}
	})
	t.Run("a log that cannot be read is an error", func(t *testing.T) {
		broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(lines[0])))
		err := decisionlog.NewReplayer(directory).Replay(broken, func(decisionlog.Outcome) error { return nil })
		require.ErrorIs(t, err, iotest.ErrTimeout)
	})
}
