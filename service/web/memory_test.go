package web

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// dense returns documents of a message in which one field after the other is a long list of short elements: the most memory for a byte.
func dense(of protoreflect.MessageDescriptor, depth int, each func(path, text string)) {
	if depth == 0 {
		return
	}
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		name := f.JSONName()
		switch {
		case f.IsMap():
			continue
		case f.IsList():
			elements := []string{"0"}
			switch f.Kind() {
			case protoreflect.MessageKind:
				elements = append(short(f.Message()), "{}")
			case protoreflect.StringKind, protoreflect.BytesKind:
				elements = []string{`""`, `"a"`}
			case protoreflect.BoolKind:
				elements = []string{"true"}
			}
			for _, element := range elements {
				const bytes = 64 << 10
				n := bytes / (len(element) + 1)
				each(name+" of "+element, `{"`+name+`":[`+strings.Repeat(element+",", n-1)+element+`]}`)
			}
			if f.Kind() == protoreflect.MessageKind {
				dense(f.Message(), depth-1, func(path, text string) { each(name+"[0]."+path, `{"`+name+`":[`+text+`]}`) })
			}
		case f.Kind() == protoreflect.MessageKind:
			dense(f.Message(), depth-1, func(path, text string) { each(name+"."+path, `{"`+name+`":`+text+`}`) })
		}
	}
}

// short returns short messages of a type whose fields hold another message.
func short(of protoreflect.MessageDescriptor) []string {
	var all []string
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if f.Kind() != protoreflect.MessageKind || f.IsMap() {
			continue
		}
		element := "{}"
		if f.IsList() {
			element = "[{}]"
		}
		all = append(all, `{"`+f.JSONName()+`":`+element+`}`)
	}
	return all
}

func TestDecodingTakesNoMoreThanIsBookedForIt(t *testing.T) {
	raced.Skip(t)
	seen, most, worst := map[string]bool{}, 0.0, ""
	for _, request := range []proto.Message{&apportionv1.SimulateRequest{}, &apportionv1.EvaluateSharesRequest{}, &apportionv1.PlanRequest{}} {
		dense(request.ProtoReflect().Descriptor(), 5, func(path, text string) {
			if seen[text] {
				return
			}
			seen[text] = true
			into := request.ProtoReflect().New().Interface()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := unmarshalJSON([]byte(text), into)
			runtime.ReadMemStats(&after)
			require.NoError(t, err, path)
			// The sum of allocations exceeds the memory in use at any time.
			factor := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
			if factor > most {
				most, worst = factor, path
			}
		})
	}
	t.Logf("%d documents, at most %.1f bytes for a byte: %s", len(seen), most, worst)
	require.Less(t, most, float64(jsonMemory))
}

func TestPlacesAreSharedByIdentities(t *testing.T) {
	for all, want := range map[int][3]int{1: {1, 0, 0}, 2: {1, 1, 0}, 3: {1, 1, 1}, 4: {2, 1, 1}, 64: {32, 16, 8}} {
		p := newPlaces(all)
		var got [3]int
		var leave []func()
		for i, identity := range []string{"a", "b", "c"} {
			for {
				l, ok := p.take(identity)
				if !ok {
					break
				}
				leave = append(leave, l)
				got[i]++
			}
		}
		require.Equal(t, want, got, "of %d", all)
		for _, l := range leave {
			l()
		}
		require.Empty(t, p.of)
		require.Zero(t, p.taken)
	}
}
