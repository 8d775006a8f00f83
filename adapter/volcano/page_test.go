package volcano_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
)

// apiList is a list of built-in kinds as an API server writes it: its items do not name their kind.
func apiList(t *testing.T, file, kind, version string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "clusters", "research", file))
	require.NoError(t, err)
	var list map[string]any
	require.NoError(t, yaml.Unmarshal(data, &list))
	items, ok := list["items"].([]any)
	require.True(t, ok)
	for _, item := range items {
		object, ok := item.(map[string]any)
		require.True(t, ok)
		delete(object, "kind")
		delete(object, "apiVersion")
		metadata, ok := object["metadata"].(map[string]any)
		require.True(t, ok)
		metadata["managedFields"] = []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
	}
	list["kind"], list["apiVersion"] = kind+"List", version
	list["metadata"] = map[string]any{"continue": "next", "resourceVersion": "7"}
	written, err := json.Marshal(list)
	require.NoError(t, err)
	return written
}

func TestPagesOfAnAPIServerAreReadAsFilesAre(t *testing.T) {
	directory := filepath.Join("..", "..", "examples", "clusters", "research")
	var files, pages []objects.Source
	written, kept := 0, 0
	for _, list := range []struct{ file, kind, version string }{
		{"nodes.yaml", "Node", "v1"},
		{"podgroups.yaml", "PodGroup", "scheduling.volcano.sh/v1beta1"},
		{"pods.yaml", "Pod", "v1"},
		{"priorityclasses.yaml", "PriorityClass", "scheduling.k8s.io/v1"},
		{"queues.yaml", "Queue", "scheduling.volcano.sh/v1beta1"},
	} {
		data, err := os.ReadFile(filepath.Join(directory, list.file))
		require.NoError(t, err)
		files = append(files, objects.Source{Name: list.file, Data: data})
		raw := apiList(t, list.file, list.kind, list.version)
		page, err := objects.ReadPage(list.file, raw, volcano.Shape())
		require.NoError(t, err)
		require.Equal(t, "next", page.Continue)
		require.Equal(t, "7", page.ResourceVersion)
		require.Positive(t, page.Count)
		written, kept = written+len(raw), kept+len(page.Source.Data)
		pages = append(pages, page.Source)
	}
	whole, err := volcano.ReadManifests(files)
	require.NoError(t, err)
	read, err := volcano.ReadManifests(pages)
	require.NoError(t, err)
	require.True(t, proto.Equal(whole.Snapshot, read.Snapshot))
	require.Less(t, kept, written)
}

func TestAPageThatIsNoListIsAFault(t *testing.T) {
	for text, fault := range map[string]string{
		"<html>": "p: not JSON", "[]": "p: not a list", `{"kind": "Status"}`: "p: a list without items",
		`{"items": [1]}`: "p: an item is not an object",
	} {
		_, err := objects.ReadPage("p", []byte(text), volcano.Shape())
		require.EqualError(t, err, fault)
	}
}
