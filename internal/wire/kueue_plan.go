package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
	"github.com/apportion/apportion/engine/remedy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/text"
)

// byKueue returns the opened policy kueue if it decides about a job, or nil.
func (s *Session) byKueue(j model.JobID) *kueue.State {
	if state := s.kueueState(); state != nil && s.engine.View().Jobs.At(j).Extra != nil {
		return state
	}
	return nil
}

// afreshForKueue calls ask with the policy kueue opened in a state in which it has booked nothing.
func (s *Session) afreshForKueue(ask func(*kueue.State) error) error {
	return s.engine.Afresh(s.kueueState().Booking(), func() error { return ask(s.kueueState()) })
}

// kueuePlan answers how a job would be admitted.
func (s *Session) kueuePlan(q *plan.Question, omit bool) (*apportionv1.Answer, error) {
	if q.Tasks != nil {
		return nil, faultAt("tasks", "the policy kueue decides about jobs as a whole: name a job")
	}
	answer := &apportionv1.PlanAnswer{Job: uint32(q.Job)}
	err := s.afreshForKueue(func(state *kueue.State) error {
		behind := kueueBehind(state, q.Job, map[int32]bool{})
		plan, judged := state.Plan(int32(q.Job))
		answer.Kueue = s.kueueNomination(state, s.kueueNames(), q.Job, plan.Nomination, judged, behind)
		for i, way := range plan.Returns {
			answer.Kueue.Victims[i].ServedFirst = way == kueue.ServedFirst
			answer.Kueue.Victims[i].TakesBack = way == kueue.TakesBack
		}
		answer.Outcome, answer.Ready = apportionv1.PlanOutcome_PLAN_OUTCOME_MADE, plan.Fits
		answer.Miss = s.kueueMiss(q, answer.Kueue)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if answer.GetMiss() != nil {
		answer.Outcome, answer.Ready = apportionv1.PlanOutcome_PLAN_OUTCOME_NONE, false
	}
	if !omit {
		answer.Uid = s.engine.View().Jobs.At(q.Job).UID
	}
	answer.Text = text.KueuePlan(s.kueueNames(), answer)
	s.out.left -= 2*messageBytes + len(answer.GetText()) + len(answer.GetUid())
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Plan{Plan: answer}}, s.out.check("job")
}

// kueueMiss returns why there is no plan by these means, or nil.
func (s *Session) kueueMiss(q *plan.Question, n *apportionv1.KueueNomination) *apportionv1.PlanMiss {
	code, have := kueueCode(n)
	if code == 0 && !n.GetAdmitted() {
		return nil
	}
	miss := &apportionv1.PlanMiss{Check: apportionv1.CheckKind_CHECK_KIND_ADMISSION}
	if n.GetAdmitted() {
		miss.Check = apportionv1.CheckKind_CHECK_KIND_TASKS
		return miss
	}
	if code == policy.QuotaInUse && len(n.GetVictims()) > 0 {
		allowed := q.MaxVictims == 0 || len(n.GetVictims()) <= q.MaxVictims
		if !allowed {
			miss.Victims = uint32(len(n.GetVictims()))
		}
		for _, v := range n.GetVictims() {
			own := v.GetReason() == apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_CLUSTER_QUEUE
			allowed = allowed && (q.Means == plan.ByAny || q.Means == plan.ByPreempt && own || q.Means == plan.ByReclaim && !own)
		}
		if allowed {
			return nil
		}
	}
	reason := policy.Because(kueue.Name, code, model.None)
	reason.Have = have
	miss.Reasons = s.out.reasonList([]policy.Reason{reason})
	return miss
}

// kueueKinds are the kinds of remedies in the order of the policy's.
var kueueKinds = []apportionv1.RemedyKind{
	kueue.FewerPods:      apportionv1.RemedyKind_REMEDY_KIND_MINIMUM,
	kueue.SmallerRequest: apportionv1.RemedyKind_REMEDY_KIND_REQUEST,
	kueue.OpenedQueue:    apportionv1.RemedyKind_REMEDY_KIND_OPEN,
	kueue.MoreNominal:    apportionv1.RemedyKind_REMEDY_KIND_NOMINAL,
	kueue.MoreBorrowing:  apportionv1.RemedyKind_REMEDY_KIND_BORROWING_LIMIT,
	kueue.MoreLending:    apportionv1.RemedyKind_REMEDY_KIND_LENDING_LIMIT,
	kueue.MadeFlavor:     apportionv1.RemedyKind_REMEDY_KIND_FLAVOR,
	kueue.HigherPriority: apportionv1.RemedyKind_REMEDY_KIND_PRIORITY,
	kueue.EndedHolders:   apportionv1.RemedyKind_REMEDY_KIND_JOBS_END,
	kueue.Evictions:      apportionv1.RemedyKind_REMEDY_KIND_EVICTION,
}

// kueueFields are the fields of edits in the order of the policy's.
var kueueFields = []apportionv1.RemedyField{
	kueue.LeastPods:      apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM,
	kueue.PodRequest:     apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST,
	kueue.StopPolicy:     apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN,
	kueue.NominalQuota:   apportionv1.RemedyField_REMEDY_FIELD_QUEUE_NOMINAL,
	kueue.BorrowingLimit: apportionv1.RemedyField_REMEDY_FIELD_QUEUE_BORROWING_LIMIT,
	kueue.LendingLimit:   apportionv1.RemedyField_REMEDY_FIELD_QUEUE_LENDING_LIMIT,
	kueue.MissingFlavor:  apportionv1.RemedyField_REMEDY_FIELD_FLAVOR,
	kueue.Priority:       apportionv1.RemedyField_REMEDY_FIELD_JOB_PRIORITY,
	kueue.HolderEnds:     apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED,
}

// kueueRemedies answers what would let a job be admitted.
func (s *Session) kueueRemedies(q *remedy.Question, omit bool) (*apportionv1.Answer, error) {
	answer := &apportionv1.RemediesAnswer{Job: uint32(q.Job), Outcome: apportionv1.RemedyOutcome_REMEDY_OUTCOME_NONE}
	if !omit {
		answer.Uid = s.engine.View().Jobs.At(q.Job).UID
	}
	err := s.afreshForKueue(func(state *kueue.State) error {
		behind := kueueBehind(state, q.Job, map[int32]bool{})
		n, judged := state.Judge(q.Job)
		answer.Kueue = s.kueueNomination(state, s.kueueNames(), q.Job, n, judged, behind)
		code, have := kueueCode(answer.Kueue)
		switch {
		case answer.Kueue.GetAdmitted():
			answer.Outcome = apportionv1.RemedyOutcome_REMEDY_OUTCOME_WAITS_FOR_NOTHING
			return nil
		case code == 0:
			answer.Outcome = apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW
			return nil
		}
		reason := policy.Because(kueue.Name, code, model.None)
		reason.Have = have
		answer.Check, answer.Reasons = apportionv1.CheckKind_CHECK_KIND_ADMISSION, s.out.reasonList([]policy.Reason{reason})
		var kinds []kueue.RemedyKind
		if q.Kinds != nil {
			kinds = []kueue.RemedyKind{}
		}
		for kind, of := range kueueKinds {
			for _, asked := range q.Kinds {
				if kind > 0 && int(asked) == int(of) {
					kinds = append(kinds, kueue.RemedyKind(kind))
				}
			}
		}
		return s.listKueueRemedies(answer, state, state.Remedies(int32(q.Job), kinds), omit)
	})
	if err != nil {
		return nil, err
	}
	answer.Text = text.Remedies(s.names(), answer)
	s.out.left -= 2*messageBytes + len(answer.GetText()) + len(answer.GetUid())
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Remedies{Remedies: answer}}, s.out.check("job")
}

