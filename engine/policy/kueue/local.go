package kueue

import (
	"math"
	"slices"
	"strings"
)

// UsageSharing has the settings by which the usage of local queues orders workloads (AdmissionFairSharing).
type UsageSharing struct {
	// HalfLife is the time in which usage counts half, Interval the time between two samples, both in nanoseconds.
	HalfLife, Interval int64
	// Weights are those of resources; 1 for one that is not listed.
	Weights []ResourceWeight
}

// ResourceWeight is the weight of a resource in a sum.
type ResourceWeight struct {
	Resource string
	Weight   float64
}

// LocalQueue is the usage of a local queue.
type LocalQueue struct {
	Name string
	// Weight is the fair weight; 1 is Kueue's default.
	Weight float64
	// Consumed is the decayed usage, Penalty that of admissions since the last sample, both in standard units: whole CPUs, and units of
	// everything else.
	Consumed, Penalty []Usage
}

// Usage is an amount in standard units.
type Usage struct {
	Resource string
	Amount   float64
}

// notCounted is the usage of a local queue that does not count.
var notCounted = math.NaN()

// usage returns the weighted usage of a local queue over its weight; +Inf for a weight of 0 or less.
func (s *UsageSharing) usage(q *LocalQueue) float64 {
	if q.Weight <= 0 {
		return math.Inf(1)
	}
	sum := 0.0
	for _, list := range [][]Usage{q.Consumed, q.Penalty} {
		sorted := slices.SortedFunc(slices.Values(list), func(a, b Usage) int { return strings.Compare(a.Resource, b.Resource) })
		for _, u := range sorted {
			sum += float64(s.weight(u.Resource) * u.Amount)
		}
	}
	return sum / q.Weight
}

func (s *UsageSharing) weight(resource string) float64 {
	for _, w := range s.Weights {
		if w.Resource == resource {
			return w.Weight
		}
	}
	return 1
}

// Alpha returns the part that a new sample has in the decayed usage after a time: 1 - 0.5^(elapsed/half-life), 0 without a half-life.
func (s *UsageSharing) Alpha(elapsed int64) float64 {
	if s.HalfLife <= 0 {
		return 0
	}
	return 1 - math.Pow(0.5, float64(elapsed)/float64(s.HalfLife))
}

// Decay returns the usage that follows old usage after a time in which now was used.
func (s *UsageSharing) Decay(old, now float64, elapsed int64) float64 {
	alpha := s.Alpha(elapsed)
	return float64(old*(1-alpha)) + float64(now*alpha)
}

// EntryPenalty returns what the admission of a request adds to the usage until the next sample.
func (s *UsageSharing) EntryPenalty(request float64) float64 { return request * s.Alpha(s.Interval) }
