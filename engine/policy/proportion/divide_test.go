package proportion_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// plainDeserved divides as Volcano's loop reads, on maps of names: the twin of the dense division. A missing name is a missing key.
func plainDeserved(total amounts, queues []string, weight map[string]float64, upper, request, guarantee map[string]amounts) map[string]amounts {
	deserved, met := map[string]amounts{}, map[string]bool{}
	for _, q := range queues {
		deserved[q] = amounts{"cpu": 0, "memory": 0}
	}
	remaining := copied(total)
	for {
		sum := 0.0
		for _, q := range queues {
			if !met[q] {
				sum += weight[q]
			}
		}
		if sum == 0 {
			return deserved
		}
		given := amounts{}
		for _, q := range queues {
			if met[q] {
				continue
			}
			d, old := deserved[q], copied(deserved[q])
			for name, x := range remaining {
				d[name] += x * (weight[q] / sum)
			}
			for name, x := range d {
				if limit, ok := upper[q][name]; ok && limit < x {
					d[name] = limit
				}
			}
			for name, x := range d {
				d[name] = math.Min(x, request[q][name])
			}
			for name, x := range guarantee[q] {
				if have, ok := d[name]; !ok || x > have {
					d[name] = x
				}
			}
			met[q] = covered(request[q], d) || equal(d, old)
			for name, x := range d {
				given[name] += math.Max(0, x-old[name])
			}
		}
		before := copied(remaining)
		empty := true
		for name, x := range before {
			switch left := x - given[name]; {
			case left > 0:
				remaining[name] = left
				empty = empty && (left < 0.1 || name == "pods")
			case name == "cpu" || name == "memory":
				remaining[name] = 0
			default:
				delete(remaining, name)
			}
		}
		if empty || equal(remaining, before) {
			return deserved
		}
	}
}

func copied(a amounts) amounts {
	b := amounts{}
	maps.Copy(b, a)
	return b
}

func equal(l, r amounts) bool {
	if len(l) != len(r) {
		return false
	}
	for name, x := range l {
		if y, ok := r[name]; !ok || x != y {
			return false
		}
	}
	return true
}

func covered(r, limit amounts) bool {
	for name, x := range r {
		if x-limit[name] >= 0.1 {
			return false
		}
	}
	return true
}

// drawAmounts names cpu and memory always and the scalars sometimes.
func drawAmounts(t *rapid.T, label string, largest float64) amounts {
	a := amounts{}
	for i, name := range names {
		if i < 2 || rapid.Bool().Draw(t, label+" has "+name) {
			a[name] = math.Floor(rapid.Float64Range(0, largest).Draw(t, label+" "+name))
		}
	}
	return a
}

func TestDivisionEqualsItsPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := drawAmounts(t, "node", 1e6)
		var queues []queue
		var jobs []job
		for i := range rapid.IntRange(1, 6).Draw(t, "queues") {
			q := queue{name: fmt.Sprintf("q%d", i), weight: rapid.Uint32Range(0, 9).Draw(t, "weight")}
			if rapid.Bool().Draw(t, "guaranteed") {
				q.guarantee = drawAmounts(t, "guarantee", 2e5)
			}
			if rapid.Bool().Draw(t, "limited") {
				q.capability = drawAmounts(t, "capability", 1e6)
			}
			queues = append(queues, q)
			jobs = append(jobs, jobOf(q.name, pending(drawAmounts(t, "request", 1e6)), running(drawAmounts(t, "use", 1e5))))
		}
		m := build(t, node, queues, jobs)
		_, s := open(t, m)
		var order []string
		weight, upper, request, guarantee := map[string]float64{}, map[string]amounts{}, map[string]amounts{}, map[string]amounts{}
		for _, q := range m.QueueOrder {
			got, _ := s.Share(q)
			name := m.Queues[q].Name
			order = append(order, name)
			weight[name] = float64(got.Weight)
			upper[name], request[name], guarantee[name] = named(m, got.RealCapability), named(m, got.Request), named(m, got.Guarantee)
		}
		want := plainDeserved(named(m, m.Total), order, weight, upper, request, guarantee)
		for q, name := range order {
			got, _ := s.Share(m.QueueOrder[q])
			require.Equal(t, want[name], named(m, got.Deserved), "queue %s", name)
		}
	})
}

