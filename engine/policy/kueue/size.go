package kueue

import "reflect"

// size is what a list of n values takes without what they refer to.
func size[T any](n int) int { return n * int(reflect.TypeFor[T]().Size()) }

// labelBytes is about what a label takes in a map, and listBytes what allocating a short list adds.
const labelBytes, listBytes = 48, 8

// Bytes returns about what the state takes without texts: the cluster, what it is compiled to, and what changes of it.
func (s *State) Bytes() int {
	const booked = 16
	return s.bytes + booked*len(s.booked)
}

// bytes returns about what a session takes with the cluster that it judges.
func (s *Session) bytes(c *Cluster) int {
	const own = 2 << 10
	return own + c.bytes() + s.Model.bytes() +
		size[Amount](len(s.usage)) + len(s.gone) + (size[share](1)+1)*len(s.nodes)
}

func (c *Cluster) bytes() int {
	n := size[Flavor](len(c.Flavors)) + size[Cohort](len(c.Cohorts)) + size[Queue](len(c.Queues)) + size[Check](len(c.Checks)) +
		size[Workload](len(c.Workloads))
	for i := range c.Flavors {
		f := &c.Flavors[i]
		n += labelBytes*len(f.Labels) + size[Taint](len(f.Taints)) + size[Toleration](len(f.Tolerations))
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
			n += size[LocalQueue](1) + size[Usage](len(w.LocalQueue.Consumed)+len(w.LocalQueue.Penalty))
		}
	}
	return n
}

func groupBytes(groups []Group) int {
	n := size[Group](len(groups))
	for i := range groups {
		n += size[FlavorQuota](len(groups[i].Flavors))
		for k := range groups[i].Flavors {
			for r := range groups[i].Flavors[k].Resources {
				n += size[Quota](1)
				for _, limit := range [...]*Amount{groups[i].Flavors[k].Resources[r].Borrowing, groups[i].Flavors[k].Resources[r].Lending} {
					if limit != nil {
						n += size[Amount](1)
					}
				}
			}
		}
	}
	return n
}

func (w *Workload) bytes() int {
	n := size[PodSet](len(w.PodSets)) + size[string](len(w.Unjudged))
	for i := range w.PodSets {
		p := &w.PodSets[i]
		n += size[Request](len(p.Requests)) + size[Toleration](len(p.Tolerations)) + labelBytes*len(p.Selector) + size[Term](len(p.Affinity))
		for _, term := range p.Affinity {
			n += size[Requirement](len(term))
		}
	}
	if w.Admission == nil {
		return n
	}
	n += size[Admission](1) + size[AdmittedPodSet](len(w.Admission.PodSets))
	for i := range w.Admission.PodSets {
		n += size[FlavoredUsage](len(w.Admission.PodSets[i].Usage)) + listBytes
	}
	return n
}

func (m *Model) bytes() int {
	n := size[flavor](cap(m.flavors)) + size[string](cap(m.resources)) + size[int32](len(m.order)+cap(m.topDown)) +
		size[node](cap(m.nodes)) + size[queue](len(m.queues)) + size[tree](cap(m.trees)) + size[workload](cap(m.workloads)) +
		size[Amount](7*len(m.usage)+len(m.quotas.lendable)) + len(m.quotas.kept)
	for i := range m.nodes {
		n += size[int32](cap(m.nodes[i].cohorts) + cap(m.nodes[i].queues))
	}
	for i := range m.trees {
		n += size[pair](cap(m.trees[i].pairs)) + size[int32](len(m.trees[i].resource)+cap(m.trees[i].resources))
	}
	for i := range m.queues {
		q := &m.queues[i]
		n += size[group](cap(q.groups)) + size[int32](cap(q.admitted)+cap(q.pending))
		for k := range q.groups {
			const place = 32
			g := &q.groups[k]
			n += size[int32](cap(g.covered)+cap(g.flavors)+cap(g.frs)) + place*len(g.places)
		}
	}
	for i := range m.workloads {
		w := &m.workloads[i]
		n += size[Use](cap(w.usage)) + size[int32](cap(w.assigned)) + size[podSet](cap(w.podSets))
		for k := range w.podSets {
			n += size[request](cap(w.podSets[k].requests)) + listBytes
		}
	}
	return n
}
