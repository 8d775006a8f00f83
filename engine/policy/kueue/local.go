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
	Namespace, Name string
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

// LocalUsage is the usage of a local queue by which workloads come in order.
type LocalUsage struct {
	*LocalQueue

	// Queue is the queue of its first workload.
	Queue int32
	// Weighted are the weighted sums of what is consumed and of the penalties, Usage is both over the weight.
	WeightedConsumed, WeightedPenalty, Usage float64
}

// usage returns the weighted usage of a local queue over its weight; +Inf for a weight of 0 or less.
func (s *UsageSharing) usage(q *LocalQueue) LocalUsage {
	u := LocalUsage{LocalQueue: q, Usage: math.Inf(1)}
	sum := 0.0
	for _, part := range []struct {
		list  []Usage
		total *float64
	}{{q.Consumed, &u.WeightedConsumed}, {q.Penalty, &u.WeightedPenalty}} {
		sorted := slices.SortedFunc(slices.Values(part.list), func(a, b Usage) int { return strings.Compare(a.Resource, b.Resource) })
		for _, one := range sorted {
			weighted := float64(s.weight(one.Resource) * one.Amount)
			sum += weighted
			*part.total += weighted
		}
	}
	if q.Weight > 0 {
		u.Usage = sum / q.Weight
	}
	return u
}

// HalfLife is the time in nanoseconds after which usage counts half; 0: unknown.
func (m *Model) HalfLife() int64 {
	if m.settings.Usage == nil {
		return 0
	}
	return m.settings.Usage.HalfLife
}

// Locals returns the usage of the local queues that count, in the order of their first workloads.
func (m *Model) Locals() []LocalUsage { return m.locals }

// Local returns the usage of the local queue of a workload; nil: it does not count.
func (m *Model) Local(workload int32) *LocalUsage {
	at := m.workloads[workload].local
	if at == none {
		return nil
	}
	return &m.locals[at]
}

// WorkloadPenalty returns the entry penalty of a workload as the usage of its local queue counts it; ok is false without a half-life.
func (s *Session) WorkloadPenalty(workload int32) (penalty float64, ok bool) {
	sharing, w := s.settings.Usage, s.workloads[workload].Workload
	if sharing == nil || sharing.HalfLife <= 0 || !s.spend(1+w.elements(), 1+len(sharing.Weights)) {
		return 0, false
	}
	for i := range w.PodSets {
		p := &w.PodSets[i]
		for _, r := range p.Requests {
			all := float64(Standard(r.Resource, r.Amount) * float64(max(0, p.Count-p.Reclaimable)))
			penalty += float64(sharing.weight(r.Resource) * sharing.EntryPenalty(all))
		}
	}
	return penalty, true
}

// Standard converts an amount to the units of usage: whole CPUs, and units of everything else.
func Standard(resource string, amount Amount) float64 {
	const milli = 1000
	if resource == "cpu" {
		return float64(amount) / milli
	}
	return float64(amount)
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
