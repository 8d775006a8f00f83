package wire

import (
	"cmp"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
)

var enqueueQuestion = question[*apportionv1.EnqueueStep]{
	of:      (*apportionv1.Step).GetEnqueue,
	changes: true,
	answer:  (*Session).enqueue,
	work: func(s *Session, q *apportionv1.EnqueueStep) error {
		return s.work.Spend(selected(q.GetJobs(), s.engine.View().Jobs.Len()), s.workOfTask())
	},
	memory: func(a *asking, q *apportionv1.EnqueueStep) (answer, work int64) {
		n := a.jobs(q.GetJobs())
		return n * (decode.BytesOf[apportionv1.EnqueueVerdict](1) + 8 + a.verdict()), 16*n + a.moved(n) + a.nomination()
	},
	decision: verdicts((*apportionv1.Answer).GetEnqueue, (*apportionv1.EnqueueAnswer).GetJobs),
	sums:     catalogue.SumsForEnqueue,
	read: reader(func(m *made[apportionv1.Step_Enqueue, apportionv1.EnqueueStep], r stepFields) {
		m.body.Jobs = r.chosen[1].into(&m.tasks)
		m.body.Mode = apportionv1.EnqueueMode(int32(r.numbers[2]))
		m.step.Step, m.member.Enqueue = &m.member, &m.body
	}),
}

func (s *Session) enqueue(q *apportionv1.EnqueueStep) (answer *apportionv1.Answer, err error) {
	state := s.kueueState()
	if state == nil {
		return s.enqueueBy(nil, q)
	}
	// How large the nominations of Kueue are, and what they take to be undone, is found out on the way.
	err = s.engine.Try(func() error {
		if answer, err = s.enqueueBy(state, q); err == nil {
			err = s.exceeded()
		}
		return err
	})
	return answer, err
}

// exceeded returns the error of a step that costs more work than is left, or nil.
func (s *Session) exceeded() error {
	if exceeded := s.work.Exceeded(); exceeded != nil {
		return exceeded
	}
	return nil
}

// enqueueBy is enqueue, by the policy kueue if state is not nil.
func (s *Session) enqueueBy(state *kueue.State, q *apportionv1.EnqueueStep) (*apportionv1.Answer, error) {
	decide := engine.Job.Enqueueable
	switch q.GetMode() {
	case apportionv1.EnqueueMode_ENQUEUE_MODE_UNSPECIFIED, apportionv1.EnqueueMode_ENQUEUE_MODE_VOTES:
	case apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION:
		decide = engine.Job.Enqueue
	default:
		return nil, faultAt("mode", "no mode %d", q.GetMode())
	}
	if state != nil && q.GetJobs() == nil && q.GetMode() == apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION {
		return s.kueueCycle(state)
	}
	var jobs []model.JobID
	var err error
	if q.GetJobs() == nil && q.GetMode() == apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION {
		jobs = s.engine.Order().Pending()
	} else if jobs, err = s.jobsOrAll(q.GetJobs()); err != nil {
		return nil, err
	}
	if err := s.roomForVerdicts(jobs); err != nil {
		return nil, err
	}
	v := s.engine.View()
	verdicts := many(&s.out, &s.out.memory().enqueueVerdicts, len(jobs))
	answer := &apportionv1.EnqueueAnswer{Jobs: many(&s.out, &s.out.memory().enqueueLists, len(jobs))}
	for i, j := range jobs {
		v.Yield(i)
		s.reasons.List = s.reasons.List[:0]
		out := &verdicts[i]
		permitted := decide(s.engine.Job(j), &s.reasons)
		out.Job, out.Verdict = uint32(j), s.out.verdict(permitted, s.reasons.List)
		if !s.omitNames {
			out.Uid = v.Jobs.At(j).UID
		}
		if state != nil {
			s.kueueVerdict(out, state, j)
			if err := cmp.Or(s.mayChange(), s.out.check("jobs")); err != nil {
				return nil, err
			}
		}
		answer.Jobs[i] = out
		s.out.left -= messageBytes + len(out.Uid)
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Enqueue{Enqueue: answer}}, nil
}

// roomForVerdicts finds out before anything is booked whether the verdicts can be sent.
func (s *Session) roomForVerdicts(jobs []model.JobID) error {
	v := s.engine.View()
	size := 0
	for _, j := range jobs {
		size += 4*messageBytes + 2*reasonBytes
		if !s.omitNames {
			size += len(v.Jobs.At(j).UID)
		}
	}
	if size > s.out.left {
		return s.out.tooLarge("jobs")
	}
	return nil
}

// EnqueueVote is an enqueue step for one job, by the votes, that distinguishes no opinion from a permit, unlike the step's answer. The
// reasons are added to why.
func (s *Session) EnqueueVote(j model.JobID, why *policy.Reasons) (policy.Vote, *apportionv1.Answer) {
	s.out.begin(s.engine.View().Dims, s.maximum)
	before := len(why.List)
	vote := s.engine.Job(j).EnqueueVote(why)
	return vote, s.verdictOn(j, vote != policy.Reject, why.List[before:])
}

func (s *Session) verdictOn(j model.JobID, permitted bool, why []policy.Reason) *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Enqueue{Enqueue: &apportionv1.EnqueueAnswer{
		Jobs: []*apportionv1.EnqueueVerdict{{
			Job: uint32(j), Uid: s.engine.View().Jobs.At(j).UID, Verdict: s.out.verdict(permitted, why),
		}},
	}}}
}
