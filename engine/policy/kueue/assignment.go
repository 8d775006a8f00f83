package kueue

import (
	"slices"
	"strings"
)

// Mode says how a workload, a set, or a resource in a flavor can be admitted.
type Mode uint8

// The modes, the worst first.
const (
	// NoFit: not without more quota.
	NoFit Mode = iota
	// Preempt: once others have left. Whether any may be evicted is another question.
	Preempt
	// DeferredFit: once the victims of others have left.
	DeferredFit
	// Fit: at once.
	Fit
)

// String returns Kueue's word for the mode.
func (m Mode) String() string { return [...]string{"NoFit", "Preempt", "DeferredFit", "Fit"}[m] }

// Possibility says what a search for victims in a flavor found.
type Possibility uint8

// The possibilities. NotSearched: there was no need for victims, or no use in them.
const (
	NotSearched Possibility = iota
	NoCandidates
	OwnQueue
	OtherQueues
)

// String returns Kueue's word for the possibility.
func (p Possibility) String() string {
	return [...]string{"", "NoCandidates", "Preempt", "Reclaim"}[p]
}

// Cause says why a workload cannot be admitted at once.
type Cause uint8

// The causes, the least severe first.
const (
	NoCause Cause = iota
	WaitingForQuota
	ExceedsMaxQuota
	NoMatchingFlavor
)

// String returns Kueue's word for the cause.
func (c Cause) String() string {
	return [...]string{"", "WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor"}[c]
}

// Assignment is how a pending workload would be admitted.
type Assignment struct {
	Mode Mode
	// Borrows is the height of the lowest cohort that has the quota; 0: the queue itself.
	Borrows int32
	// PodSets are the sets that were judged. Sets after one without flavors are not.
	PodSets []PodSetAssignment
	// Usage is the usage of the assigned flavors.
	Usage []Use
	// Cause is set for NoFit.
	Cause Cause
}

// PodSetAssignment has the flavors of a set.
type PodSetAssignment struct {
	Name    string
	Count   int32
	Mode    Mode
	Flavors []FlavorAssignment
	// Attempts are the flavors that were tried, by name.
	Attempts []Attempt
	// Lacks are the reasons against a fit; empty for Fit.
	Lacks []Lack

	failed bool
}

// FlavorAssignment is the flavor of a resource. Flavor and Resource are indices; see Model.FlavorName and Model.ResourceName.
type FlavorAssignment struct {
	Resource, Flavor int32
	Mode             Mode
	// Tried is the position in the group of the last flavor tried, -1 for the last of the group: the next search begins after it.
	Tried int32
	// Amount is the request of all pods of the set.
	Amount Amount
	borrow int32
}

// Attempt is the result of a search in a flavor: the worst of the resources.
type Attempt struct {
	Flavor      int32
	Mode        Mode
	Borrow      int32
	Possibility Possibility
	Cause       Cause
}

// LackKind says what speaks against a flavor.
type LackKind uint8

// The kinds.
const (
	// FlavorMissing: the flavor does not exist.
	FlavorMissing LackKind = iota
	// TaintUntolerated: the pods do not tolerate Taint.
	TaintUntolerated
	// LabelsDiffer: the labels are not those that the pods select.
	LabelsDiffer
	// RequirementMalformed: the affinity of the pods cannot be read.
	RequirementMalformed
	// NotCovered: no group of the queue covers the resource.
	NotCovered
	// AboveCapacity: Used + Requested is more than Limit, all that the queue could ever have.
	AboveCapacity
	// AboveAvailable: Used + Requested is more than Limit, what is available now.
	AboveAvailable
	// OtherNominated: another flavor was nominated in this cycle.
	OtherNominated
)

// Lack is a reason against a flavor. Flavor or Resource is none (-1) where it does not matter.
type Lack struct {
	Kind                   LackKind
	Flavor, Resource       int32
	Taint                  *Taint
	Used, Requested, Limit Amount
}

// flavoredSet has the flavors that were nominated for a set.
type flavoredSet struct{ flavors []FlavorAssignment }

// settle computes the mode of a set from its flavors.
func (p *PodSetAssignment) settle() {
	switch {
	case p.failed:
		p.Mode = NoFit
	case len(p.Lacks) == 0:
		p.Mode = Fit
	case len(p.Flavors) == 0:
		p.Mode = NoFit
	default:
		p.Mode = Fit
		for i := range p.Flavors {
			p.Mode = min(p.Mode, p.Flavors[i].Mode)
		}
	}
}

