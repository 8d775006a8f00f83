package scenario

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Keys that several steps have.
const (
	keyJobs    = "jobs"
	keyTasks   = "tasks"
	keyExplain = "explain"
)

// kind is a kind of step: the key that a value without keys stands for, and how it is read.
type kind struct {
	short string
	read  func(*work) (*apportionv1.Step, error)
}

// kinds are the steps by name.
var kinds = map[string]kind{
	"shares": {"queues", (*work).shares}, keyJobs: {keyJobs, (*work).jobStandings}, "enqueue": {keyJobs, (*work).enqueue},
	"allocatable": {keyTasks, (*work).allocatable}, "preemptive": {keyTasks, (*work).preemptive},
	"reclaim": {"claimant", (*work).reclaim}, "preempt": {"claimant", (*work).preempt}, "order": {"", (*work).order},
	"nodes": {keyTasks, (*work).nodeScores}, "inspect": {"", (*work).inspect}, "setStatus": {"", (*work).setStatus},
	"allocate": {keyTasks, (*work).allocate}, "deallocate": {keyTasks, (*work).deallocate}, "addJob": {"", (*work).addJob},
	"removeJob": {keyJobs, (*work).removeJob}, "mark": {"name", (*work).setMark}, "rollback": {"mark", (*work).rollback},
}

func (w *work) shares() (*apportionv1.Step, error) {
	step := &apportionv1.SharesStep{}
	var queues selection
	var explain, jobs bool
	err := w.read(readers{"queues": w.queues(&queues), keyExplain: w.flag(&explain), keyJobs: w.flag(&jobs), "tree": w.flag(&step.Tree)})
	step.Queues = queues.queues()
	if explain {
		step.Explain = &apportionv1.Explain{}
	}
	if jobs {
		step.Jobs = &apportionv1.Jobs{}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: step}}, err
}

func (w *work) jobStandings() (*apportionv1.Step, error) {
	var jobs selection
	err := w.read(readers{keyJobs: w.jobs(&jobs)})
	return &apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{Jobs: jobs.jobs()}}}, err
}

func (w *work) enqueue() (*apportionv1.Step, error) {
	step := &apportionv1.EnqueueStep{}
	var jobs selection
	err := w.read(readers{
		keyJobs: w.jobs(&jobs), "mode": word(w.source, &step.Mode, apportionv1.EnqueueMode_value, "ENQUEUE_MODE_"),
	})
	step.Jobs = jobs.jobs()
	return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: step}}, err
}

func (w *work) allocatable() (*apportionv1.Step, error) {
	step := &apportionv1.AllocatableStep{}
	var tasks selection
	err := w.read(readers{
		keyTasks: w.tasks(&tasks), "jointly": w.flag(&step.Jointly), keyExplain: w.flag(&step.Explain),
		"mode": word(w.source, &step.Mode, apportionv1.AccountingMode_value, "ACCOUNTING_MODE_"),
	})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	step.Tasks = tasks.tasks()
	return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: step}}, err
}

func (w *work) preemptive() (*apportionv1.Step, error) {
	step := &apportionv1.PreemptiveStep{}
	var tasks selection
	err := w.read(readers{keyTasks: w.tasks(&tasks), "jointly": w.flag(&step.Jointly), keyExplain: w.flag(&step.Explain)})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	step.Tasks = tasks.tasks()
	return &apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: step}}, err
}

// victims reads what reclaim and preempt have in common.
func (w *work) victims(eligible, explain *bool) (claimant, candidates *apportionv1.Tasks, err error) {
	var by, of selection
	err = w.read(readers{
		"claimant": w.tasks(&by), "candidates": w.tasks(&of), "eligibleOnly": w.flag(eligible), keyExplain: w.flag(explain),
	})
	if err == nil {
		err = w.needed("claimant", &by)
	}
	return by.tasks(), of.tasks(), err
}

func (w *work) reclaim() (*apportionv1.Step, error) {
	step := &apportionv1.ReclaimStep{}
	var err error
	step.Claimant, step.Candidates, err = w.victims(&step.EligibleOnly, &step.Explain)
	return &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}}, err
}

func (w *work) preempt() (*apportionv1.Step, error) {
	step := &apportionv1.PreemptStep{}
	var err error
	step.Claimant, step.Candidates, err = w.victims(&step.EligibleOnly, &step.Explain)
	return &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: step}}, err
}

