package volcano_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestAKindIsUnreadWhereAnotherObjectCannotBeWithoutIt(t *testing.T) {
	running := unreadGroup("Running")
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
		"no PodGroups for a pod that ended": {
			[]string{unreadQueue, unreadNode, strings.Replace(unreadPod, "phase: Running", "phase: Succeeded", 1)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []volcano.Source
			for _, o := range test.objects {
				sources = append(sources, volcano.Source{Name: "f", Data: []byte(o)})
			}
			cluster, err := volcano.ReadManifests(sources, volcano.LeaveOutFaulty())
			require.NoError(t, err)
			require.Equal(t, test.unread, unreadOf(cluster.Snapshot))
		})
	}
}

func TestAKindThatMayNotBeListedIsUnread(t *testing.T) {
	why := map[string]string{"Pod": "pods is forbidden", "Workload": "of no interest here"}
	cluster, err := volcano.ReadManifests([]volcano.Source{{Name: "f", Data: []byte(unreadQueue)}}, volcano.WithUnread(why))
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
