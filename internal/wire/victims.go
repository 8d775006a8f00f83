package wire

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// candidateBytes is the memory of the plugins' tables for each candidate during the choice of victims.
const candidateBytes = 768

var reclaimQuestion = question[*apportionv1.ReclaimStep]{
	of:       (*apportionv1.Step).GetReclaim,
	answer:   (*Session).reclaim,
	work:     func(s *Session, q *apportionv1.ReclaimStep) error { return s.spendOnVictims(q) },
	memory:   func(a *asking, q *apportionv1.ReclaimStep) (answer, work int64) { return a.victims(q) },
	explains: (*apportionv1.ReclaimStep).GetExplain,
	decision: victimsDecision((*apportionv1.Answer).GetReclaim),
}

var preemptQuestion = question[*apportionv1.PreemptStep]{
	of:       (*apportionv1.Step).GetPreempt,
	answer:   (*Session).preempt,
	work:     func(s *Session, q *apportionv1.PreemptStep) error { return s.spendOnVictims(q) },
	memory:   func(a *asking, q *apportionv1.PreemptStep) (answer, work int64) { return a.victims(q) },
	explains: (*apportionv1.PreemptStep).GetExplain,
	decision: victimsDecision((*apportionv1.Answer).GetPreempt),
}

// victimsDecision is one decision, whatever the number of candidates: some candidates may be evicted, none may, or no plugin had an
// opinion.
func victimsDecision(of func(*apportionv1.Answer) *apportionv1.VictimsAnswer) decision {
	return func(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Cause, ok bool) {
		a := of(answer)
		switch {
		case i > 0:
			return 0, nil, false
		case !a.GetDecided():
			return apportionv1.Vote_VOTE_ABSTAIN, nil, true
		case len(a.GetVictims()) > 0:
			return apportionv1.Vote_VOTE_PERMIT, nil, true
		}
		if spared := a.GetProtections(); len(spared) > 0 {
			why = spared[0]
		}
		return apportionv1.Vote_VOTE_REJECT, why, true
	}
}

// victimsStep contains the common fields of ReclaimStep and PreemptStep.
type victimsStep interface {
	GetClaimant() *apportionv1.Selector
	GetCandidates() *apportionv1.Selector
	GetEligibleOnly() bool
	GetExplain() bool
}

func (s *Session) reclaim(q *apportionv1.ReclaimStep) (*apportionv1.Answer, error) {
	victims, err := s.victims(q, s.engine.Reclaim())
	if err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Reclaim{Reclaim: victims}}, nil
}

func (s *Session) preempt(q *apportionv1.PreemptStep) (*apportionv1.Answer, error) {
	victims, err := s.victims(q, s.engine.Preempt())
	if err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Preempt{Preempt: victims}}, nil
}

// hunt is one question about victims.
type hunt struct {
	// claimants are one task, or the tasks of a job that claim together; claimant is the first.
	claimants  []model.TaskID
	claimant   model.TaskID
	room       policy.Room
	by         engine.Victims
	candidates []model.TaskID
	// left are the candidates that were left out beforehand, with the reason.
	left []policy.Check
}

