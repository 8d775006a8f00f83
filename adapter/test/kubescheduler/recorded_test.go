package kubescheduler_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/test/kubescheduler"
)

// A change of the generator without new answers is found without a cluster.
func TestTheRecordedClustersAreThoseOfTheirSeeds(t *testing.T) {
	clusters, err := kubescheduler.Read(filepath.Join("..", "..", "..", "adapter", "volcano", "testdata", "kubescheduler.jsonl.gz"))
	require.NoError(t, err)
	require.Len(t, clusters, 200)
	for _, c := range clusters {
		var objects struct {
			Items []json.RawMessage `json:"items"`
		}
		require.NoError(t, json.Unmarshal(c.Objects, &objects))
		recorded := map[string]*corev1.Pod{}
		for _, raw := range objects.Items {
			p := &corev1.Pod{}
			if err := json.Unmarshal(raw, p); err == nil && p.Kind == "Pod" {
				recorded[p.Namespace+"/"+p.Name] = p
			}
		}
		o := kubescheduler.Generate(c.Seed)
		require.Len(t, recorded, len(o.Placed)+len(o.Waiting), "seed %d", c.Seed)
		require.Len(t, c.Pods, len(o.Waiting), "seed %d", c.Seed)
		for _, p := range append(o.Placed, o.Waiting...) {
			got := recorded[p.Namespace+"/"+p.Name]
			require.NotNil(t, got, "seed %d: %s", c.Seed, p.Name)
			require.Equal(t, p.Spec.NodeName, got.Spec.NodeName, p.Name)
			require.Equal(t, p.Spec.NodeSelector, got.Spec.NodeSelector, p.Name)
			require.Equal(t, p.Spec.Volumes, got.Spec.Volumes, p.Name)
			require.Subset(t, got.Labels, p.Labels, p.Name)
			require.Subset(t, got.Spec.Tolerations, p.Spec.Tolerations, p.Name)
			require.Len(t, got.Spec.TopologySpreadConstraints, len(p.Spec.TopologySpreadConstraints), p.Name)
			require.Equal(t, p.DeletionTimestamp.IsZero(), got.DeletionTimestamp.IsZero(), p.Name)
			require.True(t, p.Spec.Containers[0].Resources.Requests.Cpu().Equal(*got.Spec.Containers[0].Resources.Requests.Cpu()), p.Name)
		}
	}
}
