package extender

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/extender/extendertest"
)

// wanted is the plain twin of the pruner: the parts of a decoded value that a shape wants.
func wanted(v any, s *shape) any {
	if s == whole {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, member := range v {
			of, named := s.members[name]
			if !named {
				of = s.each
			}
			if of != nil {
				kept[name] = wanted(member, of)
			}
		}
		return kept
	case []any:
		kept := []any{}
		for _, element := range v {
			if s.each != nil {
				kept = append(kept, wanted(element, s.each))
			}
		}
		return kept
	}
	return v
}

// pieces reads a text in pieces of drawn sizes.
type pieces struct {
	text []byte
	size func() int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.size())], p.text)
	p.text = p.text[n:]
	return n, nil
}

var (
	someName = rapid.SampledFrom([]string{"a", "b", "c", "d", `q"uote`, `back\slash`, `both\"`, "", "ä€", "{", "]"})
	someWord = rapid.OneOf(rapid.Just(any(nil)), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }), rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.StringMatching(`[\\"{}\[\],:x]*`), func(s string) any { return s }))
)

// someValue draws a JSON value.
func someValue(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return someWord
	}
	return rapid.OneOf(someWord,
		rapid.Map(rapid.MapOfN(someName, someValue(depth-1), 0, 4), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(someValue(depth-1), 0, 4), func(l []any) any { return l }))
}

// someShape draws a shape whose names need no escapes, as all that the package uses.
func someShape(t *rapid.T, depth int) *shape {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
		return whole
	}
	s := &shape{members: members{}}
	for _, name := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 2).Draw(t, name) {
		case 0:
			s.members[name] = nil
		case 1:
			s.members[name] = someShape(t, depth-1)
		}
	}
	if rapid.Bool().Draw(t, "each") {
		s.each = someShape(t, depth-1)
	}
	return s
}

func TestThePrunerPassesOnWhatIsWantedAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, s := someValue(4).Draw(t, "value"), someShape(t, 4)
		text, err := json.Marshal(value)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "indented") {
			text, err = json.MarshalIndent(value, " ", "\t")
			require.NoError(t, err)
		}
		most := rapid.SampledFrom([]int{7, 300}).Draw(t, "most")
		source := &pieces{text: text, size: func() int { return rapid.IntRange(1, most).Draw(t, "size") }}
		passed, err := io.ReadAll(prune(inParts(source, 200), s))
		require.NoError(t, err)
		var got, original any
		require.NoError(t, json.Unmarshal(passed, &got), "%s", passed)
		require.NoError(t, json.Unmarshal(text, &original))
		require.Equal(t, wanted(original, s), got)
	})
}

// ends is the plain twin of a span: the length of the value that a text begins with, 0 if it does not end.
func ends(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func TestTheEndOfAValueIsFoundHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Brackets, quotes and backslashes lie densely, or far apart, and anywhere in a block.
		within := rapid.StringMatching(`[a-zä[\]{}"\\]{0,5}`)
		stretches := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			far := strings.Repeat("x", rapid.IntRange(0, 100).Draw(t, "far"))
			quoted, err := json.Marshal(within.Draw(t, "before") + far + within.Draw(t, "behind"))
			require.NoError(t, err)
			return rapid.StringMatching(`[[\]{}:, ]{0,3}`).Draw(t, "brackets") + string(quoted)
		}), 0, 12).Draw(t, "stretches")
		text := "{" + strings.Join(stretches, "") + "}"
		var v span
		n, ended := 0, false
		for n < len(text) && !ended {
			size := rapid.OneOf(rapid.IntRange(1, 400), rapid.SampledFrom([]int{blockBytes, 1 + blockBytes, 2 * blockBytes})).Draw(t, "part")
			part := text[n:min(len(text), n+size)]
			var more int
			more, ended = v.advance([]byte(part))
			n += more
		}
		if !ended {
			n = 0
		}
		require.Equal(t, ends(text), n, "%q", text)
	})
}

// TestABackslashAtTheEndOfABlockEscapesWhatFollowsInTheNextPart tests blocks and parts that end at the same byte, where an earlier version
// was wrong.
func TestABackslashAtTheEndOfABlockEscapesWhatFollowsInTheNextPart(t *testing.T) {
	for size := range 4 * blockBytes {
		text := `{"` + strings.Repeat("x", size) + `\"]}"}`
		for cut := 1; cut < len(text); cut++ {
			var v span
			n, ended := v.advance([]byte(text[:cut]))
			require.False(t, ended)
			more, ended := v.advance([]byte(text[n:]))
			require.True(t, ended, "%d bytes, cut at %d", size, cut)
			require.Equal(t, len(text), n+more)
		}
	}
}

func TestWhatIsNoJSONIsPassedOnForTheLibraryToRefuse(t *testing.T) {
	for _, text := range []string{`}`, `{"Jobs":{]`, `{"Jobs" 1}`, `{Jobs:1}`, `[1}`, `{"Jobs":{"a":{}}}}`, `{"a":1,,}`, `{"Jobs":`, "", `"`, `{"`, `{"Jobs":{"x":{"Tasks":[}`} {
		_, err := readPush(bytes.NewReader([]byte(text)))
		if json.Valid([]byte(text)) {
			require.NoError(t, err, text)
			continue
		}
		// Neither this decoder nor Volcano's reads what follows a complete value.
		if text != `{"Jobs":{"a":{}}}}` {
			require.Error(t, err, text)
		}
	}
}

// TestAPushIsReadAlikeWithAndWithoutThePruner holds the shapes to the functions that read.
func TestAPushIsReadAlikeWithAndWithoutThePruner(t *testing.T) {
	for _, body := range [][]byte{extendertest.Push(extendertest.Shape{Pods: 200}), extendertest.Push(extendertest.Shape{Pods: 200, Lean: true})} {
		plain, err := readPruned(bytes.NewReader(body), bound{})
		require.NoError(t, err)
		pruned, err := readPush(bytes.NewReader(body))
		require.NoError(t, err)
		requireSamePush(t, plain, pruned)
		one, err := readPush(iotest.OneByteReader(bytes.NewReader(body)))
		require.NoError(t, err)
		requireSamePush(t, plain, one)
		m, err := pruned.build(0)
		require.NoError(t, err)
		require.Equal(t, 200, m.Tasks.Len())
		require.Len(t, m.Nodes, 20)
		require.Len(t, m.Queues, 2)
	}
}

func requireSamePush(t require.TestingT, want, got *push) {
	require.Equal(t, want.jobs, got.jobs)
	require.Equal(t, want.tasks, got.tasks)
	require.Equal(t, want.details, got.details)
	require.Equal(t, want.nodes, got.nodes)
	require.Equal(t, want.queues, got.queues)
	require.Equal(t, want.strays, got.strays)
	require.Equal(t, want.vectors.list, got.vectors.list)
	require.Equal(t, want.vectors.names.list, got.vectors.names.list)
	require.Equal(t, slices.Sorted(maps.Keys(want.known)), slices.Sorted(maps.Keys(got.known)))
}

// readPush reads the body of an onSessionOpen as it arrives, without bounds.
func readPush(body io.Reader) (*push, error) {
	return readPruned(prune(inParts(body, chunk), pushShape), bound{})
}
