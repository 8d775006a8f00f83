package reference

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// verdicts asks what the whole policy says of each pending task, of all pending tasks of a job, and of each job.
func (p *plan) verdicts(keys ...string) {
	under := func(names ...string) place { return at(slices.Concat(keys, []string{"verdicts"}, names)...) }
	pending := p.pending()
	if len(pending) > 0 {
		tasks := &apportionv1.Selector{Indices: pending}
		allocatable := &apportionv1.AllocatableStep{Tasks: tasks}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: allocatable}}, under(allocatableKey), noTask,
			func(f *form, a *apportionv1.Answer) any { return taskVerdicts(f, a.GetAllocatable().GetTasks()) })
		preemptive := &apportionv1.PreemptiveStep{Tasks: tasks}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: preemptive}}, under("preemptive"), noTask,
			func(f *form, a *apportionv1.Answer) any { return taskVerdicts(f, a.GetPreemptive().GetTasks()) })
	}
	ofJob := make([][]uint32, len(p.jobNames))
	for _, t := range pending {
		ofJob[p.ofTask[t]] = append(ofJob[p.ofTask[t]], t)
	}
	for j, tasks := range ofJob {
		if len(tasks) == 0 {
			continue
		}
		step := &apportionv1.PreemptiveStep{Tasks: &apportionv1.Selector{Indices: tasks}, Jointly: true}
		where := under("preemptiveAllPendingOfJob", p.jobNames[j])
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: step}}, where, noTask,
			func(_ *form, a *apportionv1.Answer) any { return jointVerdict(a.GetPreemptive().GetTasks()) })
	}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}}, under("jobs"), noJob, jobStandings)
}

// permits is a verdict in the recorded form. A verdict that was never given is no truth value.
func permits(v *apportionv1.Verdict) any {
	if v.GetVote() == apportionv1.Vote_VOTE_UNSPECIFIED {
		return unanswered
	}
	return v.Vote != apportionv1.Vote_VOTE_REJECT
}

func taskVerdicts(f *form, tasks []*apportionv1.TaskVerdict) any {
	verdicts := object{}
	for _, t := range tasks {
		verdicts[f.task(t.GetTask())] = permits(t.Verdict)
	}
	return verdicts
}

// jointVerdict is the verdict on all tasks together.
func jointVerdict(tasks []*apportionv1.TaskVerdict) any {
	if len(tasks) != 1 {
		return unanswered
	}
	return permits(tasks[0].Verdict)
}

func jobStandings(f *form, a *apportionv1.Answer) any {
	standings := object{}
	for _, j := range a.GetJobs().GetJobs() {
		valid := object{"pass": permits(j.Valid)}
		if j.Valid.GetVote() == apportionv1.Vote_VOTE_REJECT {
			valid["reason"] = invalidity(j.Valid.Causes)
		}
		standings[f.job(j.Job)] = object{
			"valid": valid, "ready": permits(j.Ready), "pipelined": permits(j.Pipelined), "starving": permits(j.Starving),
		}
	}
	return standings
}

// invalidity is Volcano's word for why a job is not valid.
func invalidity(reasons []*apportionv1.Cause) any {
	for _, reason := range reasons {
		switch reason.Code {
		case apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS:
			return "NotEnoughTasks"
		case apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS_OF_ROLE:
			return "NotEnoughPodsOfTask"
		default:
			return reason.Code.String()
		}
	}
	return unanswered
}

// enqueue asks which jobs may enter, one after the other, and what their queues have admitted then.
func (p *plan) enqueue(jobs []string) {
	for _, name := range jobs {
		step := &apportionv1.EnqueueStep{Jobs: &apportionv1.Selector{}, Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_VOTES}
		if j, ok := p.jobs[name]; ok {
			step.Jobs.Indices = []uint32{j}
		} else {
			step.Jobs.Names = []string{name}
		}
		where := func(f *form, v any) { next("enqueue")(f, object{"job": name, "verdict": v}) }
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: step}}, where, noJob, func(_ *form, a *apportionv1.Answer) any {
			if verdicts := a.GetEnqueue().GetJobs(); len(verdicts) == 1 {
				return permits(verdicts[0].Verdict)
			}
			return unanswered
		})
	}
	if len(jobs) == 0 {
		return
	}
	step := &apportionv1.SharesStep{Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_INQUEUE}}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: step}}, at("queuesAfterEnqueue"), "",
		func(f *form, a *apportionv1.Answer) any { return sharesOf(f, a.GetShares(), queueInqueue)[queuesKey] })
}
