package wire_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// renumber replaces each dimension d in a message, wherever it stands, by place[d].
func renumber(m protoreflect.Message, place []uint32) {
	if r, ok := m.Interface().(*apportionv1.Resource); ok {
		renumberResource(r, place)
		return
	}
	if c, ok := m.Interface().(*apportionv1.Cause); ok {
		for i, d := range c.GetDimensions() {
			c.Dimensions[i] = place[d]
		}
		slices.Sort(c.GetDimensions())
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				renumber(v.List().Get(i).Message(), place)
			}
		case f.Message() != nil:
			renumber(v.Message(), place)
		case f.Name() == "dimension" || f.Name() == "dominant":
			m.Set(f, protoreflect.ValueOfUint32(place[v.Uint()]))
		}
		return true
	})
}

func renumberResource(r *apportionv1.Resource, place []uint32) {
	type entry struct {
		dimension uint32
		amount    float64
	}
	entries := make([]entry, len(r.GetDimensions()))
	for i, d := range r.GetDimensions() {
		entries[i] = entry{place[d], r.GetAmounts()[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int { return int(a.dimension) - int(b.dimension) })
	for i, e := range entries {
		r.Dimensions[i], r.Amounts[i] = e.dimension, e.amount
	}
}

// placesOf returns where each of the names is in another list of the same names.
func placesOf(names, in []string) []uint32 {
	place := make([]uint32, len(names))
	for i, name := range names {
		place[i] = uint32(slices.Index(in, name))
	}
	return place
}

// TestAnswersNumberDimensionsAsTheSnapshotDoes asks the same of two snapshots that differ only in the order of their dimensions. Each
// answer differs in nothing but the numbers of dimensions, whichever encoder writes it. fair goes through dimensions in the order of the
// snapshot, so that its reasons may name another one.
func TestAnswersNumberDimensionsAsTheSnapshotDoes(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, func(t *rapid.T, policy string) {
		if policy == policies["fair"] {
			return
		}
		snapshot := drawSnapshot(t, false)
		names := rapid.Permutation(snapshot.GetDimensions()).Draw(t, "dimensions")
		there, back := placesOf(snapshot.GetDimensions(), names), placesOf(names, snapshot.GetDimensions())
		other := proto.CloneOf(snapshot)
		renumber(other.ProtoReflect(), there)
		other.Dimensions = names

		first, second := opened(t, snapshot, policy), opened(t, other, policy)
		require.Equal(t, snapshot.GetDimensions(), first.Basis().GetDimensions())
		require.Equal(t, names, second.Basis().GetDimensions())
		steps := everything(snapshot)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			steps = append(steps, drawChange(t, snapshot))
		}
		steps = append(steps, everything(snapshot)...)
		want, err := first.DoAll(steps)
		require.NoError(t, err)
		same := make([]*apportionv1.Step, len(steps))
		for i, step := range steps {
			same[i] = proto.CloneOf(step)
			renumber(same[i].ProtoReflect(), there)
		}
		got, err := second.DoAll(same)
		require.NoError(t, err)
		for i, answer := range sent(t, got) {
			renumber(answer.ProtoReflect(), back)
			require.True(t, proto.Equal(want[i], answer), "%v\n%v\n%v", steps[i], want[i], answer)
		}
	})
}

// sent returns answers as a caller reads them.
func sent(t require.TestingT, answers []*apportionv1.Answer) []*apportionv1.Answer {
	data, err := (&apportionv1.SimulateResponse{Answers: answers}).MarshalVT()
	require.NoError(t, err)
	response := &apportionv1.SimulateResponse{}
	require.NoError(t, proto.Unmarshal(data, response))
	return response.GetAnswers()
}

func TestDimensionsThatASnapshotDoesNotNameComeLast(t *testing.T) {
	for _, c := range []struct{ given, answered []string }{
		{nil, []string{"cpu", "memory"}},
		{[]string{"pods", "gpu"}, []string{"pods", "gpu", "cpu", "memory"}},
		{[]string{"pods", "memory", "gpu"}, []string{"pods", "memory", "gpu", "cpu"}},
		{[]string{"memory", "cpu"}, []string{"memory", "cpu"}},
	} {
		s := opened(t, &apportionv1.Snapshot{Dimensions: c.given}, `tiers { plugins { gang {} } }`)
		require.Equal(t, c.answered, s.Basis().GetDimensions())
	}
}

func TestASnapshotMadeOfAModelNamesDimensionsInItsOrder(t *testing.T) {
	snapshot := parse(t, &apportionv1.Snapshot{}, `dimensions: "pods" dimensions: "cpu"
	  nodes { name: "n" allocatable { dimensions: [1, 0] amounts: [4000, 20] } }`)
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	requireSnapshot(t, `dimensions: "pods" dimensions: "cpu" dimensions: "memory" total { dimensions: [0, 1, 2] amounts: [20, 4000, 0] }
	  nodes { name: "n" allocatable { dimensions: [0, 1, 2] amounts: [20, 4000, 0] }
	    used_by_others { dimensions: [1, 2] amounts: [0, 0] } }`, decode.SnapshotOf(m))
}

func requireSnapshot(t *testing.T, want string, got *apportionv1.Snapshot) {
	t.Helper()
	require.True(t, proto.Equal(parse(t, &apportionv1.Snapshot{}, want), got), "%v", got)
}

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
		m, err := decode.CompileBytes(data)
		require.NoError(t, err)
		compiled := heap()
		s, err := wire.Open(m, rules, wire.Options{})
		require.NoError(t, err)
		s.Keep()
		require.Nil(t, ask(t, s, `event { status { tasks { indices: 0 } status: TASK_STATUS_FAILED } }`).GetError())
		require.Nil(t, ask(t, s, `inspect { nodes: true }`).GetError())
		opened := heap()
		model, session = compiled-before, opened-compiled
		ofModel, ofSession = decode.ModelBytes(m)+int64(len(data)), s.Bytes()
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
