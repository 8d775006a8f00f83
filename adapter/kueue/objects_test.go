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
	"github.com/apportion/apportion/adapter/objects"
)

// A follower's snapshot is that of a dump of the same objects, whatever came and went before.
func TestFollowedObjectsMakeTheSnapshotOfADump(t *testing.T) {
	files, err := filepath.Glob("testdata/pending/*.yaml")
	require.NoError(t, err)
	followed := kueue.NewObjects()
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := kueue.Read([]objects.Source{{Name: file, Data: data}}, now)
		require.NoError(t, err)
		kinds := map[string][]*objects.Object{}
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
			object, err := followed.Read(objects.Kind{Name: head.Kind, Version: head.Version}, raw)
			require.NoError(t, err)
			kinds[head.Kind] = append(kinds[head.Kind], object)
		}
		for _, kind := range []string{
			"Namespace", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "AdmissionCheck", "Workload",
		} {
			followed.Replace(objects.Kind{Name: kind}, kinds[kind])
			require.False(t, followed.Replace(objects.Kind{Name: kind}, kinds[kind]), "nothing changes twice")
			require.Equal(t, len(kinds[kind]), followed.Count(objects.Kind{Name: kind}))
		}
		for range 2 {
			got := followed.Cluster(now)
			require.True(t, proto.Equal(want.Snapshot, got.Snapshot), "%s\n%v\n%v", file, want.Snapshot, got.Snapshot)
		}
	}
}

func TestAFollowedObjectThatIsInvalidIsLeftOutAndNamed(t *testing.T) {
	followed := kueue.NewObjects()
	put := func(kind, data string) bool {
		object, err := followed.Read(objects.Kind{Name: kind, Version: "kueue.x-k8s.io/v1beta1"}, []byte(data))
		require.NoError(t, err)
		return followed.Put(object)
	}
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "a"}}`))
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "b"}, "spec": {"queueingStrategy": "Random"}}`))
	require.False(t, put("ClusterQueue", `{"metadata": {"name": "a", "resourceVersion": "7"}, "status": {"pendingWorkloads": 3}}`))
	require.True(t, put("LocalQueue", `{"metadata": {"name": "l", "namespace": "n"}, "spec": {"clusterQueue": "a"}}`))
	require.True(t, put("Workload", `{"metadata": {"name": "w", "namespace": "n"}, "spec": {"queueName": "l"}}`))
	cluster := followed.Cluster(now)
	require.Len(t, cluster.Snapshot.GetQueues(), 1)
	require.Len(t, cluster.Snapshot.GetJobs(), 1)
	require.Len(t, cluster.Faulty, 1)
	require.Contains(t, cluster.Faulty[0].String(), `ClusterQueue b: spec.queueingStrategy`)
	require.Equal(t, "b", cluster.Snapshot.GetLeftOuts()[0].GetName())
	require.True(t, put("ClusterQueue", `{"metadata": {"name": "b"}}`))
	require.Empty(t, followed.Cluster(now).Faulty)
}

func TestAWorkloadWaitsForItsNextAttemptUntilThatTime(t *testing.T) {
	followed := kueue.NewObjects()
	at := now.Add(time.Minute).Format(time.RFC3339)
	for kind, data := range map[string]string{
		"ClusterQueue": `{"metadata": {"name": "a"}, "spec": {"namespaceSelector": {}}}`,
		"LocalQueue":   `{"metadata": {"name": "l", "namespace": "n"}, "spec": {"clusterQueue": "a"}}`,
		"Workload":     `{"metadata": {"name": "w", "namespace": "n"}, "spec": {"queueName": "l"}, "status": {"requeueState": {"requeueAt": "` + at + `"}}}`,
	} {
		object, err := followed.Read(objects.Kind{Name: kind, Version: "kueue.x-k8s.io/v1beta1"}, []byte(data))
		require.NoError(t, err)
		followed.Put(object)
	}
	require.NotZero(t, followed.Cluster(now).Snapshot.GetJobs()[0].GetKueue().GetWithheld())
	require.Zero(t, followed.Cluster(now.Add(2 * time.Minute)).Snapshot.GetJobs()[0].GetKueue().GetWithheld())
}
