package wire

import (
	"math"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/text"
)

// kueueState returns the opened policy kueue, or nil.
func (s *Session) kueueState() *kueue.State {
	for _, d := range s.engine.Dividers() {
		if state, ok := d.State.(*kueue.State); ok {
			return state
		}
	}
	return nil
}

// kueueBytes is an estimate of an account, or of a flavor with its attempts.
const kueueBytes = 64

// kueueShare adds Kueue's account to the share of a queue.
func (s *Session) kueueShare(out *apportionv1.QueueShare, state *kueue.State, q model.QueueID) {
	if !s.work.Keep(wirekueue.ShareBytes(state, int32(q))) {
		return
	}
	out.Kueue = wirekueue.Share(state, int32(q))
	s.out.left -= kueueBytes * (2 + len(out.Kueue.GetAccounts()))
}

// kueueLocals returns the usage of the local queues that order workloads.
func (s *Session) kueueLocals(state *kueue.State) ([]*apportionv1.KueueLocalShare, error) {
	var out []*apportionv1.KueueLocalShare
	locals := state.Locals()
	for i := range locals {
		if s.out.left -= kueueBytes * 2; s.out.left < 0 {
			return nil, s.out.tooLarge("queues")
		}
		out = append(out, wirekueue.Local(state, &locals[i]))
	}
	return out, nil
}

// kueueBehind returns the first job of a strict queue if another one of the queue waits behind it: it comes before, and is not admitted in
// the next cycle. stuck remembers which jobs are not.
func kueueBehind(state *kueue.State, j model.JobID, stuck map[int32]bool) *uint32 {
	first := state.Behind(int32(j))
	if first < 0 {
		return nil
	}
	waits, known := stuck[first]
	if !known {
		n, judged := state.Judge(model.JobID(first))
		waits = judged && (n.Mode != kueue.Fit || state.WorkloadAt(first).Withheld != "")
		stuck[first] = waits
	}
	if !waits {
		return nil
	}
	return new(uint32(first))
}

// kueueNomination describes what would be done with a job that waits behind another, if behind is not nil.
func (s *Session) kueueNomination(
	state *kueue.State, names text.Names, j model.JobID, n kueue.Nomination, judged bool, behind *uint32,
) *apportionv1.KueueNomination {
	if !s.work.Keep(wirekueue.NominationBytes(&n)) {
		return &apportionv1.KueueNomination{}
	}
	out := wirekueue.Nomination(state, int32(j), n, judged)
	out.Behind = behind
	if out.Local = wirekueue.Local(state, state.Local(int32(j))); out.Local != nil {
		if penalty, known := state.WorkloadPenalty(int32(j)); known {
			out.EntryPenalty = new(penalty)
		}
	}
	s.nameVictims(out)
	out.Text = text.Kueue(names, uint32(j), out)
	s.out.left -= kueueSize(out)
	return out
}

// kueueSize is an upper estimate of the size of a nomination, by which its memory is bounded, too.
func kueueSize(n *apportionv1.KueueNomination) int {
	parts := 4 + len(n.GetVictims())
	for _, p := range n.GetPodSets() {
		parts += 4 + len(p.GetFlavors()) + len(p.GetLacks())
	}
	return n.SizeVT() + kueueBytes*parts
}

// nameVictims sets the queues and names of victims.
func (s *Session) nameVictims(n *apportionv1.KueueNomination) {
	v := s.engine.View()
	for _, victim := range n.GetVictims() {
		job := v.Jobs.At(model.JobID(victim.GetJob()))
		victim.Queue, victim.Name = uint32(job.Queue), s.audience.jobName(v, model.JobID(victim.GetJob()))
	}
}

// kueueNames are the names that sentences about one job need.
func (s *Session) kueueNames() text.Names {
	v := s.engine.View()
	return text.Names{Job: func(j uint32) string { return s.audience.jobName(v, model.JobID(j)) }}
}

// kueueVerdict adds to a verdict what the policy kueue found about the job.
func (s *Session) kueueVerdict(out *apportionv1.EnqueueVerdict, state *kueue.State, j model.JobID) {
	n, judged := state.Last(j)
	if !s.omitNames {
		out.Kueue = s.kueueNomination(state, s.kueueNames(), j, n, judged, nil)
		return
	}
	if !s.work.Keep(wirekueue.NominationBytes(&n)) {
		return
	}
	out.Kueue = wirekueue.Nomination(state, int32(j), n, judged)
	s.nameVictims(out.GetKueue())
	s.out.left -= kueueBytes * (4 + len(n.Victims) + 4*len(n.PodSets))
}

// kueueCycle answers with the decisions of one cycle, and books the admitted jobs, all or none.
func (s *Session) kueueCycle(state *kueue.State) (*apportionv1.Answer, error) {
	if err := s.out.room(state.Queues(), "jobs"); err != nil {
		return nil, err
	}
	answer := &apportionv1.EnqueueAnswer{}
	for _, d := range state.Cycle() {
		j := model.JobID(d.Workload)
		s.reasons.List = s.reasons.List[:0]
		if d.Verdict != kueue.Admitted {
			s.reasons.Add(kueueReason(&d, s.engine.View().Jobs.At(j).Queue))
		}
		out := &apportionv1.EnqueueVerdict{Job: uint32(j), Verdict: s.out.verdict(d.Verdict == kueue.Admitted, s.reasons.List)}
		if !s.omitNames {
			out.Uid = s.engine.View().Jobs.At(j).UID
		}
		if err := s.work.Hold(wirekueue.NominationBytes(&d.Nomination)); err != nil {
			return nil, err
		}
		out.Kueue = wirekueue.Nomination(state, d.Workload, d.Nomination, d.Verdict != kueue.NotNominated)
		out.Kueue.Decision = apportionv1.KueueDecision(d.Verdict) + 1
		if s.nameVictims(out.Kueue); !s.omitNames {
			out.Kueue.Text = text.Kueue(s.kueueNames(), uint32(j), out.Kueue)
		}
		answer.Jobs = append(answer.Jobs, out)
		if s.out.left -= messageBytes + kueueSize(out.Kueue); s.out.left < 0 {
			return nil, s.out.tooLarge("jobs")
		}
		if d.Verdict == kueue.Admitted {
			if err := s.mayChange(); err != nil {
				return nil, err
			}
			state.Book(j, &d.Assignment)
		}
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Enqueue{Enqueue: answer}}, nil
}

