package decisionlog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/servicetest"
)

// askRestricted makes calls of a caller that owns some queues of a snapshot that the server holds, and returns their lines.
func askRestricted(t *testing.T, directory string, settings setting.DecisionLog, own func(string) bool) []string {
	t.Helper()
	sink := &memory{}
	store, err := decisionlog.OpenStore(directory, 0)
	require.NoError(t, err)
	log := decisionlog.New(decisionlog.Options{Sink: sink, Store: store, Settings: settings})
	r := servicetest.Start(t, service.Options{
		Policies: map[string]*apportionv1.Policy{
			"proportion": servicetest.Proportion(), "capacity": servicetest.Capacity(), "nested": servicetest.Nested(),
		},
		Observers: []service.Observer{log}, Own: func(context.Context) func(string) bool { return own },
	})
	data, err := proto.Marshal(servicetest.Snapshot(1))
	require.NoError(t, err)
	digest, err := r.Server.Hold(t.Context(), data)
	require.NoError(t, err)
	calls := 0
	for _, policy := range []string{"proportion", "capacity", "nested"} {
		input := &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: policy}, Texts: true,
		}
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: input})
		require.NoError(t, err)
		_, err = r.Explain(t.Context(), &apportionv1.ExplainRequest{Input: input})
		require.NoError(t, err)
		_, err = r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: input})
		require.ErrorContains(t, err, "the caller may see only its own queues")
		_, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: input, Steps: servicetest.Steps()})
		require.NoError(t, err)
		calls += 4
	}
	r.Stop()
	require.NoError(t, log.Close(t.Context()))
	require.Len(t, sink.lines, calls, "every call is logged")
	return sink.lines
}

func TestAnswersToACallerThatOwnsSomeQueuesAreDecidedAgain(t *testing.T) {
	first := servicetest.Snapshot(1).GetQueues()[0].GetName()
	for name, own := range map[string]func(string) bool{
		"one queue": func(queue string) bool { return queue == first },
		"no queue":  func(string) bool { return false },
		"all":       func(string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			lines := askRestricted(t, directory, setting.DecisionLog{}, own)
			for _, o := range replay(t, strings.Join(lines, "\n"), directory) {
				require.Empty(t, o.Skipped, "line %d", o.Line)
				require.Empty(t, o.Differences, "line %d: %s", o.Line, lines[o.Line-1])
				require.True(t, o.Entry.Restricted)
			}
		})
	}
	t.Run("an entry of another caller is another decision", func(t *testing.T) {
		directory := t.TempDir()
		lines := askRestricted(t, directory, setting.DecisionLog{}, func(queue string) bool { return queue == first })
		line := strings.Replace(lines[0], `"owned":["`+first+`"]`, `"owned":[]`, 1)
		require.NotEqual(t, lines[0], line)
		require.NotEmpty(t, replay(t, line, directory)[0].Differences)
		line = strings.Replace(lines[0], `"restricted":true,`, "", 1)
		require.NotEqual(t, lines[0], line)
		require.NotEmpty(t, replay(t, line, directory)[0].Differences)
	})
	t.Run("a masked entry names no queue", func(t *testing.T) {
		lines := askRestricted(t, t.TempDir(), setting.DecisionLog{Mask: []string{"name", "text", "uid"}}, func(queue string) bool { return queue == first })
		for _, line := range lines {
			require.NotContains(t, line, `"owned"`)
			require.Contains(t, line, `"restricted":true`)
		}
	})
}
