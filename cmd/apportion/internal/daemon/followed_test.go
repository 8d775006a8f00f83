package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/policy"
)

func TestThePolicyOfTheFollowedClusterIsThatOfVolcanosConfigMap(t *testing.T) {
	type said struct {
		status int
		conf   string
	}
	// answer is what the API server says about the ConfigMap.
	var answer atomic.Pointer[said]
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		now := answer.Load()
		w.WriteHeader(now.status)
		if now.status != http.StatusOK {
			_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "it says %d", "code": %d}`, now.status, now.status)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
			"data": {"volcano-scheduler.conf": %q}}`, now.conf)
	}))
	t.Cleanup(api.Close)
	p := at(t, "")
	p.write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`, api.URL))
	const conf = "tiers:\n- plugins:\n  - name: drf\nactions: enqueue, allocate, backfill, preempt, reclaim\n"
	configure := func(more string) { p.configure("follow: {enabled: true, kubeconfig: kubeconfig}\n" + more) }
	configure("")
	require.NoError(t, p.open())
	t.Cleanup(func() { require.NoError(t, p.abandon(t.Context())) })
	named := func() string {
		t.Helper()
		if proto.Equal(policy.Installed().Message, (*p.policies.Load())[followedName]) {
			return "default"
		}
		return (*p.policies.Load())[followedName].GetTiers()[0].GetPlugins()[0].String()
	}
	for _, step := range []struct {
		when string
		says said
		want string
		told string
	}{
		{"the API server fails", said{status: http.StatusServiceUnavailable}, "default", ""},
		{"the ConfigMap may not be read", said{status: http.StatusForbidden}, "default", "it says 403"},
		{"there is one", said{http.StatusOK, conf}, "drf:{}", "ConfigMap volcano-system/volcano-scheduler-configmap"},
		{"it becomes faulty", said{http.StatusOK, "tiers: 3\n"}, "drf:{}", "tiers: not a list"},
		{"the API server is away again", said{status: http.StatusServiceUnavailable}, "drf:{}", ""},
		{"it is deleted", said{status: http.StatusNotFound}, "default", policy.InstalledName},
		{"it is back", said{http.StatusOK, conf}, "drf:{}", ""},
	} {
		answer.Store(&step.says)
		p.readFollowed(t.Context())
		require.Equal(t, step.want, named(), step.when)
		require.Contains(t, p.log.String(), step.told, step.when)
		require.Equal(t, step.when != "the API server fails", p.followed.tried.Load(), step.when)
	}
	p.Reload(t.Context())
	require.Equal(t, "drf:{}", named(), "a reload keeps it")
	configure("policies: {volcano: preset:fair}\n")
	p.Reload(t.Context())
	require.Equal(t, "priority:{}", named(), "the settings win")
	answer.Store(&said{http.StatusOK, "tiers:\n- plugins:\n  - name: gang\nactions: enqueue, allocate, backfill, preempt, reclaim\n"})
	p.readFollowed(t.Context())
	require.Equal(t, "priority:{}", named())
	configure("")
	p.Reload(t.Context())
	require.Contains(t, named(), "gang", "what was read meanwhile")
}
