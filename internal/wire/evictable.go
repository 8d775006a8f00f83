package wire

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var evictableQuestion = question[*apportionv1.EvictableStep]{
	of:     (*apportionv1.Step).GetEvictable,
	answer: (*Session).evictableTasks,
	memory: (*asking).evictable,
}

func (s *Session) evictableTasks(q *apportionv1.EvictableStep) (*apportionv1.Answer, error) {
	var faults model.Error
	claimants := s.selectTasks(q.GetClaimants(), "claimants", &faults)
	if len(claimants) == 0 && faults.Total == 0 {
		faults.Add("claimants", "no task claims")
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	if q.GetJointly() {
		return s.evictableJointly(q, claimants)
	}
	limit := math.MaxInt
	if l := q.GetLimit(); l > 0 && l < math.MaxInt {
		limit = int(l)
	}
	found, err := s.engine.Evictable(claimants, limit)
	if err != nil {
		return nil, err
	}
	answer := &apportionv1.EvictableAnswer{
		ReclaimVictims: indices(&s.out, found.Reclaim), PreemptVictims: indices(&s.out, found.Preempt),
		LeftClaimants: indices(&s.out, found.Left),
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Evictable{Evictable: answer}}, s.out.check("claimants")
}

// evictableJointly answers for tasks that claim together.
func (s *Session) evictableJointly(q *apportionv1.EvictableStep, claimants []model.TaskID) (*apportionv1.Answer, error) {
	var faults model.Error
	plans := s.engine.Reclaim().Plans()
	if !plans {
		faults.Add("jointly", "the policy does not reclaim by plans")
	}
	s.checkClaimants("claimants", claimants, plans, &faults)
	if q.GetRoom() == apportionv1.ClaimRoom_CLAIM_ROOM_NODE {
		faults.Add("room", "a single node is a room of ReclaimStep only")
	}
	room := s.claimRoom(&apportionv1.ReclaimStep{Room: q.GetRoom()}, &faults)
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	plan, err := s.engine.ReclaimPlan(&policy.Claim{Tasks: claimants, Room: room})
	if err != nil {
		return nil, err
	}
	answer := &apportionv1.EvictableAnswer{Plan: s.plan(plan)}
	if plan != nil {
		answer.ReclaimVictims = indices(&s.out, plan.Victims)
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Evictable{Evictable: answer}}, s.out.check("claimants")
}

// evictable counts one choice among all tasks, whose lists are kept while the next is made, and the claimants.
func (a *asking) evictable(q *apportionv1.EvictableStep) (answer, work int64) {
	const perClaimant = 128
	claimants := int64(selected(q.GetClaimants(), 0))
	_, choice := a.victims(&apportionv1.ReclaimStep{})
	return 8*a.Tasks + 4*claimants, choice + 16*a.Tasks + 8*a.Jobs + 24*a.Queues + perClaimant*claimants
}
