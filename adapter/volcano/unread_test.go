package volcano_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

const (
	unreadQueue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {weight: 1}\nstatus: {state: Open}\n"
	unreadNode  = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '8', memory: 8Gi, pods: '110'}}\n"
	unreadPod   = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: t, annotations: {scheduling.k8s.io/group-name: g}}\n" +
		"spec: {schedulerName: volcano, nodeName: n, containers: [{name: c}]}\nstatus: {phase: Running}\n"
)

func unreadGroup(phase string) string {
	return "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, namespace: t}\nspec: {queue: q, minMember: 1}\n" +
		"status: {phase: " + phase + "}\n"
}

// statedPod is a running pod with these fields in its spec.
func statedPod(name, group, fields string) string {
	pod := strings.NewReplacer("name: p,", "name: "+name+",", "schedulerName: volcano,", "schedulerName: volcano, "+fields+",")
	if group == "" {
		return strings.Replace(pod.Replace(unreadPod), ", annotations: {scheduling.k8s.io/group-name: g}", "", 1)
	}
	return pod.Replace(unreadPod)
}

func TestAKindIsUnreadWhereAnotherObjectCannotBeWithoutIt(t *testing.T) {
	running := unreadGroup("Running")
	classed := strings.Replace(running, "minMember: 1", "minMember: 1, priorityClassName: high", 1)
	for name, test := range map[string]struct {
		objects []string
		unread  map[string]string
	}{
		"all kinds":         {[]string{unreadQueue, unreadNode, running, unreadPod}, nil},
		"nothing":           {nil, nil},
		"queues and nodes":  {[]string{unreadQueue, unreadNode}, nil},
		"no pods, running":  {[]string{unreadQueue, unreadNode, running}, map[string]string{"Pod": "PodGroup t/g is running"}},
		"no pods, admitted": {[]string{unreadQueue, unreadGroup("Inqueue")}, map[string]string{"Pod": "PodGroup t/g has entered its queue"}},
		"no pods, pending":  {[]string{unreadQueue, unreadNode, unreadGroup("Pending")}, nil},
		"no pods, ended":    {[]string{unreadQueue, unreadNode, unreadGroup("Completed")}, nil},
		"an empty list":     {[]string{unreadQueue, unreadNode, running, "kind: PodList\nitems: []\n"}, nil},
		"an empty list in JSON": {
			[]string{unreadQueue, unreadNode, running, `{"kind": "PodList", "apiVersion": "v1", "items": []}`}, nil,
		},
		"an empty list of several kinds": {
			[]string{unreadQueue, unreadNode, running, "kind: List\nitems: []\n"}, map[string]string{"Pod": "PodGroup t/g is running"},
		},
		"no nodes":     {[]string{unreadQueue, running, unreadPod}, map[string]string{"Node": "Pod t/p is on node n"}},
		"no queues":    {[]string{unreadNode, running, unreadPod}, map[string]string{"Queue": "PodGroup t/g is in queue q"}},
		"no PodGroups": {[]string{unreadQueue, unreadNode, unreadPod}, map[string]string{"PodGroup": "Pod t/p is in PodGroup g"}},
		"no PriorityClasses": {
			[]string{unreadQueue, unreadNode, classed, unreadPod}, map[string]string{"PriorityClass": `PodGroup t/g has the class "high"`},
		},
		"no PriorityClasses for a PodGroup that has ended": {
			[]string{unreadQueue, unreadNode, strings.Replace(classed, "phase: Running", "phase: Completed", 1), unreadPod}, nil,
		},
		"no PriorityClasses, its own pod states the value": {
			[]string{unreadQueue, unreadNode, classed, statedPod("p", "g", "priorityClassName: high, priority: 7")}, nil,
		},
		"no PriorityClasses, and no pod of a PodGroup states the value": {
			[]string{unreadQueue, unreadNode, classed, unreadPod, statedPod("other", "", "priorityClassName: high, priority: 7")}, nil,
		},
		"no PriorityClasses, pods of another class state theirs": {
			[]string{unreadQueue, unreadNode, classed, unreadPod, statedPod("other", "", "priorityClassName: low, priority: 7")},
			map[string]string{"PriorityClass": `PodGroup t/g has the class "high"`},
		},
		"no PriorityClasses, pods of one class differ": {
			[]string{
				unreadQueue, unreadNode, classed, statedPod("p", "g", "priorityClassName: high, priority: 7"),
				statedPod("other", "", "priorityClassName: high, priority: 8"),
			},
			map[string]string{"PriorityClass": `PodGroup t/g has the class "high"`},
		},
		"no PriorityClasses, which may have a default": {
			[]string{unreadQueue, unreadNode, running, statedPod("p", "g", "priorityClassName: high, priority: 7")},
			map[string]string{"PriorityClass": `PodGroup t/g has no class, but its pods have "high", which may be the default of the cluster`},
		},
		"no PriorityClasses, of which none is a default": {
			[]string{
				unreadQueue, unreadNode, running, statedPod("p", "g", "priorityClassName: high, priority: 7"), statedPod("other", "", "priority: 0"),
			}, nil,
		},
		"an empty list of PriorityClasses": {
			[]string{unreadQueue, unreadNode, classed, unreadPod, "kind: PriorityClassList\nitems: []\n"}, nil,
		},
		"no PodGroups for a pod that ended": {
			[]string{unreadQueue, unreadNode, strings.Replace(unreadPod, "phase: Running", "phase: Succeeded", 1)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []objects.Source
			for _, o := range test.objects {
				sources = append(sources, objects.Source{Name: "f", Data: []byte(o)})
			}
			cluster, err := volcano.ReadManifests(sources, volcano.LeaveOutFaulty())
			require.NoError(t, err)
			require.Equal(t, test.unread, unreadOf(cluster.Snapshot))
		})
	}
}

