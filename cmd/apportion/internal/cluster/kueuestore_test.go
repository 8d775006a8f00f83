package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/internal/decode"
)

// kueueStoreOf returns a store with two queues of which one has workloads that wait, so many in each namespace.
func kueueStoreOf(t *testing.T, limits decode.Limits, waiting map[string]int) *kueueStore {
	t.Helper()
	s := &kueueStore{kueue.NewObjects(kueue.WithLimits(limits)), limits}
	put := func(kind, data string) {
		o, err := s.Read(objects.Kind{Name: kind, Version: "kueue.x-k8s.io/v1beta1"}, []byte(data))
		require.NoError(t, err)
		s.Put(o)
	}
	for _, name := range []string{"a", "b"} {
		put("ClusterQueue", fmt.Sprintf(`{"metadata": {"name": %q}, "spec": {"namespaceSelector": {}}}`, name))
	}
	for namespace, n := range waiting {
		put("LocalQueue", fmt.Sprintf(`{"metadata": {"name": "l", "namespace": %q}, "spec": {"clusterQueue": "a"}}`, namespace))
		for i := range n {
			put("Workload", fmt.Sprintf(`{"metadata": {"name": "w%d", "namespace": %q}, "spec": {"queueName": "l"}}`, i, namespace))
		}
	}
	return s
}

// heldOf counts the workloads of a version by namespace.
func heldOf(m *made) map[string]int {
	held := map[string]int{}
	for _, job := range m.snapshot.GetJobs() {
		held[job.GetNamespace()]++
	}
	return held
}

func TestWorkloadsBeyondTheLimitAreThoseOfTheLargestNamespaces(t *testing.T) {
	s := kueueStoreOf(t, decode.Limits{Jobs: 20}, map[string]int{"small": 3, "large": 30, "larger": 60})
	m, err := s.version(time.Now(), 1<<30, nil, nil)
	require.NoError(t, err)
	held := heldOf(m)
	require.Equal(t, 3, held["small"])
	require.Equal(t, 8, held["large"])
	require.Equal(t, 8, held["larger"])
	require.Equal(t, uint32(74), m.leftOut["Workload"])
	require.Len(t, m.snapshot.GetLeftOuts(), 74)
	require.Equal(t, "there are more than 20 workloads", m.snapshot.GetLeftOuts()[0].GetDetail())
}

func TestWorkloadsForWhichThereIsNoMemoryAreThoseOfTheLargestNamespaces(t *testing.T) {
	waiting := map[string]int{"small": 3, "large": 2000}
	whole, err := kueueStoreOf(t, decode.Limits{}, waiting).version(time.Now(), 1<<30, nil, nil)
	require.NoError(t, err)
	_, takes, err := encode(whole.snapshot, 1<<30)
	require.NoError(t, err)
	m, err := kueueStoreOf(t, decode.Limits{}, waiting).version(time.Now(), takes/2, nil, nil)
	require.NoError(t, err)
	_, takes, err = encode(m.snapshot, takes)
	require.NoError(t, err)
	require.Equal(t, 3, heldOf(m)["small"])
	require.Positive(t, heldOf(m)["large"])
	require.NotZero(t, m.leftOut["Workload"])
	require.NotZero(t, takes)
}

func TestQueuesBeyondTheLimitAreLeftOutWithTheirWorkloads(t *testing.T) {
	m, err := kueueStoreOf(t, decode.Limits{Queues: 1}, map[string]int{"team": 3}).version(time.Now(), 1<<30, nil, nil)
	require.NoError(t, err)
	require.Len(t, m.snapshot.GetQueues(), 1)
	require.Equal(t, map[string]int{"team": 3}, heldOf(m))
	require.Equal(t, uint32(1), m.leftOut["ClusterQueue"])
}
