package kueue

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSizesOfTypesAreThoseOfGo(t *testing.T) {
	for of, size := range map[reflect.Type]int{
		reflect.TypeFor[Admission]():        admissionSize,
		reflect.TypeFor[AdmittedPodSet]():   admittedPodSetSize,
		reflect.TypeFor[Amount]():           amountSize,
		reflect.TypeFor[Check]():            checkSize,
		reflect.TypeFor[Cohort]():           cohortSize,
		reflect.TypeFor[flavor]():           compiledFlavorSize,
		reflect.TypeFor[group]():            compiledGroupSize,
		reflect.TypeFor[podSet]():           compiledPodSetSize,
		reflect.TypeFor[queue]():            compiledQueueSize,
		reflect.TypeFor[request]():          compiledRequestSize,
		reflect.TypeFor[workload]():         compiledWorkloadSize,
		reflect.TypeFor[FlavorQuota]():      flavorQuotaSize,
		reflect.TypeFor[Flavor]():           flavorSize,
		reflect.TypeFor[FlavoredUsage]():    flavoredUsageSize,
		reflect.TypeFor[Group]():            groupSize,
		reflect.TypeFor[int32]():            int32Size,
		reflect.TypeFor[LocalQueue]():       localQueueSize,
		reflect.TypeFor[LocalUsage]():       localUsageSize,
		reflect.TypeFor[node]():             nodeSize,
		reflect.TypeFor[Attempt]():          attemptSize,
		reflect.TypeFor[FlavorAssignment](): flavorAssignmentSize,
		reflect.TypeFor[Lack]():             lackSize,
		reflect.TypeFor[Nomination]():       nominationSize,
		reflect.TypeFor[PodSetAssignment](): podSetAssignmentSize,
		reflect.TypeFor[Victim]():           victimSize,
		reflect.TypeFor[pair]():             pairSize,
		reflect.TypeFor[PodSet]():           podSetSize,
		reflect.TypeFor[Queue]():            queueSize,
		reflect.TypeFor[Quota]():            quotaSize,
		reflect.TypeFor[Request]():          requestSize,
		reflect.TypeFor[Requirement]():      requirementSize,
		reflect.TypeFor[share]():            shareSize,
		reflect.TypeFor[string]():           stringSize,
		reflect.TypeFor[Taint]():            taintSize,
		reflect.TypeFor[Term]():             termSize,
		reflect.TypeFor[Toleration]():       tolerationSize,
		reflect.TypeFor[tree]():             treeSize,
		reflect.TypeFor[Usage]():            usageSize,
		reflect.TypeFor[Use]():              useSize,
		reflect.TypeFor[Workload]():         workloadSize,
	} {
		require.Equal(t, int(of.Size()), size, of)
	}
}
