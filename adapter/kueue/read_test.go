package kueue_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var now = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, text string) (*apportionv1.Snapshot, error) {
	t.Helper()
	cluster, err := kueue.Read([]objects.Source{{Name: "dump.yaml", Data: []byte(text)}}, now)
	if err != nil {
		return nil, err
	}
	return cluster.Snapshot, nil
}

const older = `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: all
  namespaceSelector: {}
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
  preemption: {withinClusterQueue: LowerPriority}
  admissionChecks: [check]
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources:
      - {name: cpu, nominalQuota: 1500m, borrowingLimit: 0}
      - {name: memory, nominalQuota: 64Gi}
---
apiVersion: kueue.x-k8s.io/v1alpha1
kind: Cohort
metadata: {name: all}
spec: {parent: root}
---
apiVersion: v1
kind: List
items:
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: LocalQueue
  metadata: {name: main, namespace: ns}
  spec: {clusterQueue: team}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: Workload
  metadata: {name: w, namespace: ns, creationTimestamp: "2026-01-01T10:00:00Z"}
  spec:
    queueName: main
    podSets:
    - name: main
      count: 2
      template:
        spec:
          containers:
          - {name: c, resources: {limits: {cpu: 250m}, requests: {memory: 1Gi}}}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: Workload
  metadata: {name: done, namespace: ns}
  spec: {queueName: main, podSets: []}
  status: {conditions: [{type: Finished, status: "True"}]}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: Workload
  metadata: {name: lost, namespace: ns}
  spec: {queueName: other, podSets: []}
- {apiVersion: v1, kind: Pod, metadata: {name: p}}
`

func TestObjectsOfOlderVersionsAreRead(t *testing.T) {
	cluster, err := kueue.Read([]objects.Source{{Name: "dump.yaml", Data: []byte(older)}}, now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"v1 Pod": 1}, cluster.Unread)
	s := cluster.Snapshot
	require.Equal(t, []string{"cpu", "memory"}, s.GetDimensions())
	require.Equal(t, []string{"team", "all", "cohort/root"}, names(s.GetQueues()), "a cohort is not called root")
	require.Equal(t, []string{"all", "cohort/root", ""}, []string{
		s.GetQueues()[0].GetParent(), s.GetQueues()[1].GetParent(), s.GetQueues()[2].GetParent(),
	})
	require.True(t, s.GetQueues()[2].GetKueue().GetCohort(), "it is only named")
	q := s.GetQueues()[0].GetKueue()
	require.Equal(t, "check", q.GetChecks()[0].GetName())
	require.Nil(t, q.GetChecks()[0].Active, "there is none")
	require.False(t, q.GetFungibility().GetBorrowNext())
	require.True(t, q.GetFungibility().GetPreemptStop())
	quota := q.GetQuotas()[0]
	require.Equal(t, []float64{1500, 64 << 30}, quota.GetNominal().GetAmounts())
	require.Equal(t, &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{0}}, quota.GetBorrowingLimit())
	require.Nil(t, quota.GetLendingLimit())
	require.Len(t, s.GetJobs(), 1)
	set := s.GetJobs()[0].GetKueue().GetPodSets()[0]
	require.Equal(t, []float64{250, 1 << 30}, set.GetRequest().GetAmounts(), "a limit stands for a request that is missing")
	require.Equal(t, []apportionv1.KueueUnjudged{apportionv1.KueueUnjudged_KUEUE_UNJUDGED_CHECKS}, s.GetJobs()[0].GetKueue().GetUnjudgedParts())
	require.Len(t, s.GetLeftOuts(), 2)
	require.Equal(t, apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD, s.GetLeftOuts()[0].GetCause(), "the flavors of its quota are missing")
	require.Equal(t, "LocalQueue ns/other does not exist", s.GetLeftOuts()[1].GetDetail())
}

func names(queues []*apportionv1.Queue) (list []string) {
	for _, q := range queues {
		list = append(list, q.GetName())
	}
	return list
}

