package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAClusterWithKueueIsJudgedByKueuesRules opens a server that follows Kueue: the policy is there from the beginning, and readiness does
// not wait for a ConfigMap of Volcano, which is not asked for.
func TestAClusterWithKueueIsJudgedByKueuesRules(t *testing.T) {
	p := at(t, "")
	p.write("kubeconfig", `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]}`)
	p.configure("follow: {enabled: true, system: kueue, kubeconfig: kubeconfig}\n")
	require.NoError(t, p.open())
	t.Cleanup(func() { require.NoError(t, p.abandon(t.Context())) })
	policies := *p.policies.Load()
	require.NotContains(t, policies, followedName)
	require.NotNil(t, policies[kueueSystem].GetTiers()[0].GetPlugins()[0].GetKueue())
	require.True(t, p.followed.tried.Load())
}
