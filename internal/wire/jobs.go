package wire

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var jobsQuestion = question[*apportionv1.JobsStep]{
	of:     (*apportionv1.Step).GetJobs,
	answer: (*Session).jobs,
	work: func(s *Session, q *apportionv1.JobsStep) error {
		return s.work.Spend(selected(q.GetJobs(), s.engine.View().Jobs.Len()), s.plugins)
	},
	memory: func(a *asking, q *apportionv1.JobsStep) (answer, work int64) {
		n := a.jobs(q.GetJobs())
		return n * (decode.BytesOf[apportionv1.JobStanding](1) + 8 + 4*a.verdict()), 8 * n
	},
}

func (s *Session) jobs(q *apportionv1.JobsStep) (*apportionv1.Answer, error) {
	jobs, err := s.jobsOrAll(q.GetJobs())
	if err != nil {
		return nil, err
	}
	standings := make([]apportionv1.JobStanding, len(jobs))
	answer := &apportionv1.JobsAnswer{Jobs: make([]*apportionv1.JobStanding, len(jobs))}
	for i, j := range jobs {
		if s.stopped(i) {
			return nil, policy.ErrStopped
		}
		answer.Jobs[i] = &standings[i]
		if s.jobStanding(&standings[i], j); s.out.left < 0 {
			return nil, s.out.tooLarge("jobs")
		}
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Jobs{Jobs: answer}}, nil
}

// jobsOrAll resolves a selection; an absent one is all jobs.
func (s *Session) jobsOrAll(selection *apportionv1.Selector) ([]model.JobID, error) {
	if selection == nil {
		jobs := s.allJobs()
		return jobs, s.out.room(len(jobs), "jobs")
	}
	var faults model.Error
	jobs := s.selectJobs(selection, &faults)
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return jobs, s.out.room(len(jobs), "jobs")
}

func (s *Session) jobStanding(out *apportionv1.JobStanding, j model.JobID) {
	v := s.engine.View()
	out.Job = uint32(j)
	if !s.omitNames {
		out.Uid = v.Jobs.At(j).UID
	}
	ask := func(question func(engine.Job, *policy.Reasons) bool) *apportionv1.Verdict {
		s.reasons.List = s.reasons.List[:0]
		yes := question(s.engine.Job(j), &s.reasons)
		return s.out.verdict(yes, s.reasons.List)
	}
	out.Valid, out.Ready = ask(engine.Job.Valid), ask(engine.Job.Ready)
	out.Pipelined, out.Starving = ask(engine.Job.Pipelined), ask(engine.Job.Starving)
	account := v.Account(j)
	out.ReadyTasks, out.ValidTasks = uint32(account.Ready()), uint32(account.Valid())
	out.PipelinedTasks = uint32(account.Tasks[model.Pipelined])
	out.PendingBestEffortTasks = uint32(account.PendingBestEffort)
	out.TotalTasks, out.MinAvailable = uint32(account.AllTasks()), uint32(v.Jobs.At(j).MinAvailable)
	s.out.left -= 3*messageBytes + len(out.Uid)
}
