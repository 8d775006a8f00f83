package kueue

import "slices"

// Account is the account of a queue or cohort in a flavor-resource.
type Account struct {
	Flavor, Resource string
	// HasNominal is false for a flavor-resource that the node itself lists no quota for, Listed for one that it only uses.
	HasNominal, Listed bool
	Nominal            Amount
	// Subtree is what the node and those below it have, Usage what they use of it: for a cohort, what its children cannot hold themselves.
	Subtree, Usage Amount
	// Available is what a queue can use now; below a cohort, what a queue without any quota of its own could.
	Available Amount
	// Potential is Available without any usage.
	Potential Amount
	// Borrowing: more is used than the node has.
	Borrowing bool
	// Lent is true where less than all is lent; Kept is then what is not.
	Limited bool
	Kept    Amount
}

// Share is the dominant resource share of a node.
type Share struct {
	// Unweighted is in thousandths; Weighted is Unweighted over Weight, +Inf for one with weight 0.
	Unweighted, Weight, Weighted float64
	// Resource is the dominant one, or "".
	Resource  string
	Borrowing bool
}

// Queues and Cohorts return their numbers: queues are the nodes from 0, cohorts follow.
func (m *Model) Queues() int { return len(m.queues) }

// Cohorts returns the number of cohorts, those that are only named included.
func (m *Model) Cohorts() int { return len(m.nodes) - len(m.queues) }

// Workloads returns the number of workloads.
func (m *Model) Workloads() int { return len(m.workloads) }

// Node returns the name of a node, that of its parent ("" without one), and whether it takes part: no cohort below a cycle does, and no
// queue that is inactive.
func (m *Model) Node(id int32) (name, parent string, in bool) {
	n := &m.nodes[id]
	if n.parent != none {
		parent = m.nodes[n.parent].name
	}
	return n.name, parent, n.tree != none && (int(id) >= len(m.queues) || m.queues[id].active())
}

// NodeOf returns the node of a position among the queues: that of the cohort for which the position stands, or else the queue's.
func (m *Model) NodeOf(queue int32) int32 {
	if cohort, stands := m.standIns[queue]; stands {
		return cohort
	}
	return queue
}

// Root returns the root of the tree of a node that takes part.
func (m *Model) Root(id int32) int32 { return m.trees[m.nodes[id].tree].root }

// Inactivity returns why a queue is inactive, with the flavor or the admission check that the reason is about.
func (m *Model) Inactivity(queue int32) (reason Inactivity, missing string) {
	return m.queues[queue].inactive, m.queues[queue].missing
}

// InCycle reports whether a node is below a cycle of cohorts.
func (m *Model) InCycle(id int32) bool { return m.nodes[id].tree == none }

// Holders returns the workloads that hold quota of a queue, Pending those that wait in it, in the order in which they are served.
func (m *Model) Holders(queue int32) []int32 { return m.queues[queue].admitted }

// Pending returns the workloads that wait in a queue and are not booked, in the order in which they are served.
func (s *Session) Pending(queue int32) []int32 {
	pending := s.queues[queue].pending
	if s.bookings == 0 {
		return pending
	}
	return slices.DeleteFunc(slices.Clone(pending), s.Booked)
}

// Booked reports whether the usage of a pending workload is counted already.
func (s *Session) Booked(workload int32) bool { return s.booked[workload] }

// WithheldNamespace is Workload.Withheld of one in a namespace that its queue does not admit. Kueue sets it aside even in a strict queue.
const WithheldNamespace = "NAMESPACE"

// Behind returns the workload that waits before another in its queue if that is strict: the first one that Kueue does not set aside. It
// returns -1 if there is none.
func (s *Session) Behind(workload int32) int32 {
	w := &s.workloads[workload]
	if w.queue == none || w.holds || !s.queues[w.queue].strict {
		return none
	}
	for _, id := range s.queues[w.queue].pending {
		switch {
		case id == workload || !s.spend(1, 1):
			return none
		case !s.workloads[id].Parked && !s.booked[id] && s.workloads[id].Withheld != WithheldNamespace:
			return id
		}
	}
	return none
}

// QueueOf returns the queue of a workload, or -1.
func (m *Model) QueueOf(workload int32) int32 { return m.workloads[workload].queue }

// WorkloadAt returns a workload, which must not be changed.
func (m *Model) WorkloadAt(workload int32) *Workload { return m.workloads[workload].Workload }

// Holds reports whether a workload holds quota.
func (m *Model) Holds(workload int32) bool { return m.workloads[workload].holds }

// Share returns the share of a node that takes part.
func (s *Session) Share(id int32) Share {
	h := s.shareOf(id)
	out := Share{Unweighted: h.unweighted, Weight: h.weight, Weighted: h.weighted(), Borrowing: h.borrowing}
	if h.resource != none {
		out.Resource = s.resources[h.resource]
	}
	return out
}

// Accounts returns the accounts of a node that takes part, by resource and flavor: those with quota or usage of it or below it.
func (s *Session) Accounts(id int32) []Account {
	out := make([]Account, 0, s.CountAccounts(id))
	s.EachAccount(id, func(a *Account) { out = append(out, *a) })
	return out
}

// CountAccounts returns how many Accounts returns.
func (m *Model) CountAccounts(id int32) int {
	count := 0
	n := &m.nodes[id]
	for _, kept := range m.quotas.kept[n.row : int(n.row)+len(m.trees[n.tree].pairs)] {
		if kept&(hasSubtree|hasUsage) != 0 {
			count++
		}
	}
	return count
}

// EachAccount calls each with what Accounts returns, one after the other.
func (s *Session) EachAccount(id int32, each func(*Account)) {
	n, a := &s.nodes[id], &s.quotas
	t := &s.trees[n.tree]
	if !s.spend(len(t.pairs), s.depth(id)) {
		return
	}
	for fr := range int32(len(t.pairs)) {
		at := n.row + fr
		if a.kept[at]&(hasSubtree|hasUsage) == 0 {
			continue
		}
		each(&Account{
			Flavor: s.flavors[t.pairs[fr].flavor].Name, Resource: s.resources[t.pairs[fr].resource], HasNominal: a.kept[at]&hasQuota != 0,
			Listed:  a.kept[at]&hasSubtree != 0,
			Nominal: a.nominal[at], Subtree: a.subtree[at], Usage: s.usage[at], Available: max(0, s.available(id, fr)),
			Potential: a.potential[at], Borrowing: s.borrows(id, fr, 0), Limited: a.kept[at]&hasLending != 0, Kept: a.local[at],
		})
	}
}

// UsageAfter returns the usage of a queue by flavor-resource after decisions, in which victims still hold their quota.
func (s *Session) UsageAfter(queue int32, decisions []Decision) []Use {
	n := &s.nodes[queue]
	var out []Use
	for fr := range int32(len(s.trees[n.tree].pairs)) {
		if s.quotas.kept[n.row+fr]&hasUsage != 0 {
			out = append(out, Use{fr, s.usage[n.row+fr]})
		}
	}
	for i := range decisions {
		if d := &decisions[i]; d.Queue == queue && d.Verdict == Admitted {
			for _, u := range d.Usage {
				out = addUse(out, u.FR, u.Amount)
			}
		}
	}
	return slices.Clip(out)
}
