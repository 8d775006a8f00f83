package kueue

// Return says how a victim could get its quota back.
type Return uint8

// The ways. A victim that finds other quota does not return.
const (
	// StaysAway: it could not.
	StaysAway Return = iota
	// ServedFirst: once the victims have left, it is admitted before the workload that they left for.
	ServedFirst
	// TakesBack: once that workload holds quota, the victim may evict it.
	TakesBack
)

// Plan is how a workload would be admitted.
type Plan struct {
	Nomination

	// Fits: once the victims have left, the workload fits. Without victims: it fits now.
	Fits bool
	// Returns are those of the victims.
	Returns []Return
}

// Plan decides about a pending workload, and tries what follows when the victims have left.
func (s *State) Plan(workload int32) (Plan, bool) {
	n, ok := s.Nominate(workload), s.Session.judged(&s.workloads[workload])
	out := Plan{Nomination: n, Fits: n.Mode == Fit}
	if !ok || len(n.Victims) == 0 {
		return out, ok
	}
	out.Returns = make([]Return, len(n.Victims))
	p := s.partOf(workload)
	for _, v := range n.Victims {
		p.leave(p.workload(v.Workload), v.Reason)
	}
	after := p.open()
	if after == nil {
		return out, ok
	}
	admitted := after.Nominate(int32(p.at))
	out.Fits = admitted.Mode == Fit
	first := map[int32]bool{}
	for _, d := range after.Cycle() {
		if d.Verdict == Admitted {
			first[d.Workload] = true
		}
	}
	if !out.Fits || !first[int32(p.at)] {
		for i, v := range n.Victims {
			if first[int32(p.workload(v.Workload))] {
				out.Returns[i] = ServedFirst
			}
		}
	}
	if !out.Fits {
		return out, ok
	}
	p.admit(after, &admitted)
	if after = p.open(); after == nil {
		return out, ok
	}
	for i, v := range n.Victims {
		back := after.Nominate(int32(p.workload(v.Workload)))
		for _, again := range back.Victims {
			if again.Workload == int32(p.at) && out.Returns[i] == StaysAway {
				out.Returns[i] = TakesBack
			}
		}
	}
	return out, ok
}
