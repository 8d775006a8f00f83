package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
)

// shelf is an adapter that keeps the zones of nodes, and the sizes of boxes: a kind that no other adapter reads.
type shelf struct {
	objects.Reader

	zones map[string]string
	boxes map[string]int32
	last  string
}

func (s *shelf) Hides(objects.Identity, *objects.Value) bool { return false }

func (s *shelf) Mark() { s.last = "" }

func (s *shelf) Refuse(*objects.Value) {
	if s.boxes[s.last] > 9 {
		s.Fault("spec.size", "at most 9 fit")
	}
}

func (s *shelf) Undo() any {
	delete(s.boxes, s.last)
	return nil
}

// box is what is read of a Box.
type box struct {
	Spec struct {
		Size   int32             `json:"size"`
		Labels map[string]string `json:"labels"`
	} `json:"spec"`
}

func (s *shelf) box(m objects.Metadata, b *box) { s.last, s.boxes[m.Full()] = m.Full(), b.Spec.Size }

func (s *shelf) node(m objects.Metadata, n *corev1.Node) { s.zones[m.Full()] = n.Labels["zone"] }

// kinds has one row for each kind.
var kinds = objects.NewTable(
	rowOf(objects.Resource{Kind: "Box", Group: "example.org", Versions: []string{"v2", "v1"}, List: "boxes"}, (*shelf).box),
	rowOf(objects.Resource{Kind: "Node", Versions: []string{"v1"}, List: "nodes"}, (*shelf).node),
)

func rowOf[T any](of objects.Resource, read func(*shelf, objects.Metadata, *T)) objects.Row[*shelf] {
	shape, decoded := objects.Typed(read)
	return objects.Row[*shelf]{Resource: of, Shape: shape, Read: decoded}
}

func newShelf(lenient bool) *shelf {
	s := &shelf{Reader: objects.NewReader(), zones: map[string]string{}, boxes: map[string]int32{}}
	s.Lenient = lenient
	return s
}

// said is what a command prints of an input, beside its answer.
func said(s *shelf) []string {
	var list []string
	for _, w := range append(manifest.LeftOut(s.Faulty), s.Warnings.All()...) {
		list = append(list, strings.TrimPrefix(w.GetPath()+": "+w.GetMessage(), ": "))
	}
	return list
}

func TestANewKindIsOneRow(t *testing.T) {
	text := `apiVersion: example.org/v1
kind: BoxList
items:
- metadata: {name: a}
  spec: {size: 3}
- metadata: {name: b}
  spec:
    size: large
    labels: {x: 1, y: z}
- metadata: {name: c}
  spec: {size: 12}
- kind: Box
  apiVersion: example.org/v3
  metadata: {name: d}
---
{"kind": "Crate", "apiVersion": "example.org/v1", "metadata": {"name": "a"}}
{"kind": "Crate", "apiVersion": "example.org/v1", "metadata": {"name": "b"}}
---
kind: PodList
items: []
`
	s := newShelf(true)
	kinds.Each(s, []objects.Source{{Name: "f", Data: []byte(text)}})
	require.NoError(t, s.Found.Err())
	require.Equal(t, map[string]int32{"a": 3}, s.boxes)
	require.Equal(t, []string{
		`f:6: left out: Box b: spec.size: not a whole number between -2147483648 and 2147483647: "large", and 1 more`,
		"f:10: left out: Box c: spec.size: at most 9 fit",
		`f:12: left out: Box d: apiVersion: "example.org/v3" is not read; there are example.org/v1 and example.org/v2`,
		"f:16: objects of kind example.org/v1 Crate are not read",
	}, said(s))
	require.Equal(t, map[string]int{"example.org/v1 Crate": 2}, s.Unread)
	require.Equal(t, map[string]bool{"Pod": true}, s.Listed)
	require.Equal(t, 7, s.Objects)
	strict := newShelf(false)
	kinds.Each(strict, []objects.Source{{Name: "f", Data: []byte(text)}})
	require.EqualError(t, strict.Found.Err(), `f:8: spec.size: not a whole number between -2147483648 and 2147483647: "large"
f:9: spec.labels.x: not a text
f:11: spec.size: at most 9 fit
f:13: apiVersion: "example.org/v3" is not read; there are example.org/v1 and example.org/v2`)
}

// TestEveryObjectIsAccountedFor: whatever an input holds, in whichever form, each object is read, faulty, of a kind that is not read, or an
// empty list.
func TestEveryObjectIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		good, bad, other, empty := 0, 0, 0, 0
		for i := range rapid.IntRange(1, 30).Draw(t, "objects") {
			object := ""
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				good++
				object = fmt.Sprintf(`{"kind": "Box", "apiVersion": "example.org/v2", "metadata": {"name": "o%d"}, "spec": {"size": %d}}`, i, i%10)
			case 1:
				good++
				object = fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "o%d", "labels": {"zone": "z"}}}`, i)
			case 2:
				bad++
				object = fmt.Sprintf(`{"kind": "Box", "apiVersion": "example.org/v2", "metadata": {"name": "o%d"}, "spec": %s}`, i,
					rapid.SampledFrom([]string{"[]", `{"size": []}`, `{"size": 77}`, `{"labels": 3}`}).Draw(t, "spec"))
			case 3:
				bad++
				object = rapid.SampledFrom([]string{`{"kind": "Box"}`, `{"metadata": {"name": "x"}}`, `{"kind": []}`, "7"}).Draw(t, "object")
			case 4:
				other++
				object = fmt.Sprintf(`{"kind": "Node", "apiVersion": "example.org/v1", "metadata": {"name": "o%d"}}`, i)
			case 5:
				empty++
				object = `{"kind": "BoxList", "items": []}`
			}
			if rapid.Bool().Draw(t, "in a list") && !strings.Contains(object, "BoxList") {
				object = `{"kind": "List", "items": [` + object + `]}`
			}
			text.WriteString("---\n" + object + "\n")
		}
		s := newShelf(true)
		kinds.Each(s, []objects.Source{{Name: "f", Data: []byte(text.String())}})
		unread := 0
		for _, n := range s.Unread {
			unread += n
		}
		require.NoError(t, s.Found.Err())
		require.Equal(t, []int{good, bad, other, empty}, []int{s.Read, len(s.Faulty), unread, s.Lists}, text.String())
		require.Equal(t, s.Objects, s.Read+len(s.Faulty)+unread+s.Lists+s.Hidden)
		require.Len(t, s.zones, good-len(s.boxes), "what is faulty leaves nothing")
	})
}

// TestARowReadsAValueWhateverDecodedIt feeds the row of nodes with a node that was decoded from protobuf.
func TestARowReadsAValueWhateverDecodedIt(t *testing.T) {
	node := &corev1.Node{}
	node.Name, node.Labels = "n", map[string]string{"zone": "z"}
	data, err := node.Marshal()
	require.NoError(t, err)
	var decoded corev1.Node
	require.NoError(t, decoded.Unmarshal(data))
	fromProtobuf, fromJSON := newShelf(true), newShelf(true)
	fromProtobuf.node(objects.Metadata{Name: decoded.Name}, &decoded)
	kinds.Each(fromJSON, []objects.Source{{
		Name: "f", Data: []byte(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "labels": {"zone": "z"}}}`),
	}})
	require.Equal(t, fromJSON.zones, fromProtobuf.zones)
}