func TestACohortWhoseNameIsTakenHasAnotherOne(t *testing.T) {
	s, err := read(t, `
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: team}, spec: {cohortName: team}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: other}, spec: {cohortName: all}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: team}, spec: {parentName: all}}`)
	require.NoError(t, err)
	require.Equal(t, []string{"other", "team", "all", "cohort/team"}, names(s.GetQueues()))
	require.Equal(t, "cohort/team", s.GetQueues()[1].GetParent())
	require.Equal(t, "all", s.GetQueues()[3].GetParent())
}

// TestAmountsAreThoseOfTheSnapshot reads amounts that Kueue counts in whole units, and the largest that are exact.
func TestAmountsAreThoseOfTheSnapshot(t *testing.T) {
	const queue = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {resourceGroups: [
  {coveredResources: [%s], flavors: [{name: f, resources: [{name: %s, nominalQuota: %s}]}]}]}}`
	for _, c := range []struct {
		resource, quantity string
		amount             float64
		fault              string
	}{
		{"nvidia.com/gpu", "8", 8000, ""},
		{"nvidia.com/gpu", `"1500m"`, 2000, ""},
		{"cpu", `"9223372036854775807"`, math.Inf(1), ""},
		{"memory", `"9007199254740992"`, 1 << 53, ""},
		{"memory", `"9007199254740993"`, 0, "nominalQuota: 9007199254740993 is too large to be judged exactly"},
		{"ephemeral-storage", "2Pi", 1000 << 51, ""},
		{"ephemeral-storage", `"2251799813685247"`, 1000 * float64(1<<51-1), ""},
		{"ephemeral-storage", "3Pi", 0, "nominalQuota: 3377699720527872 is too large to be judged exactly"},
	} {
		s, err := read(t, fmt.Sprintf(queue, c.resource, c.resource, c.quantity))
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []float64{c.amount}, s.GetQueues()[0].GetKueue().GetQuotas()[0].GetNominal().GetAmounts(), c)
	}
}

func TestFaultsNameTheObjectAndTheField(t *testing.T) {
	for name, test := range map[string]struct{ text, fault string }{
		"a version that is not known": {
			"{apiVersion: kueue.x-k8s.io/v9, kind: Workload, metadata: {name: w}}",
			`dump.yaml:1: apiVersion: "kueue.x-k8s.io/v9" is not read; there are kueue.x-k8s.io/v1beta1 and kueue.x-k8s.io/v1beta2`,
		},
		"a quantity": {
			`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {resourceGroups: [{coveredResources: [cpu],
			flavors: [{name: f, resources: [{name: cpu, nominalQuota: much}]}]}]}}`,
			`dump.yaml:2: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: not a quantity: "much"`,
		},
		"an exponent that takes seconds to compute": {
			`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {resourceGroups: [{coveredResources: [cpu],
			flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1e99999999}]}]}]}}`,
			"dump.yaml:2: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: " +
				"not a quantity: longer, or with a larger exponent, than any real one",
		},
		"a word": {
			`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {preemption: {withinClusterQueue: Sometimes}}}`,
			`dump.yaml:1: spec.preemption.withinClusterQueue: no value "Sometimes"; ` +
				"there are Never, LowerPriority, LowerOrNewerEqualPriority, Any",
		},
		"a type": {
			"{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w}, spec: {priority: high}}",
			`dump.yaml:1: spec.priority: not a whole number between -2147483648 and 2147483647: "high"`,
		},
		"an object that is there twice": {
			"[{apiVersion: v1, kind: Namespace, metadata: {name: ns}}, {apiVersion: v1, kind: Namespace, metadata: {name: ns}}]",
			"dump.yaml:1: Namespace ns is already at dump.yaml:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, test.text)
			require.EqualError(t, err, test.fault)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(older))
	f.Add([]byte(`{"kind":"List","items":[{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"name":"w"}}]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = kueue.Read([]objects.Source{{Name: "fuzz", Data: data}}, now)
	})
}

