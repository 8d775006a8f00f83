package volcano

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestTheOwnerOfAJobIsThatOfItsPodGroupOrElseOfItsFirstPod(t *testing.T) {
	for name, c := range map[string]struct {
		group string
		// pods are the metadata of p-0, p-1 and so on.
		pods []string
		want string
	}{
		"none is named":                     {pods: []string{""}},
		"an annotation":                     {group: "annotations: {apportion.dev/owner: ann}", want: "ann"},
		"a label":                           {group: "labels: {apportion.dev/owner: ann}", want: "ann"},
		"an annotation goes before a label": {group: "annotations: {apportion.dev/owner: ann}, labels: {apportion.dev/owner: bob}", want: "ann"},
		"an empty annotation names the empty one": {group: `annotations: {apportion.dev/owner: ""}, labels: {apportion.dev/owner: bob}`},
		"the PodGroup goes before its pods":       {group: "labels: {apportion.dev/owner: ann}", pods: []string{"labels: {apportion.dev/owner: bob}"}, want: "ann"},
		"the first pod by name that names one": {
			pods: []string{"", "labels: {apportion.dev/owner: bob}", "labels: {apportion.dev/owner: carl}"}, want: "bob",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := aQueue + fmt.Sprintf(`
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: j, namespace: ns, %s}
spec: {queue: q}
`, c.group)
			// The last pod comes first: the order of the input does not matter.
			for i, pod := range slices.Backward(c.pods) {
				manifests += fmt.Sprintf("---\nkind: Pod\nmetadata: {name: p-%d, namespace: ns, uid: u-%d, %s, %s}\n", i, i, inGroup, pod)
			}
			require.Equal(t, c.want, read(t, manifests).Snapshot.GetJobs()[0].GetOwner())
		})
	}
}

func TestALedgerNeedsToKnowWhenEachPodWasScheduled(t *testing.T) {
	for phase, want := range map[string]bool{"Running": true, "Pending": true, "Succeeded": false} {
		manifests := aQueue + aPodGroup + fmt.Sprintf(`
---
kind: Pod
metadata: {name: p, namespace: ns, %s}
spec: {nodeName: n}
status: {phase: %s, conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}]}
`, labelled, phase)
		sources := []objects.Source{{Name: "f", Data: []byte(manifests)}}
		of := func(opts ...Option) *apportionv1.Task {
			c, err := ReadManifests(sources, opts...)
			require.NoError(t, err)
			return c.Snapshot.GetJobs()[0].GetGroups()[0].GetTasks()[0]
		}
		require.Nil(t, of().GetDetail())
		require.Equal(t, want, of(WithStarts()).GetDetail().GetScheduleTime() == 1767323045000000000, phase)
	}
}
