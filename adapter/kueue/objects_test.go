package kueue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/apportion/apportion/adapter/kueue"
)

// A follower's snapshot is that of a dump of the same objects, whatever came and went before.
func TestFollowedObjectsMakeTheSnapshotOfADump(t *testing.T) {
	files, err := filepath.Glob("testdata/pending/*.yaml")
	require.NoError(t, err)
	objects := kueue.NewObjects()
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := kueue.Read([]kueue.Source{{Name: file, Data: data}}, now)
		require.NoError(t, err)
		kinds := map[string][]*kueue.Object{}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			var raw json.RawMessage
			if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
				break
			}
			var head struct {
				Version string `json:"apiVersion"`
				Kind    string `json:"kind"`
			}
			require.NoError(t, json.Unmarshal(raw, &head))
			object, err := objects.Read(head.Kind, head.Version, raw)
			require.NoError(t, err)
			kinds[head.Kind] = append(kinds[head.Kind], object)
		}
		for _, kind := range []string{
			"Namespace", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "AdmissionCheck", "Workload",
		} {
			objects.Replace(kind, kinds[kind])
			require.False(t, objects.Replace(kind, kinds[kind]), "nothing changes twice")
			require.Equal(t, len(kinds[kind]), objects.Count(kind))
		}
		for range 2 {
			got := objects.Cluster(now)
			require.True(t, proto.Equal(want.Snapshot, got.Snapshot), "%s\n%v\n%v", file, want.Snapshot, got.Snapshot)
		}
	}
}

func TestAFollowedObjectThatIsInvalidIsLeftOutAndNamed(t *testing.T) {
	objects := kueue.NewObjects()
	put := func(kind, data string) bool {
		object, err := objects.Read(kind, "kueue.x-k8s.io/v1beta1", []byte(data))
		require.NoError(t, err)
		return objects.Put(object)
	}
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "a"}}`))
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "b"}, "spec": {"queueingStrategy": "Random"}}`))
	require.False(t, put("ClusterQueue", `{"metadata": {"name": "a", "resourceVersion": "7"}, "status": {"pendingWorkloads": 3}}`))
	require.True(t, put("LocalQueue", `{"metadata": {"name": "l", "namespace": "n"}, "spec": {"clusterQueue": "a"}}`))
	require.True(t, put("Workload", `{"metadata": {"name": "w", "namespace": "n"}, "spec": {"queueName": "l"}}`))
	cluster := objects.Cluster(now)
	require.Len(t, cluster.Snapshot.GetQueues(), 1)
	require.Len(t, cluster.Snapshot.GetJobs(), 1)
	require.Len(t, cluster.Faulty, 1)
	require.Contains(t, cluster.Faulty[0].Fault, `ClusterQueue b: spec.queueingStrategy`)
	require.Equal(t, "b", cluster.Snapshot.GetLeftOut()[0].GetName())
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "b"}}`))
	require.Empty(t, objects.Cluster(now).Faulty)
}

func TestAWorkloadWaitsForItsNextAttemptUntilThatTime(t *testing.T) {
	objects := kueue.NewObjects()
	at := now.Add(time.Minute).Format(time.RFC3339)
	for kind, data := range map[string]string{
		"ClusterQueue": `{"metadata": {"name": "a"}, "spec": {"namespaceSelector": {}}}`,
		"LocalQueue":   `{"metadata": {"name": "l", "namespace": "n"}, "spec": {"clusterQueue": "a"}}`,
		"Workload":     `{"metadata": {"name": "w", "namespace": "n"}, "spec": {"queueName": "l"}, "status": {"requeueState": {"requeueAt": "` + at + `"}}}`,
	} {
		object, err := objects.Read(kind, "kueue.x-k8s.io/v1beta1", []byte(data))
		require.NoError(t, err)
		objects.Put(object)
	}
	require.NotZero(t, objects.Cluster(now).Snapshot.GetJobs()[0].GetKueue().GetWithheld())
	require.Zero(t, objects.Cluster(now.Add(2 * time.Minute)).Snapshot.GetJobs()[0].GetKueue().GetWithheld())
}
