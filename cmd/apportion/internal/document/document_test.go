package document_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestFaultsHaveTheLineOfTheFile(t *testing.T) {
	for _, test := range []struct{ name, content, fault string }{
		{"an unknown field", "queues:\n- name: a\n\n  wieght: 3\n", `f:4: unknown field "wieght"`},
		{"a wrong type", "queues:\n- name: a\n  weight: heavy\n", "f:3: invalid value for uint32 field weight"},
		{"a value of no enum", "queues:\n- name: a\n  state: SHUT\n", "f:3: invalid value for enum field state"},
		{"named twice", "asOf: 1\nasOf: 2\n", "f:2: asOf: is given twice"},
		{"an alias", "cluster: &x a\nqueues: [{name: *x}]\n", "f:2: queues[0].name: aliases are not read"},
		{"no YAML", "queues: [\n", "f:"},
		{"a second document", "asOf: 1\n---\nasOf: 2\n", "f:3: a second document"},
		{"JSON", "{\n  \"queues\": [\n    {\"nome\": 1}\n  ]\n}\n", `f:3: unknown field "nome"`},
		{"deep nesting", strings.Repeat("[", 100) + strings.Repeat("]", 100), "f:1: nested too deeply"},
		{"control characters that are no message", "\x00\x01\x02", "f: neither text nor a message in binary form"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := document.Unmarshal("f", []byte(test.content), &apportionv1.Snapshot{})
			require.ErrorContains(t, err, test.fault)
		})
	}
}

func TestNumbersThatJSONDoesNotHave(t *testing.T) {
	var r apportionv1.Resource
	require.NoError(t, document.Unmarshal("f", []byte("dimensions: [0, 1]\namounts: [.inf, 16]\n"), &r))
	require.Equal(t, []float64{math.Inf(1), 16}, r.GetAmounts())
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ -~é\n]{0,12}`)
		number := rapid.OneOf(rapid.Float64Range(0, 1e18), rapid.Just(math.Inf(1)))
		snapshot := &apportionv1.Snapshot{
			Cluster: name.Draw(t, "cluster"), AsOf: rapid.Int64().Draw(t, "as of"), Dimensions: rapid.SliceOfN(name, 0, 3).Draw(t, "dimensions"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "queues") {
			snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{
				Name: name.Draw(t, "name"), Weight: new(rapid.Uint32().Draw(t, "weight")), Reclaimable: new(rapid.Bool().Draw(t, "reclaimable")),
				Capability: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{number.Draw(t, "amount")}},
			})
		}
		raw, err := document.JSON(snapshot)
		require.NoError(t, err)
		written, err := document.YAML(raw)
		require.NoError(t, err)
		for _, data := range [][]byte{raw, written} {
			var read apportionv1.Snapshot
			require.NoError(t, document.Unmarshal("f", data, &read), string(data))
			require.True(t, proto.Equal(snapshot, &read), "%s", data)
		}
	})
}
