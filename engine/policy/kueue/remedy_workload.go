package kueue

import (
	"cmp"
	"slices"
)

// ofPods changes each pod set alone.
func (r *remedier) ofPods(kind RemedyKind) {
	w := &r.part.Workloads[r.part.at]
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if i == maxVariants {
			r.out.Cut = append(r.out.Cut, kind)
			return
		}
		var edits []Edit
		e := Edit{Workload: r.part.ids[r.part.at], Set: i, Given: true}
		if kind == FewerPods {
			e.Field, e.Before, e.After = LeastPods, int64(set.Count), 1
			if set.Least != nil {
				e.Before = int64(*set.Least)
			}
			if r.settings.PartialAdmission && e.After < e.Before {
				edits = append(edits, e)
			}
		} else {
			for _, q := range set.Requests {
				e.Field, e.Resource, e.Before, e.After = PodRequest, q.Resource, int64(q.Amount), 1
				if e.After < e.Before && q.Resource != podsResource {
					edits = append(edits, e)
				}
			}
		}
		r.list(kind, edits, fitting)
	}
}

// missing makes the flavors of the queue that do not exist.
func (r *remedier) missing() (edits []Edit) {
	known := map[string]bool{}
	for i := range r.part.Flavors {
		known[r.part.Flavors[i].Name] = true
	}
	for _, g := range r.own().Groups {
		for _, f := range g.Flavors {
			if !known[f.Flavor] {
				known[f.Flavor] = true
				edits = append(edits, Edit{Field: MissingFlavor, Flavor: f.Flavor, Workload: none})
			}
		}
	}
	return edits
}

// higherPriority tries the priorities of others, and those just above them, the lowest first, unless the workload evicts others already.
func (r *remedier) higherPriority() {
	if len(r.now.Victims) > 0 && r.Behind(r.part.ids[r.part.at]) == none {
		return
	}
	id := r.part.ids[r.part.at]
	own := r.part.Workloads[r.part.at].Priority
	boost := r.workloads[id].priority - own
	var tries []int64
	for i, other := range r.part.ids {
		if p := r.workloads[other].priority - boost; i != r.part.at && p >= own {
			tries = append(tries, p, p+1)
		}
	}
	slices.Sort(tries)
	tries = slices.DeleteFunc(slices.Compact(tries), func(p int64) bool { return p <= own || p > maxPriority })
	for i, p := range tries {
		if i == maxPriorities {
			r.out.Cut = append(r.out.Cut, HigherPriority)
			return
		}
		e := Edit{Field: Priority, Workload: id, Before: own, After: p, Given: true}
		if n, ok := r.tried([]Edit{e}, claiming); ok {
			r.add(Remedy{Kind: HigherPriority, Edits: []Edit{e}, Nomination: n})
			return
		}
	}
}

// maxPriority is the highest priority of a workload.
const maxPriority = 1<<31 - 1

// endedHolders ends all workloads whose quota the workload could use, but those that are not needed: of low priority and young ones first.
func (r *remedier) endedHolders() {
	var holders []int
	for i := range r.part.Workloads {
		if r.part.Workloads[i].Admission != nil {
			holders = append(holders, i)
		}
	}
	slices.SortStableFunc(holders, func(a, b int) int {
		l, n := &r.part.Workloads[a], &r.part.Workloads[b]
		return cmp.Or(cmp.Compare(l.Priority, n.Priority), cmp.Compare(n.Created, l.Created))
	})
	if len(holders) > maxHolders {
		holders = holders[:maxHolders]
		r.out.Cut = append(r.out.Cut, EndedHolders)
	}
	edits := make([]Edit, 0, len(holders))
	for _, at := range holders {
		edits = append(edits, Edit{Field: HolderEnds, Workload: r.part.ids[at]})
	}
	// Fewer than low do not suffice.
	low, high := 0, len(edits)
	for low < high && !r.out.Spent {
		middle := low + (high-low)/2
		if _, ok := r.tried(edits[:middle], fitting); ok {
			high = middle
		} else {
			low = middle + 1
		}
	}
	r.list(EndedHolders, edits[:high], fitting)
}
