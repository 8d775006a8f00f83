package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/recording"
)

// eachRemembered calls f with every n-th recorded case with memory.
func eachRemembered(t *testing.T, n int, f func(t *testing.T, r *apportionv1.SimulateRequest)) {
	t.Helper()
	for line, err := range recording.Lines("../../testdata/memory/cases.jsonl.gz") {
		require.NoError(t, err)
		c, ok := recording.ReadFair(line)
		// A case with one question has an invalid input.
		if !ok || line.Number%n != 0 || len(c.Questions) == 1 {
			continue
		}
		request := recorded{c}.request(t)
		if request.GetInput().GetSnapshot().GetMemory() == nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) { f(t, request) })
	}
}

func TestEveryNumberOfFairWithMemoryIsTrue(t *testing.T) {
	raced.Skip(t)
	plans, saved := 0, 0
	eachRemembered(t, 1, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		report, err := check.Response(r, response)
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		for _, a := range response.GetAnswers() {
			if a.GetReclaim().GetPlan().GetMade() {
				plans++
			}
			for _, p := range a.GetShares().GetPlugins() {
				for _, q := range p.GetFair().GetQueues() {
					if q.GetSaved() != nil {
						saved++
					}
				}
			}
		}
		require.Empty(t, certified(t, response.GetAnswers()[0].GetShares()))
	})
	require.Greater(t, plans, 100, "plans are among what is checked")
	require.Greater(t, saved, 50, "saved blocks are among what is checked")
}

// TestEachNumberOfMemoryThatIsChangedByOneIsFound changes every number of the division with memory, and of how its weights follow from
// usage, by one. So is each number of usage that the snapshot states, if another would give other weights.
func TestEachNumberOfMemoryThatIsChangedByOneIsFound(t *testing.T) {
	raced.Skip(t)
	changed := 0
	every := 147
	if *allMutants {
		every = 14
	}
	eachRemembered(t, every, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		// The numbers are in the answer about shares; the plans need not be checked again for each.
		r.Steps = r.Steps[:1]
		response := answered(t, r)
		truth := plain(response)
		for _, p := range response.GetAnswers()[0].GetShares().GetPlugins() {
			tamper(p.GetFair().ProtoReflect(), "fair", func(path string) {
				changed++
				report, err := check.Response(r, response)
				require.NoError(t, err)
				require.True(t, len(report.Faults) > 0 || proto.Equal(truth, plain(response)), "%s", path)
			})
		}
	})
	require.Greater(t, changed, 1000)
}

func TestWeightsOfOtherUsageAreFound(t *testing.T) {
	found := 0
	eachRemembered(t, 9, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		for _, q := range r.GetInput().GetSnapshot().GetQueues() {
			for i := range q.GetUsage().GetQuantumSeconds() {
				q.Usage.QuantumSeconds[i] += 1 << 20
			}
		}
		other := answered(t, r)
		if proto.Equal(plain(response), plain(other)) {
			return
		}
		found++
		report, err := check.Response(r, response)
		require.NoError(t, err)
		require.NotEmpty(t, report.Faults)
	})
	require.Greater(t, found, 10)
}
