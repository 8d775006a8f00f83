package volcano

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARemedyForConstraintsNamesThePodsAndRolesThatItChanges(t *testing.T) {
	const pod = "---\n{kind: Pod, metadata: {name: %s, namespace: ns, annotations: {scheduling.k8s.io/group-name: j, volcano.sh/task-spec: %s}}, spec: {%s}}\n"
	pods := ""
	for _, p := range [][3]string{
		{"master-0", "master", `nodeSelector: {gpu: h100, zone: "3"}`},
		{"w-0", "worker", ""},
		{"w-1", "worker", ""},
		{"w-2", "worker", ""},
		{"w-3", "worker", ""},
		{"w-4", "worker", ""},
	} {
		pods += fmt.Sprintf(pod, p[0], p[1], p[2])
	}
	cluster := read(t, racks+pods)
	var why []string
	for _, patch := range cluster.constraints(0, []uint32{0, 1, 3}) {
		why = append(why, patch.Why)
	}
	require.Equal(t, []string{
		"Pod master-0 of role master: the taint dedicated=vision:NoSchedule of b is not tolerated; " +
			"the node selector gpu=h100 and zone=3 leaves out a, b and d. Existing pods cannot be changed so: the template that makes them " +
			"needs this; or label the nodes, if they are what is asked for.",
		"Pods w-0, w-1, w-2, w-3 and 1 more of role worker: the taint dedicated=vision:NoSchedule of b is not tolerated. " +
			"The template that makes the pods needs these tolerations too, for pods that it makes later.",
	}, why)
}
