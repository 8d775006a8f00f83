package volcano

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// readTask reads one pod of a job, given as flow YAML of its parts, and gives the task and what it asks for by name.
func readTask(t *testing.T, metadata, spec, status string) (*apportionv1.Task, map[string]float64) {
	t.Helper()
	s := read(t, fmt.Sprintf(`%s%s
---
kind: Node
metadata: {name: n}
---
kind: Pod
metadata: {name: p, namespace: ns, %s}
spec: {%s}
status: {%s}
`, aQueue, aPodGroup, metadata, spec, status)).Snapshot
	group := s.Jobs[0].Groups[0]
	require.Len(t, group.Tasks, 1)
	asks := make(map[string]float64)
	for i, index := range group.Request.Dimensions {
		asks[s.Dimensions[index]] = group.Request.Amounts[i]
	}
	return group.Tasks[0], asks
}

const inGroup = `annotations: {scheduling.k8s.io/group-name: j}`

// labelled is inGroup with a label, as most pods have.
const labelled = inGroup + `, labels: {app: a}`

func TestRequestIsWhatThePodNeedsAtItsPeak(t *testing.T) {
	for name, c := range map[string]struct {
		spec, status string
		want         map[string]float64
	}{
		"nothing but the pod itself": {want: map[string]float64{"pods": 1}},
		"each container's memory is rounded before it is added": {
			spec: `containers: [{resources: {requests: {memory: 1500m}}}, {resources: {requests: {memory: 1500m}}}]`,
			want: map[string]float64{"memory": 4, "pods": 1},
		},
		"the largest init container counts where it needs more": {
			spec: `containers: [{resources: {requests: {cpu: 1, memory: 8}}}],
			       initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 2, memory: 9}}}]`,
			want: map[string]float64{"cpu": 3000, "memory": 9, "pods": 1},
		},
		"a sidecar runs beside the containers and beside later init containers": {
			spec: `containers: [{resources: {requests: {cpu: 1}}}], initContainers: [
			       {resources: {requests: {cpu: 5}}},
			       {restartPolicy: Always, resources: {requests: {cpu: 2}}},
			       {resources: {requests: {cpu: 4}}}]`,
			want: map[string]float64{"cpu": 6000, "pods": 1},
		},
		"the overhead comes on top": {
			spec: `containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m, memory: 1}`,
			want: map[string]float64{"cpu": 1250, "memory": 1, "pods": 1},
		},
		"a name with 0 stays, names that Volcano drops do not": {
			spec: `containers: [{resources: {requests: {nvidia.com/gpu: 0, storage: 1, requests.cpu: 1, count/pods: 1, bare: 1,
			       hugepages-2Mi: 2Mi, attachable-volumes-x: 1, kubernetes.io/odd: 1, deviceclass/gpu.example.com: 1, ephemeral-storage: 1}}}]`,
			want: map[string]float64{
				"nvidia.com/gpu": 0, "hugepages-2Mi": 2097152000, "attachable-volumes-x": 1000, "kubernetes.io/odd": 1000,
				"deviceclass/gpu.example.com": 1000, "ephemeral-storage": 1000, "pods": 1,
			},
		},
		"requests of the pod as a whole go before its containers', where they may be made": {
			spec: `containers: [{resources: {requests: {cpu: 1, memory: 9, nvidia.com/gpu: 1}}}],
			       resources: {requests: {cpu: 3, nvidia.com/gpu: 5}}, overhead: {cpu: 1}`,
			want: map[string]float64{"cpu": 4000, "memory": 9, "nvidia.com/gpu": 1000, "pods": 1},
		},
		"a container being resized needs the most of what it asks for, has and was granted": {
			spec:   `containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 1}}}]`,
			status: `containerStatuses: [{name: a, resources: {requests: {cpu: 2}}, allocatedResources: {cpu: 3}}, {name: b}]`,
			want:   map[string]float64{"cpu": 4000, "pods": 1},
		},
		"a refused resize asks for nothing": {
			spec: `containers: [{name: a, resources: {requests: {cpu: 9}}}]`,
			status: `containerStatuses: [{name: a, resources: {requests: {cpu: 2}}}],
			         conditions: [{type: PodResizePending, reason: Infeasible}]`,
			want: map[string]float64{"cpu": 2000, "pods": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, asks := readTask(t, inGroup, c.spec, c.status)
			require.Equal(t, c.want, asks)
		})
	}
}