// kueueReason is the reason of a decision that is no admission.
func kueueReason(d *kueue.Decision, queue model.QueueID) policy.Reason {
	code := policy.QuotaInUse
	switch d.Verdict {
	case kueue.NotNominated:
		code = policy.NotNominated
	case kueue.DoesNotFit:
		code = policy.NoFlavor
	default:
	}
	r := policy.Because(kueue.Name, code, queue)
	if d.Verdict != kueue.Overlaps && d.Verdict != kueue.NoLongerFits {
		r.Have = float64(len(d.Victims))
	}
	return r
}

// waiting lists the jobs that wait: by the policy kueue, in the order of their queues, or by the others.
func (s *Session) waiting() []model.JobID {
	state := s.kueueState()
	if state == nil {
		return s.engine.Waiting()
	}
	var jobs []model.JobID
	v := s.engine.View()
	for _, q := range v.QueueOrder {
		for _, id := range state.Pending(int32(q)) {
			jobs = append(jobs, model.JobID(id))
		}
	}
	return jobs
}

// explainKueue explains jobs by the policy kueue. The admission is their only check.
func (s *Session) explainKueue(state *kueue.State, names text.Names, jobs []model.JobID, each func(*apportionv1.Explanation)) error {
	v := s.engine.View()
	stuck := map[int32]bool{}
	for _, j := range jobs {
		if s.stop != nil && s.stop() {
			return policy.ErrStopped
		}
		job := v.Jobs.At(j)
		behind := kueueBehind(state, j, stuck)
		n, judged := state.Judge(j)
		finding := &apportionv1.Finding{
			Check: apportionv1.CheckKind_CHECK_KIND_ADMISSION, Outcome: apportionv1.CheckOutcome_CHECK_OUTCOME_PASSED,
		}
		out := &apportionv1.Explanation{
			Job: uint32(j), Uid: job.UID, Name: JobName(job), Queue: uint32(job.Queue), Phase: decode.WirePhase(v.Phase(j)),
			Findings: []*apportionv1.Finding{finding}, Kueue: s.kueueNomination(state, names, j, n, judged, behind),
			WaitingTasks: kueueWaiting(state, int32(j)),
		}
		out.Text = out.Kueue.GetText()
		finding.Text = strings.TrimSuffix(out.Text, ".")
		code, have := kueueCode(out.Kueue)
		switch {
		case out.Kueue.GetAdmitted():
			out.Verdict = apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE
		case code == 0 && len(out.Kueue.GetUnjudgedParts()) > 0:
			out.Verdict = apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED
		case code == 0:
			out.Verdict = apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN
		default:
			reason := policy.Because(kueue.Name, code, model.None)
			reason.Have = have
			finding.Outcome, finding.Causes = apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED, s.out.reasonList([]policy.Reason{reason})
			out.Verdict, out.Blocking = apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, new(uint32(0))
		}
		each(out)
		if err := s.out.check("jobs"); err != nil {
			return err
		}
	}
	return nil
}

// kueueWaiting returns how many pods of a workload without quota ask for some.
func kueueWaiting(state *kueue.State, job int32) uint32 {
	w := state.WorkloadAt(job)
	if w == nil || state.Holds(job) {
		return 0
	}
	var pods int64
	for i := range w.PodSets {
		pods += int64(max(0, w.PodSets[i].Count-w.PodSets[i].Reclaimable))
	}
	return uint32(min(pods, math.MaxUint32))
}

// kueueCode returns why a job is not admitted, 0 if it would be, with the number of victims.
func kueueCode(n *apportionv1.KueueNomination) (code policy.Code, have float64) {
	switch {
	case n.GetWithheld() != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED:
		return policy.NotNominated, 0
	case n.Behind != nil:
		return policy.NotNominated, 0
	case n.GetMode() == apportionv1.KueueMode_KUEUE_MODE_FIT:
		return 0, 0
	case n.GetMode() == apportionv1.KueueMode_KUEUE_MODE_UNSPECIFIED:
		return policy.NotNominated, 0
	case n.GetMode() == apportionv1.KueueMode_KUEUE_MODE_NO_FIT:
		return policy.NoFlavor, 0
	}
	return policy.QuotaInUse, float64(len(n.GetVictims()))
}

// blockingCheck returns the check that blocks a job, or none.
func blockingCheck(e *apportionv1.Explanation) apportionv1.CheckKind {
	if e.Blocking == nil {
		return apportionv1.CheckKind_CHECK_KIND_UNSPECIFIED
	}
	return e.GetFindings()[e.GetBlocking()].GetCheck()
}