// TestThePriorityOfAJobIsThatOfPodsOfItsClass where no class was read.
func TestThePriorityOfAJobIsThatOfPodsOfItsClass(t *testing.T) {
	classed := strings.Replace(unreadGroup("Running"), "minMember: 1", "minMember: 1, priorityClassName: high", 1)
	input := strings.Join([]string{unreadQueue, unreadNode, classed, statedPod("p", "g", "priorityClassName: high, priority: 7")}, "---\n")
	sources := []objects.Source{{Name: "f", Data: []byte(input)}}
	forbidden := volcano.WithUnread(map[string]string{"PriorityClass": "priorityclasses are forbidden"})
	cluster, err := volcano.ReadManifests(sources, forbidden)
	require.NoError(t, err)
	require.Nil(t, unreadOf(cluster.Snapshot))
	require.EqualValues(t, 7, cluster.Snapshot.GetJobs()[0].GetPriority())
	sources[0].Data = []byte(strings.Replace(input, ", priority: 7", "", 1))
	cluster, err = volcano.ReadManifests(sources, forbidden)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"PriorityClass": "priorityclasses are forbidden"}, unreadOf(cluster.Snapshot))
}

func TestAKindThatMayNotBeListedIsUnread(t *testing.T) {
	why := map[string]string{"Pod": "pods is forbidden", "Workload": "of no interest here"}
	cluster, err := volcano.ReadManifests([]objects.Source{{Name: "f", Data: []byte(unreadQueue)}}, volcano.WithUnread(why))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Pod": "pods is forbidden"}, unreadOf(cluster.Snapshot))
}

// unreadOf has why each kind was not read; nil if all were.
func unreadOf(s *apportionv1.Snapshot) map[string]string {
	var why map[string]string
	kinds, _ := lookup.Unread(s)
	for _, l := range kinds {
		if why == nil {
			why = map[string]string{}
		}
		why[l.GetKind()] = l.GetDetail()
	}
	return why
}

func TestPodsOnNodesThatWereNotReadAreSaid(t *testing.T) {
	on := func(name, node, phase string) string {
		return strings.NewReplacer("name: p,", "name: "+name+",", "nodeName: n", "nodeName: "+node, "Running", phase).Replace(unreadPod)
	}
	for name, test := range map[string]struct {
		objects []string
		warns   string
	}{
		"on its node": {objects: []string{unreadNode, on("p", "n", "Running")}},
		"on another":  {[]string{unreadNode, on("p", "m", "Running")}, "1 pod is on a node that is not in the input; the first is t/p on node m"},
		"two": {
			[]string{unreadNode, on("p", "m", "Running"), on("o", "k", "Pending")},
			"2 pods are on nodes that are not in the input; the first is t/p on node m",
		},
		"ended":           {objects: []string{unreadNode, on("p", "m", "Succeeded")}},
		"no node is read": {objects: []string{on("p", "m", "Running")}},
	} {
		t.Run(name, func(t *testing.T) {
			sources := []objects.Source{{Name: "f", Data: []byte(unreadQueue)}, {Name: "f", Data: []byte(unreadGroup("Running"))}}
			for _, o := range test.objects {
				sources = append(sources, objects.Source{Name: "f", Data: []byte(o)})
			}
			cluster, err := volcano.ReadManifests(sources)
			require.NoError(t, err)
			var warned []string
			for _, w := range cluster.Warnings {
				if w.GetCode() == apportionv1.WarningCode_WARNING_CODE_TASKS_OFF_NODE {
					warned = append(warned, w.GetMessage())
				}
			}
			if test.warns == "" {
				require.Empty(t, warned)
				return
			}
			require.Equal(t, []string{test.warns}, warned)
		})
	}
}

func TestTheConfigurationOfTheSchedulerIsNotReportedAsUnread(t *testing.T) {
	const (
		held = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap, namespace: a}\n" +
			"data: {volcano-scheduler.conf: 'tiers: []'}\n"
		deployed = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: volcano-scheduler, namespace: a}\n" +
			"spec: {template: {spec: {containers: [{name: c, image: 'vc-scheduler:v1.16.0'}]}}}\n"
	)
	for name, data := range map[string]string{
		"a ConfigMap": held, "a stream": held + "---\n" + deployed,
		"JSON":                  `[{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "volcano-scheduler"}, "spec": {}}]`,
		"fields of other types": "kind: Deployment\nmetadata: {name: volcano-scheduler}\nspec: {template: [vc-scheduler]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := volcano.ReadManifests([]objects.Source{{Name: "f", Data: []byte(data)}})
			require.NoError(t, err)
			require.Empty(t, c.Unread)
			require.Empty(t, c.Warnings)
			require.Empty(t, c.Empty)
		})
	}
}
