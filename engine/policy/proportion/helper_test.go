package proportion_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

// names are the dimensions of every test cluster, in the order of the snapshot.
var names = []string{"cpu", "memory", "gpu", "pods"}

func sparse(a amounts) *model.Amounts { return policytest.Sparse(names, a) }

type queue struct {
	name                  string
	weight                uint32
	priority              int32
	state                 model.QueueState
	capability, guarantee amounts
}

type task struct {
	status  model.Status
	gate    model.Gate
	request amounts
}

type job struct {
	queue string
	phase model.Phase
	min   amounts
	tasks []task
}

// build returns the model of a cluster of one node.
func build(t require.TestingT, node amounts, queues []queue, jobs []job) *model.Model {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	b.Node(model.NodeSpec{Name: "node", Allocatable: sparse(node)})
	for _, q := range queues {
		b.Queue(model.QueueSpec{
			Name: q.name, Weight: q.weight, Priority: q.priority, State: q.state,
			Capability: sparse(q.capability), Guarantee: sparse(q.guarantee),
		})
	}
	for i, j := range jobs {
		b.Job(model.JobSpec{Name: string(rune('a' + i)), Queue: j.queue, Phase: j.phase, MinResources: sparse(j.min)})
		for k, each := range j.tasks {
			b.Group(model.GroupSpec{Role: string(rune('a' + k)), Request: sparse(each.request)})
			b.Task(&model.TaskSpec{Status: each.status, Gate: each.gate, Node: model.None, Index: -1})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

func open(t require.TestingT, m *model.Model) (*policy.View, *proportion.State) {
	v := policy.NewView(m, nil)
	s, err := proportion.Plugin{}.Open(v)
	require.NoError(t, err)
	return v, s.(*proportion.State)
}

// named returns what a row names, unlimited as +Inf.
func named(m *model.Model, r resource.Row) amounts { return policytest.Named(m.Dims, r) }

func running(request amounts) task { return task{status: model.Running, request: request} }

func pending(request amounts) task { return task{status: model.Pending, request: request} }

func jobOf(queue string, tasks ...task) job { return job{queue: queue, tasks: tasks} }

func share(t *testing.T, m *model.Model, s *proportion.State, queue string) policy.Share {
	t.Helper()
	q, ok := m.Queue(queue)
	require.True(t, ok)
	got, ok := s.Share(q)
	require.True(t, ok, "queue %s takes no part", queue)
	return got
}

// derivation is a whole division.
type derivation struct {
	proportion.Derivation

	rounds []round
	// room, if it is not 0, limits the number of steps.
	room int
}

type round struct {
	remaining   resource.Row
	totalWeight int64
	steps       []proportion.Step
}

var errTooLong = errors.New("too long")

func (d *derivation) Round(remaining resource.Row, totalWeight int64) error {
	d.rounds = append(d.rounds, round{remaining: remaining.Clone(), totalWeight: totalWeight})
	return nil
}

func (d *derivation) Step(step *proportion.Step) error {
	if d.room--; d.room == 0 {
		return errTooLong
	}
	kept := *step
	for _, row := range [...]*resource.Row{&kept.Weighted, &kept.Capped, &kept.Requested, &kept.Deserved} {
		*row = row.Clone()
	}
	last := &d.rounds[len(d.rounds)-1]
	last.steps = append(last.steps, kept)
	return nil
}

func derive(t require.TestingT, s *proportion.State, queues []model.QueueID) *derivation {
	d := &derivation{}
	var err error
	d.Derivation, err = s.Derive(queues, d)
	require.NoError(t, err)
	return d
}
