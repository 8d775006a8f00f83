package chart

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// sweeps returns the Job of a sweep and that of its report, nil if there is none.
func sweeps(t *testing.T, with map[string]any) (shards, merge *batchv1.Job) {
	t.Helper()
	texts, err := render(t, with)
	require.NoError(t, err)
	all := objects{}
	decode(t, all, "sweep.yaml", texts["apportion/templates/sweep.yaml"])
	for id, object := range all {
		job, ok := object.(*batchv1.Job)
		require.True(t, ok, id)
		if strings.HasSuffix(id, "-merge") {
			merge = job
		} else {
			shards = job
		}
	}
	return shards, merge
}

// setting returns the values of the sweep, to change them.
func setting(with map[string]any) map[string]any {
	return with["rehearse"].(map[string]any)["sweep"].(map[string]any)
}

func TestEachPodOfASweepRunsAShard(t *testing.T) {
	shards, merge := sweeps(t, values(t, "testdata/sweep.yaml"))
	require.Equal(t, batchv1.IndexedCompletion, *shards.Spec.CompletionMode)
	require.Equal(t, []int32{40, 8, 3}, []int32{*shards.Spec.Completions, *shards.Spec.Parallelism, *shards.Spec.BackoffLimitPerIndex})
	pod := shards.Spec.Template.Spec
	require.Equal(t, []string{
		"rehearse", "--file=/inputs/cluster.yaml", "--trace=/inputs/march.csv", "--policy=proportion", "--policy=fair", "--seed=0,1,2,3",
		"--results=/results", "--shard=auto/40",
	}, pod.Containers[0].Args)
	require.Empty(t, pod.InitContainers)
	require.True(t, mount(pod, "/inputs").ReadOnly)
	require.Equal(t, "sweep", pod.Volumes[1].PersistentVolumeClaim.ClaimName)
	require.Equal(t, map[string]string{"pool": "batch"}, pod.NodeSelector)
	require.Equal(t, []string{"rehearse", "merge", "/results"}, merge.Spec.Template.Spec.Containers[0].Args)
	require.LessOrEqual(t, len(merge.Name), 63)
	for _, job := range []*batchv1.Job{shards, merge} {
		restricted(t, job.Spec.Template.Spec)
		require.False(t, *job.Spec.Template.Spec.AutomountServiceAccountToken)
	}
	server := labels.SelectorFromSet(of[*appsv1.Deployment](t, made(t, "testdata/sweep.yaml"), "Deployment/fair-apportion").Spec.Selector.MatchLabels)
	require.False(t, server.Matches(labels.Set(shards.Spec.Template.Labels)))
}

func TestResultsInAnObjectStoreAreCopiedAfterTheShardAndBeforeTheReport(t *testing.T) {
	with := values(t, "testdata/sweep.yaml")
	delete(setting(with), "results")
	setting(with)["store"] = map[string]any{"image": "registry.example.org/rclone:1", "remote": "s3:bucket/sweep", "secret": "bucket"}
	shards, merge := sweeps(t, with)
	pod := shards.Spec.Template.Spec
	require.Equal(t, "shard", pod.InitContainers[0].Name)
	require.Equal(t, []string{"copy", "/results", "s3:bucket/sweep"}, pod.Containers[0].Args)
	require.Equal(t, "bucket", pod.Containers[0].EnvFrom[0].SecretRef.Name)
	require.NotNil(t, pod.Volumes[1].EmptyDir)
	report := merge.Spec.Template.Spec
	require.Equal(t, []string{"copy", "s3:bucket/sweep", "/results"}, report.InitContainers[0].Args)
	require.Equal(t, "merge", report.Containers[0].Name)
	restricted(t, pod)
	restricted(t, report)
}

func TestAnotherSweepIsAnotherJobAndItsReportIsNot(t *testing.T) {
	with := values(t, "testdata/sweep.yaml")
	first, _ := sweeps(t, with)
	setting(with)["merge"] = false
	same, merge := sweeps(t, with)
	require.Equal(t, first.Name, same.Name)
	require.Nil(t, merge)
	setting(with)["shards"] = 3
	other, _ := sweeps(t, with)
	require.NotEqual(t, first.Name, other.Name)
	require.Equal(t, int32(3), *other.Spec.Parallelism)
}

func TestASweepWithoutAPlaceForInputsOrResultsIsRefused(t *testing.T) {
	for fault, change := range map[string]func(s map[string]any){
		"rehearse.sweep.inputs: name the volume": func(s map[string]any) { delete(s, "inputs") },
		"rehearse.sweep: name a volume":          func(s map[string]any) { delete(s, "results") },
		"and not both":                           func(s map[string]any) { s["store"] = map[string]any{"image": "a", "remote": "s3:b"} },
		"rehearse.sweep.store.image: name an image": func(s map[string]any) {
			delete(s, "results")
			s["store"] = map[string]any{"remote": "s3:b"}
		},
		"'/rehearse/sweep/args/0'": func(s map[string]any) { s["args"] = []any{"--shard=1/2"} },
		"'/rehearse/sweep/shards'": func(s map[string]any) { s["shards"] = 0 },
	} {
		with := values(t, "testdata/sweep.yaml")
		change(setting(with))
		_, err := render(t, with)
		require.ErrorContains(t, err, fault)
	}
}

// TestTheSweepThatIsPlayedIsThatOfTheChart keeps the Jobs that cmd/apportion/internal/cluster sends to a real API server (-update writes
// them).
func TestTheSweepThatIsPlayedIsThatOfTheChart(t *testing.T) {
	const file = "testdata/rendered/sweep-played.yaml"
	texts, err := render(t, values(t, "testdata/sweep-played.yaml"))
	require.NoError(t, err)
	text := texts["apportion/templates/sweep.yaml"]
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(kept))
}
