//go:build cluster

package cluster_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
)

const sweepJobs = "/apis/batch/v1/namespaces/sharing/jobs"

// sweepStandIn is the Job controller and the kubelet of a sweep: it starts the containers of pods as processes on directories in place of
// volumes.
type sweepStandIn struct {
	*apiServer

	t       *testing.T
	program string
	volumes *strings.Replacer
	results string
}

// jobs returns the Jobs as the API server has them: that of the shards, and that of the report.
func (s *sweepStandIn) jobs() (shards, merge batchv1.Job) {
	s.t.Helper()
	code, data, err := s.Try(s.t.Context(), http.MethodGet, sweepJobs, nil)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, code)
	var list batchv1.JobList
	require.NoError(s.t, json.Unmarshal(data, &list))
	require.Len(s.t, list.Items, 2)
	if list.Items[0].Spec.CompletionMode != nil && *list.Items[0].Spec.CompletionMode == batchv1.IndexedCompletion {
		return list.Items[0], list.Items[1]
	}
	return list.Items[1], list.Items[0]
}

// start starts the pod of an index of a Job.
func (s *sweepStandIn) start(job *batchv1.Job, index int) (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	var arguments []string
	for _, argument := range job.Spec.Template.Spec.Containers[0].Args {
		arguments = append(arguments, s.volumes.Replace(argument))
	}
	pod, out := exec.CommandContext(s.t.Context(), s.program, arguments...), &bytes.Buffer{}
	pod.Env = append(os.Environ(), "JOB_COMPLETION_INDEX="+strconv.Itoa(index))
	pod.Stdout, pod.Stderr = out, os.Stderr
	require.NoError(s.t, pod.Start())
	return pod, out
}

// run runs all indexes, as many at the same time as the Job says, and each again that fails. A pod of the index lost is killed, once, when
// there is a result of its own.
func (s *sweepStandIn) run(job *batchv1.Job, lost int) (failures int) {
	s.t.Helper()
	type end struct {
		index int
		err   error
	}
	ends, next, active, done := make(chan end), 0, 0, 0
	start := func(index int) {
		pod, _ := s.start(job, index)
		if index == lost && failures == 0 {
			before := s.count()
			require.Eventually(s.t, func() bool { return s.count() > before }, 5*time.Minute, time.Millisecond)
			require.NoError(s.t, pod.Process.Kill())
		}
		active++
		go func() { ends <- end{index, pod.Wait()} }()
	}
	for done < int(*job.Spec.Completions) {
		for active < int(*job.Spec.Parallelism) && next < int(*job.Spec.Completions) {
			start(next)
			next++
		}
		e := <-ends
		if active--; e.err == nil {
			done++
			continue
		}
		failures++
		require.LessOrEqual(s.t, failures, int(*job.Spec.BackoffLimitPerIndex))
		start(e.index)
	}
	return failures
}

// count counts the results.
func (s *sweepStandIn) count() int {
	files, err := filepath.Glob(filepath.Join(s.results, "run-*.json"))
	require.NoError(s.t, err)
	return len(files)
}

// TestASweepOnARealAPIServerIsThatOfOneProcess sends the Jobs of the chart to an API server, which validates them and fills in what they
// leave out, and plays what it then has. One pod is killed half way; the report is that of one process, to the last byte.
func TestASweepOnARealAPIServerIsThatOfOneProcess(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	jobs, err := os.ReadFile(filepath.Join(root, "tools", "chart", "testdata", "rendered", "sweep-played.yaml"))
	require.NoError(t, err)
	inputs, err := filepath.Abs(filepath.Join(root, "examples"))
	require.NoError(t, err)
	results := filepath.Join(t.TempDir(), "results")
	s := &sweepStandIn{
		apiServer: startServer(t), t: t, program: filepath.Join(t.TempDir(), "apportion"), results: results,
		volumes: strings.NewReplacer("/inputs/research", filepath.Join(inputs, "clusters", "research"),
			"/inputs/week.csv", filepath.Join(inputs, "traces", "week.csv"), "/results", results),
	}
	built, err := exec.Command("go", "build", "-o", s.program, "github.com/apportion/apportion/cmd/apportion").CombinedOutput()
	require.NoError(t, err, string(built))
	s.Send(t, http.MethodPost, "/api/v1/namespaces", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "sharing"},
	})
	s.Apply(t, jobs)
	shards, merge := s.jobs()
	require.Equal(t, 1, s.run(&shards, 1))
	s.Send(t, http.MethodPatch, sweepJobs+"/"+shards.Name+"/status", map[string]any{"status": map[string]any{
		"startTime": time.Now().UTC().Format(time.RFC3339), "succeeded": 3, "completedIndexes": "0-2",
	}})
	report, out := s.start(&merge, 0)
	require.NoError(t, report.Wait())

	var arguments []string
	for _, argument := range shards.Spec.Template.Spec.Containers[0].Args {
		if !strings.HasPrefix(argument, "--results=") && !strings.HasPrefix(argument, "--shard=") {
			arguments = append(arguments, s.volumes.Replace(argument))
		}
	}
	one := exec.Command(s.program, arguments...)
	one.Stderr = os.Stderr
	whole, err := one.Output()
	require.NoError(t, err)
	require.Equal(t, string(whole), out.String())
}
