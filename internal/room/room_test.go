package room_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/room"
)

// object is of a namespace, takes an amount by itself, and one of each thing.
type object struct {
	namespace string
	age       int
	own       int64
	things    []string
}

func limitOf(most int64) room.Limit[object, string] {
	return room.Limit[object, string]{
		Most: most,
		Takes: func(o object, share func(string, int64)) int64 {
			for _, thing := range o.things {
				share(thing, 1)
			}
			return o.own
		},
		Namespace: func(o object) string { return o.namespace },
		Before:    func(l, r object) int { return cmp.Compare(l.age, r.age) },
	}
}

func TestANamespaceIsLetInUpToItsEqualPart(t *testing.T) {
	l := limitOf(10)
	for _, c := range []struct {
		name    string
		objects []object
		out     []int
	}{
		{"all fit", []object{{"a", 1, 5, nil}, {"b", 1, 5, nil}}, nil},
		{
			"many of one namespace, one of the other, which comes last",
			[]object{{"a", 1, 4, nil}, {"a", 2, 4, nil}, {"a", 3, 4, nil}, {"b", 9, 5, nil}},
			[]int{1, 2},
		},
		{"older ones first", []object{{"a", 3, 6, nil}, {"a", 1, 6, nil}}, []int{0}},
		{"what is shared counts once", []object{{"a", 1, 5, []string{"x"}}, {"b", 2, 3, []string{"x"}}, {"b", 3, 2, nil}}, []int{2}},
		{"what takes nothing always fits", []object{{"a", 1, 11, nil}, {"a", 2, 0, nil}}, []int{0}},
	} {
		require.Equal(t, c.out, l.Exceeding(c.objects), c.name)
	}
	l.Before = nil
	require.Equal(t, []int{0}, l.Exceeding([]object{{"a", 1, 6, nil}, {"a", 2, 5, nil}}), "those that take less first")
	l.Given = map[string]bool{"x": true, "y": true}
	require.Equal(t, []int{1}, l.Exceeding([]object{{"a", 1, 7, []string{"x"}}, {"a", 2, 8, nil}}), "what is given is taken already")
}

// TestWhatIsLeftOutIsWhatDoesNotFit compares with what the limit says: the others fit, each that is left out does not fit beside them, and a
// namespace whose objects are within an equal part of the limit loses none.
func TestWhatIsLeftOutIsWhatDoesNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object {
			return object{
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), rapid.IntRange(0, 3).Draw(t, "age"),
				rapid.Int64Range(0, 9).Draw(t, "own"), rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 2, rapid.ID).Draw(t, "things"),
			}
		}), 0, 12).Draw(t, "objects")
		l := limitOf(rapid.Int64Range(0, 60).Draw(t, "most"))
		out := l.Exceeding(objects)
		var in []object
		alone := map[string]int64{}
		for i, o := range objects {
			alone[o.namespace] += o.own + int64(len(o.things))
			if !slices.Contains(out, i) {
				in = append(in, o)
			}
		}
		require.LessOrEqual(t, l.Total(in), l.Most)
		for _, at := range out {
			require.Greater(t, l.Total(append(slices.Clone(in), objects[at])), l.Most)
			require.Greater(t, alone[objects[at].namespace]*int64(len(slices.Collect(maps.Keys(alone)))), l.Most)
		}
	})
}
