package kueue

// Strategy is a rule by which a queue may evict in fair sharing.
type Strategy uint8

// The strategies.
const (
	// FinalShare: the share of the preemptor's side is at most that of the victim's side without the victim.
	FinalShare Strategy = iota
	// InitialShare: the share of the preemptor's side is less than that of the victim's side.
	InitialShare
)

// Settings are those of Kueue's configuration and feature gates that decide.
type Settings struct {
	// Fair: shares order admissions and evictions.
	Fair bool
	// Strategies are tried in this order, at most two; none: FinalShare, InitialShare.
	Strategies []Strategy
	// IgnoreUndeclared: resources that no group covers need no quota (quotaCheckStrategy IgnoreUndeclared).
	IgnoreUndeclared bool
	// RequeueByCreation: workloads whose pods were not ready in time wait from their creation, not from their eviction.
	RequeueByCreation bool
	// Usage has the settings of the sharing among local queues; nil: off.
	Usage *UsageSharing
	Gates
}

// Gates are feature gates of Kueue by their names.
type Gates struct {
	FairSharingPreemptWithinNominal                 bool
	FairSharingPrioritizeNonBorrowing               bool
	FlavorFungibility                               bool
	PartialAdmission                                bool
	PriorityBoost                                   bool
	PrioritySortingWithinCohort                     bool
	ReclaimablePods                                 bool
	RecomputeAssignmentUponPreemptionTargetsOverlap bool
	SchedulerTimestampPreemptionBuffer              bool
}

// Default returns the settings of Kueue v0.19.2 without a configuration.
func Default() Settings {
	return Settings{Gates: Gates{
		FairSharingPreemptWithinNominal: true, FairSharingPrioritizeNonBorrowing: true, FlavorFungibility: true, PartialAdmission: true,
		PrioritySortingWithinCohort: true, ReclaimablePods: true,
	}}
}

// strategies returns those in effect.
func (s *Settings) strategies() []Strategy {
	if len(s.Strategies) == 0 {
		return []Strategy{FinalShare, InitialShare}
	}
	return s.Strategies
}
