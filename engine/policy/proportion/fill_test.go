package proportion_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
)

// drawDivision draws queues whose sums round, in dimensions that only some of them name.
func drawDivision(t *rapid.T) *model.Model {
	largest := rapid.SampledFrom([]float64{1, 100, 1e6, 1e15}).Draw(t, "largest")
	rough := func(label string) amounts {
		a := amounts{}
		for _, name := range names {
			switch rapid.IntRange(0, 3).Draw(t, label+" names "+name) {
			case 0:
				a[name] = rapid.Float64Range(0, largest).Draw(t, label+" "+name)
			case 1:
				a[name] = 0
			}
		}
		return a
	}
	var queues []queue
	var jobs []job
	for i := range rapid.IntRange(1, 12).Draw(t, "queues") {
		q := queue{name: fmt.Sprintf("q%02d", i), weight: rapid.SampledFrom([]uint32{0, 1, 3, 1000}).Draw(t, "weight")}
		if rapid.Bool().Draw(t, "guaranteed") {
			q.guarantee = rough("guarantee")
		}
		if rapid.Bool().Draw(t, "limited") {
			q.capability = rough("capability")
		}
		queues = append(queues, q)
		jobs = append(jobs, jobOf(q.name, pending(rough("request")), running(rough("use"))))
	}
	return build(t, rough("node"), queues, jobs)
}

// TestFillingIsRaisingWithoutWhatIsSettled compares the division as it opens, which leaves out what is settled, with its derivation, which
// raises every queue in every dimension in every round.
func TestFillingIsRaisingWithoutWhatIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawDivision(t)
		v := policy.NewView(m, nil)
		v.Work = policy.NewWork(policy.DefaultWork)
		opened, err := proportion.Plugin{}.Open(v)
		require.NoError(t, err)
		s, spent := opened.(*proportion.State), v.Work.Spent()
		whole := derive(t, s, nil)
		require.Equal(t, workOf(m, s, whole), spent)
		deserved := map[model.QueueID]resource.Row{}
		for _, round := range whole.rounds {
			for _, step := range round.steps {
				deserved[step.Queue] = step.Deserved
			}
		}
		for _, q := range m.QueueOrder {
			want, divided := deserved[q]
			if !divided {
				want = resource.NewAccount(m.Dims.Len())
			}
			got, ok := s.Share(q)
			require.True(t, ok)
			require.Equal(t, want, got.Deserved, "queue %s", m.Queues[q].Name)
			require.Equal(t, realCapability(m, whole, q), got.RealCapability, "queue %s", m.Queues[q].Name)
		}
	})
}

// realCapability returns min(capability, ExceededPart(total, guarantees of all queues) + own guarantee).
func realCapability(m *model.Model, d *derivation, q model.QueueID) resource.Row {
	row, capability := resource.NewAccount(m.Dims.Len()), resource.NewAccount(m.Dims.Len())
	row.SetExceeded(d.Total, d.TotalGuarantee)
	row.Add(m.Queues[q].Guarantee)
	if account.ResolveCapability(m.Queues[q].Capability, &capability) {
		row.Min(capability, resource.Infinity)
	}
	return row
}

// workOf returns what the rounds of a division cost: the first one an amount for each queue and dimension, the others one for each queue
// that is not met, and one for each of its dimensions in which something remains after the first round and it has not reached its cap.
func workOf(m *model.Model, s *proportion.State, d *derivation) int64 {
	work := int64(0)
	for i, round := range d.rounds {
		if i == 0 {
			work += int64(len(round.steps) * m.Dims.Len())
			continue
		}
		before := map[model.QueueID]resource.Row{}
		for _, step := range d.rounds[i-1].steps {
			before[step.Queue] = step.Deserved
		}
		for _, step := range round.steps {
			work++
			share, _ := s.Share(step.Queue)
			for dim, x := range before[step.Queue].V {
				most := share.Request.V[dim]
				if dim <= resource.Memory || share.RealCapability.Has.Has(dim) {
					most = min(most, share.RealCapability.V[dim])
				}
				if d.rounds[1].remaining.V[dim] > 0 && x < most {
					work++
				}
			}
		}
	}
	return work
}

// slow is the division that converges slowest: each of n queues asks for one of the dimensions, of which there is too little, so that a
// round gives away a small part of each.
func slow(tb testing.TB, n, dimensions int) *model.Model {
	tb.Helper()
	b := model.NewBuilder(0)
	var named []string
	total := &model.Amounts{}
	for d := range dimensions {
		named = append(named, fmt.Sprintf("device-%02d", d))
		total.Dimension, total.Amount = append(total.Dimension, uint32(d)), append(total.Amount, 1e15)
	}
	b.Dimensions(named)
	b.Total(total)
	for i := range n {
		name := fmt.Sprintf("q%05d", i)
		b.Queue(model.QueueSpec{Name: name, Weight: 1})
		b.Job(model.JobSpec{UID: name, Queue: name})
		b.Group(model.GroupSpec{Request: &model.Amounts{Dimension: []uint32{uint32(i % dimensions)}, Amount: []float64{1e15}}})
		b.Task(&model.TaskSpec{Node: model.None, Index: -1})
	}
	m, err := b.Build()
	require.NoError(tb, err)
	return m
}

func TestADivisionThatCostsMoreThanItMayFailsAndGivesNoAnswer(t *testing.T) {
	m := slow(t, 200, 20)
	v := policy.NewView(m, nil)
	v.Work = policy.NewWork(100_000)
	state, err := proportion.Plugin{}.Open(v)
	require.Nil(t, state)
	var work *policy.WorkError
	require.ErrorAs(t, err, &work)
	require.Equal(t, int64(100_000), work.Maximum)
	require.LessOrEqual(t, v.Work.Spent(), work.Maximum)
	require.Greater(t, v.Work.Spent()+int64(work.N)*int64(work.Width), work.Maximum)

	v.Work = policy.NewWork(policy.DefaultWork)
	_, err = proportion.Plugin{}.Open(v)
	require.NoError(t, err)
	t.Logf("%d units of work", v.Work.Spent())
}

func TestADerivationEndsWhereItsRecorderDoes(t *testing.T) {
	_, s := open(t, slow(t, 50, 10))
	_, err := s.Derive(nil, &derivation{room: 75})
	require.ErrorIs(t, err, errTooLong)
	require.Empty(t, derive(t, s, []model.QueueID{}).rounds[0].steps)
}

func BenchmarkDivideSlowly(b *testing.B) {
	for _, n := range []int{640, 6400} {
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) {
			m := slow(b, n, 62)
			for b.Loop() {
				v := policy.NewView(m, nil)
				v.Work = policy.NewWork(1 << 60)
				_, err := proportion.Plugin{}.Open(v)
				require.NoError(b, err)
				b.ReportMetric(float64(v.Work.Spent()), "work/op")
			}
		})
	}
}