func TestDivisionEndsUnderStress(t *testing.T) {
	// Light queues that never get enough beside heavy ones that are full but want more of something else make the slowest divisions.
	rapid.Check(t, func(t *rapid.T) {
		var queues []queue
		var jobs []job
		for i := range rapid.IntRange(2, 40).Draw(t, "queues") {
			q := queue{name: fmt.Sprintf("q%02d", i), weight: rapid.Uint32Range(1, 65535).Draw(t, "weight")}
			queues = append(queues, q)
			jobs = append(jobs, jobOf(q.name, pending(drawAmounts(t, "request", 1e15))))
		}
		_, s := open(t, build(t, drawAmounts(t, "node", 1e15), queues, jobs))
		d := derive(t, s, nil)
		require.Less(t, len(d.rounds), 1000)
	})
}

func TestDerivationTellsEveryStep(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100}, []queue{{name: "a", weight: 1}, {name: "b", weight: 1, capability: amounts{"cpu": 3000}}}, []job{
		jobOf("a", pending(amounts{"cpu": 10_000})), jobOf("b", pending(amounts{"cpu": 10_000})),
	})
	_, s := open(t, m)
	all := derive(t, s, nil)
	require.Len(t, all.rounds, 4)
	first := all.rounds[0]
	require.Equal(t, amounts{"cpu": 10_000, "memory": 100}, named(m, first.remaining))
	require.Equal(t, int64(2), first.totalWeight)
	require.Len(t, first.steps, 2)
	require.Equal(t, amounts{"cpu": 5000, "memory": 50}, named(m, first.steps[1].Weighted))
	require.Equal(t, amounts{"cpu": 3000, "memory": 50}, named(m, first.steps[1].Capped))
	require.Equal(t, amounts{"cpu": 3000, "memory": 0}, named(m, first.steps[1].Requested))
	require.Equal(t, amounts{"cpu": 3000, "memory": 0}, named(m, first.steps[1].Deserved))
	require.True(t, all.rounds[1].steps[1].Met, "the second round changed nothing for b")
	require.Equal(t, share(t, m, s, "a").Deserved.V, all.rounds[3].steps[0].Deserved.V)
	require.Equal(t, proportion.Unchanged, all.End, "no queue asks for memory")

	only := derive(t, s, []model.QueueID{1})
	require.Len(t, only.rounds[0].steps, 1)
}

func TestOpenStopsInTheMiddleOfTheDivision(t *testing.T) {
	var queues []queue
	var jobs []job
	for i := range 2000 {
		q := fmt.Sprintf("q%04d", i)
		queues = append(queues, queue{name: q, weight: uint32(i + 1)})
		jobs = append(jobs, jobOf(q, pending(amounts{"cpu": float64(1000 + i), "memory": float64(i)})))
	}
	m := build(t, amounts{"cpu": 1e6, "memory": 1e6}, queues, jobs)
	asked := 0
	v := policy.NewView(m, func() bool { asked++; return asked > 3 })
	_, err := proportion.Plugin{}.Open(v)
	require.ErrorIs(t, err, policy.ErrStopped)
	require.Equal(t, 4, asked, "the sums ask once, the division until stop returns true")
}

func BenchmarkDivide(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) {
			var queues []queue
			var jobs []job
			for i := range n {
				q := fmt.Sprintf("q%05d", i)
				queues = append(queues, queue{name: q, weight: uint32(i%17 + 1)})
				jobs = append(jobs, jobOf(q, pending(amounts{"cpu": float64(1000 + 37*i%5000), "memory": float64(i % 777), "gpu": float64(i % 3 * 1000)})))
			}
			m := build(b, amounts{"cpu": float64(n) * 1500, "memory": float64(n) * 200, "gpu": float64(n) * 500}, queues, jobs)
			b.ReportAllocs()
			for b.Loop() {
				open(b, m)
			}
		})
	}
}
