package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/adapter/volcano"
)

// listing returns a source of pods of a server, and the faults that it reports.
func listing(t *testing.T, server http.HandlerFunc) (*source, *[]string) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	client, err := clientOf(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	var faults []string
	f := &Follower{objects: &volcanoStore{Objects: volcano.NewObjects()}}
	pods := followed["pods"]
	state := &kindState{
		resource: "pods", kind: pods.Newest(), objects: f.objects, metrics: newMetrics(f),
		reportFault: func(_, fault string, _ bool) { faults = append(faults, fault) },
	}
	return &source{
		client: client, paths: []string{"/api/v1/pods"}, kind: state.kind, objects: f.objects, state: state, pageTime: time.Minute, most: 100,
	}, &faults
}

func TestAHostileListEnds(t *testing.T) {
	t.Run("one that comes byte by byte", func(t *testing.T) {
		s, faults := listing(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		})
		s.pageTime = 20 * time.Millisecond
		_, err := s.List(t.Context(), metav1.ListOptions{Limit: 10})
		require.ErrorIs(t, err, errLatePage)
		require.Equal(t, []string{errLatePage.Error()}, *faults)
	})
	t.Run("one whose pages do not end", func(t *testing.T) {
		s, faults := listing(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"metadata": {"continue": "again"}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`)
		})
		options, pages := metav1.ListOptions{Limit: 2}, 0
		for ; ; pages++ {
			if _, err := s.List(t.Context(), options); err != nil {
				break
			}
			options.Continue = "again"
		}
		require.Equal(t, 50, pages)
		require.Equal(t, []string{"the API server lists more than 100 objects"}, *faults)
		_, err := s.List(t.Context(), metav1.ListOptions{Limit: 2})
		require.NoError(t, err, "the next list begins anew")
	})
}

func TestGarbageInAWatchIsAFaultAndEndsIt(t *testing.T) {
	for _, event := range []string{
		`{"type": "ADDED", "object": 7}`, `{"type": "NEW", "object": {}}`, `{"type": 7}`, "<html>",
		`{"type": "ADDED", "object": {"metadata": {"name": "` + string(make([]byte, 100)) + `"}}}`,
	} {
		s, faults := listing(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, event) })
		w, err := s.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for got := range w.ResultChan() {
			require.Equal(t, watch.Error, got.Type, event)
		}
		w.Stop()
		require.Len(t, *faults, 1, event)
	}
}
