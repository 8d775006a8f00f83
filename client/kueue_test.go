package client_test

import (
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Two flavors of GPUs, which exist or not.
var drawnFlavors = []string{"a100", "h100"}

func drawKueue(t *rapid.T) *apportionv1.KueueSnapshot {
	out := &apportionv1.KueueSnapshot{Cohorts: []*apportionv1.KueueCohort{{Name: "all"}}}
	for _, name := range drawnFlavors {
		if rapid.IntRange(0, 3).Draw(t, name) > 0 {
			out.Flavors = append(out.Flavors, &apportionv1.KueueFlavor{Name: name})
		}
	}
	if rapid.Bool().Draw(t, "check") {
		out.Checks = []*apportionv1.KueueCheck{{Name: "capacity", Active: rapid.Bool().Draw(t, "active")}}
	}
	return out
}

func drawKueueQueue(t *rapid.T) *apportionv1.KueueQueue {
	group := &apportionv1.KueueResourceGroup{CoveredResources: []string{"cpu"}}
	for _, name := range drawnFlavors {
		group.Flavors = append(group.Flavors, &apportionv1.KueueFlavorQuotas{
			Name: name, Resources: []*apportionv1.KueueQuota{{Name: "cpu", Nominal: rapid.Int64Range(0, 9000).Draw(t, "nominal")}},
		})
	}
	return &apportionv1.KueueQueue{
		Cohort: rapid.SampledFrom([]string{"", "all", "others"}).Draw(t, "cohort"), Groups: []*apportionv1.KueueResourceGroup{group},
		Preemption: &apportionv1.KueuePreemption{
			ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY,
			WithinClusterQueue:  apportionv1.KueueChoice_KUEUE_CHOICE_LOWER_PRIORITY,
		},
		Strict: rapid.Bool().Draw(t, "strict"),
	}
}

func drawKueueWorkload(t *rapid.T) *apportionv1.KueueWorkload {
	out := &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{{
		Name: "main", Count: 2, Requests: []*apportionv1.KueueAmount{{Name: "cpu", Amount: rapid.Int64Range(0, 6000).Draw(t, "cpu")}},
	}}}
	if rapid.Bool().Draw(t, "admitted") {
		out.ReserveTime = new(rapid.Int64Range(1, 9).Draw(t, "reserved"))
		out.Admission = &apportionv1.KueueAdmission{PodSets: []*apportionv1.KueueAdmittedPodSet{{
			Name: "main", Usages: []*apportionv1.KueueFlavoredUsage{{
				Resource: "cpu", Flavor: rapid.SampledFrom(drawnFlavors).Draw(t, "flavor"), Amount: new(rapid.Int64Range(0, 6000).Draw(t, "used")),
			}},
		}}}
	}
	return out
}
