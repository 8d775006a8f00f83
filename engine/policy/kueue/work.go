package kueue

// comparisons is about how often a sort compares each element of a long list.
const comparisons = 20

const (
	// element is about what compiling a part of an object takes, such as the request of a pod set.
	element = 16
	// attempted is spent for what a nomination keeps of each flavor that is tried, and of each request there, which bounds the memory of
	// all.
	attempted = 64
)

// spend takes work off, n times width units, before it is done. If there is not as much, it returns false: the caller leaves the usage as
// it was, and whatever is answered then is discarded, because the question fails (policy.Work.Use). A session without a view has no limit.
func (s *Session) spend(n, width int) bool {
	if s.view == nil {
		return true
	}
	const often = 1 << 12
	if s.spends++; s.spends%often == 0 {
		s.view.Look()
	}
	return s.view.Work.Use(n, width)
}

// depth returns an upper bound of the number of nodes from a queue to the root of its tree.
func (s *Session) depth(queue int32) int {
	tree := s.nodes[queue].tree
	if tree == none {
		return 1
	}
	return int(s.nodes[s.trees[tree].root].height) + 2
}

// moves is the number of amounts at each node that change when a workload is released and restored.
func (s *Session) moves(workload int32) int { return len(s.workloads[workload].usage) }

// spendVictim is spend for a candidate that is released and restored, with a look at whether the claim fits. Claims and candidates are in
// one tree.
func (s *Session) spendVictim(c *claim, workload int32) bool {
	return s.spend(s.depth(c.w.queue), 1+s.moves(workload)+len(c.wanted)+len(c.needed))
}

// selecting returns the units that comparing the requirements of a set with a flavor takes.
func (p *podSet) selecting(f *flavor) int {
	return p.rules + (1+len(p.Tolerations)+len(f.Tolerations))*len(f.Taints)
}

// rulesOf returns the number of requirements of a set and of their values.
func rulesOf(p *PodSet) int {
	n := 1 + len(p.Selector)
	for _, term := range p.Affinity {
		for i := range term {
			n += 2 + len(term[i].Values)
		}
	}
	return n
}

// compiling returns the units that compiling a cluster takes, which grows with the product of some of its lists.
func (c *Cluster) compiling(settings *Settings) int {
	units := len(c.Queues) + len(c.Cohorts) + len(c.Flavors) + len(c.Workloads) + len(c.Checks)
	for i := range c.Queues {
		for k := range c.Queues[i].Groups {
			g := &c.Queues[i].Groups[k]
			units += len(g.Covered) * (element + element*len(g.Flavors))
		}
	}
	for i := range c.Cohorts {
		for k := range c.Cohorts[i].Groups {
			units += element * c.Cohorts[i].Groups[k].quotas()
		}
	}
	locals := map[*LocalQueue]bool{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if l := w.LocalQueue; l != nil && settings.Usage != nil && !locals[l] {
			locals[l] = true
			units += (len(l.Consumed) + len(l.Penalty)) * (comparisons + len(settings.Usage.Weights))
		}
		units += element * w.elements()
	}
	return units
}

// quotas returns the number of flavors of a group and of quotas that are listed there.
func (g *Group) quotas() int {
	n := len(g.Flavors)
	for f := range g.Flavors {
		n += len(g.Flavors[f].Resources)
	}
	return n
}

// elements returns the number of requests and usages of a workload.
func (w *Workload) elements() int {
	n := 0
	for i := range w.PodSets {
		n += 1 + len(w.PodSets[i].Requests)
	}
	if w.Admission != nil {
		for i := range w.Admission.PodSets {
			n += 1 + len(w.Admission.PodSets[i].Usage)
		}
	}
	return n
}

// editing returns the units that making an edit takes at most: the owner is found, and its quota there.
func (c *Cluster) editing() int {
	most := 0
	count := func(groups []Group) {
		quotas := 0
		for k := range groups {
			quotas += groups[k].quotas()
		}
		most = max(most, quotas)
	}
	for i := range c.Queues {
		count(c.Queues[i].Groups)
	}
	for i := range c.Cohorts {
		count(c.Cohorts[i].Groups)
	}
	return 1 + len(c.Queues) + len(c.Cohorts) + most
}
