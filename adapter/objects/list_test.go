package objects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// read lists the objects of a text as `apiVersion kind name`, and what is wrong with the text.
func read(text string) (list []string, problems []objects.Problem) {
	var found objects.Problems
	shape := objects.Select("apiVersion", "kind", "metadata.name")
	objects.Each(objects.Source{Name: "f", Data: []byte(text)}, shape, &found, func(_ *objects.Document, v *objects.Value) {
		kind := objects.Kind{Name: v.TextOf(objects.KindField), Version: v.TextOf(objects.VersionField)}
		list = append(list, kind.String()+" "+v.Field(objects.MetadataField).TextOf(objects.NameField))
	})
	return list, found.All().Problems
}

func TestItemsOfAListOfOneKindHaveIt(t *testing.T) {
	for name, text := range map[string]string{
		"JSON":                 `{"apiVersion": "v1", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}], "kind": "PodList"}`,
		"JSON, the kind first": `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`,
		"YAML":                 "apiVersion: v1\nitems:\n- metadata:\n    name: a\n- metadata:\n    name: b\nkind: PodList\n",
		"YAML with anchors":    "apiVersion: v1\nitems:\n- metadata: &m\n    name: a\n- metadata: {name: b}\nkind: PodList\n",
		"YAML in flow style":   "{apiVersion: v1, items: [{metadata: {name: a}}, {metadata: {name: b}}], kind: PodList}",
		"a stream of two lists": "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n---\n" +
			"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: b}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			list, problems := read(text)
			require.Empty(t, problems)
			require.Equal(t, []string{"v1 Pod a", "v1 Pod b"}, list)
		})
	}
	for text, want := range map[string][]string{
		// What an object says of itself stays.
		`{"items": [{"kind": "Node", "metadata": {"name": "a"}}, {"metadata": {"name": "b"}}], "kind": "PodList"}`: {"Node a", "Pod b"},
		// A list of several kinds says nothing of its items.
		`{"apiVersion": "v1", "kind": "List", "items": [{"metadata": {"name": "a"}}]}`: {" a"},
		// An empty list is an object.
		`{"kind": "PodList", "items": []}`: {"PodList "},
	} {
		list, _ := read(text)
		require.Equal(t, want, list)
	}
}
