package kueue

// The sizes of types in bytes.
const (
	admissionSize        = 40
	admittedPodSetSize   = 48
	amountSize           = 8
	attemptSize          = 16
	checkSize            = 24
	cohortSize           = 64
	compiledFlavorSize   = 80
	compiledGroupSize    = 80
	compiledPodSetSize   = 48
	compiledQueueSize    = 128
	compiledRequestSize  = 16
	compiledWorkloadSize = 120
	flavorQuotaSize      = 40
	flavorAssignmentSize = 32
	flavorSize           = 72
	flavoredUsageSize    = 48
	groupSize            = 48
	int32Size            = 4
	lackSize             = 48
	localQueueSize       = 88
	localUsageSize       = 40
	nodeSize             = 96
	nominationSize       = 96
	pairSize             = 8
	podSetAssignmentSize = 104
	podSetSize           = 120
	queueSize            = 136
	quotaSize            = 40
	requestSize          = 24
	requirementSize      = 56
	shareSize            = 24
	stringSize           = 16
	taintSize            = 48
	termSize             = 24
	tolerationSize       = 64
	treeSize             = 80
	usageSize            = 24
	useSize              = 16
	victimSize           = 8
	workloadSize         = 216
)

// labelBytes is about what a label takes in a map, and listBytes what allocating a short list adds.
const labelBytes, listBytes = 48, 8

// Bytes returns about what the state takes without texts: the cluster, what it is compiled to, and what changes of it.
func (s *State) Bytes() int {
	return s.bytes + len(s.booked)
}

// Bytes returns about what a nomination takes, with what its lists leave to be collected as they grow.
func (n *Nomination) Bytes() int {
	bytes := nominationSize + useSize*cap(n.Usage) + podSetAssignmentSize*cap(n.PodSets) + victimSize*cap(n.Victims)
	for i := range n.PodSets {
		p := &n.PodSets[i]
		bytes += flavorAssignmentSize*cap(p.Flavors) + attemptSize*cap(p.Attempts) + lackSize*cap(p.Lacks)
	}
	return bytes + bytes/4
}

// keep books a nomination that is kept while others are made. It returns false if there is no memory for it, and the question fails.
func (s *Session) keep(n *Nomination) bool { return s.view == nil || s.view.Work.Keep(n.Bytes()) }

// bytes returns about what a session takes with the cluster that it judges.
func (s *Session) bytes(c *Cluster) int {
	const own = 2 << 10
	return own + c.bytes() + s.Model.bytes() +
		amountSize*len(s.usage) + len(s.gone) + (shareSize+1)*len(s.nodes)
}

func (c *Cluster) bytes() int {
	n := flavorSize*len(c.Flavors) + cohortSize*len(c.Cohorts) + queueSize*len(c.Queues) + checkSize*len(c.Checks) +
		workloadSize*len(c.Workloads)
	for i := range c.Flavors {
		f := &c.Flavors[i]
		n += labelBytes*len(f.Labels) + taintSize*len(f.Taints) + tolerationSize*len(f.Tolerations)
	}
	for i := range c.Cohorts {
		n += groupBytes(c.Cohorts[i].Groups)
	}
	for i := range c.Queues {
		n += groupBytes(c.Queues[i].Groups)
	}
	locals := map[*LocalQueue]bool{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if n += w.bytes(); w.LocalQueue != nil && !locals[w.LocalQueue] {
			locals[w.LocalQueue] = true
			n += localQueueSize + usageSize*(len(w.LocalQueue.Consumed)+len(w.LocalQueue.Penalty))
		}
	}
	return n
}

func groupBytes(groups []Group) int {
	n := groupSize * len(groups)
	for i := range groups {
		n += flavorQuotaSize * len(groups[i].Flavors)
		for k := range groups[i].Flavors {
			for r := range groups[i].Flavors[k].Resources {
				n += quotaSize
				for _, limit := range [...]*Amount{groups[i].Flavors[k].Resources[r].Borrowing, groups[i].Flavors[k].Resources[r].Lending} {
					if limit != nil {
						n += amountSize
					}
				}
			}
		}
	}
	return n
}

func (w *Workload) bytes() int {
	n := podSetSize*len(w.PodSets) + stringSize*len(w.Unjudged)
	for i := range w.PodSets {
		p := &w.PodSets[i]
		n += requestSize*len(p.Requests) + tolerationSize*len(p.Tolerations) + labelBytes*len(p.Selector) + termSize*len(p.Affinity)
		for _, term := range p.Affinity {
			n += requirementSize * len(term)
		}
	}
	if w.Admission == nil {
		return n
	}
	n += admissionSize + admittedPodSetSize*len(w.Admission.PodSets)
	for i := range w.Admission.PodSets {
		n += flavoredUsageSize*len(w.Admission.PodSets[i].Usage) + listBytes
	}
	return n
}

func (m *Model) bytes() int {
	n := compiledFlavorSize*cap(m.flavors) + stringSize*cap(m.resources) + int32Size*(len(m.order)+cap(m.topDown)) +
		nodeSize*cap(m.nodes) + compiledQueueSize*len(m.queues) + treeSize*cap(m.trees) + compiledWorkloadSize*cap(m.workloads) +
		amountSize*(7*len(m.usage)+len(m.quotas.lendable)) + len(m.quotas.kept) + localUsageSize*cap(m.locals)
	for i := range m.nodes {
		n += int32Size * (cap(m.nodes[i].cohorts) + cap(m.nodes[i].queues))
	}
	for i := range m.trees {
		n += pairSize*cap(m.trees[i].pairs) + int32Size*(len(m.trees[i].resource)+cap(m.trees[i].resources))
	}
	for i := range m.queues {
		q := &m.queues[i]
		n += compiledGroupSize*cap(q.groups) + int32Size*(cap(q.admitted)+cap(q.pending))
		for k := range q.groups {
			const place = 32
			g := &q.groups[k]
			n += int32Size*(cap(g.covered)+cap(g.flavors)+cap(g.frs)) + place*len(g.places)
		}
	}
	for i := range m.workloads {
		w := &m.workloads[i]
		n += useSize*cap(w.usage) + int32Size*cap(w.assigned) + compiledPodSetSize*cap(w.podSets)
		for k := range w.podSets {
			n += compiledRequestSize*cap(w.podSets[k].requests) + listBytes
		}
	}
	return n
}
