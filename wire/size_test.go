package wire_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

func heap() int64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// An estimate decides what a cache holds: it is to be of the right size, neither half nor double.
func TestTheEstimatesOfMemoryAreNearTheTruth(t *testing.T) {
	for _, shape := range []generate.Shape{
		{Queues: 300, Jobs: 3000, Tasks: 50_000, Nodes: 1000, UIDs: true},
		{Queues: 5000, Jobs: 20_000, Tasks: 20_000, Nodes: 10, Dimensions: 12},
	} {
		data, err := proto.Marshal(generate.Snapshot(shape))
		require.NoError(t, err)
		before := heap()
		m, err := wire.CompileBytes(data)
		require.NoError(t, err)
		took := heap() - before
		estimate := wire.ModelBytes(m) + int64(len(data))
		require.Less(t, took, 2*estimate)
		require.Less(t, estimate, 2*took)

		before = heap()
		s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } plugins { drf {} } } tiers { plugins { proportion {} } plugins { capacity {} } }`), wire.Options{})
		require.NoError(t, err)
		s.Keep()
		require.Nil(t, ask(t, s, `set_status { tasks { index: 0 } status: TASK_STATUS_FAILED }`).GetError())
		require.Nil(t, ask(t, s, `inspect { nodes: true }`).GetError())
		took = heap() - before
		require.Less(t, took, 2*s.Bytes())
		require.Less(t, s.Bytes(), 3*took)
		t.Log(took, s.Bytes(), estimate)
		runtime.KeepAlive(data)
	}
}