func (s *Session) victims(q victimsStep, by engine.Victims) (*apportionv1.VictimsAnswer, error) {
	h := hunt{by: by}
	var faults model.Error
	if n, tasks := selected(q.GetCandidates(), 0), s.engine.View().Tasks.Len(); n > tasks {
		return nil, faultAt("candidates", "%d candidates are more than there are tasks (%d)", n, tasks)
	}
	claimant := s.selectTasks(q.GetClaimant(), "claimant", &faults)
	named := s.selectTasks(q.GetCandidates(), "candidates", &faults)
	s.checkClaimants("claimant", claimant, by.Plans(), &faults)
	if reclaim, ok := q.(*apportionv1.ReclaimStep); ok {
		h.room = s.claimRoom(reclaim, &faults)
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	h.claimants, h.claimant = claimant, claimant[0]
	var err error
	if q.GetCandidates() == nil {
		h.candidates, err = by.Candidates(h.claimant)
		if by.Plans() {
			s.engine.Order().SortVictims(h.claimant, h.candidates)
		}
	} else {
		s.sift(&h, named, q.GetEligibleOnly())
	}
	if err != nil {
		return nil, err
	}
	if err := s.out.room(2*len(h.candidates)+len(h.left), "candidates"); err != nil {
		return nil, err
	}
	choice := by.Choose(&policy.Claim{Tasks: h.claimants, Candidates: h.candidates, Room: h.room}, q.GetExplain())
	if choice.Plan != nil && choice.Plan.Stopped || s.stop != nil && s.stop() {
		return nil, policy.ErrStopped
	}
	answer, err := s.chosen(&h, &choice)
	if err != nil {
		return nil, err
	}
	for i := range choice.Checks {
		check := &choice.Checks[i]
		cause := s.protection(check)
		cause.Tier, cause.Passed = uint32(check.Tier), check.Passed
		if answer.Checks = append(answer.Checks, cause); s.out.left < 0 {
			return nil, s.out.tooLarge("candidates")
		}
	}
	return answer, nil
}

// checkClaimants records more than one claimant, or with plans tasks of more than one job or a task named twice.
func (s *Session) checkClaimants(path string, claimants []model.TaskID, plans bool, faults *model.Error) {
	v := s.engine.View()
	switch {
	case faults.Total > 0:
	case len(claimants) == 0, len(claimants) > 1 && !plans:
		faults.Add(path, "exactly one task claims, not %d", len(claimants))
	default:
		if t, twice := repeated(claimants); twice {
			faults.Add(path, "task %d is named twice", t)
		}
		for _, t := range claimants {
			if v.Tasks.At(t).Job != v.Tasks.At(claimants[0]).Job {
				faults.Add(path, "tasks that claim together belong to one job, but task %d is of %q and task %d of %q",
					claimants[0], v.Jobs.At(v.Tasks.At(claimants[0]).Job).UID, t, v.Jobs.At(v.Tasks.At(t).Job).UID)
				return
			}
		}
	}
}

// claimRoom reads where the claimant is to be placed.
func (s *Session) claimRoom(q *apportionv1.ReclaimStep, faults *model.Error) policy.Room {
	switch q.GetRoom() {
	case apportionv1.ClaimRoom_CLAIM_ROOM_UNSPECIFIED, apportionv1.ClaimRoom_CLAIM_ROOM_CLUSTER:
	case apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES:
		return policy.Room{Kind: policy.AnyNodes}
	case apportionv1.ClaimRoom_CLAIM_ROOM_NODE:
		nodes := s.selectNodes(q.GetNode(), "node", faults)
		if len(nodes) != 1 && faults.Total == 0 {
			faults.Add("node", "the room is exactly one node, not %d", len(nodes))
		}
		return policy.Room{Kind: policy.OneNode, Node: only(nodes)}
	default:
		faults.Add("room", "no room %d", q.GetRoom())
	}
	return policy.Room{}
}

// sift takes the candidates named, each once; those that the action would not consider only if its filter is not asked for.
func (s *Session) sift(h *hunt, named []model.TaskID, eligibleOnly bool) {
	h.candidates = make([]model.TaskID, 0, len(named))
	seen := make(map[model.TaskID]struct{}, len(named))
	for i, t := range named {
		s.engine.View().Yield(i)
		reason, eligible := policy.Reason{}, true
		if _, twice := seen[t]; twice {
			reason, eligible = policy.Because("", policy.NotACandidate, model.None), false
		} else if eligibleOnly {
			reason, eligible = h.by.Eligible(h.claimant, t)
		}
		seen[t] = struct{}{}
		if eligible {
			h.candidates = append(h.candidates, t)
		} else {
			h.left = append(h.left, policy.Check{Task: t, Reason: reason})
		}
	}
}

func (s *Session) chosen(h *hunt, choice *engine.Choice) (*apportionv1.VictimsAnswer, error) {
	answer := &apportionv1.VictimsAnswer{Decided: choice.Decided, Tier: s.out.optional(choice.Tier)}
	taken := make(map[model.TaskID]struct{}, len(choice.Victims))
	for i, t := range choice.Victims {
		s.engine.View().Yield(i)
		taken[t] = struct{}{}
		answer.Victims = append(answer.Victims, &apportionv1.Victim{Task: uint32(t), Uid: s.taskName(t)})
		if s.out.left -= messageBytes; s.out.left < 0 {
			return nil, s.out.tooLarge("candidates")
		}
	}
	for _, ballot := range choice.Ballots {
		answer.Plugins = append(answer.Plugins, &apportionv1.PluginVictims{
			Plugin: ballot.Plugin, Tier: uint32(ballot.Tier), Vote: wireVote(ballot.Vote), Victims: indices(&s.out, ballot.Victims),
		})
		s.out.left -= messageBytes + len(ballot.Plugin)
	}
	spared := s.spared(h, choice, taken)
	for i := range spared {
		cause := s.protection(&spared[i])
		cause.Uid = s.taskName(spared[i].Task)
		if answer.Protections = append(answer.Protections, cause); s.out.left < 0 {
			return nil, s.out.tooLarge("candidates")
		}
	}
	order := append([]model.TaskID(nil), choice.Victims...)
	s.engine.Order().SortVictims(h.claimant, order)
	answer.Evictions = indices(&s.out, order)
	answer.Plan, answer.ByChance = s.plan(choice.Plan), s.chosenByChance(h.candidates, choice)
	return answer, s.out.check("candidates")
}

// protection returns what a test says of a candidate.
func (s *Session) protection(check *policy.Check) *apportionv1.Cause {
	cause := s.out.reason(&check.Reason)
	cause.Task = s.out.optional(int(check.Task))
	return cause
}

// plan returns the decision of a plugin that makes plans; nil if there is none.
func (s *Session) plan(p *policy.Plan) *apportionv1.ReclaimPlan {
	if p == nil {
		return nil
	}
	out := &apportionv1.ReclaimPlan{Made: p.Made}
	s.out.left -= messageBytes
	if !p.Made {
		out.Refusal = s.out.reason(&p.Refusal)
		return out
	}
	out.Line = apportionv1.FairLine(p.Line + 1)
	fall, rise := p.Potential()
	for i := range fall {
		out.Falls = append(out.Falls, s.out.fraction(fall[i]))
		out.Rises = append(out.Rises, s.out.fraction(rise[i]))
	}
	for _, n := range p.Nodes {
		if n != model.None {
			out.Nodes = append(out.Nodes, uint32(n))
		}
	}
	s.out.left -= len(p.Nodes) * numberBytes
	return out
}

// spared lists the candidates that are no victims, each with what the first plugin of the deciding tier said that protects it: first
// those left out beforehand.
func (s *Session) spared(h *hunt, choice *engine.Choice, taken map[model.TaskID]struct{}) []policy.Check {
	protected := choice.Protections(s.engine.View())
	spared := h.left
	for i, t := range h.candidates {
		s.engine.View().Yield(i)
		if _, victim := taken[t]; victim {
			continue
		}
		check := protected[t]
		switch {
		case check != nil:
			spared = append(spared, *check)
			continue
		case choice.Plan != nil:
			// The plugin made no plan for this claimant, which does not protect the task.
			continue
		}
		spared = append(spared, policy.Check{Task: t, Reason: policy.Because("", policy.NotInDecidingTier, model.None)})
	}
	return spared
}

// taskName returns the displayed identifier of a task, unless names are omitted.
func (s *Session) taskName(t model.TaskID) string {
	if s.omitNames {
		return ""
	}
	name := s.engine.View().TaskKey(t)
	s.out.left -= len(name)
	return name
}

func (s *Session) spendOnVictims(q victimsStep) error {
	n := selected(q.GetCandidates(), s.engine.View().Tasks.Len())
	if err := s.work.Spend(n, s.workOfTask()); err != nil {
		return err
	}
	return s.work.Spend(sorting(n), 1)
}

func (a *asking) victims(q victimsStep) (answer, work int64) {
	n := int64(selected(q.GetCandidates(), int(a.Tasks)))
	// While a list of checks grows, it exists twice.
	checks := n * a.Voters * 3 * decode.BytesOf[policy.Check](1) / 2
	answer = n * (24 + a.reason() + 4*a.Voters + 16)
	work = n*(candidateBytes+8*a.Voters) + checks
	if q.GetExplain() {
		answer += n * a.Voters * (16 + a.reason())
		work += checks
	}
	return answer, work + a.Queues*4*decode.RowBytes(int(a.Dimensions))
}
