package rehearsal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/ledger"
)

const gpu = "nvidia.com/gpu"

// remembering runs jobs under `fair` on two nodes of eight GPUs with queues a and b, with epochs of an hour.
func remembering(t *testing.T, m *Memory, jobs ...trace.Job) (*Result, *run) {
	t.Helper()
	m.Epoch = time.Hour
	v := &Variant{Name: "fair", Snapshot: cluster(2, 1, 1), Policy: preset(t, "fair"), Memory: m}
	r, err := start(t.Context(), v, &trace.Trace{Jobs: jobs}, exact(t))
	require.NoError(t, err)
	result, err := r.toEnd(t.Context())
	require.NoError(t, err)
	return result, r
}

func TestWhatBecomesFreeGoesToTheQueueThatUsedLess(t *testing.T) {
	hours := func(n int64) map[string]int64 { return map[string]int64{gpu: n * 3600} }
	long := func() []trace.Job {
		var jobs []trace.Job
		for i := range 96 {
			name := string(rune('A'+i%26)) + string(rune('a'+i/26))
			jobs = append(jobs, worker(name+"a", "a", 0, 1, 1, 1, 3600), worker(name+"b", "b", 0, 1, 1, 1, 3600))
		}
		return jobs
	}
	equal, _ := remembering(t, &Memory{HalfLife: 8}, long()...)
	after, r := remembering(t, &Memory{HalfLife: 8, Used: map[string]map[string]int64{"a": hours(500), "b": {}}}, long()...)
	require.InDelta(t, equal.Queues[0].Waits.Mean, equal.Queues[1].Waits.Mean, 1800, "nothing was used")
	require.Greater(t, after.Queues[0].Waits.Mean, after.Queues[1].Waits.Mean+2*3600, "a waits for b")
	require.Equal(t, &Remembered{Epoch: 3600, HalfLife: 8 * 3600}, after.Memory)
	require.Less(t, after.Shares.Queues[1].Share[0], .3, "what a used before counts in the shares")
	require.NotNil(t, r.session.View().Memory)
}

func TestAHardBudgetIsSpentAndPaidInTheNextPeriod(t *testing.T) {
	period := func(begin, gpuHours int64) ledger.Period {
		return ledger.Period{Begin: begin, Amount: map[string]int64{gpu: gpuHours * 3600}}
	}
	m := &Memory{HalfLife: 8, Budgets: []ledger.Budget{{Queue: "a", Hard: true, Periods: []ledger.Period{period(0, 16), period(10*3600, 16)}}}}
	_, r := remembering(t, m, worker("first", "a", 0, 16, 16, 1, 3600), worker("second", "a", 10, 16, 16, 1, 3600))
	require.Equal(t, int64(0), r.jobs[0].began)
	require.Equal(t, int64(10*3600), r.jobs[1].began, "nothing runs meanwhile, and the new period lets it start")

	m.Budgets[0].Periods = m.Budgets[0].Periods[:1]
	result, _ := remembering(t, m, worker("first", "a", 0, 16, 16, 1, 3600), worker("second", "a", 10, 16, 16, 1, 3600))
	require.Equal(t, 1, result.Unfinished, "and without one it never starts")
}

func TestABudgetOfTheSnapshotIsSpentOnTopOfWhatItSays(t *testing.T) {
	s := cluster(2, 1, 1)
	at := uint32(0)
	for d, name := range s.GetDimensions() {
		if name == gpu {
			at = uint32(d)
		}
	}
	usage := func(hours int64) *apportionv1.Usage {
		return &apportionv1.Usage{Dimensions: []uint32{at}, QuantumSeconds: []int64{hours * 3600}}
	}
	s.GetQueues()[0].Budget = &apportionv1.Budget{Kind: apportionv1.BudgetKind_BUDGET_KIND_HARD, Amount: usage(40), Spent: usage(24)}
	v := &Variant{Name: "fair", Snapshot: s, Policy: preset(t, "fair"), Memory: &Memory{Epoch: time.Hour, HalfLife: 8}}
	jobs := []trace.Job{worker("first", "a", 0, 16, 16, 1, 3600), worker("second", "a", 10, 16, 16, 1, 3600)}
	r, err := start(t.Context(), v, &trace.Trace{Jobs: jobs}, exact(t))
	require.NoError(t, err)
	result, err := r.toEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, result.Unfinished)
	require.Equal(t, int64(24*3600), s.GetQueues()[0].GetBudget().GetSpent().GetQuantumSeconds()[0], "the snapshot is as it was")
	require.Equal(t, int64(40*3600), r.memory.snapshot.GetQueues()[0].GetBudget().GetSpent().GetQuantumSeconds()[0])
}

// TestTheLedgerOfARunHasWhatQueuesUsed compares the ledger with what was measured, which is summed another way, and runs that follow
// changes with runs that open a new session in each round.
func TestTheLedgerOfARunHasWhatQueuesUsed(t *testing.T) {
	raced.Skip(t)
	rapid.Check(t, func(rt *rapid.T) {
		history := drawn(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 30).Draw(rt, "jobs"), 3, 16, 8*3600, rapid.SampledFrom([]float64{.5, 1, 2}).Draw(rt, "load"))
		for i := range history.Jobs {
			history.Jobs[i].Owner = []string{"", "x", "y"}[i%3]
		}
		m := &Memory{
			Epoch:    rapid.SampledFrom([]time.Duration{600 * time.Second, time.Hour}).Draw(rt, "epoch"),
			HalfLife: rapid.IntRange(1, 9).Draw(rt, "half-life"),
		}
		policy := preset(t, "fair")
		v := &Variant{Name: "fair", Snapshot: cluster(2, 3, 2, 1), Policy: policy, Memory: m}
		o := options(t)
		o.Checkpoint = 600
		r, err := start(t.Context(), v, history, o)
		require.NoError(rt, err)
		fast, err := r.toEnd(t.Context())
		require.NoError(rt, err)
		spent := r.memory.ledger.Spent(-1<<30, 1<<30)
		at := 0
		for d, name := range r.memory.ledger.Dimensions() {
			if name == gpu {
				at = d
			}
		}
		for _, q := range fast.Queues {
			require.InDelta(rt, q.Hours*3600, float64(append(spent[ledger.Line{Queue: q.Name}], make([]int64, 8)...)[at]), .001, q.Name)
		}
		plain := *o
		plain.plain = true
		slow, err := Run(t.Context(), v, history, &plain)
		require.NoError(rt, err)
		require.Equal(rt, text(slow), text(fast))
	})
}

// TestARunInWhichPlansLookBesideKeptPartsOfNodesEnds has a gang with a turn, and no rules on other pods, which a plan asked for all the same.
func TestARunInWhichPlansLookBesideKeptPartsOfNodesEnds(t *testing.T) {
	history := drawn(0x1407, 30, 3, 16, 8*3600, 2)
	for i := range history.Jobs {
		history.Jobs[i].Owner = []string{"", "x", "y"}[i%3]
	}
	o := options(t)
	o.Checkpoint = 600
	v := &Variant{Name: "fair", Snapshot: cluster(2, 3, 2, 1), Policy: preset(t, "fair"), Memory: &Memory{Epoch: 10 * time.Minute, HalfLife: 1}}
	_, err := Run(t.Context(), v, history, o)
	require.NoError(t, err)
}
