package kueue

import "slices"

// RemedyKind is a kind of change that may admit a workload.
type RemedyKind uint8

// The kinds, in the order in which they are tried.
const (
	// FewerPods lets the workload be admitted with fewer pods of a set.
	FewerPods RemedyKind = iota + 1
	// SmallerRequest lowers what the pods of a set ask for.
	SmallerRequest
	// OpenedQueue lets a stopped queue admit.
	OpenedQueue
	// MoreNominal raises nominal quotas of the queue.
	MoreNominal
	// MoreBorrowing raises borrowing limits of the queue and of cohorts above it.
	MoreBorrowing
	// MoreLending raises lending limits of other queues and cohorts of the tree.
	MoreLending
	// MadeFlavor makes the flavors of the queue that do not exist.
	MadeFlavor
	// HigherPriority raises the priority of the workload, so that it evicts others or comes first in a strict queue.
	HigherPriority
	// EndedHolders ends workloads that hold quota.
	EndedHolders
	// Evictions changes nothing: victims make room.
	Evictions
)

// Remedy is a smallest change with which a workload is admitted. It was tried.
type Remedy struct {
	Kind  RemedyKind
	Edits []Edit
	// Nomination is how the workload is admitted then, without its usage.
	Nomination Nomination
}

// Remedies are the smallest changes of each kind that were found.
type Remedies struct {
	List []Remedy
	// Cut are kinds of which not all changes were tried, because there are more than so many of them.
	Cut []RemedyKind
	// Spent: the tries or the work of the question ended before all changes were tried, at kind At.
	Spent bool
	At    RemedyKind
	Tries int
}

// Limits on what is tried.
const (
	maxTries      = 320
	maxVariants   = 8
	maxHolders    = 64
	maxPriorities = 32
	maxLenders    = 64
)

// Remedies finds the smallest changes of each kind that admit a pending workload, all kinds if there are none, and of two kinds together
// where neither admits it alone: such a change has the kind of its last edit. Each was tried: the workload was judged again in the changed
// cluster, and it is admitted there, or for HigherPriority may evict others; and with one step less of any edit it is not. Workloads
// that come first in other queues are not considered.
func (s *State) Remedies(workload int32, kinds []RemedyKind) Remedies {
	if w := &s.workloads[workload]; w.holds || w.queue == none || s.nodes[w.queue].tree == none {
		return Remedies{}
	}
	r := &remedier{State: s, part: s.partOf(workload), now: s.Nominate(workload), out: Remedies{At: FewerPods}}
	r.sum()
	for kind := FewerPods; kind <= Evictions && !r.out.Spent; kind++ {
		if kinds != nil && !slices.Contains(kinds, kind) {
			continue
		}
		r.try(kind)
		if r.out.Spent {
			r.out.At = kind
		}
	}
	r.pairs(kinds)
	return r.out
}

// remedier finds remedies of a workload.
type remedier struct {
	*State

	part *part
	// now is how the workload would be admitted without a change.
	now Nomination
	out Remedies
	// before stand before the edits of each change that is listed.
	before []Edit
	// asked is by resource what all pods of the workload, and of the one that it waits behind, ask for; held is what others use.
	asked map[string]Amount
	held  map[held]Amount
}

// held names a flavor-resource.
type held struct{ flavor, resource string }

// pay spends units, or ends the search.
func (r *remedier) pay(n, width int) bool {
	if !r.out.Spent && r.view.Work.Spend(n, width) != nil {
		r.out.Spent = true
	}
	return !r.out.Spent
}

func (r *remedier) try(kind RemedyKind) {
	switch kind {
	case FewerPods, SmallerRequest:
		r.ofPods(kind)
	case OpenedQueue:
		r.list(kind, r.opening(), fitting)
	case MoreNominal:
		r.perFlavor(kind, r.nominals)
	case MoreBorrowing:
		r.perFlavor(kind, r.borrowings)
	case MoreLending:
		r.perFlavor(kind, r.lendings)
	case MadeFlavor:
		r.list(kind, r.missing(), fitting)
	case HigherPriority:
		r.higherPriority()
	case EndedHolders:
		r.endedHolders()
	case Evictions:
		if len(r.now.Victims) > 0 {
			r.add(Remedy{Kind: kind, Nomination: r.now})
		}
	}
}

// opening lets the queue admit, if it is stopped.
func (r *remedier) opening() []Edit {
	q := r.own()
	if !q.Stopped {
		return nil
	}
	return []Edit{{Field: StopPolicy, Queue: q.Name, Workload: none}}
}

// own returns the queue of the workload.
func (r *remedier) own() *Queue { return &r.part.Queues[r.part.own] }

// fitting and claiming say what a remedy must reach.
func fitting(n *Nomination) bool  { return n.Mode == Fit }
func claiming(n *Nomination) bool { return n.Mode == Fit || len(n.Victims) > 0 }

// tried judges the workload in the changed cluster. It is false if it is not admitted there, or if no try is left.
func (r *remedier) tried(edits []Edit, reaches func(*Nomination) bool) (Nomination, bool) {
	if r.out.Spent || r.out.Tries >= maxTries {
		r.out.Spent = true
		return Nomination{}, false
	}
	r.out.Tries++
	if !r.pay(len(r.part.Queues)+len(r.part.Workloads), 1) || !r.pay(len(edits), r.part.editing) {
		return Nomination{}, false
	}
	changed := r.part.apply(edits)
	s := changed.open()
	if s == nil {
		r.out.Spent = r.out.Spent || r.view.Work.Exceeded() != nil
		return Nomination{}, false
	}
	at := int32(changed.at)
	n := s.Nominate(at)
	ok := s.judged(&s.workloads[at]) && s.workloads[at].Withheld == "" && reaches(&n)
	if first := s.Behind(at); ok && first != none {
		before := s.Nominate(first)
		ok = before.Mode == Fit && s.workloads[first].Withheld == ""
	}
	if r.view.Work.Exceeded() != nil || r.view.Stop != nil && r.view.Stop() {
		r.out.Spent = true
		return Nomination{}, false
	}
	if !ok {
		return Nomination{}, false
	}
	return changed.whole(s, n), true
}

