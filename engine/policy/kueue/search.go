package kueue

// search tries the flavors of a group for the requests of a set.
type search struct {
	session *Session
	w       *workload
	set     int
	group   *group
	asked   []request
	out     *Assignment
	start   int

	best     []FlavorAssignment
	outcome  outcome
	attempts []Attempt
	lacks    []Lack
	// failed: a requirement of the pods is malformed.
	failed bool
}

// run tries flavor after flavor, and leaves the best one in best; none if no flavor is possible.
func (h *search) run(resource int32) {
	s := h.session
	fungibility := s.queues[h.w.queue].fungibility
	tried := none
	for i := h.start; i < len(h.group.flavors); i++ {
		tried = i
		if !s.spend(1+len(h.asked), attempted+len(h.group.covered)) {
			h.best, h.failed = nil, true
			return
		}
		if s.restricted != nil && !s.nominated(h.set, resource, h.group.flavors[i]) {
			h.lack(Lack{Kind: OtherNominated, Flavor: h.group.flavors[i], Resource: resource})
			continue
		}
		if !h.suits(h.group.flavors[i]) {
			if h.failed {
				h.best = nil
				return
			}
			continue
		}
		assigned, o := h.try(i)
		if s.settings.FlavorFungibility {
			if !o.goesOn(fungibility) {
				h.best, h.outcome = assigned, o
				break
			}
			if o.betterThan(h.outcome, fungibility) {
				h.best, h.outcome = assigned, o
			}
		} else if o.grade > h.outcome.grade {
			h.best, h.outcome = assigned, o
			if o.grade == fit {
				break
			}
		}
	}
	if tried == len(h.group.flavors)-1 {
		tried = none
	}
	if !s.settings.FlavorFungibility {
		tried = 0
	}
	for i := range h.best {
		h.best[i].Tried = int32(tried)
	}
	if h.outcome.grade == fit {
		h.lacks = nil
	}
}

func (h *search) lack(l Lack) { h.lacks = append(h.lacks, l) }

// suits reports whether the pods may run on the nodes of a flavor.
func (h *search) suits(id int32) bool {
	f, p := &h.session.flavors[id], h.w.podSets[h.set].PodSet
	if !h.session.spend(1, h.w.podSets[h.set].selecting(f)) {
		h.failed = true
		return false
	}
	lack := Lack{Flavor: id, Resource: none}
	if !f.exists {
		lack.Kind = FlavorMissing
	} else if t := f.untolerated(p); t != nil {
		lack.Kind, lack.Taint = TaintUntolerated, t
	} else {
		switch f.match(p) {
		case matches:
			return true
		case matchesNot:
			lack.Kind = LabelsDiffer
		case cannotMatch:
			lack.Kind, h.failed = RequirementMalformed, true
		}
	}
	h.lack(lack)
	h.attempts = append(h.attempts, Attempt{Flavor: id, Mode: NoFit, Cause: NoMatchingFlavor})
	return false
}

// try asks for all requests of the group in a flavor. The outcome is the worst of them.
func (h *search) try(position int) ([]FlavorAssignment, outcome) {
	s, flavor := h.session, h.group.flavors[position]
	fungibility := s.queues[h.w.queue].fungibility
	worst, borrow, cause := outcome{grade: fit}, int32(0), NoCause
	var assigned []FlavorAssignment
	for _, r := range h.asked {
		covered := h.group.position(r.resource)
		if covered == none {
			continue
		}
		o, why := h.ask(h.group.fr(position, covered), flavor, r)
		cause, borrow = max(cause, why), max(borrow, o.borrow)
		if worst.betterThan(o, fungibility) {
			worst = o
		}
		if worst.grade == noFit {
			continue
		}
		if assigned == nil {
			assigned = make([]FlavorAssignment, 0, len(h.asked))
		}
		assigned = append(assigned, FlavorAssignment{
			Resource: r.resource, Flavor: flavor, Mode: o.grade.mode(), borrow: o.borrow, Amount: r.amount,
		})
	}
	if h.attempts == nil {
		h.attempts = make([]Attempt, 0, len(h.group.flavors)-position)
	}
	h.attempts = append(h.attempts, Attempt{
		Flavor: flavor, Mode: worst.grade.mode(), Borrow: borrow, Possibility: worst.grade.possibility(), Cause: cause,
	})
	return assigned, worst
}

// ask judges one request in a flavor, on top of what the sets before use.
func (h *search) ask(fr, flavor int32, r request) (outcome, Cause) {
	s, q := h.session, &h.session.queues[h.w.queue]
	if !s.spend(s.depth(h.w.queue)+len(h.out.Usage), 3) {
		return outcome{}, NoCause
	}
	used := Amount(0)
	for _, u := range h.out.Usage {
		if u.FR == fr {
			used = u.Amount
		}
	}
	total, at := used.plus(r.amount), s.nodes[h.w.queue].row+fr
	lack := Lack{Kind: AboveCapacity, Flavor: flavor, Resource: r.resource, Used: used, Requested: r.amount, Limit: s.quotas.potential[at]}
	if total > lack.Limit {
		h.lack(lack)
		return outcome{}, ExceedsMaxQuota
	}
	borrow, mayReclaim := s.level(h.w.queue, fr, total)
	available := max(0, s.available(h.w.queue, fr))
	if total <= available {
		return outcome{fit, borrow}, NoCause
	}
	lack.Kind, lack.Limit = AboveAvailable, available
	h.lack(lack)
	if s.quotas.nominal[at] >= total || mayReclaim || q.preemption.Borrow || s.settings.Fair && q.preemption.Reclaim != Never {
		return s.possible(h.w, fr, total), NoCause
	}
	return outcome{noFit, borrow}, WaitingForQuota
}

// possible returns what a search for victims finds for this request alone.
func (s *Session) possible(w *workload, fr int32, amount Amount) outcome {
	s.scratch.needed = append(s.scratch.needed[:0], fr)
	s.scratch.wanted = append(s.scratch.wanted[:0], Use{fr, amount})
	victims := s.victims(&claim{w: w, needed: s.scratch.needed, wanted: s.scratch.wanted})
	if len(victims) == 0 {
		borrow, _ := s.level(w.queue, fr, amount)
		return outcome{noCandidates, borrow}
	}
	o := outcome{grade: reclaim}
	for _, v := range victims {
		if !s.spend(s.depth(w.queue), 1+s.moves(v.Workload)) {
			return outcome{}
		}
	}
	for _, v := range victims {
		s.release(v.Workload)
		if s.workloads[v.Workload].queue == w.queue {
			o.grade = preempt
		}
	}
	o.borrow, _ = s.level(w.queue, fr, amount)
	for _, v := range victims {
		s.restore(v.Workload)
	}
	return o
}

// nominated reports whether a flavor was nominated for a resource of a set.
func (s *Session) nominated(set int, resource, flavor int32) bool {
	if set >= len(s.restricted) {
		return false
	}
	for _, f := range s.restricted[set].flavors {
		if f.Resource == resource {
			return f.Flavor == flavor
		}
	}
	return false
}