func TestStatusOfATask(t *testing.T) {
	const deleted = `, deletionTimestamp: "2026-01-02T04:00:00Z"`
	for name, c := range map[string]struct {
		metadata, spec, phase string
		want                  apportionv1.TaskStatus
	}{
		"pending":                        {phase: "Pending", want: apportionv1.TaskStatus_TASK_STATUS_PENDING},
		"pending on a node":              {phase: "Pending", spec: "nodeName: n", want: apportionv1.TaskStatus_TASK_STATUS_BOUND},
		"pending on a node that is gone": {phase: "Pending", spec: "nodeName: ghost", want: apportionv1.TaskStatus_TASK_STATUS_BOUND},
		"pending, being deleted":         {phase: "Pending", metadata: deleted, want: apportionv1.TaskStatus_TASK_STATUS_RELEASING},
		"running":                        {phase: "Running", spec: "nodeName: n", want: apportionv1.TaskStatus_TASK_STATUS_RUNNING},
		"running, being deleted":         {phase: "Running", metadata: deleted, want: apportionv1.TaskStatus_TASK_STATUS_RELEASING},
		"succeeded, being deleted":       {phase: "Succeeded", metadata: deleted, want: apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED},
		"failed":                         {phase: "Failed", want: apportionv1.TaskStatus_TASK_STATUS_FAILED},
		"unknown on a node":              {phase: "Unknown", spec: "nodeName: n", want: apportionv1.TaskStatus_TASK_STATUS_UNKNOWN},
		"a phase that does not exist":    {phase: "Odd", want: apportionv1.TaskStatus_TASK_STATUS_UNKNOWN},
		"never seen by an API server":    {phase: `""`, want: apportionv1.TaskStatus_TASK_STATUS_PENDING},
	} {
		t.Run(name, func(t *testing.T) {
			task, _ := readTask(t, inGroup+c.metadata, c.spec, "phase: "+c.phase)
			require.Equal(t, c.want, task.Status)
			require.Equal(t, c.spec == "nodeName: n", task.Node != nil)
		})
	}
}

