package kueue

import (
	"cmp"
	"fmt"
	"time"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// samplingInterval is Kueue's default.
const samplingInterval = 5 * time.Minute

// maxStrategies is the number of strategies that Kueue tries.
const maxStrategies = 2

// Settings reads the message of the plugin. fault reports a violation at a path within it.
func Settings(m *apportionv1.Kueue, fault Fault) kueue.Settings {
	r := reader{fault: fault}
	s := kueue.Default()
	s.IgnoreUndeclared, s.RequeueByCreation = m.GetIgnoreUndeclared(), m.GetRequeueByCreation()
	if f := m.GetFairSharing(); f != nil {
		s.Fair = true
		if len(f.GetStrategies()) > maxStrategies {
			fault("fair_sharing.strategies", "at most %d strategies are tried", maxStrategies)
		}
		for i, strategy := range f.GetStrategies() {
			switch strategy {
			case apportionv1.KueueStrategy_KUEUE_STRATEGY_LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
				s.Strategies = append(s.Strategies, kueue.FinalShare)
			case apportionv1.KueueStrategy_KUEUE_STRATEGY_LESS_THAN_INITIAL_SHARE:
				s.Strategies = append(s.Strategies, kueue.InitialShare)
			default:
				fault(fmt.Sprintf("fair_sharing.strategies[%d]", i), "no strategy %d", strategy)
			}
		}
	}
	for _, g := range gates(m.GetGates()) {
		if g.given != nil {
			*g.place(&s) = *g.given
		}
	}
	if u := m.GetUsageSharing(); u != nil {
		weight := func(w *apportionv1.KueueResourceWeight, path string) kueue.ResourceWeight {
			return kueue.ResourceWeight{Resource: r.resource(w.GetName(), path+".name"), Weight: r.number(w.GetWeight(), path+".weight")}
		}
		s.Usage = &kueue.UsageSharing{
			Weights: many(u.GetWeights(), "usage_sharing.weights", weight), HalfLife: u.GetHalfLife(),
			Interval: cmp.Or(u.GetSamplingInterval(), int64(samplingInterval)),
		}
		for field, value := range map[string]int64{"half_life": u.GetHalfLife(), "sampling_interval": u.GetSamplingInterval()} {
			if value < 0 {
				fault("usage_sharing."+field, "%d is negative", value)
			}
		}
		r.resources(len(s.Usage.Weights), "usage_sharing.weights", func(i int) string { return s.Usage.Weights[i].Resource })
	}
	return s
}

// gate is a feature gate with its place in the settings.
type gate struct {
	given *bool
	place func(*kueue.Settings) *bool
}

func gates(m *apportionv1.KueueGates) []gate {
	if m == nil {
		return nil
	}
	return []gate{
		{m.FairSharingPreemptWithinNominal, func(s *kueue.Settings) *bool { return &s.FairSharingPreemptWithinNominal }},
		{m.FairSharingPrioritizeNonBorrowing, func(s *kueue.Settings) *bool { return &s.FairSharingPrioritizeNonBorrowing }},
		{m.FlavorFungibility, func(s *kueue.Settings) *bool { return &s.FlavorFungibility }},
		{m.PartialAdmission, func(s *kueue.Settings) *bool { return &s.PartialAdmission }},
		{m.PriorityBoost, func(s *kueue.Settings) *bool { return &s.PriorityBoost }},
		{m.PrioritySortingWithinCohort, func(s *kueue.Settings) *bool { return &s.PrioritySortingWithinCohort }},
		{m.ReclaimablePods, func(s *kueue.Settings) *bool { return &s.ReclaimablePods }},
		{m.RecomputeAssignmentUponPreemptionTargetsOverlap, func(s *kueue.Settings) *bool {
			return &s.RecomputeAssignmentUponPreemptionTargetsOverlap
		}},
		{m.SchedulerTimestampPreemptionBuffer, func(s *kueue.Settings) *bool { return &s.SchedulerTimestampPreemptionBuffer }},
	}
}

// Message returns the message of settings, with every gate.
func Message(s *kueue.Settings) *apportionv1.Kueue {
	m := &apportionv1.Kueue{IgnoreUndeclared: s.IgnoreUndeclared, RequeueByCreation: s.RequeueByCreation, Gates: &apportionv1.KueueGates{
		FairSharingPreemptWithinNominal:                 new(s.FairSharingPreemptWithinNominal),
		FairSharingPrioritizeNonBorrowing:               new(s.FairSharingPrioritizeNonBorrowing),
		FlavorFungibility:                               new(s.FlavorFungibility),
		PartialAdmission:                                new(s.PartialAdmission),
		PriorityBoost:                                   new(s.PriorityBoost),
		PrioritySortingWithinCohort:                     new(s.PrioritySortingWithinCohort),
		ReclaimablePods:                                 new(s.ReclaimablePods),
		RecomputeAssignmentUponPreemptionTargetsOverlap: new(s.RecomputeAssignmentUponPreemptionTargetsOverlap),
		SchedulerTimestampPreemptionBuffer:              new(s.SchedulerTimestampPreemptionBuffer),
	}}
	if s.Fair {
		m.FairSharing = &apportionv1.KueueFairSharing{}
		for _, strategy := range s.Strategies {
			m.FairSharing.Strategies = append(m.FairSharing.Strategies, apportionv1.KueueStrategy(strategy)+1)
		}
	}
	if s.Usage != nil {
		m.UsageSharing = &apportionv1.KueueUsageSharing{HalfLife: s.Usage.HalfLife, SamplingInterval: s.Usage.Interval}
		for _, w := range s.Usage.Weights {
			m.UsageSharing.Weights = append(m.UsageSharing.Weights, &apportionv1.KueueResourceWeight{Name: w.Resource, Weight: w.Weight})
		}
	}
	return m
}
