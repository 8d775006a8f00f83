package extendertest

import (
	_ "embed" // of pod.json
	"strings"
)

// pod returns a pod as the API server keeps it.
func (p *pusher) pod(i int, node string) string {
	name, job := podName(i), jobName(i/podsOfJob)
	head := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"` + podUID(i) +
		`","creationTimestamp":"2026-01-02T03:07:00Z","labels":{"volcano.sh/task-spec":"worker"},` +
		`"annotations":{"scheduling.k8s.io/group-name":"` + job + `"`
	phase, nodeName := "Pending", ""
	if node != "" {
		phase, nodeName = "Running", `"nodeName":"`+node+`",`
	}
	if p.shape.Lean {
		return head + `}},"spec":{"containers":[{"name":"main",` +
			`"resources":{"requests":{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"}}}],` + nodeName +
			`"schedulerName":"volcano"},"status":{"phase":"` + phase + `"}}`
	}
	return head + strings.NewReplacer("\n", "", "$NAME", name, "$JOB", job, "$NODE", nodeName, "$PHASE", phase).Replace(clusterPod)
}

// clusterPod is the rest of a pod of a Volcano job in a cluster: environment, volumes, tolerations, what controllers noted in
// managedFields, and conditions. Its line breaks are only for human readers.
//
//go:embed pod.json
var clusterPod string
