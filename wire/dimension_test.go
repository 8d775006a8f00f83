package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/wire"
)

// renumber replaces each dimension d in a message, wherever it stands, by place[d].
func renumber(m protoreflect.Message, place []uint32) {
	if r, ok := m.Interface().(*apportionv1.Resource); ok {
		renumberResource(r, place)
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
	entries := make([]entry, len(r.GetDimension()))
	for i, d := range r.GetDimension() {
		entries[i] = entry{place[d], r.GetAmount()[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int { return int(a.dimension) - int(b.dimension) })
	for i, e := range entries {
		r.Dimension[i], r.Amount[i] = e.dimension, e.amount
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
	  nodes { name: "n" allocatable { dimension: [1, 0] amount: [4000, 20] } }`)
	m, err := wire.Compile(snapshot)
	require.NoError(t, err)
	requireSnapshot(t, `dimensions: "pods" dimensions: "cpu" dimensions: "memory" total { dimension: [0, 1, 2] amount: [20, 4000, 0] }
	  nodes { name: "n" allocatable { dimension: [0, 1, 2] amount: [20, 4000, 0] }
	    used_by_others { dimension: [1, 2] amount: [0, 0] } }`, wire.SnapshotOf(m))
}

func requireSnapshot(t *testing.T, want string, got *apportionv1.Snapshot) {
	t.Helper()
	require.True(t, proto.Equal(parse(t, &apportionv1.Snapshot{}, want), got), "%v", got)
}
