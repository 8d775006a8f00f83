package objects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// TestWhatIsNotJSONIsFilledIn: YAML has scalars that JSON has not, and what is nested too deeply has no value.
func TestWhatIsNotJSONIsFilledIn(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"a: .5": {"a": ".5"}, "a: !!bool perhaps": {"a": "perhaps"}, "a: !!int ": {"a": ""}, "a: 1": {"a": 1.0}, "a: ~": {"a": nil},
		"a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70): nil,
	} {
		var found objects.Problems
		objects.Each(objects.Source{Name: "f", Data: []byte(text)}, objects.Deep, &found, func(doc *objects.Document, v *objects.Value) {
			r := objects.NewReader()
			r.Doc = doc
			var got map[string]any
			require.NotPanics(t, func() { r.Into(v, &got) })
			if want != nil {
				require.Equal(t, want, got, text)
			}
		})
	}
}
