package kueue

import (
	"fmt"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Share returns the account of a queue, or of the cohort for which its position stands.
func Share(s *kueue.State, queue int32) *apportionv1.KueueShare {
	node := s.NodeOf(queue)
	_, parent, in := s.Node(node)
	out := &apportionv1.KueueShare{Parent: parent, Cohort: node != queue}
	if s.InCycle(node) || !out.GetCohort() {
		out.Inactive, _ = inactivity(s, node)
	}
	if !in {
		return out
	}
	share := s.Session.Share(node)
	out.Weighted, out.Resource, out.Borrowing = share.Weighted, share.Resource, share.Borrowing
	n := s.CountAccounts(node)
	messages := make([]apportionv1.KueueAccount, 0, n)
	out.Accounts = make([]*apportionv1.KueueAccount, 0, n)
	s.EachAccount(node, func(a *kueue.Account) {
		messages = append(messages, apportionv1.KueueAccount{})
		m := &messages[len(messages)-1]
		m.Flavor, m.Resource, m.Borrowing = a.Flavor, a.Resource, a.Borrowing
		m.Usage, m.Available, m.Potential = Wire(a.Resource, a.Usage), Wire(a.Resource, a.Available), Wire(a.Resource, a.Potential)
		if a.HasNominal {
			m.Nominal = new(Wire(a.Resource, a.Nominal))
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
		m.Resource, m.Flavor = s.ResourceName(f.Resource), s.FlavorName(f.Flavor)
		m.Amount = Wire(m.Resource, f.Amount)
	}
	for i := range p.Lacks {
		l := &p.Lacks[i]
		m := &apportionv1.KueueLack{Kind: apportionv1.KueueLackKind(l.Kind) + 1}
		if l.Flavor >= 0 {
			m.Flavor = s.FlavorName(l.Flavor)
		}
		if l.Resource >= 0 {
			m.Resource = s.ResourceName(l.Resource)
			m.Used, m.Requested, m.Limit = Wire(m.Resource, l.Used), Wire(m.Resource, l.Requested), Wire(m.Resource, l.Limit)
		}
		if t := l.Taint; t != nil {
			m.Detail = fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
		}
		out.Lacks = append(out.Lacks, m)
	}
}
