package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var workloadResource = schema.GroupVersionResource{Group: group, Version: "v1beta2", Resource: "workloads"}

// settled is a story in which a uses all 12 CPUs, and b may not take its own: a0 to a5 run, and b0 waits. Nothing is left to be written.
func settled(t *testing.T) *story {
	t.Helper()
	l := tell(t, "evict: none")
	for i := range 6 {
		l.workload(fmt.Sprint("a", i), "a", 2, stateReady)
	}
	l.workload("b0", "b", 4, "")
	l.decide()
	return l
}

func TestADecisionCountsUntilSomethingChanges(t *testing.T) {
	l := settled(t)
	first := l.last
	require.NotNil(t, first)
	l.clock = l.clock.Add(time.Hour)
	l.decide()
	require.Same(t, first, l.last, "nothing has changed")

	l.cluster.remove(workloadKind, "team-a/a0")
	l.workload("b1", "b", 1, statePending)
	require.Equal(t, stateReady, l.decide()["b1"])
	require.NotSame(t, first, l.last)
	require.NotNil(t, l.last, "the answer to its write is another change")
	l.decide()
	second := l.last
	l.decide()
	require.Same(t, second, l.last)
}

func TestADecisionCountsNoLongerThanAWorkloadIsHeldBack(t *testing.T) {
	l := settled(t)
	again := morning.Add(time.Minute)
	spec := l.spec("team-b", "b0")
	l.object(workloadKind, "workloads", "team-b", "b1", spec, map[string]any{
		"requeueState": map[string]any{"requeueAt": again.Format(time.RFC3339)},
	})
	l.decide()
	held := l.last
	require.Equal(t, again, held.of.until.UTC())
	l.clock = again.Add(-time.Second)
	l.decide()
	require.Same(t, held, l.last)
	l.clock = again
	l.decide()
	require.NotSame(t, held, l.last)
	require.Zero(t, l.last.of.until)
}

// spec is that of a Workload.
func (l *story) spec(namespace, name string) map[string]any {
	l.t.Helper()
	u, err := l.clients.Tracker().Get(workloadResource, namespace, name)
	require.NoError(l.t, err)
	object, ok := u.(*unstructured.Unstructured)
	require.True(l.t, ok)
	spec, ok := object.Object["spec"].(map[string]any)
	require.True(l.t, ok)
	return spec
}

func TestAPolicyThatTimeMayChangeDecidesEachTime(t *testing.T) {
	l := settled(t)
	clocked, err := client.Policy(client.Tier{"gang", "cdp"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		policy *apportionv1.Policy
		kept   bool
	}{
		"the preset":                      {l.input.Policy, true},
		"a plugin with a clock":           {clocked, false},
		"one that the service configures": {nil, false},
	} {
		l.last, l.input.Policy = nil, c.policy
		l.keep(&decision{of: &moment{}}, morning)
		require.Equal(t, c.kept, l.last != nil, name)
	}
}

func TestWhatTheControllerWroteIsNoNewsWhenTheWatchHasIt(t *testing.T) {
	l := settled(t)
	for len(l.cluster.changed) > 0 {
		<-l.cluster.changed
	}
	u, err := l.clients.Tracker().Get(workloadResource, "team-a", "a0")
	require.NoError(t, err)
	store := kindStore{l.cluster, workloadKind, group + "/v1beta2"}
	require.NoError(t, store.Update(u))
	require.Empty(t, l.cluster.changed)
	newer, ok := u.DeepCopyObject().(*unstructured.Unstructured)
	require.True(t, ok)
	newer.SetResourceVersion("1000")
	require.NoError(t, store.Update(newer))
	require.Len(t, l.cluster.changed, 1)
}
