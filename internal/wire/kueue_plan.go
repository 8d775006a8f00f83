package wire

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
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
func (s *Session) kueuePlan(q *plan.Question) (*apportionv1.Answer, error) {
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
	if !s.omitNames {
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
	miss.Causes = s.out.reasonList([]policy.Reason{reason})
	return miss
}

// kueueKinds are the kinds of edits of remedies in the order of the policy's; Evictions have none.
var kueueKinds = []apportionv1.EditKind{
	kueue.FewerPods:      apportionv1.EditKind_EDIT_KIND_MINIMUM,
	kueue.SmallerRequest: apportionv1.EditKind_EDIT_KIND_REQUEST,
	kueue.OpenedQueue:    apportionv1.EditKind_EDIT_KIND_OPEN,
	kueue.MoreNominal:    apportionv1.EditKind_EDIT_KIND_NOMINAL,
	kueue.MoreBorrowing:  apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT,
	kueue.MoreLending:    apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT,
	kueue.MadeFlavor:     apportionv1.EditKind_EDIT_KIND_FLAVOR,
	kueue.HigherPriority: apportionv1.EditKind_EDIT_KIND_PRIORITY,
	kueue.EndedHolders:   apportionv1.EditKind_EDIT_KIND_END,
	kueue.Evictions:      apportionv1.EditKind_EDIT_KIND_UNSPECIFIED,
}

// kueueFields are the kinds of edits in the order of the policy's.
var kueueFields = []apportionv1.EditKind{
	kueue.LeastPods:      apportionv1.EditKind_EDIT_KIND_MINIMUM,
	kueue.PodRequest:     apportionv1.EditKind_EDIT_KIND_REQUEST,
	kueue.StopPolicy:     apportionv1.EditKind_EDIT_KIND_OPEN,
	kueue.NominalQuota:   apportionv1.EditKind_EDIT_KIND_NOMINAL,
	kueue.BorrowingLimit: apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT,
	kueue.LendingLimit:   apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT,
	kueue.MissingFlavor:  apportionv1.EditKind_EDIT_KIND_FLAVOR,
	kueue.Priority:       apportionv1.EditKind_EDIT_KIND_PRIORITY,
	kueue.HolderEnds:     apportionv1.EditKind_EDIT_KIND_END,
}

// kueueMeans returns the means of a remedy of the policy.
func kueueMeans(kind kueue.RemedyKind, edits []kueue.Edit) apportionv1.RemedyMeans {
	switch {
	case kind == kueue.Evictions:
		return apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION
	case slices.ContainsFunc(edits, func(e kueue.Edit) bool { return e.Field != edits[0].Field }):
		return apportionv1.RemedyMeans_REMEDY_MEANS_COMBINED
	}
	return apportionv1.RemedyMeans_REMEDY_MEANS_EDITS
}

// kueueAsked returns the kinds that a question asks for, nil for all.
func kueueAsked(q *apportionv1.RemediesStep) []kueue.RemedyKind {
	if len(q.GetKinds())+len(q.GetMeans()) == 0 {
		return nil
	}
	kinds := []kueue.RemedyKind{}
	for kind := kueue.FewerPods; kind <= kueue.Evictions; kind++ {
		if slices.Contains(q.GetMeans(), kueueMeans(kind, nil)) || slices.Contains(q.GetKinds(), kueueKinds[kind]) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// kueueRemedies answers what would let a job be admitted.
func (s *Session) kueueRemedies(j model.JobID, q *apportionv1.RemediesStep) (*apportionv1.Answer, error) {
	answer := &apportionv1.RemediesAnswer{Job: uint32(j), Outcome: apportionv1.RemedyOutcome_REMEDY_OUTCOME_NONE}
	if !s.omitNames {
		answer.Uid = s.engine.View().Jobs.At(j).UID
	}
	err := s.afreshForKueue(func(state *kueue.State) error {
		behind := kueueBehind(state, j, map[int32]bool{})
		n, judged := state.Judge(j)
		answer.Kueue = s.kueueNomination(state, s.kueueNames(), j, n, judged, behind)
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
		answer.Check, answer.Causes = apportionv1.CheckKind_CHECK_KIND_ADMISSION, s.out.reasonList([]policy.Reason{reason})
		return s.listKueueRemedies(answer, state, state.Remedies(int32(j), kueueAsked(q)))
	})
	if err != nil {
		return nil, err
	}
	answer.Text = text.Remedies(s.names(), answer)
	s.out.left -= 2*messageBytes + len(answer.GetText()) + len(answer.GetUid())
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Remedies{Remedies: answer}}, s.out.check("job")
}

// listKueueRemedies adds the remedies to an answer, and what was not tried.
func (s *Session) listKueueRemedies(answer *apportionv1.RemediesAnswer, state *kueue.State, found kueue.Remedies) error {
	answer.Tries = uint32(found.Tries)
	for i := range found.List {
		answer.Outcome = apportionv1.RemedyOutcome_REMEDY_OUTCOME_FOUND
		r := &found.List[i]
		if err := s.work.Hold(wirekueue.NominationBytes(&r.Nomination)); err != nil {
			return err
		}
		remedy := &apportionv1.Remedy{
			Means: kueueMeans(r.Kind, r.Edits), Kueue: wirekueue.Nomination(state, int32(answer.GetJob()), r.Nomination, true),
		}
		s.nameVictims(remedy.Kueue)
		remedy.Kueue.Inactive, remedy.Kueue.Missing = 0, ""
		for k := range r.Edits {
			remedy.Edits = append(remedy.Edits, s.kueueEdit(answer.GetJob(), &r.Edits[k]))
		}
		remedy.Text = text.Remedy(s.names(), answer.GetJob(), remedy)
		answer.Remedies = append(answer.Remedies, remedy)
		s.out.left -= 2*messageBytes + kueueBytes*(4+len(r.Nomination.Victims)+4*len(r.Nomination.PodSets)) + len(remedy.GetText())
		if err := s.out.check("job"); err != nil {
			return err
		}
	}
	untried := func(kind kueue.RemedyKind) {
		answer.UntriedKinds = append(answer.UntriedKinds, &apportionv1.UntriedRemedy{
			Means: kueueMeans(kind, nil), Kind: kueueKinds[kind], Cause: apportionv1.UntriedCause_UNTRIED_CAUSE_TRIES_SPENT,
		})
	}
	for _, kind := range found.Cut {
		untried(kind)
	}
	for kind := found.At; found.Spent && kind <= kueue.Evictions; kind++ {
		untried(kind)
	}
	return nil
}

// kueueEdit encodes an edit of the policy.
func (s *Session) kueueEdit(job uint32, e *kueue.Edit) *apportionv1.Edit {
	v := s.engine.View()
	out := &apportionv1.Edit{Kind: kueueFields[e.Field], NodeSet: e.Flavor}
	if q, ok := v.Queue(e.Queue + e.Cohort); ok {
		out.Object = &apportionv1.Edit_Queue{Queue: s.ref(int(q), e.Queue+e.Cohort)}
	}
	wire := func(n int64) *float64 { return new(float64(n)) }
	if d, ok := v.Dims.Index(e.Resource); ok {
		out.Dimension = new(uint32(v.Dims.Position(d)))
		wire = func(n int64) *float64 { return new(wirekueue.Wire(e.Resource, kueue.Amount(n))) }
	}
	if e.Workload >= 0 {
		out.Object = &apportionv1.Edit_Job{Job: s.ref(int(e.Workload), v.Jobs.At(model.JobID(e.Workload)).UID)}
	}
	switch e.Field { //nolint:exhaustive // The others have no amount.
	case kueue.LeastPods, kueue.PodRequest:
		out.Role = new(s.kueueState().WorkloadAt(int32(job)).PodSets[e.Set].Name)
		fallthrough
	case kueue.NominalQuota, kueue.BorrowingLimit, kueue.LendingLimit, kueue.Priority:
		if out.Amount, out.Step = wire(e.After), wire(1); e.Given {
			out.Before = wire(e.Before)
		}
	}
	s.out.left -= 4 * messageBytes
	return out
}
