package odds

import "slices"

// Period is a time in which a node is kept for a job, or for none.
type Period struct {
	// From is in nanoseconds after second 0, below 0 if it has begun. Until is the second at which it ends, or Never.
	From, Until int64
	// Holder is the number of the job that may use the node, -1: no job may.
	Holder int32
	// Part says that a part of the node is kept. It keeps tasks off where it is tight for them (Shut.Tight).
	Part bool
}

// Shut says which periods keep tasks off: those of other jobs, from when the tasks would not end before a period begins until it ends. It
// refers to the periods of the model, so that it is as small for many of them as for one.
type Shut struct {
	// Lasts is how many nanoseconds such a task runs, Never: it is not known to end.
	Lasts int64
	// Holder is the number of their job among those that hold periods, -1: it holds none.
	Holder int32
	// Tight are the nodes without room for such a task beside the parts that are kept; nil: all have room.
	Tight []bool
}

// applies reports whether a period of a node keeps tasks off at some time.
func (s *Shut) applies(p *Period, node int) bool {
	return (p.Holder < 0 || p.Holder != s.Holder) && (!p.Part || s.Tight != nil && s.Tight[node])
}

// begins returns the second from which a task would not end before a period begins.
func (s *Shut) begins(p *Period) int64 {
	if s.Lasts == Never || p.From < s.Lasts {
		return 0
	}
	const second = 1_000_000_000
	return (p.From-s.Lasts)/second + 1
}

// takes reports whether a node may take tasks at a second.
func (m *Model) takes(t *Tasks, node int, at int64) bool {
	if t.On != nil && !t.On[node] {
		return false
	}
	if t.Shut == nil || m.Periods == nil {
		return true
	}
	list := m.Periods[node]
	for i := range list {
		if p := &list[i]; at < p.Until && t.Shut.applies(p, node) && t.Shut.begins(p) <= at {
			return false
		}
	}
	return true
}

// jobs are the jobs of some tasks as far as it matters whose periods keep them off: none, one, or several.
type jobs struct {
	any, several bool
	one          int32
}

func (j *jobs) add(holder int32) {
	j.several = j.several || j.any && j.one != holder
	j.any, j.one = true, holder
}

// hasOther reports whether a period is not kept for one of the jobs.
func (j *jobs) hasOther(p *Period) bool {
	return j.any && (p.Holder < 0 || j.several || j.one != p.Holder)
}

// opens returns the seconds at which nodes take tasks of some kind again, in order: the ends of the periods that apply to one. Never may be
// the last. The work is that of a look at each period and at each Tight.
func (m *Model) opens() []int64 {
	if m.Periods == nil {
		return nil
	}
	var all jobs
	tight := make([]jobs, len(m.Periods))
	seen := map[*Shut]bool{nil: true}
	for k := range m.Kinds {
		for _, list := range [][]Tasks{m.Kinds[k].Gang, m.Kinds[k].More} {
			for t := range list {
				if of := list[t].Shut; !seen[of] {
					seen[of] = true
					of.meet(&all, tight)
				}
			}
		}
	}
	var opens []int64
	for node, list := range m.Periods {
		for i := range list {
			p, of := &list[i], &all
			if p.Part {
				of = &tight[node]
			}
			if of.hasOther(p) {
				opens = append(opens, p.Until)
			}
		}
	}
	slices.Sort(opens)
	return slices.Compact(opens)
}

// meet adds the job of its tasks to all, and to those for which nodes are tight.
func (s *Shut) meet(all *jobs, tight []jobs) {
	all.add(s.Holder)
	for node, is := range s.Tight {
		if is {
			tight[node].add(s.Holder)
		}
	}
}