func TestDetailsOfATask(t *testing.T) {
	const scheduled = `phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "True",
		lastTransitionTime: "2026-01-02T03:04:05Z"}]`
	for name, c := range map[string]struct {
		labels, annotations, spec, status string
		want                              string
	}{
		"nothing out of the ordinary": {spec: "priority: 1", want: `{}`},
		"its own priority":            {spec: "priority: -5", want: `{"priority": -5}`},
		"priority 0 is not the default": {
			spec: "priority: 0", want: `{"priority": 0}`,
		},
		"the annotation goes before its priority": {
			annotations: `volcano.sh/task-priority: "7"`, spec: "priority: 3", want: `{"priority": 7}`,
		},
		"an annotation that is no number does not": {
			annotations: `volcano.sh/task-priority: zz`, spec: "priority: 3", want: `{"priority": 3}`,
		},
		"not preemptable by annotation, whatever the label": {
			annotations: `volcano.sh/preemptable: "false"`, labels: `volcano.sh/preemptable: "true"`, want: `{"detail": {"preemptable": false}}`,
		},
		"preemptable by annotation, whatever the label": {
			annotations: `volcano.sh/preemptable: "true"`, labels: `volcano.sh/preemptable: "false"`, want: `{"detail": {"revocableZone": "*"}}`,
		},
		"maybe is not preemptable":          {labels: `volcano.sh/preemptable: maybe`, want: `{"detail": {"preemptable": false}}`},
		"an empty text is not preemptable":  {labels: `volcano.sh/preemptable: ""`, want: `{"detail": {"preemptable": false}}`},
		"True is true to Go and to Volcano": {labels: `volcano.sh/preemptable: "True"`, want: `{}`},
		"Volcano's gate": {
			spec: "schedulingGates: [{name: scheduling.volcano.sh/queue-allocation-gate}]", want: `{"detail": {"gate": "TASK_GATE_ADMISSION"}}`,
		},
		"another gate": {spec: "schedulingGates: [{name: example.com/wait}]", want: `{"detail": {"gate": "TASK_GATE_OTHER"}}`},
		"Volcano's gate and another": {
			spec: "schedulingGates: [{name: scheduling.volcano.sh/queue-allocation-gate}, {name: x}]",
			want: `{"detail": {"gate": "TASK_GATE_OTHER"}}`,
		},
		"no gates": {spec: "schedulingGates: []", want: `{}`},
		"a class":  {spec: "priorityClassName: system-node-critical", want: `{"detail": {"priorityClass": "system-node-critical"}}`},
		"a cooldown since it was scheduled": {
			annotations: `volcano.sh/cooldown-time: 10m`, status: scheduled,
			want: `{"detail": {"cooldown": "600000000000", "scheduleTime": "1767323045000000000"}}`,
		},
		"a cooldown by label goes before the annotation": {
			labels: `volcano.sh/cooldown-time: -5m`, annotations: `volcano.sh/cooldown-time: 10m`, status: scheduled,
			want: `{"detail": {"cooldown": "-300000000000", "scheduleTime": "1767323045000000000"}}`,
		},
		"a label that is no duration protects nothing": {
			labels: `volcano.sh/cooldown-time: bogus`, annotations: `volcano.sh/cooldown-time: 10m`, status: scheduled, want: `{}`,
		},
		"a cooldown before it runs": {
			annotations: `volcano.sh/cooldown-time: 10m`, status: `phase: Pending, conditions: [{type: PodScheduled, status: "True",
				lastTransitionTime: "2026-01-02T03:04:05Z"}]`,
			want: `{"detail": {"cooldown": "600000000000"}}`,
		},
		"a cooldown without the condition": {
			annotations: `volcano.sh/cooldown-time: 0s`,
			status:      `phase: Running, conditions: [{type: PodScheduled, status: "False"}, {type: PodScheduled, status: "True"}]`,
			want:        `{"detail": {"cooldown": "0"}}`,
		},
		"a time of scheduling alone is not kept": {status: scheduled, want: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := fmt.Sprintf(`labels: {app: a, %s}, annotations: {scheduling.k8s.io/group-name: j, %s}`, c.labels, c.annotations)
			task, _ := readTask(t, metadata, c.spec, c.status)
			task.Name, task.Status = "", 0
			requireMessage(t, c.want, task)
		})
	}
}

func TestIndexIsTheNumberBehindTheRole(t *testing.T) {
	number := func(n uint32) *uint32 { return &n }
	for name, want := range map[string]*uint32{
		"job-role-0": number(0), "a-b-c-12": number(12), "job-7": nil, "job-role-x": nil, "pod": nil, "job-role-99999999999": nil,
	} {
		require.Equal(t, want, taskIndex(name), name)
	}
}

func TestRoleIsTheAnnotationOrTheLabel(t *testing.T) {
	for metadata, want := range map[string]string{
		`annotations: {scheduling.k8s.io/group-name: j, volcano.sh/task-spec: a}, labels: {volcano.sh/task-spec: l}`:  "a",
		`annotations: {scheduling.k8s.io/group-name: j, volcano.sh/task-spec: ""}, labels: {volcano.sh/task-spec: l}`: "l",
		inGroup: "",
	} {
		s := read(t, aQueue+aPodGroup+"\n---\n{kind: Pod, metadata: {name: p, namespace: ns, "+metadata+"}}").Snapshot
		require.Equal(t, want, s.Jobs[0].Groups[0].Role)
	}
}
