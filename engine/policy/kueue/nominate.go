package kueue

import "sort"

// Nomination is what the scheduler would do with a pending workload, alone.
type Nomination struct {
	Assignment

	// Partial: with fewer pods than wanted.
	Partial bool
	Victims []Victim
}

// nominate judges a workload, with fewer pods if that is what makes it possible.
func (s *Session) nominate(w *workload, last *Assignment) Nomination {
	full := Nomination{Assignment: s.assign(w, nil, last)}
	if full.Mode == Fit || s.claimVictims(w, &full) {
		return full
	}
	if !s.settings.PartialAdmission {
		return full
	}
	if partial, ok := s.reduce(w, last); ok {
		return partial
	}
	return full
}

// claimVictims sets the victims of a nomination that needs some, and reports whether there are any.
func (s *Session) claimVictims(w *workload, n *Nomination) bool {
	if n.Mode == Preempt {
		n.Victims = s.victims(s.claimOf(w, &n.Assignment))
	}
	return len(n.Victims) > 0
}

// reduce searches for the largest numbers of pods that are possible, between those wanted and the least. It bisects, although fewer pods
// need not be easier to admit, and uses the answer only if the point at which it ends was found possible, as Kueue does.
func (s *Session) reduce(w *workload, last *Assignment) (Nomination, bool) {
	counts, total := make([]int32, len(w.PodSets)), int64(0)
	for i := range w.PodSets {
		total += int64(w.PodSets[i].delta())
	}
	if total <= 0 {
		return Nomination{}, false
	}
	var best Nomination
	good := 0
	end := sort.Search(int(total)+1, func(i int) bool {
		for k := range w.PodSets {
			counts[k] = w.PodSets[k].Count - int32(int64(w.PodSets[k].delta())*int64(i)/total)
		}
		n := Nomination{Assignment: s.assign(w, counts, last), Partial: true}
		possible := n.Mode == Fit || s.claimVictims(w, &n)
		if possible {
			best, good = n, i
		}
		return possible
	})
	return best, end == good && best.Partial
}

// delta returns the number of pods that a set may lack.
func (p *PodSet) delta() int32 {
	if p.Least == nil {
		return 0
	}
	return p.Count - *p.Least
}

// Assign returns the assignment of a pending workload that is judged alone, after a former attempt if last is not nil. It is empty for a
// workload that holds quota, or whose queue is not there or not active.
func (s *Session) Assign(workload int32, last *Assignment) Assignment {
	w := &s.workloads[workload]
	if !s.judged(w) {
		return Assignment{}
	}
	return s.assign(w, nil, last)
}

// Victims returns the workloads that are evicted for an assignment in mode Preempt.
func (s *Session) Victims(workload int32, a *Assignment) []Victim {
	w := &s.workloads[workload]
	if a.Mode != Preempt || !s.judged(w) {
		return nil
	}
	return s.victims(s.claimOf(w, a))
}

// Nominate returns what the scheduler would do with a pending workload alone, fewer pods and victims included.
func (s *Session) Nominate(workload int32) Nomination {
	w := &s.workloads[workload]
	if !s.judged(w) {
		return Nomination{}
	}
	return s.nominate(w, nil)
}

// judged reports whether a workload is pending in an active queue.
func (s *Session) judged(w *workload) bool {
	return !w.holds && w.queue != none && s.queues[w.queue].active()
}
