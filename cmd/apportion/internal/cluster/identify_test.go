package cluster

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/ledger"
)

func TestTheLedgerOfAnotherClusterIsRefusedByAFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	for _, c := range []struct {
		name, uid, fault string
		status           int
		known            string
	}{
		{"the first cluster is written down", "one", "", http.StatusOK, "one"},
		{"it is found again", "one", "", http.StatusOK, "one"},
		{"another one is refused", "two", `the ledger is about another cluster: "one", not "two"`, http.StatusOK, "one"},
		{"one that may not be read is not told apart", "", "", http.StatusForbidden, "one"},
		{"one that fails is asked again", "", "not known yet", http.StatusInternalServerError, "one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/kube-system" {
					t.Errorf("%s is read", r.URL.Path)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"metadata": {"uid": "` + c.uid + `"}}`))
			}))
			defer server.Close()
			client, err := clientOf(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			m := openMemory(t, path)
			f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.DiscardHandler)}, client: client}
			if err := f.identify(t.Context()); c.fault == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fault)
			}
			f.store(t.Context(), time.Now(), false)
			m.File.View(func(l *ledger.Ledger) { require.Equal(t, c.known, l.Cluster()) })
			require.NoError(t, m.File.Close())
		})
	}
}
