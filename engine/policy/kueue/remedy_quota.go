package kueue

import "slices"

// perFlavor tries a change of the quotas of each flavor of the queue, together with those of the other groups. Edits stand in the order of
// the groups, so that what is found from different flavors of one change is the same.
func (r *remedier) perFlavor(kind RemedyKind, edits func(flavor string) []Edit) {
	groups := r.own().Groups
	byGroup, all := make([][][]Edit, len(groups)), make([][]Edit, len(groups))
	for g := range groups {
		for _, f := range groups[g].Flavors {
			list := edits(f.Flavor)
			byGroup[g], all[g] = append(byGroup[g], list), append(all[g], list...)
		}
	}
	variants := 0
	var tried [][]Edit
	for g := range groups {
		for _, own := range byGroup[g] {
			if len(own) == 0 {
				continue
			}
			if variants++; variants > maxVariants {
				r.out.Cut = append(r.out.Cut, kind)
				return
			}
			of := slices.Clone(all)
			of[g] = own
			list := slices.Concat(of...)
			if slices.ContainsFunc(tried, func(other []Edit) bool { return slices.Equal(other, list) }) {
				continue
			}
			tried = append(tried, list)
			r.list(kind, list, fitting)
		}
	}
}

// quotas calls each for the quotas of a flavor that concern what the workload asks for.
func (r *remedier) quotas(groups []Group, flavor string, each func(q *Quota, asked Amount)) {
	for g := range groups {
		if !r.pay(1+len(groups[g].Flavors), 1) {
			return
		}
		for f := range groups[g].Flavors {
			if groups[g].Flavors[f].Flavor != flavor || !r.pay(len(groups[g].Flavors[f].Resources), element) {
				continue
			}
			for k := range groups[g].Flavors[f].Resources {
				q := &groups[g].Flavors[f].Resources[k]
				if asked := r.asked[q.Resource]; asked > 0 {
					each(q, asked)
				}
			}
		}
	}
}

// raised returns an edit that raises an amount, and whether that is possible.
func raised(e Edit, before, by Amount) (Edit, bool) {
	e.Before, e.After, e.Given, e.Workload = int64(before), int64(min(before.plus(by), Unlimited-1)), true, none
	return e, e.After > e.Before
}

func (r *remedier) nominals(flavor string) (edits []Edit) {
	q := r.own()
	r.quotas(q.Groups, flavor, func(of *Quota, asked Amount) {
		// What others use of the queue's quota may be needed, too.
		more := asked.plus(r.held[held{flavor, of.Resource}])
		if e, ok := raised(Edit{Field: NominalQuota, Queue: q.Name, Flavor: flavor, Resource: of.Resource}, of.Nominal, more); ok {
			edits = append(edits, e)
		}
	})
	return edits
}

// borrowings raises the borrowing limits from the queue upwards.
func (r *remedier) borrowings(flavor string) (edits []Edit) {
	at := func(e Edit, groups []Group) {
		r.quotas(groups, flavor, func(of *Quota, asked Amount) {
			if of.Borrowing == nil {
				return
			}
			e.Field, e.Flavor, e.Resource = BorrowingLimit, flavor, of.Resource
			if e, ok := raised(e, *of.Borrowing, asked); ok {
				edits = append(edits, e)
			}
		})
	}
	q := r.own()
	at(Edit{Queue: q.Name}, q.Groups)
	for parent, i := q.Cohort, 0; parent != "" && i < maxLenders; i++ {
		c := r.part.cohort(parent)
		if c < 0 || !r.pay(len(r.part.Cohorts), 1) {
			break
		}
		at(Edit{Cohort: parent}, r.part.Cohorts[c].Groups)
		parent = r.part.Cohorts[c].Parent
	}
	return edits
}

// lendings raises the lending limits of all others.
func (r *remedier) lendings(flavor string) (edits []Edit) {
	at := func(e Edit, groups []Group) {
		r.quotas(groups, flavor, func(of *Quota, asked Amount) {
			if of.Lending == nil {
				return
			}
			e.Field, e.Flavor, e.Resource = LendingLimit, flavor, of.Resource
			if e, ok := raised(e, *of.Lending, asked); ok && len(edits) < maxLenders {
				edits = append(edits, e)
			}
		})
	}
	if !r.pay(len(r.part.Queues)+len(r.part.Cohorts), 1) {
		return nil
	}
	own := r.own().Name
	for i := range r.part.Queues {
		if q := &r.part.Queues[i]; q.Name != own {
			at(Edit{Queue: q.Name}, q.Groups)
		}
	}
	for i := range r.part.Cohorts {
		at(Edit{Cohort: r.part.Cohorts[i].Name}, r.part.Cohorts[i].Groups)
	}
	if len(edits) == maxLenders && !slices.Contains(r.out.Cut, MoreLending) {
		r.out.Cut = append(r.out.Cut, MoreLending)
	}
	return edits
}