// listKueueRemedies adds the remedies to an answer, and what was not tried.
func (s *Session) listKueueRemedies(answer *apportionv1.RemediesAnswer, state *kueue.State, found kueue.Remedies, omit bool) error {
	answer.Tries = uint32(found.Tries)
	for i := range found.List {
		answer.Outcome = apportionv1.RemedyOutcome_REMEDY_OUTCOME_FOUND
		r := &found.List[i]
		if err := s.work.Hold(wirekueue.NominationBytes(&r.Nomination)); err != nil {
			return err
		}
		remedy := &apportionv1.Remedy{
			Kind: kueueKinds[r.Kind], Kueue: wirekueue.Nomination(state, int32(answer.GetJob()), r.Nomination, true),
		}
		s.nameVictims(remedy.Kueue)
		remedy.Kueue.Inactive, remedy.Kueue.Missing = 0, ""
		for k := range r.Edits {
			remedy.Edits = append(remedy.Edits, s.kueueEdit(answer.GetJob(), &r.Edits[k], omit))
		}
		remedy.Text = text.Remedy(s.names(), answer.GetJob(), remedy)
		remedy.WhatifArguments = text.WhatIf(s.names(), answer.GetJob(), remedy)
		answer.Remedies = append(answer.Remedies, remedy)
		s.out.left -= 2*messageBytes + kueueBytes*(4+len(r.Nomination.Victims)+4*len(r.Nomination.PodSets)) + len(remedy.GetText())
		if err := s.out.check("job"); err != nil {
			return err
		}
	}
	for _, kind := range found.Cut {
		answer.UntriedKinds = append(answer.UntriedKinds, &apportionv1.UntriedRemedy{
			Kind: kueueKinds[kind], Cause: apportionv1.UntriedCause_UNTRIED_CAUSE_TRIES_SPENT,
		})
	}
	if found.Spent {
		for kind := found.At; int(kind) < len(kueueKinds); kind++ {
			answer.UntriedKinds = append(answer.UntriedKinds, &apportionv1.UntriedRemedy{
				Kind: kueueKinds[kind], Cause: apportionv1.UntriedCause_UNTRIED_CAUSE_TRIES_SPENT,
			})
		}
	}
	return nil
}

func (s *Session) kueueEdit(job uint32, e *kueue.Edit, omit bool) *apportionv1.RemedyEdit {
	v := s.engine.View()
	out := &apportionv1.RemedyEdit{Field: kueueFields[e.Field], Flavor: e.Flavor, Resource: e.Resource, Cohort: e.Cohort}
	if q, ok := v.Queue(e.Queue); ok && e.Queue != "" {
		out.Queue = new(uint32(q))
		if !omit {
			out.QueueName = e.Queue
		}
	}
	if e.Workload >= 0 {
		out.Job = new(uint32(e.Workload))
		if !omit {
			out.Uid = v.Jobs.At(model.JobID(e.Workload)).UID
		}
	}
	switch e.Field { //nolint:exhaustive // The others have no amount.
	case kueue.LeastPods, kueue.PodRequest:
		out.Role = new(s.kueueState().WorkloadAt(int32(job)).PodSets[e.Set].Name)
		fallthrough
	case kueue.NominalQuota, kueue.BorrowingLimit, kueue.LendingLimit, kueue.Priority:
		out.After, out.Step = new(float64(e.After)), new(1.0)
		if e.Given {
			out.Before = new(float64(e.Before))
		}
	}
	s.out.left -= 4*messageBytes + len(out.GetQueueName()) + len(out.GetUid())
	return out
}
