package odds_test

import (
	"cmp"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
)

// parts serves the queue first that uses least of its part.
type parts struct {
	of   *policy.Amounts
	part []float64
}

// byParts returns the course of queues with such parts.
func byParts(part ...float64) func(*policy.Amounts) policy.Course {
	return func(of *policy.Amounts) policy.Course { return parts{of, part} }
}

func (parts) Begin(bool, int64) int64 { return 1 }

func (parts) Used(int) {}

func (p parts) Compare(l, r int, _ []bool) int {
	return cmp.Compare(p.of.Used[l][0]/p.part[l], p.of.Used[r][0]/p.part[r])
}

func (parts) Excess() policy.Excess { return policy.AllExcess }

// plain is the course of a policy in models whose one dimension is the policy's first.
type plain struct {
	policy.Course

	of, all *policy.Amounts
}

// dividing returns the course of a policy that divides an amount among the queues of a model. queue adds to their settings.
func dividing(t require.TestingT, p policy.Plugin, m *odds.Model, total float64, queue func(q int, spec *model.QueueSpec)) func(*policy.Amounts) policy.Course {
	b := model.NewBuilder(1)
	b.Dimensions([]string{"cpu", "memory"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: cores(total)})
	for q := range m.Queues {
		spec := model.QueueSpec{Name: fmt.Sprint("q", q), Weight: 1}
		if parent := m.Queues[q].Parent; parent >= 0 {
			spec.Parent = fmt.Sprint("q", parent)
		}
		queue(q, &spec)
		b.Queue(spec)
	}
	built, err := b.Build()
	require.NoError(t, err)
	state, err := p.Open(policy.NewView(built, nil))
	require.NoError(t, err)
	return func(of *policy.Amounts) policy.Course {
		all := &policy.Amounts{}
		for q := range of.Used {
			id, _ := built.Queue(fmt.Sprint("q", q))
			all.Queues = append(all.Queues, id)
			all.Used, all.Asked = append(all.Used, []float64{of.Used[q][0], 0}), append(all.Asked, []float64{of.Asked[q][0], 0})
			all.Deserved = append(all.Deserved, []float64{0, 0})
		}
		return plain{state.(policy.Foreseeable).Course(all), of, all}
	}
}

// cores is an amount of the first dimension.
func cores(n float64) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{n}}
}

// Begin hands on what queues ask for, and what they deserve.
func (p plain) Begin(asked bool, most int64) int64 {
	for q := range p.of.Asked {
		p.all.Asked[q][0] = p.of.Asked[q][0]
	}
	work := p.Course.Begin(asked, most)
	for q := range p.of.Deserved {
		p.of.Deserved[q][0] = p.all.Deserved[q][0]
	}
	return work
}

// Used hands on what all queues use.
func (p plain) Used(q int) {
	for i := range p.of.Used {
		p.all.Used[i][0] = p.of.Used[i][0]
	}
	p.Course.Used(q)
}
