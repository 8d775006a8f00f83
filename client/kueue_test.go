package client_test

import (
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Two flavors of GPUs, which exist or not.
var drawnFlavors = []string{"a100", "h100"}

// drawDimension draws the name of the one dimension of drawn amounts.
func drawDimension(t *rapid.T) []string {
	return []string{rapid.SampledFrom([]string{"cpu", "memory", "nvidia.com/gpu"}).Draw(t, "dimension")}
}

// drawKueue draws cohorts and flavors.
func drawKueue(t *rapid.T) (cohorts []*apportionv1.Queue, flavors []*apportionv1.NodeSet) {
	for _, name := range drawnFlavors {
		if rapid.IntRange(0, 3).Draw(t, name) > 0 {
			flavors = append(flavors, &apportionv1.NodeSet{Name: name, Flavor: &apportionv1.KueueFlavor{}})
		}
	}
	return []*apportionv1.Queue{{Name: "all", Kueue: &apportionv1.KueueQueue{
		Cohort: true, Weight: new(float64(rapid.IntRange(1, 3).Draw(t, "weight"))),
	}}}, flavors
}

// cpuOf is an amount of the first dimension.
func cpuOf(t *rapid.T, most int64, label string) *apportionv1.Resource {
	return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{float64(rapid.Int64Range(0, most).Draw(t, label))}}
}

func drawKueueQueue(t *rapid.T) *apportionv1.KueueQueue {
	out := &apportionv1.KueueQueue{
		Preemption: &apportionv1.KueuePreemption{
			ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY,
			WithinClusterQueue:  apportionv1.KueueChoice_KUEUE_CHOICE_LOWER_PRIORITY,
		},
		Strict: rapid.Bool().Draw(t, "strict"),
	}
	for _, name := range drawnFlavors {
		out.Quotas = append(out.Quotas, &apportionv1.Quota{NodeSet: name, Nominal: cpuOf(t, 9000, "nominal")})
	}
	if rapid.Bool().Draw(t, "check") {
		out.Checks = []*apportionv1.KueueCheck{{Name: "capacity", Active: new(rapid.Bool().Draw(t, "active"))}}
	}
	return out
}

func drawKueueWorkload(t *rapid.T) *apportionv1.KueueWorkload {
	set := &apportionv1.KueuePodSet{Name: "main", Count: 2, Request: cpuOf(t, 6000, "cpu")}
	out := &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}}
	if rapid.Bool().Draw(t, "admitted") {
		out.ReserveTime, out.Admitted = new(rapid.Int64Range(1, 9).Draw(t, "reserved")), true
		set.Uses = []*apportionv1.FlavorUse{{NodeSet: rapid.SampledFrom(drawnFlavors).Draw(t, "flavor"), Used: cpuOf(t, 6000, "used")}}
	}
	return out
}
