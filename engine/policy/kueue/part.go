package kueue

import "slices"

// part is the part of a cluster that decides about a workload: the queues and cohorts of its tree, and those of their workloads that hold
// quota or that it waits behind. The answers about the workload are those of the whole cluster.
type part struct {
	Cluster

	state *State
	// ids are the positions of the workloads in the whole cluster, ascending.
	ids []int32
	// at is the position of the workload in the part, own that of its queue.
	at, own int
	// flavorIDs are the numbers that the flavors named in the part have in the whole cluster.
	flavorIDs map[string]int32
	// units is the work that compiling the part takes, editing what making an edit in it takes at most.
	units, editing int
	// held says that memory for compiling it is booked: that of a session before is free again.
	held *bool
}

// partOf returns the part of a workload that waits in a queue which is not below a cycle of cohorts.
func (s *State) partOf(workload int32) *part {
	queue, behind := s.workloads[workload].queue, s.Behind(workload)
	tree := s.nodes[queue].tree
	p := &part{state: s, Cluster: Cluster{Now: s.cluster.Now}, held: new(bool)}
	s.spend(len(s.nodes)+len(s.workloads), 1)
	s.spend(len(s.flavors)+len(s.cluster.Checks), element)
	for i := range s.cluster.Queues {
		if s.nodes[i].tree == tree {
			if int32(i) == queue {
				p.own = len(p.Queues)
			}
			p.Queues = append(p.Queues, s.cluster.Queues[i])
		}
	}
	for i := range s.cluster.Cohorts {
		if s.nodes[len(s.queues)+i].tree == tree {
			p.Cohorts = append(p.Cohorts, s.cluster.Cohorts[i])
		}
	}
	for i := range s.workloads {
		w, id := &s.workloads[i], int32(i)
		if w.queue == none || s.nodes[w.queue].tree != tree || !w.holds && id != workload && id != behind {
			continue
		}
		if id == workload {
			p.at = len(p.ids)
		}
		p.ids = append(p.ids, id)
		p.Workloads = append(p.Workloads, *w.Workload)
	}
	p.listNamed()
	p.units, p.editing = p.compiling(&s.settings), p.Cluster.editing()+p.Workloads[p.at].elements()
	return p
}

// listNamed lists the flavors and admission checks that the part names: there may be far more of them.
func (p *part) listNamed() {
	p.flavorIDs = map[string]int32{}
	note := func(groups []Group) {
		for g := range groups {
			for f := range groups[g].Flavors {
				p.flavorIDs[groups[g].Flavors[f].Flavor] = none
			}
		}
	}
	checks := map[string]bool{}
	for i := range p.Queues {
		note(p.Queues[i].Groups)
		for _, name := range p.Queues[i].Checks {
			checks[name] = true
		}
	}
	for i := range p.Cohorts {
		note(p.Cohorts[i].Groups)
	}
	for i := range p.Workloads {
		if a := p.Workloads[i].Admission; a != nil {
			for k := range a.PodSets {
				for _, u := range a.PodSets[k].Usage {
					p.flavorIDs[u.Flavor] = none
				}
			}
		}
	}
	for i := range p.state.flavors {
		f := &p.state.flavors[i]
		if _, named := p.flavorIDs[f.Name]; !named {
			continue
		}
		p.flavorIDs[f.Name] = int32(i)
		if f.exists {
			p.Flavors = append(p.Flavors, f.Flavor)
		}
	}
	for _, check := range p.state.cluster.Checks {
		if checks[check.Name] {
			p.Checks = append(p.Checks, check)
		}
	}
}

// queue and cohort return the positions of names in the part, or -1.
func (p *part) queue(name string) int {
	return slices.IndexFunc(p.Queues, func(q Queue) bool { return q.Name == name })
}

func (p *part) cohort(name string) int {
	return slices.IndexFunc(p.Cohorts, func(c Cohort) bool { return c.Name == name })
}

// workload returns the position of a workload of the whole cluster in the part.
func (p *part) workload(id int32) int {
	at, _ := slices.BinarySearch(p.ids, id)
	return at
}

// clone returns a copy whose lists may be changed; what the items refer to may not.
func (p *part) clone() *part {
	c := *p
	c.Flavors, c.Queues, c.Cohorts = slices.Clone(p.Flavors), slices.Clone(p.Queues), slices.Clone(p.Cohorts)
	c.Workloads = slices.Clone(p.Workloads)
	return &c
}

// open returns a session on the part, nil if there is not enough work left for it or the part cannot be compiled.
func (p *part) open() *Session {
	const width = 8
	accounts := 1
	if n := len(p.Queues) + len(p.Cohorts); n > 0 {
		accounts = n * len(p.state.trees[p.state.nodes[p.state.workloads[p.ids[p.at]].queue].tree].pairs)
	}
	if !p.state.spend(p.units, 1) || !p.state.spend(accounts+len(p.Workloads), width) {
		return nil
	}
	work := p.state.view.Work
	if *p.held {
		work = nil
	}
	*p.held = true
	m, err := compile(&p.Cluster, p.state.settings, work)
	if err != nil {
		return nil
	}
	s := m.NewSession()
	s.view = p.state.view
	return s
}

// whole returns a nomination of a session on the part with the numbers of the whole cluster, without its usage.
func (p *part) whole(s *Session, n Nomination) Nomination {
	n.Usage = nil
	for i := range n.Victims {
		n.Victims[i].Workload = p.ids[n.Victims[i].Workload]
	}
	for i := range n.PodSets {
		set := &n.PodSets[i]
		for k := range set.Flavors {
			f := &set.Flavors[k]
			f.Flavor, f.Resource = p.flavorLike(s, f.Flavor), p.state.resourceLike(s, f.Resource)
		}
		for k := range set.Attempts {
			set.Attempts[k].Flavor = p.flavorLike(s, set.Attempts[k].Flavor)
		}
		for k := range set.Lacks {
			l := &set.Lacks[k]
			l.Flavor, l.Resource = p.flavorLike(s, l.Flavor), p.state.resourceLike(s, l.Resource)
		}
	}
	return n
}

// flavorLike and resourceLike return the numbers that names have in the whole cluster.
func (p *part) flavorLike(of *Session, id int32) int32 {
	if id == none {
		return none
	}
	return p.flavorIDs[of.flavors[id].Name]
}

func (m *Model) resourceLike(of *Session, id int32) int32 {
	if id == none {
		return none
	}
	at, found := slices.BinarySearch(m.resources, of.resources[id])
	if !found {
		return none
	}
	return int32(at)
}

// admit makes an admission of what is nominated for the workload.
func (p *part) admit(s *Session, n *Nomination) {
	w := &p.Workloads[p.at]
	w.Admission, w.Reserved = s.Admission(int32(p.at), &n.Assignment), new(p.Now)
}

// leave takes the quota of a workload away, as after an eviction.
func (p *part) leave(at int, reason VictimReason) {
	w := &p.Workloads[at]
	w.Queue, w.Admission, w.Reserved, w.Evicted, w.Withheld, w.Parked = w.Admission.Queue, nil, nil, false, "", false
	if reason == InCohortReclaimWhileBorrowing {
		w.Reclaimed = new(p.Now)
	}
}
