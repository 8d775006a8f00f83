package reference

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
)

// simulate asks the what-ifs. Volcano makes each on a copy of the queues' accounts; here each is undone.
func (p *plan) simulate(questions []Simulation) {
	if len(questions) == 0 {
		return
	}
	answers := func(f *form) []any { list, _ := f.root["simulate"].([]any); return list }
	p.prepare(func(f *form) {
		all := make([]any, len(questions))
		for i := range questions {
			all[i] = make([]any, len(questions[i].Steps))
		}
		f.root["simulate"] = all
	})
	// The first mark of a session is number 0; every what-if returns to it.
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}, unless("mark", "ok"), "", firstMark)
	for i, question := range questions {
		subject := p.taskRefs(question.Task)
		if len(subject.Indices) == 0 {
			p.ask(allocatable(subject), func(f *form, v any) { answers(f)[i] = v }, noTask, joint)
			continue
		}
		for k, step := range question.Steps {
			where := func(f *form, v any) { answers(f)[i].([]any)[k] = v } //nolint:errcheck,forcetypeassert // made by prepare
			switch step.Op {
			case allocatableKey:
				p.ask(allocatable(subject), where, noTask, joint)
			case "remove":
				p.ask(deallocate(p.taskRefs(step.Task)), where, noTask, done)
			case "add":
				p.ask(allocate(p.taskRefs(step.Task)), where, noTask, done)
			case "clone":
				// Messages are shared here, because nothing changes them afterwards.
				p.prepare(func(f *form) { where(f, "ok") })
			}
		}
		back := &apportionv1.RollbackStep{}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: back}}, unless("rollback", "ok"), "", done)
	}
}

// unless is a place at the root, and nowhere if the answer is the expected one: the recording has no such question.
func unless(key string, expected any) place {
	return func(f *form, v any) {
		if v != expected {
			f.root[key] = v
		}
	}
}

func firstMark(_ *form, a *apportionv1.Answer) any {
	if a.GetMark() == nil || a.GetMark().Mark != 0 {
		return unanswered
	}
	return "ok"
}

func allocatable(tasks *apportionv1.Selector) *apportionv1.Step {
	step := &apportionv1.AllocatableStep{Tasks: tasks, Jointly: true, Mode: apportionv1.AccountingMode_ACCOUNTING_MODE_SIMULATION}
	return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: step}}
}

func joint(_ *form, a *apportionv1.Answer) any { return jointVerdict(a.GetAllocatable().GetTasks()) }

func allocate(tasks *apportionv1.Selector) *apportionv1.Step {
	return event.Place(tasks, nil)
}

func deallocate(tasks *apportionv1.Selector) *apportionv1.Step {
	return event.Evict(tasks, 0)
}

// events makes the events of a scheduling cycle, and asks after each for what queues and the task's job use.
func (p *plan) events(events []Operation) {
	for _, event := range events {
		step, status := allocate(p.taskRefs(event.Task)), apportionv1.TaskStatus_TASK_STATUS_ALLOCATED
		if event.Op == "deallocate" {
			step, status = deallocate(p.taskRefs(event.Task)), apportionv1.TaskStatus_TASK_STATUS_RELEASING
		}
		p.ask(step, next("events"), noTask, func(f *form, a *apportionv1.Answer) any {
			if result := done(f, a); result != "ok" {
				return result
			}
			return object{}
		})
		t, ok := p.tasks[event.Task]
		if !ok {
			continue
		}
		p.status[t] = status
		p.use(p.ofTask[t])
	}
}

// use asks for what all queues and one job use.
func (p *plan) use(job uint32) {
	step := &apportionv1.SharesStep{
		Jobs:   &apportionv1.Selector{Indices: []uint32{job}},
		Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_ALLOCATED, apportionv1.ShareField_SHARE_FIELD_SHARE},
	}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: step}}, inside("events", queuesKey), "",
		func(f *form, a *apportionv1.Answer) any {
			accounts := sharesOf(f, a.GetShares(), queueUse)
			if jobs, ok := accounts["drfJobs"].(object); ok {
				inside("events", "drfJob")(f, jobs[p.jobNames[job]])
			}
			return accounts[queuesKey]
		})
}
