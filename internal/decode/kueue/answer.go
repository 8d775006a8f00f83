package kueue

import (
	"fmt"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Share returns the account of a queue or a cohort.
func Share(s *kueue.State, node int32) *apportionv1.KueueShare {
	_, parent, in := s.Node(node)
	out := &apportionv1.KueueShare{Parent: parent}
	if int(node) < s.Queues() {
		out.Inactive, _ = inactivity(s, node)
	}
	if !in {
		return out
	}
	share := s.Session.Share(node)
	out.Unweighted, out.Weight, out.Weighted = share.Unweighted, share.Weight, share.Weighted
	out.Resource, out.Borrowing = share.Resource, share.Borrowing
	n := s.CountAccounts(node)
	messages := make([]apportionv1.KueueAccount, 0, n)
	out.Accounts = make([]*apportionv1.KueueAccount, 0, n)
	s.EachAccount(node, func(a *kueue.Account) {
		messages = append(messages, apportionv1.KueueAccount{})
		m := &messages[len(messages)-1]
		m.Flavor, m.Resource, m.Quota, m.Usage = a.Flavor, a.Resource, int64(a.Subtree), int64(a.Usage)
		m.Available, m.Potential, m.Borrowing = int64(a.Available), int64(a.Potential), a.Borrowing
		if a.HasNominal {
			m.Nominal = new(int64(a.Nominal))
		}
		out.Accounts = append(out.Accounts, m)
	})
	return out
}

// Local returns the usage of a local queue; nil for none.
func Local(s *kueue.State, u *kueue.LocalUsage) *apportionv1.KueueLocalShare {
	if u == nil {
		return nil
	}
	return &apportionv1.KueueLocalShare{
		Namespace: u.Namespace, Name: u.Name, Queue: uint32(u.Queue), Weight: u.Weight, Consumed: u.WeightedConsumed,
		Penalty: u.WeightedPenalty, Usage: u.Usage, HalfLife: s.HalfLife(),
	}
}

// inactivity returns why a queue admits nothing, with the flavor or the admission check that the reason is about.
func inactivity(s *kueue.State, queue int32) (reason apportionv1.KueueInactivity, missing string) {
	if s.InCycle(queue) {
		return apportionv1.KueueInactivity_KUEUE_INACTIVITY_COHORT_CYCLE, ""
	}
	why, missing := s.Inactivity(queue)
	return apportionv1.KueueInactivity(why), missing
}

// Nomination describes what would be done with a workload; judged is false if it was not judged.
func Nomination(s *kueue.State, workload int32, n kueue.Nomination, judged bool) *apportionv1.KueueNomination {
	w := s.WorkloadAt(workload)
	room := roomFor(&n, judged)
	out := &room.nomination
	out.Admitted = s.Holds(workload)
	if queue := s.QueueOf(workload); queue >= 0 {
		out.Inactive, out.Missing = inactivity(s, queue)
	}
	if w.Withheld != "" && w.Withheld != foreign {
		out.Withheld = apportionv1.KueueWithheld(apportionv1.KueueWithheld_value[withheldPrefix+w.Withheld])
	}
	for _, u := range w.Unjudged {
		out.UnjudgedParts = append(out.UnjudgedParts, apportionv1.KueueUnjudged(apportionv1.KueueUnjudged_value[unjudgedPrefix+u]))
	}
	if !judged {
		out.Admitted = out.Admitted || s.Booked(workload)
		return out
	}
	out.Mode, out.Borrows, out.Cause = mode(n.Mode), uint32(n.Borrows), apportionv1.KueueCause(n.Cause)
	out.Partial = n.Partial
	out.PodSets = room.sets(len(n.PodSets))
	for i := range n.PodSets {
		fillPodSet(s, room, out.PodSets[i], &n.PodSets[i])
	}
	for _, v := range n.Victims {
		out.Victims = append(out.Victims, &apportionv1.KueueVictim{
			Job: uint32(v.Workload), Reason: apportionv1.KueueVictimReason(v.Reason) + 1,
		})
	}
	return out
}

func mode(m kueue.Mode) apportionv1.KueueMode { return apportionv1.KueueMode(m) + 1 }

// fillPodSet describes the flavors of a pod set.
func fillPodSet(s *kueue.State, room *nominationRoom, out *apportionv1.KueuePodSetAssignment, p *kueue.PodSetAssignment) {
	out.Name, out.Count, out.Mode = p.Name, p.Count, mode(p.Mode)
	out.Flavors = room.flavors(len(p.Flavors))
	for i := range p.Flavors {
		f, m := &p.Flavors[i], out.Flavors[i]
		m.Resource, m.Flavor, m.Mode = s.ResourceName(f.Resource), s.FlavorName(f.Flavor), mode(f.Mode)
		m.Amount, m.Tried = int64(f.Amount), f.Tried
	}
	out.Attempts = room.attempts(len(p.Attempts))
	for i := range p.Attempts {
		a, m := &p.Attempts[i], out.Attempts[i]
		m.Flavor, m.Mode, m.Borrow = s.FlavorName(a.Flavor), mode(a.Mode), uint32(a.Borrow)
		m.Possibility, m.Cause = apportionv1.KueuePossibility(a.Possibility), apportionv1.KueueCause(a.Cause)
	}
	for i := range p.Lacks {
		l := &p.Lacks[i]
		m := &apportionv1.KueueLack{
			Kind: apportionv1.KueueLackKind(l.Kind) + 1, Used: int64(l.Used), Requested: int64(l.Requested), Limit: int64(l.Limit),
		}
		if l.Flavor >= 0 {
			m.Flavor = s.FlavorName(l.Flavor)
		}
		if l.Resource >= 0 {
			m.Resource = s.ResourceName(l.Resource)
		}
		if t := l.Taint; t != nil {
			m.Detail = fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
		}
		out.Lacks = append(out.Lacks, m)
	}
}
