package wire_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// liveBytes returns the number of reachable bytes.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestASessionKeepsNoneOfItsAnswers(t *testing.T) {
	shape := generate.Shape{Queues: 10, Jobs: 100, Tasks: 1000, Nodes: 50, Seed: 1}
	m, err := wire.Compile(generate.Snapshot(shape))
	require.NoError(t, err)
	policy := parse(t, &apportionv1.Policy{}, policies["proportion"])
	s, err := wire.Open(m, policy, wire.Options{})
	require.NoError(t, err)
	every := &apportionv1.Tasks{}
	for task := range uint32(1000) {
		every.Index = append(every.Index, task)
	}
	for name, step := range map[string]*apportionv1.Step{
		"allocatable": {Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: every}}},
		"preemptive":  {Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: every}}},
		"jobs":        {Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
		"shares":      {Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func() {
				_, err := s.Ask(step)
				require.NoError(t, err)
			}
			ask()
			before := liveBytes()
			for range 100 {
				ask()
			}
			require.Less(t, liveBytes()-before, int64(4<<20), "bytes kept after a hundred answers")
		})
	}
	runtime.KeepAlive(s)
}
