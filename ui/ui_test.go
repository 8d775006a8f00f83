package ui_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/ui"
)

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEveryFileIsServedWithAStrictPolicy(t *testing.T) {
	h, err := ui.NewHandler(ui.Options{})
	require.NoError(t, err)
	total := 0
	require.NoError(t, fs.WalkDir(os.DirFS("dist"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, err := os.ReadFile("dist/" + name)
		require.NoError(t, err)
		w := get(t, h, ui.Path+name)
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Equal(t, string(want), w.Body.String(), name)
		require.Equal(t, map[string]string{
			".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
		}[path.Ext(name)], w.Header().Get("Content-Type"), name)
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self';", name)
		require.NotContains(t, policy, "unsafe", name)
		w = get(t, h, ui.Path+name, "Accept-Encoding", "gzip, br")
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), name)
		total += w.Body.Len()
		unpacked, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		got, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
		return nil
	}))
	require.Less(t, total, 120<<10, "bytes compressed")
}

func TestThePageIsNotSentAgain(t *testing.T) {
	h, err := ui.NewHandler(ui.Options{})
	require.NoError(t, err)
	first := get(t, h, ui.Path)
	require.Equal(t, http.StatusOK, first.Code)
	require.Contains(t, first.Header().Get("Content-Type"), "text/html")
	require.Equal(t, http.StatusNotModified, get(t, h, ui.Path, "If-None-Match", first.Header().Get("ETag")).Code)
}

func TestNothingElseIsServed(t *testing.T) {
	h, err := ui.NewHandler(ui.Options{})
	require.NoError(t, err)
	for _, path := range []string{"/", "/ui", "/ui/none", "/ui/snapshot.json", "/ui/../ui.go", "/main.js", "/uimain.js"} {
		require.Equal(t, http.StatusNotFound, get(t, h, path).Code, path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, ui.Path, strings.NewReader("x")))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestTheSourceTellsClusterAndPolicies(t *testing.T) {
	presets, err := ui.Presets()
	require.NoError(t, err)
	require.Len(t, presets, len(client.Presets()))
	h, err := ui.NewHandler(ui.Options{Policies: presets, Cluster: &ui.Cluster{
		Title: "<b>", Digest: "sha256:0", Read: time.Unix(0, 0), Snapshot: []byte(`{"queues":[]}`), Warnings: []string{"w"},
	}})
	require.NoError(t, err)
	var source map[string]any
	require.NoError(t, json.Unmarshal(get(t, h, ui.Path+"source.json").Body.Bytes(), &source))
	require.Equal(t, map[string]any{
		"title": "<b>", "digest": "sha256:0", "read": "1970-01-01T00:00:00Z", "snapshot": "snapshot.json", "warnings": []any{"w"},
	}, source["cluster"])
	require.Len(t, source["policies"], len(presets))
	require.JSONEq(t, `{"queues":[]}`, get(t, h, ui.Path+"snapshot.json").Body.String())
}
