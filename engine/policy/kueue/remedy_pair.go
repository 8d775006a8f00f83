package kueue

import "slices"

// pairs tries two kinds together: to open a stopped queue or to make flavors, with a smaller workload or more quota; and higher borrowing
// limits with higher lending limits. A pair is left out if one of its kinds is not asked for, or admits the workload alone.
func (r *remedier) pairs(kinds []RemedyKind) {
	for _, first := range []struct {
		kind  RemedyKind
		edits []Edit
	}{{OpenedQueue, r.opening()}, {MadeFlavor, r.missing()}} {
		if len(first.edits) == 0 {
			continue
		}
		for _, kind := range []RemedyKind{FewerPods, SmallerRequest, MoreNominal, MoreBorrowing, MoreLending} {
			r.pair(kinds, first.kind, kind, func() {
				r.before = first.edits
				r.try(kind)
				r.before = nil
			})
		}
	}
	r.pair(kinds, MoreBorrowing, MoreLending, func() {
		r.perFlavor(MoreLending, func(flavor string) []Edit {
			borrowing, lending := r.borrowings(flavor), r.lendings(flavor)
			if len(borrowing) == 0 || len(lending) == 0 {
				return nil
			}
			return append(borrowing, lending...)
		})
	})
}

// pair tries two kinds together unless one of them is not asked for or was found alone. If the tries end, the second counts as cut.
func (r *remedier) pair(kinds []RemedyKind, first, second RemedyKind, try func()) {
	asked := kinds == nil || slices.Contains(kinds, first) && slices.Contains(kinds, second)
	found := func(of Remedy) bool { return of.Kind == first || of.Kind == second }
	if r.out.Spent || !asked || slices.ContainsFunc(r.out.List, found) {
		return
	}
	try()
	if !r.out.Spent {
		return
	}
	if r.out.At = Evictions + 1; !slices.Contains(r.out.Cut, second) {
		r.out.Cut = append(r.out.Cut, second)
	}
}
