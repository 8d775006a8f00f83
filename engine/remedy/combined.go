package remedy

import "slices"

// settings are the changes of settings of the queue, in the order in which they are tried together with others.
var settings = []Kind{OpenQueue, HigherCapability, HigherDeserved, HigherGuarantee, HigherWeight}

// firsts are the kinds that are tried together with a setting. One kind of a row is enough: nodes that are there already come before new
// ones.
var firsts = [][]Kind{{Uncordoned, MoreNodes}, {OtherNodes}, {SmallerMinimum}, {SmallerRequest}}

// combined changes a setting of the queues together with something else, where neither helps alone: it opens the queues too, changes nodes,
// or changes the job.
func (r *remedier) combined() error {
	if r.found(slices.Concat(settings, []Kind{MoreNodes, Uncordoned, OtherNodes})...) {
		r.untried(Combined, NotNeeded)
		return nil
	}
	rows, opens := firsts, r.settingDialsOfAll(OpenQueue)
	if len(opens) > 0 {
		rows = slices.Insert(slices.Clone(rows), 0, []Kind{Combined})
	}
	tried := false
	for _, row := range rows {
		for _, setting := range settings {
			dials := r.settingDialsOfAll(setting)
			if len(dials) == 0 {
				continue
			}
			if setting != OpenQueue {
				dials = slices.Concat(opens, dials)
			}
			some, err := r.together(row, dials)
			if err != nil {
				return err
			}
			tried = tried || some
		}
		if row[0] == Combined && r.found(Combined) {
			break
		}
	}
	if !tried {
		r.untried(Combined, NoneThere)
	}
	return nil
}

// together tries one kind of change after the other beside others until one helps, and reports whether there was anything to try.
func (r *remedier) together(kinds []Kind, beside []dial) (bool, error) {
	r.beside = beside
	defer func() { r.beside = nil }()
	tried, listed := false, len(r.out.List)
	for _, kind := range kinds {
		if r.found(kind) && kind != Combined {
			continue
		}
		if err := r.try(kind); err != nil {
			return tried, err
		}
		noted := len(r.out.Untried)
		r.out.Untried = slices.DeleteFunc(r.out.Untried, func(u Untried) bool { return u.Kind == Combined && u.Cause == NoneThere })
		if tried = tried || len(r.out.Untried) == noted; len(r.out.List) > listed {
			break
		}
	}
	return tried, nil
}

// as is the kind as which a change is listed.
func (r *remedier) as(kind Kind) Kind {
	if r.beside != nil {
		return Combined
	}
	return kind
}

// atMost are the edits of dials, and of those beside them, that are all turned to their most.
func (r *remedier) atMost(dials []dial) []Edit {
	var edits []Edit
	for _, d := range slices.Concat(dials, r.beside) {
		if d.most > 0 {
			edits = append(edits, d.at(d.most))
		}
	}
	return edits
}

// settingDialsOfAll are the dials of a setting of the job's queue and of those above it.
func (r *remedier) settingDialsOfAll(kind Kind) []dial {
	var dials []dial
	for _, q := range r.levels(Combined) {
		dials = append(dials, r.settingDials(kind, q)...)
	}
	return dials
}
