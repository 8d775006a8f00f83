package proportion_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
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
		_, s := open(t, m)
		deserved := map[model.QueueID][]float64{}
		for _, round := range derive(t, s, nil).rounds {
			for _, step := range round.steps {
				deserved[step.Queue] = step.Deserved.V
			}
		}
		for _, q := range m.QueueOrder {
			if got, ok := s.Share(q); ok && deserved[q] != nil {
				require.Equal(t, deserved[q], got.Deserved.V, "queue %s", m.Queues[q].Name)
			}
		}
	})
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
		b.Task(model.TaskSpec{Node: model.None, Index: -1})
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
