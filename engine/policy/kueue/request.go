package kueue

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
)

// listWorkloads notes the flavor-resources of all usage.
func (c *compiler) listWorkloads() {
	c.workloads = make([]workload, len(c.cluster.Workloads))
	for i := range c.cluster.Workloads {
		from, w := &c.cluster.Workloads[i], &c.workloads[i]
		w.Workload, w.queue, w.local = from, none, none
		name := from.Queue
		if w.holds = from.Admission != nil; w.holds {
			name = from.Admission.Queue
		}
		if id, ok := c.queueIDs[name]; ok && name != "" {
			w.queue = id
		}
		if !w.holds || w.queue == none {
			continue
		}
		for k := range from.Admission.PodSets {
			for _, u := range from.Admission.PodSets[k].Usage {
				c.note(w.queue, pair{c.flavor(u.Flavor), c.resource[u.Resource]})
			}
		}
	}
}

// bindWorkloads computes the usage and the requests of all workloads and gives them to their queues.
func (c *compiler) bindWorkloads() {
	known := map[*LocalQueue]int32{}
	for i := range c.workloads {
		w := &c.workloads[i]
		w.priority, w.since, w.reserved = w.Priority, c.since(w.Workload), c.now
		if c.settings.PriorityBoost {
			w.priority += w.Boost
		}
		if w.Reserved != nil {
			w.reserved = *w.Reserved
		}
		if w.queue == none {
			continue
		}
		if c.settings.Usage != nil && c.queues[w.queue].usageBased && w.LocalQueue != nil {
			at, is := known[w.LocalQueue]
			if !is {
				at = int32(len(c.locals))
				known[w.LocalQueue] = at
				c.locals = append(c.locals, c.settings.Usage.usage(w.LocalQueue))
				c.locals[at].Queue = w.queue
			}
			w.local = at
		}
		if !w.holds {
			c.request(w)
			c.queues[w.queue].pending = append(c.queues[w.queue].pending, int32(i))
			continue
		}
		c.queues[w.queue].admitted = append(c.queues[w.queue].admitted, int32(i))
		if c.nodes[w.queue].tree != none {
			c.use(w)
		}
	}
	for i := range c.queues {
		c.sortPending(c.queues[i].pending)
	}
}

// since returns the time that orders a workload in its queue.
func (c *compiler) since(w *Workload) int64 {
	const epsilon = 1_000_000 // A reclaimed workload comes after the one that it made room for.
	switch {
	case w.TimedOut != nil && !c.settings.RequeueByCreation:
		return *w.TimedOut
	case w.Requeued != nil:
		return *w.Requeued
	case w.Reclaimed != nil && !c.settings.PrioritySortingWithinCohort:
		return *w.Reclaimed + epsilon
	}
	return w.Created
}

// remaining returns the number of pods of a set that need quota.
func (c *compiler) remaining(p *PodSet) int32 {
	if !c.settings.ReclaimablePods {
		return p.Count
	}
	return max(0, p.Count-p.Reclaimable)
}

// use books what an admitted workload uses: the usage of its admission, less the pods that are reclaimable.
func (c *compiler) use(w *workload) {
	n := &c.nodes[w.queue]
	frs := c.pairs[n.tree]
	// sets are the positions of the pod sets, of which the last one of a name counts, and uses those of what the workload uses.
	sets, uses := map[string]int{}, map[int32]int{}
	for i := range w.PodSets {
		sets[w.PodSets[i].Name] = i
	}
	for k := range w.Admission.PodSets {
		set := &w.Admission.PodSets[k]
		var own *PodSet
		if i, ok := sets[set.Name]; ok {
			own = &w.PodSets[i]
		}
		count, remaining := c.counts(own, set)
		for _, u := range set.Usage {
			fr := frs[pair{c.flavor(u.Flavor), c.resource[u.Resource]}]
			if u.Flavor != "" {
				w.assigned = append(w.assigned, fr)
			}
			if !u.Used {
				continue
			}
			amount := u.Amount
			if remaining < count {
				amount = (amount / Amount(count)).times(int64(remaining))
			}
			if i, ok := uses[fr]; ok {
				w.usage[i].Amount = w.usage[i].Amount.plus(amount)
			} else {
				uses[fr] = len(w.usage)
				w.usage = append(w.usage, Use{fr, amount})
			}
			c.usage[n.row+fr] = c.usage[n.row+fr].plus(amount)
			c.quotas.kept[n.row+fr] |= hasUsage
		}
	}
}

// counts returns the number of pods for which a set, own, was admitted, and the number of those that need quota.
func (c *compiler) counts(own *PodSet, set *AdmittedPodSet) (count, remaining int32) {
	if own != nil {
		count, remaining = own.Count, c.remaining(own)
	}
	if set.Count != nil {
		count = *set.Count
	}
	return max(count, 0), max(remaining, 0)
}

// addUse adds an amount of a flavor-resource.
func addUse(uses []Use, fr int32, amount Amount) []Use {
	for i := range uses {
		if uses[i].FR == fr {
			uses[i].Amount = uses[i].Amount.plus(amount)
			return uses
		}
	}
	return append(uses, Use{fr, amount})
}

// request computes what the pods of a pending workload need.
func (c *compiler) request(w *workload) {
	w.podSets = make([]podSet, len(w.PodSets))
	for k := range w.PodSets {
		set := &w.podSets[k]
		set.PodSet, set.count, set.rules = &w.PodSets[k], c.remaining(&w.PodSets[k]), rulesOf(&w.PodSets[k])
		set.requests = make([]request, 0, len(set.Requests)+1)
		for _, r := range set.Requests {
			set.requests = append(set.requests, request{c.resource[r.Resource], max(0, r.Amount).times(int64(set.count))})
		}
		slices.SortFunc(set.requests, func(a, b request) int { return cmp.Compare(c.order[a.resource], c.order[b.resource]) })
	}
}

// visitingOrder returns the place of each resource in the order in which Kueue visits them: that of the 64-bit FNV-1a hash of the name.
func visitingOrder(names []string) []int32 {
	hashes := make([]uint64, len(names))
	byHash := make([]int32, len(names))
	for i, name := range names {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name))
		hashes[i], byHash[i] = h.Sum64(), int32(i)
	}
	slices.SortFunc(byHash, func(a, b int32) int {
		return cmp.Or(cmp.Compare(hashes[a], hashes[b]), strings.Compare(names[a], names[b]))
	})
	order := make([]int32, len(names))
	for place, i := range byHash {
		order[i] = int32(place)
	}
	return order
}

// sortPending sorts the pending workloads of a queue: less usage of the local queue, higher priority, earlier time, UID.
func (c *compiler) sortPending(pending []int32) {
	slices.SortFunc(pending, func(a, b int32) int {
		l, r := &c.workloads[a], &c.workloads[b]
		return cmp.Or(c.compareLocal(l, r), cmp.Compare(r.priority, l.priority), cmp.Compare(l.since, r.since),
			strings.Compare(l.UID, r.UID), cmp.Compare(a, b))
	})
}

// compareLocal compares the usage of the local queues of two workloads, if it counts for both.
func (m *Model) compareLocal(l, r *workload) int {
	if l.local == none || r.local == none {
		return 0
	}
	return cmp.Compare(m.locals[l.local].Usage, m.locals[r.local].Usage)
}
