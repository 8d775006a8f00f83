package wire_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// TestAnExplanationSpendsItsWork asks why all jobs of a snapshot wait, each of which has a kind of task of its own: every node is examined
// for each.
func TestAnExplanationSpendsItsWork(t *testing.T) {
	shape := generate.Shape{Queues: 10, Jobs: 400, Tasks: 2000, Nodes: 500, Seed: 1}
	s := within(t, shape, policies["proportion"], 0)
	require.Empty(t, ask(t, s, `explain {}`).GetError().GetMessage())
	s = within(t, shape, policies["proportion"], 50_000)
	requireTooMuchWork(t, ask(t, s, `explain {}`), "50000")
	requireTooMuchWork(t, ask(t, s, `explain { jobs { index: 4 index: 6 index: 17 } }`), "50000")
	require.NotNil(t, ask(t, s, `jobs { jobs { index: 0 } }`).GetJobs(), "the next question has its own work")
}

// TestRequestsThatFitNowhereSpendWork opens `fair` on jobs whose requests all differ and exceed every node, so that each is held against
// each node: the kinds on all nodes, and the kinds on node sets.
func TestRequestsThatFitNowhereSpendWork(t *testing.T) {
	const many = 300
	for name, set := range map[string]string{"all nodes": "", "a node set": "s"} {
		t.Run(name, func(t *testing.T) {
			snapshot := &apportionv1.Snapshot{
				Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}, NodeSets: []*apportionv1.NodeSet{{Name: "s"}},
			}
			amount := func(n int) *apportionv1.Resource {
				return &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{float64(n)}}
			}
			for i := range many {
				snapshot.Nodes = append(snapshot.Nodes, &apportionv1.Node{Name: strconv.Itoa(i), Allocatable: amount(1)})
				snapshot.NodeSets[0].Nodes = append(snapshot.NodeSets[0].Nodes, uint32(i))
				snapshot.Jobs = append(snapshot.Jobs, &apportionv1.Job{Name: strconv.Itoa(i), Queue: "q", Groups: []*apportionv1.TaskGroup{{
					Request: amount(1000 + i), NodeSet: set, Tasks: []*apportionv1.Task{{}},
				}}})
			}
			m, err := wire.Compile(snapshot)
			require.NoError(t, err)
			p := parse(t, &apportionv1.Policy{}, `tiers { plugins { fair {} } }`)
			_, err = wire.Open(m, p, wire.Options{Work: many * many / 2})
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, wire.AsFault(err).Reason)
			_, err = wire.Open(m, p, wire.Options{Work: 3 * many * many})
			require.NoError(t, err)
		})
	}
}