// flavorOf returns the assignment of a resource, or nil.
func (p *PodSetAssignment) flavorOf(resource int32) *FlavorAssignment {
	for i := range p.Flavors {
		if p.Flavors[i].Resource == resource {
			return &p.Flavors[i]
		}
	}
	return nil
}

// Resumable reports whether another attempt would begin behind the flavors tried by this one.
func (a *Assignment) Resumable() bool {
	for i := range a.PodSets {
		if slices.ContainsFunc(a.PodSets[i].Flavors, func(f FlavorAssignment) bool { return f.Tried != none }) {
			return true
		}
	}
	return false
}

// attempts returns how many flavors were tried for all sets.
func (a *Assignment) attempts() int {
	n := 0
	for i := range a.PodSets {
		n += len(a.PodSets[i].Attempts)
	}
	return n
}

// start returns the position of the first flavor to try for a resource of a set.
func (a *Assignment) start(set int, resource int32) int {
	if a == nil || set >= len(a.PodSets) {
		return 0
	}
	if f := a.PodSets[set].flavorOf(resource); f != nil {
		return int(f.Tried) + 1
	}
	return 0
}

// merge adds the attempts for a resource to those for others of the set.
func (p *PodSetAssignment) merge(attempts []Attempt, g *group) {
	if len(p.Attempts) == 0 {
		p.Attempts = attempts
		return
	}
	for i := range attempts {
		at := &attempts[i]
		k := slices.IndexFunc(p.Attempts, func(e Attempt) bool { return e.Flavor == at.Flavor })
		if k < 0 {
			p.Attempts = append(p.Attempts, *at)
			continue
		}
		e := &p.Attempts[k]
		e.Mode, e.Borrow, e.Cause = min(e.Mode, at.Mode), max(e.Borrow, at.Borrow), max(e.Cause, at.Cause)
		if at.Possibility != NotSearched && (e.Possibility == NotSearched || at.Possibility < e.Possibility) {
			e.Possibility = at.Possibility
		}
	}
	if len(attempts) == 0 {
		return
	}
	for i := range p.Attempts {
		e := &p.Attempts[i]
		if slices.Contains(g.flavors, e.Flavor) && !slices.ContainsFunc(attempts, func(at Attempt) bool { return at.Flavor == e.Flavor }) {
			e.Mode, e.Cause = NoFit, NoMatchingFlavor
		}
	}
}

// sortAttempts sorts the attempts of a set by the names of the flavors.
func (m *Model) sortAttempts(attempts []Attempt) {
	if len(attempts) < 2 {
		return
	}
	slices.SortFunc(attempts, func(a, b Attempt) int { return strings.Compare(m.flavors[a.Flavor].Name, m.flavors[b.Flavor].Name) })
}

// cause returns the reason for which an assignment does not fit: of the sets and of a set's groups the most severe, of the flavors of a
// group the least severe.
func (q *queue) cause(a *Assignment) Cause {
	overall := NoCause
	for i := range a.PodSets {
		p := &a.PodSets[i]
		if p.Mode != NoFit {
			continue
		}
		if len(p.Attempts) == 0 {
			overall = max(overall, NoMatchingFlavor)
			continue
		}
		for k := range q.groups {
			least, found := NoCause, false
			for _, at := range p.Attempts {
				if at.Mode == NoFit && slices.Contains(q.groups[k].flavors, at.Flavor) && (!found || at.Cause < least) {
					least, found = at.Cause, true
				}
			}
			overall = max(overall, least)
		}
	}
	return overall
}

// FlavorName returns the name of a flavor.
func (m *Model) FlavorName(flavor int32) string { return m.flavors[flavor].Name }

// ResourceName returns the name of a resource.
func (m *Model) ResourceName(resource int32) string { return m.resources[resource] }

// FlavorResource returns the names of a flavor-resource in the tree of a queue or cohort.
func (m *Model) FlavorResource(node, fr int32) (flavor, resource string) {
	p := m.trees[m.nodes[node].tree].pairs[fr]
	return m.flavors[p.flavor].Name, m.resources[p.resource]
}
