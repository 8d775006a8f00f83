package trace

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFinishedWorkloadsAreAHistory(t *testing.T) {
	file, err := os.Open("../../../../examples/kueue/history.yaml")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	h, err := ReadWorkloads("history.yaml", file)
	require.NoError(t, err)
	require.Equal(t, []string{"1 workload not finished: left out"}, h.Notes)
	require.Equal(t, time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), h.Start)
	require.Len(t, h.Jobs, 6)
	require.Equal(t, Job{
		Name: "language/pytorchjob-pretrain-2c", Queue: "language", Owner: "language/main", Arrival: 45 * 60, Min: 8, Seconds: 105 * 60,
		Groups: []Group{
			{Role: "master", Tasks: 1, Request: []Amount{{"cpu", 8000}, {"nvidia.com/gpu", 1000}}},
			{Role: "worker", Tasks: 7, Request: []Amount{{"cpu", 8000}, {"nvidia.com/gpu", 1000}}},
		},
	}, h.Jobs[1])
}

func TestWhatAHistoryOfWorkloadsCannotTellIsCounted(t *testing.T) {
	workload := func(name, created, status string) string {
		return "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: " + name + ", namespace: a" + created + "}\n" +
			"spec: {queueName: main, podSets: [{name: main, count: 4, minCount: 1, template: {spec: {containers: [{name: c, resources: " +
			"{requests: {cpu: 1, memory: 1Gi}}}]}}}]}\nstatus: " + status + "\n"
	}
	at := func(kind, minute string) string {
		return "{type: " + kind + `, status: "True", lastTransitionTime: "2026-11-02T08:` + minute + `:00Z"}`
	}
	const created = `, creationTimestamp: "2026-11-02T08:00:00Z"`
	ran := "conditions: [" + at("Admitted", "10") + ", " + at("Finished", "20") + "]"
	half := "admission: {clusterQueue: q, podSetAssignments: [{name: main, count: 2}]}, "
	h, err := ReadWorkloads("history.yaml", strings.NewReader(
		workload("half", created, "{"+half+ran+"}")+
			workload("waits", created, "{}")+
			workload("failed", created, "{conditions: ["+at("Finished", "20")+"]}")+
			workload("homeless", created, "{"+ran+"}")+
			workload("undated", "", "{"+half+ran+"}")))
	require.NoError(t, err)
	require.Equal(t, []string{
		"1 workload not finished: left out", "1 workload finished and never admitted: left out", "1 workload without a queue: left out",
		"1 workload without a time of creation, or with an end before the admission: left out",
	}, h.Notes)
	require.Equal(t, []Job{{
		Name: "a/half", Queue: "q", Owner: "a/main", Min: 1, Seconds: 300,
		Groups: []Group{{Role: "main", Tasks: 4, Request: []Amount{{"cpu", 1000}, {"memory", 1 << 30}}}},
	}}, h.Jobs)
	_, err = ReadWorkloads("history.yaml", strings.NewReader(
		workload("half", created, "{"+half+ran+"}")+workload("half", created, "{"+ran+"}")))
	require.EqualError(t, err, "history.yaml:8: Workload a/half is already at history.yaml:2")
	_, err = ReadWorkloads("history.yaml", strings.NewReader("kind: [\n"))
	require.ErrorContains(t, err, "history.yaml")
}