func (w *work) order() (*apportionv1.Step, error) {
	step := &apportionv1.OrderStep{}
	var queues, jobs, tasks selection
	var claimantTask, claimantQueue uint32
	var byTask, byQueue bool
	err := w.read(readers{
		"queues": w.queues(&queues), keyJobs: w.jobs(&jobs), keyTasks: w.tasks(&tasks), "pairs": w.flag(&step.Pairs),
		"claimantTask":  w.one(&claimantTask, &byTask, w.snapshot.Task),
		"claimantQueue": w.one(&claimantQueue, &byQueue, w.snapshot.Queue),
	})
	if err != nil {
		return nil, err
	}
	given := 0
	for _, s := range []*selection{&queues, &jobs, &tasks} {
		if s.given {
			given++
		}
	}
	switch {
	case given > 1 || byTask && byQueue:
		return nil, w.fault(w.node, w.path, "one kind of thing is ordered at a time, for one claimant")
	case jobs.given:
		step.Subject = &apportionv1.OrderStep_Jobs{Jobs: jobs.jobs()}
	case tasks.given:
		step.Subject = &apportionv1.OrderStep_Tasks{Tasks: tasks.tasks()}
	default:
		step.Subject = &apportionv1.OrderStep_Queues{Queues: &apportionv1.Queues{Index: queues.index}}
	}
	if byTask {
		step.Claimant = &apportionv1.OrderStep_ClaimantTask{ClaimantTask: claimantTask}
	}
	if byQueue {
		step.Claimant = &apportionv1.OrderStep_ClaimantQueue{ClaimantQueue: claimantQueue}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, nil
}

func (w *work) nodeScores() (*apportionv1.Step, error) {
	step := &apportionv1.NodesStep{}
	var tasks, nodes selection
	err := w.read(readers{
		keyTasks: w.tasks(&tasks), "nodes": w.nodes(&nodes), "top": whole(w.source, &step.Top),
		"byPlugin": w.flag(&step.ByPlugin), keyExplain: w.flag(&step.Explain),
	})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	step.Tasks, step.Nodes = tasks.tasks(), nodes.nodes()
	return &apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: step}}, err
}

func (w *work) inspect() (*apportionv1.Step, error) {
	step := &apportionv1.InspectStep{}
	err := w.read(readers{"nodes": w.flag(&step.Nodes), keyJobs: w.flag(&step.Jobs), keyTasks: w.flag(&step.Tasks)})
	return &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: step}}, err
}

func (w *work) setStatus() (*apportionv1.Step, error) {
	step := &apportionv1.SetStatusStep{}
	var tasks selection
	err := w.read(readers{
		keyTasks: w.tasks(&tasks), "status": word(w.source, &step.Status, apportionv1.TaskStatus_value, "TASK_STATUS_"),
	})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	step.Tasks = tasks.tasks()
	return &apportionv1.Step{Step: &apportionv1.Step_SetStatus{SetStatus: step}}, err
}

func (w *work) allocate() (*apportionv1.Step, error) {
	step := &apportionv1.AllocateStep{}
	var tasks, nodes selection
	err := w.read(readers{keyTasks: w.tasks(&tasks), "nodes": w.nodes(&nodes)})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	if err == nil && nodes.given && len(nodes.index) != len(tasks.index) {
		err = w.fault(w.node, join(w.path, "nodes"), "one node for each task is expected")
	}
	step.Tasks, step.Node = tasks.tasks(), nodes.index
	return &apportionv1.Step{Step: &apportionv1.Step_Allocate{Allocate: step}}, err
}

func (w *work) deallocate() (*apportionv1.Step, error) {
	step := &apportionv1.DeallocateStep{}
	var tasks selection
	err := w.read(readers{
		keyTasks: w.tasks(&tasks), "status": word(w.source, &step.Status, apportionv1.TaskStatus_value, "TASK_STATUS_"),
	})
	if err == nil {
		err = w.needed(keyTasks, &tasks)
	}
	step.Tasks = tasks.tasks()
	return &apportionv1.Step{Step: &apportionv1.Step_Deallocate{Deallocate: step}}, err
}

func (w *work) addJob() (*apportionv1.Step, error) {
	job, err := Job(w.file, w.snapshot, w.node, w.path)
	if err != nil {
		return nil, err
	}
	larger, _ := w.snapshot.With(job)
	w.step.Snapshot = larger
	w.step.Done = func() { w.snapshot = larger }
	return &apportionv1.Step{Step: &apportionv1.Step_AddJob{AddJob: &apportionv1.AddJobStep{Job: job}}}, nil
}

func (w *work) removeJob() (*apportionv1.Step, error) {
	var jobs selection
	err := w.read(readers{keyJobs: w.jobs(&jobs)})
	if err == nil {
		err = w.needed(keyJobs, &jobs)
	}
	return &apportionv1.Step{Step: &apportionv1.Step_RemoveJob{RemoveJob: &apportionv1.RemoveJobStep{Jobs: jobs.jobs()}}}, err
}

func (w *work) setMark() (*apportionv1.Step, error) {
	var name string
	err := w.read(readers{"name": w.text(&name)})
	w.step.Done = func() { w.marks = append(w.marks, mark{name: name, snapshot: w.snapshot}) }
	return &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}, err
}

// rollback goes back to the mark of a name, or to the last one.
func (w *work) rollback() (*apportionv1.Step, error) {
	var name string
	if err := w.read(readers{"mark": w.text(&name)}); err != nil {
		return nil, err
	}
	for i, m := range slices.Backward(w.marks) {
		if name != "" && m.name != name {
			continue
		}
		w.step.Done = func() { w.snapshot, w.marks = m.snapshot, w.marks[:i+1] }
		return &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: uint32(i)}}}, nil
	}
	return nil, w.fault(w.node, w.path, "no such mark was set: "+orLast(name))
}

func orLast(name string) string {
	if name == "" {
		return "there is none at all"
	}
	return name
}