// list lists the smallest part of a change, together with the edits before it, if the whole of it admits the workload.
func (r *remedier) list(kind RemedyKind, edits []Edit, reaches func(*Nomination) bool) {
	if len(edits) == 0 {
		return
	}
	edits = slices.Concat(r.before, edits)
	n, ok := r.tried(edits, reaches)
	if !ok {
		return
	}
	for i := range slices.Backward(edits) {
		r.leaveOut(&edits, i, &n, reaches)
	}
	for i := range edits {
		if edits[i].counted() {
			r.bisect(edits, i, &n, reaches)
		}
	}
	// What is lowered last may let the others be lowered further.
	for i, settled := 0, 0; len(edits) > 1 && settled < len(edits) && !r.out.Spent; i++ {
		settled++
		at := i % len(edits)
		if r.leaveOut(&edits, at, &n, reaches) || edits[at].counted() && r.stepBack(edits, at, &n, reaches) {
			settled = 0
		}
	}
	if r.out.Spent {
		return
	}
	same := func(other Remedy) bool { return slices.EqualFunc(other.Edits, edits, changesSame) }
	if !slices.ContainsFunc(r.out.List, same) {
		r.add(Remedy{Kind: kind, Edits: edits, Nomination: n})
	}
}

// changesSame reports whether edits change the same, maybe by different amounts.
func changesSame(a, b Edit) bool {
	a.After = b.After
	return a == b
}

// leaveOut leaves out an edit if the others suffice, and reports whether they do.
func (r *remedier) leaveOut(edits *[]Edit, i int, n *Nomination, reaches func(*Nomination) bool) bool {
	if len(*edits) == 1 {
		return false
	}
	fewer := slices.Delete(slices.Clone(*edits), i, i+1)
	found, ok := r.tried(fewer, reaches)
	if ok {
		*edits, *n = fewer, found
	}
	return ok
}

// stepBack makes the difference of an edit as small as possible if one step less suffices, and reports whether it does.
func (r *remedier) stepBack(edits []Edit, i int, n *Nomination, reaches func(*Nomination) bool) bool {
	e := &edits[i]
	was, step := e.After, int64(1)
	if e.After < e.Before {
		step = -1
	}
	if e.After -= step; e.After != e.Before {
		if found, ok := r.tried(edits, reaches); ok {
			*n = found
			r.bisect(edits, i, n, reaches)
			return true
		}
	}
	e.After = was
	return false
}

// add adds a remedy, or ends the search if there is no memory for it.
func (r *remedier) add(found Remedy) {
	if r.view.Work.Hold(found.Nomination.Bytes()) != nil {
		r.out.Spent = true
		return
	}
	r.out.List = append(r.out.List, found)
}

// bisect finds the smallest difference of an edit, first at what is lacking now.
func (r *remedier) bisect(edits []Edit, i int, n *Nomination, reaches func(*Nomination) bool) {
	e := &edits[i]
	from, sign := e.Before, int64(1)
	if e.After < from {
		sign = -1
	}
	low, high := int64(0), sign*(e.After-from)
	try := func(k int64) {
		e.After = from + sign*k
		if found, ok := r.tried(edits, reaches); ok {
			high, *n = k, found
		} else {
			low = k
		}
	}
	if guess := r.lacking(e); guess > low && guess < high {
		if try(guess); high == guess && guess > 1 {
			try(guess - 1)
		}
	}
	for high-low > 1 && !r.out.Spent {
		try(low + (high-low)/2)
	}
	e.After = from + sign*high
}

// lacking returns what is lacking now of the quota of an edit, 0 if that is not known.
func (r *remedier) lacking(e *Edit) int64 {
	lacking := Amount(0)
	for i := range r.now.PodSets {
		for _, l := range r.now.PodSets[i].Lacks {
			if l.Flavor == none || l.Resource == none || r.flavors[l.Flavor].Name != e.Flavor || r.resources[l.Resource] != e.Resource {
				continue
			}
			lacking = max(lacking, l.Used.plus(l.Requested).minus(l.Limit))
		}
	}
	return int64(lacking)
}

// sum sums up what the workload asks for, and what others use.
func (r *remedier) sum() {
	r.asked, r.held = map[string]Amount{}, map[held]Amount{}
	for i := range r.part.Workloads {
		w := &r.part.Workloads[i]
		if !r.pay(w.elements(), element) {
			return
		}
		if a := w.Admission; a != nil {
			for k := range a.PodSets {
				for _, u := range a.PodSets[k].Usage {
					at := held{u.Flavor, u.Resource}
					r.held[at] = r.held[at].plus(max(0, u.Amount))
				}
			}
			continue
		}
		for k := range w.PodSets {
			r.asked[podsResource] = r.asked[podsResource].plus(Amount(w.PodSets[k].Count))
			for _, q := range w.PodSets[k].Requests {
				r.asked[q.Resource] = r.asked[q.Resource].plus(max(0, q.Amount).times(int64(w.PodSets[k].Count)))
			}
		}
	}
}
