package kueue

import (
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// nominationRoom is memory for the messages of a nomination. Most nominations have one pod set with one or two flavors: their messages are
// allocated in one piece.
type nominationRoom struct {
	nomination apportionv1.KueueNomination
	few        *fewMessages
}

// fewMessages are those of a nomination with one pod set.
type fewMessages struct {
	nominationRoom

	set        apportionv1.KueuePodSetAssignment
	setList    [1]*apportionv1.KueuePodSetAssignment
	flavor     [2]apportionv1.KueueAssignedFlavor
	flavorList [2]*apportionv1.KueueAssignedFlavor
}

// roomFor returns memory for the messages of a nomination.
func roomFor(n *kueue.Nomination, judged bool) *nominationRoom {
	if !judged || !hasFew(n) {
		return &nominationRoom{}
	}
	m := &fewMessages{}
	m.few, m.setList[0] = m, &m.set
	for i := range m.flavor {
		m.flavorList[i] = &m.flavor[i]
	}
	return &m.nominationRoom
}

// hasFew reports whether the messages of a nomination are few.
func hasFew(n *kueue.Nomination) bool {
	const few = 2
	return len(n.PodSets) == 1 && len(n.PodSets[0].Flavors) <= few
}

func (r *nominationRoom) sets(n int) []*apportionv1.KueuePodSetAssignment {
	if r.few != nil {
		return r.few.setList[:n:n]
	}
	return messages[apportionv1.KueuePodSetAssignment](n)
}

func (r *nominationRoom) flavors(n int) []*apportionv1.KueueAssignedFlavor {
	if r.few != nil && n > 0 {
		return r.few.flavorList[:n:n]
	}
	return messages[apportionv1.KueueAssignedFlavor](n)
}

// messages returns so many messages, nil for none.
func messages[M any](n int) []*M {
	if n == 0 {
		return nil
	}
	all, list := make([]M, n), make([]*M, n)
	for i := range all {
		list[i] = &all[i]
	}
	return list
}
