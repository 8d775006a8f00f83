package service

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// batch is a session with a step of one answer, as most batches are.
func batch(tb testing.TB, observers ...Observer) (*record, *wire.Session, []*apportionv1.Step) {
	tb.Helper()
	s, err := New(Options{Observers: observers})
	require.NoError(tb, err)
	m, err := decode.Compile(&apportionv1.Snapshot{
		Queues: []*apportionv1.Queue{{Name: "q"}},
		Jobs:   []*apportionv1.Job{{Name: "j", Queue: "q", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{}}}}}},
	})
	require.NoError(tb, err)
	session, err := wire.Open(m, &apportionv1.Policy{}, wire.Options{})
	require.NoError(tb, err)
	r := s.watchSession(tb.Context(), "", rule{policy: &apportionv1.Policy{}})
	r.Basis = session.Basis()
	return r, session, []*apportionv1.Step{{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{
		Tasks: &apportionv1.Selector{Indices: []uint32{0}},
	}}}}
}

// note is the cost of a batch beside its answers.
func note(ctx context.Context, r *record, session *wire.Session, steps []*apportionv1.Step, answers []*apportionv1.Answer) {
	r.nextBatch(ctx, time.Now())
	r.askedAll(session, steps, answers, nil)
	r.done()
	r.end(ctx, nil)
}

func TestABatchThatNobodyObservesAllocatesNothingToBeCounted(t *testing.T) {
	r, session, steps := batch(t)
	answers, err := session.DoAll(steps)
	require.NoError(t, err)
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { note(ctx, r, session, steps, answers) }))
}

type silent struct{}

func (silent) Wants(context.Context, string, string) bool { return true }
func (silent) Observe(context.Context, *Decision)         {}

func BenchmarkBatch(b *testing.B) {
	for name, observers := range map[string][]Observer{"unobserved": nil, "observed": {silent{}}} {
		b.Run("noted, "+name, func(b *testing.B) {
			r, session, steps := batch(b, observers...)
			answers, err := session.DoAll(steps)
			require.NoError(b, err)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				note(ctx, r, session, steps, answers)
			}
		})
	}
	b.Run("answered", func(b *testing.B) {
		_, session, steps := batch(b)
		b.ReportAllocs()
		for b.Loop() {
			_, err := session.DoAll(steps)
			require.NoError(b, err)
		}
	})
}
