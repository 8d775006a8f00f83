package kueue

import "slices"

// Field says what an edit changes.
type Field uint8

// The fields.
const (
	// LeastPods is the smallest count of pods of a set with which the workload may be admitted.
	LeastPods Field = iota + 1
	// PodRequest is what one pod of a set asks for of Resource.
	PodRequest
	// StopPolicy lets a stopped queue admit.
	StopPolicy
	// NominalQuota, BorrowingLimit and LendingLimit are those of a queue or a cohort for Flavor and Resource.
	NominalQuota
	BorrowingLimit
	LendingLimit
	// MissingFlavor makes Flavor exist, without labels and taints.
	MissingFlavor
	// Priority is that of the workload.
	Priority
	// HolderEnds ends a workload that holds quota.
	HolderEnds
)

// Edit is one difference between the cluster and one in which a workload is admitted.
type Edit struct {
	Field Field
	// Queue or Cohort names the owner of the quota; both are "" for edits of workloads and flavors.
	Queue, Cohort string
	// Workload is a position in the cluster's list, or none.
	Workload int32
	// Set is a position among the pod sets of the workload.
	Set              int
	Flavor, Resource string
	// Before is the value now, valid if Given; After is the one with which the workload is admitted. With one that is nearer to Before by 1
	// it is not. Edits without an amount have neither.
	Before, After int64
	Given         bool
}

// counted reports whether the edit has an amount.
func (e *Edit) counted() bool {
	switch e.Field {
	case StopPolicy, MissingFlavor, HolderEnds:
		return false
	default:
		return true
	}
}

// apply makes edits on a copy of the part.
func (p *part) apply(edits []Edit) *part {
	c := p.clone()
	var ended []int
	cloned, ownPods := map[*[]Group]bool{}, false
	for i := range edits {
		switch e := &edits[i]; e.Field {
		case LeastPods, PodRequest:
			if !ownPods {
				ownPods = true
				c.clonePods()
			}
			c.editPods(e)
		case StopPolicy:
			c.Queues[c.queue(e.Queue)].Stopped = false
		case NominalQuota, BorrowingLimit, LendingLimit:
			c.editQuota(e, cloned)
		case MissingFlavor:
			c.Flavors = append(c.Flavors, Flavor{Name: e.Flavor})
		case Priority:
			c.Workloads[c.at].Priority = e.After
		case HolderEnds:
			ended = append(ended, c.workload(e.Workload))
		}
	}
	for _, at := range ended {
		w := &c.Workloads[at]
		w.Queue, w.Admission, w.Parked = "", nil, true
	}
	return c
}

// clonePods clones the pod sets of the workload, so that they may be changed.
func (p *part) clonePods() {
	w := &p.Workloads[p.at]
	w.PodSets = slices.Clone(w.PodSets)
	for i := range w.PodSets {
		w.PodSets[i].Requests = slices.Clone(w.PodSets[i].Requests)
	}
}

func (p *part) editPods(e *Edit) {
	set := &p.Workloads[p.at].PodSets[e.Set]
	if e.Field == LeastPods {
		set.Least = new(int32(e.After))
		return
	}
	for i := range set.Requests {
		if set.Requests[i].Resource == e.Resource {
			set.Requests[i].Amount = Amount(e.After)
		}
	}
}

// editQuota edits a quota of an owner, whose groups are cloned first unless they are.
func (p *part) editQuota(e *Edit, cloned map[*[]Group]bool) {
	var at *[]Group
	if e.Cohort != "" {
		at = &p.Cohorts[p.cohort(e.Cohort)].Groups
	} else {
		at = &p.Queues[p.queue(e.Queue)].Groups
	}
	if !cloned[at] {
		cloned[at] = true
		*at = cloneGroups(*at)
	}
	for g := range *at {
		flavors := (*at)[g].Flavors
		for f := range flavors {
			if flavors[f].Flavor != e.Flavor {
				continue
			}
			for k := range flavors[f].Resources {
				q := &flavors[f].Resources[k]
				switch {
				case q.Resource != e.Resource:
				case e.Field == NominalQuota:
					q.Nominal = Amount(e.After)
				case e.Field == BorrowingLimit:
					q.Borrowing = new(Amount(e.After))
				default:
					q.Lending = new(Amount(e.After))
				}
			}
		}
	}
}

// cloneGroups returns a copy whose quotas may be changed.
func cloneGroups(groups []Group) []Group {
	out := slices.Clone(groups)
	for g := range out {
		out[g].Flavors = slices.Clone(out[g].Flavors)
		for f := range out[g].Flavors {
			out[g].Flavors[f].Resources = slices.Clone(out[g].Flavors[f].Resources)
		}
	}
	return out
}
