package apiserver

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// KueueGroup is the path of Kueue's API group.
const KueueGroup = "/apis/kueue.x-k8s.io/"

// DefineKueue makes Kueue's kinds in one version, and waits until they are served. Their definitions are those of Kueue's own module, in
// the directory that KUEUE_CRDS names. Only this version is served and stored, so that the webhook of the conversion, which Kueue's manager
// expects there, is not called.
func (s *Server) DefineKueue(t *testing.T, version string) {
	t.Helper()
	directory := os.Getenv("KUEUE_CRDS")
	require.NotEmpty(t, directory, "make test-cluster finds it")
	files, err := filepath.Glob(filepath.Join(directory, "kueue.x-k8s.io_*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var definition struct {
			APIVersion string         `yaml:"apiVersion" json:"apiVersion"`
			Kind       string         `yaml:"kind" json:"kind"`
			Metadata   map[string]any `yaml:"metadata" json:"metadata"`
			Spec       map[string]any `yaml:"spec" json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(data, &definition))
		var kept []any
		versions, ok := definition.Spec["versions"].([]any)
		require.True(t, ok)
		for _, v := range versions {
			one, ok := v.(map[string]any)
			require.True(t, ok)
			if one["name"] == version {
				one["served"], one["storage"] = true, true
				kept = append(kept, one)
			}
		}
		require.Len(t, kept, 1, file)
		definition.Spec["versions"] = kept
		definition.Spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		}}
		s.Send(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
		names, ok := definition.Spec["names"].(map[string]any)
		require.True(t, ok)
		plural, ok := names["plural"].(string)
		require.True(t, ok)
		require.Eventually(t, func() bool {
			code, _, err := s.Try(t.Context(), http.MethodGet, KueueGroup+version+"/"+plural, nil)
			return err == nil && code == http.StatusOK
		}, time.Minute, 50*time.Millisecond, plural)
	}
}

// SendKueue makes an object of Kueue with a status; namespace is "" for kinds without namespaces.
func (s *Server) SendKueue(t *testing.T, version, kind, plural, namespace, name string, spec, status map[string]any) {
	t.Helper()
	path := KueueGroup + version + "/"
	if namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	s.Send(t, http.MethodPost, path+plural, map[string]any{
		"apiVersion": "kueue.x-k8s.io/" + version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if status != nil {
		s.Send(t, http.MethodPatch, path+plural+"/"+name+"/status", map[string]any{"status": status})
	}
}
