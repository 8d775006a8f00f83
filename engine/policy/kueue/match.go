package kueue

import (
	"slices"
	"strconv"
)

// untolerated returns the first taint of a flavor that keeps the pods of a set away, or nil.
func (f *flavor) untolerated(p *PodSet) *Taint {
	for i := range f.Taints {
		t := &f.Taints[i]
		if t.Effect != "NoSchedule" && t.Effect != "NoExecute" {
			continue
		}
		tolerates := func(o Toleration) bool { return o.tolerates(t) }
		if !slices.ContainsFunc(p.Tolerations, tolerates) && !slices.ContainsFunc(f.Tolerations, tolerates) {
			return t
		}
	}
	return nil
}

// tolerates is Kubernetes' Toleration.ToleratesTaint.
func (o *Toleration) tolerates(t *Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
		return false
	}
	switch o.Operator {
	case "", "Equal":
		return o.Value == t.Value
	case "Exists":
		return true
	case "Lt", "Gt":
		own, err := strconv.ParseInt(o.Value, 10, 64)
		taint, taintErr := strconv.ParseInt(t.Value, 10, 64)
		return err == nil && taintErr == nil && (o.Operator == "Lt" && taint < own || o.Operator == "Gt" && taint > own)
	}
	return false
}

// matching says whether the labels of a flavor are those that pods select.
type matching uint8

const (
	matches matching = iota
	matchesNot
	// cannotMatch: a requirement is malformed.
	cannotMatch
)

// match compares the labels of a flavor with the selector and the affinity of a set. Only keys that the flavor's labels have are looked
// at: a term without any is met by all flavors.
func (f *flavor) match(p *PodSet) matching {
	for key, value := range p.Selector {
		if own, ok := f.Labels[key]; ok && own != value {
			return matchesNot
		}
	}
	if len(p.Affinity) == 0 || slices.ContainsFunc(p.Affinity, func(t Term) bool { return !f.lookedAt(t) }) {
		return matches
	}
	result := matchesNot
	for _, term := range p.Affinity {
		switch f.meets(term) {
		case matches:
			return matches
		case cannotMatch:
			result = cannotMatch
		case matchesNot:
		}
	}
	return result
}

// lookedAt reports whether a requirement of the term is about a label that the flavor has.
func (f *flavor) lookedAt(t Term) bool {
	return slices.ContainsFunc(t, func(r Requirement) bool { _, ok := f.Labels[r.Key]; return ok })
}

func (f *flavor) meets(t Term) matching {
	result := matches
	for i := range t {
		value, ok := f.Labels[t[i].Key]
		if !ok {
			continue
		}
		switch t[i].meets(value) {
		case cannotMatch:
			return cannotMatch
		case matchesNot:
			result = matchesNot
		case matches:
		}
	}
	return result
}

// meets compares the value of a label that is there with the requirement.
func (r *Requirement) meets(value string) matching {
	is := func(met bool) matching {
		if met {
			return matches
		}
		return matchesNot
	}
	switch {
	case r.Operator == "In" && len(r.Values) > 0:
		return is(slices.Contains(r.Values, value))
	case r.Operator == "NotIn" && len(r.Values) > 0:
		return is(!slices.Contains(r.Values, value))
	case r.Operator == "Exists" && len(r.Values) == 0:
		return matches
	case r.Operator == "DoesNotExist" && len(r.Values) == 0:
		return matchesNot
	case (r.Operator == "Gt" || r.Operator == "Lt") && len(r.Values) == 1:
		bound, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return cannotMatch
		}
		number, err := strconv.ParseInt(value, 10, 64)
		return is(err == nil && (r.Operator == "Gt" && number > bound || r.Operator == "Lt" && number < bound))
	}
	return cannotMatch
}

// Suits reports whether the taints and the labels of a flavor let the pods of a set use it.
func Suits(f *Flavor, p *PodSet) bool {
	of := flavor{Flavor: *f}
	return of.untolerated(p) == nil && of.match(p) == matches
}
