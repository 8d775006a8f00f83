package wire_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/wire"
)

// heap returns the bytes that are reachable. What a sync.Pool holds is dropped by the second collection only.
func heap() int64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// An estimate decides how much a cache holds. The estimate of a model differs by less than a half from its memory; a session, whose plugins
// keep more or less for each queue, takes between a third and all of its estimate.
func TestTheEstimatesOfMemoryAreNearTheTruth(t *testing.T) {
	raced.Skip(t)
	rules := parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } plugins { drf {} } } tiers { plugins { proportion {} } plugins { capacity {} } }`)
	measure := func(data []byte) (model, session, ofModel, ofSession int64) {
		before := heap()
		m, err := wire.CompileBytes(data)
		require.NoError(t, err)
		compiled := heap()
		s, err := wire.Open(m, rules, wire.Options{})
		require.NoError(t, err)
		s.Keep()
		require.Nil(t, ask(t, s, `set_status { tasks { index: 0 } status: TASK_STATUS_FAILED }`).GetError())
		require.Nil(t, ask(t, s, `inspect { nodes: true }`).GetError())
		opened := heap()
		model, session = compiled-before, opened-compiled
		ofModel, ofSession = wire.ModelBytes(m)+int64(len(data)), s.Bytes()
		runtime.KeepAlive(data)
		runtime.KeepAlive(s)
		return model, session, ofModel, ofSession
	}
	for _, shape := range []generate.Shape{
		{Queues: 300, Jobs: 3000, Tasks: 50_000, Nodes: 1000, UIDs: true},
		{Queues: 5000, Jobs: 20_000, Tasks: 20_000, Nodes: 10, Dimensions: 12},
	} {
		data, err := proto.Marshal(generate.Snapshot(shape))
		require.NoError(t, err)
		// The first time also allocates what the process keeps, such as tables of types.
		measure(data)
		model, session, ofModel, ofSession := measure(data)
		t.Log(model, ofModel, session, ofSession)
		require.Less(t, 2*model, 3*ofModel)
		require.Less(t, 2*ofModel, 3*model)
		require.Less(t, session, ofSession)
		require.Less(t, ofSession, 3*session)
	}
}
