package kueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

func TestAKindOfKueueIsUnreadWhereAnotherObjectCannotBeWithoutIt(t *testing.T) {
	const (
		flavor = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}`
		queue  = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {},
			resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]},
			status: {pendingWorkloads: 1}}`
		selecting = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q},
			spec: {namespaceSelector: {matchLabels: {team: a}}}, status: {pendingWorkloads: 1}}`
		local    = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: l, namespace: team}, spec: {clusterQueue: q}}`
		workload = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: team}, spec: {queueName: l,
			podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]}}`
	)
	for name, test := range map[string]struct {
		objects []string
		unread  map[string]string
	}{
		"all kinds": {[]string{flavor, queue, local, workload}, nil},
		"no ResourceFlavors": {[]string{queue, local, workload}, map[string]string{
			"ResourceFlavor": "ClusterQueue q has quota of ResourceFlavor f",
		}},
		"no ClusterQueues": {[]string{flavor, local, workload}, map[string]string{"ClusterQueue": "LocalQueue team/l is of ClusterQueue q"}},
		"no LocalQueues":   {[]string{flavor, queue, workload}, map[string]string{"LocalQueue": "Workload team/w waits in LocalQueue team/l"}},
		"no Workloads":     {[]string{flavor, queue, local}, map[string]string{"Workload": "the status of ClusterQueue q counts 1"}},
		"an empty list":    {[]string{flavor, queue, local, `{kind: WorkloadList, items: []}`}, nil},
		"no Namespaces": {[]string{selecting, local, workload}, map[string]string{
			"Namespace": "Workload team/w waits in ClusterQueue q, which selects namespaces by labels",
		}},
		"Namespaces are read": {[]string{selecting, local, workload, `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []objects.Source
			for _, o := range test.objects {
				sources = append(sources, objects.Source{Name: "f", Data: []byte(o)})
			}
			cluster, err := kueue.Read(sources, now)
			require.NoError(t, err)
			require.Equal(t, test.unread, unreadOf(cluster.Snapshot))
		})
	}
	why := map[string]string{"Cohort": "forbidden", "Pod": "of no interest here", "Node": "nor this"}
	cluster, err := kueue.Read(nil, now, kueue.WithUnread(why))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Cohort": "forbidden"}, unreadOf(cluster.Snapshot))
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