func TestTheOwnerOfAWorkloadIsWhatItNamesOrElseItsLocalQueue(t *testing.T) {
	for metadata, want := range map[string]string{
		"": "ns/main", ", labels: {apportion.dev/owner: ann}": "ann",
		`, annotations: {apportion.dev/owner: bob}, labels: {apportion.dev/owner: ann}`: "bob",
	} {
		snapshot, err := read(t, strings.Replace(older, "metadata: {name: w, namespace: ns", "metadata: {name: w, namespace: ns"+metadata, 1))
		require.NoError(t, err)
		require.Equal(t, want, snapshot.GetJobs()[0].GetOwner())
	}
}

func TestFlavorsWithoutNodesAreNamedWhereNodesAreKnown(t *testing.T) {
	const flavors = `
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a100"}, "spec": {"nodeLabels": {"gpu": "a100"}}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {"nodeLabels": {"gpu": "h100"}}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}}`
	read := func(text string) []string {
		cluster, err := kueue.Read([]objects.Source{{Name: "x", Data: []byte(text)}}, now)
		require.NoError(t, err)
		return cluster.WithoutNodes
	}
	require.Empty(t, read(flavors))
	require.Equal(t, []string{"h100"}, read(flavors+`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"gpu": "a100"}}}`))
}

// TestTheLongestExecutionTimeIsWhenAWorkloadEnds reads workloads of both versions, of which some were admitted before, and are admitted now.
func TestTheLongestExecutionTimeIsWhenAWorkloadEnds(t *testing.T) {
	const admitted = `conditions: [{type: QuotaReserved, status: "True", lastTransitionTime: "2026-01-01T11:00:00Z"},
    {type: Admitted, status: "True", lastTransitionTime: "2026-01-01T11:30:00Z"}]`
	began := time.Date(2026, time.January, 1, 11, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		name, version, spec, status string
		runtime                     time.Duration
		end                         time.Time
	}{
		{"no time is stated", "v1beta1", "", admitted, 0, time.Time{}},
		{"it waits", "v1beta1", "maximumExecutionTimeSeconds: 3600", "", time.Hour, time.Time{}},
		{"it runs", "v1beta2", "maximumExecutionTimeSeconds: 3600", admitted, time.Hour, began.Add(time.Hour)},
		{
			"it ran before", "v1beta2", "maximumExecutionTimeSeconds: 3600", admitted + "\n  accumulatedPastExecutionTimeSeconds: 600",
			50 * time.Minute, began.Add(50 * time.Minute),
		},
		{
			"it ran before, as v1beta1 spells it", "v1beta1", "maximumExecutionTimeSeconds: 3600",
			"accumulatedPastExexcutionTimeSeconds: 600",
			50 * time.Minute,
			time.Time{},
		},
		{"its time is up", "v1beta2", "maximumExecutionTimeSeconds: 3600", "accumulatedPastExecutionTimeSeconds: 7200", time.Second, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := read(t, `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec: {namespaceSelector: {}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: ns}
spec: {clusterQueue: team}
---
apiVersion: kueue.x-k8s.io/`+c.version+`
kind: Workload
metadata: {name: w, namespace: ns, creationTimestamp: "2026-01-01T10:00:00Z"}
spec:
  queueName: main
  `+c.spec+`
status:
  `+c.status)
			require.NoError(t, err)
			require.Len(t, s.GetJobs(), 1)
			require.Equal(t, int64(c.runtime), s.GetJobs()[0].GetExpectedRuntime())
			end := int64(0)
			if !c.end.IsZero() {
				end = c.end.UnixNano()
			}
			require.Equal(t, end, s.GetJobs()[0].GetExpectedEnd())
			require.Equal(t, end != 0, s.GetJobs()[0].GetEndIsDeadline())
		})
	}
}
