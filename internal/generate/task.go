package generate

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// group adds a role's tasks, of which the gang needs the first.
func (w *writer) group(group *apportionv1.TaskGroup, of role, job *apportionv1.Job, first int) {
	waiting := uint32(0)
	group.Tasks = make([]*apportionv1.Task, 0, of.tasks)
	for k := range of.tasks {
		task := w.task(of, job, k < first)
		if w.shape.Counted && task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_PENDING && task.GetDetail() == nil {
			waiting++
			continue
		}
		index := uint32(k)
		task.Index = &index
		if w.shape.UIDs {
			task.Uid = w.uids.uuid()
		}
		group.Tasks = append(group.Tasks, task)
	}
	if waiting > 0 {
		group.Counts = []*apportionv1.TaskCount{{Status: apportionv1.TaskStatus_TASK_STATUS_PENDING, Count: waiting}}
	}
}

// task draws a task and finds a node for it. One that finds no room waits.
func (w *writer) task(of role, job *apportionv1.Job, needed bool) *apportionv1.Task {
	r := w.tasks
	task := &w.pool[0]
	w.pool = w.pool[1:]
	task.Status = status(job.GetPhase(), needed, r)
	request := of.request
	detail := w.detail(job, &request, r)
	if task.Status != apportionv1.TaskStatus_TASK_STATUS_PENDING {
		w.run(task, request, r)
	}
	if task.Status == apportionv1.TaskStatus_TASK_STATUS_PENDING {
		if detail != nil {
			detail.ScheduleTime = nil
		}
		if r.chance(10) {
			if detail == nil {
				detail = &apportionv1.TaskDetail{}
			}
			detail.Gate = apportionv1.TaskGate(r.between(1, 2))
		}
	}
	task.Detail = detail
	if r.chance(50) {
		priority := int32(r.between(0, 100))
		task.Priority = &priority
	}
	return task
}

// run puts a task on a node, or lets it wait if none has room.
func (w *writer) run(task *apportionv1.Task, request vector, r *source) {
	finished := task.Status == apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED || task.Status == apportionv1.TaskStatus_TASK_STATUS_FAILED
	if len(w.left) == 0 {
		if !finished {
			task.Status = apportionv1.TaskStatus_TASK_STATUS_PENDING
		}
		return
	}
	node, found := uint32(r.below(len(w.left))), true
	if !finished {
		node, found = w.place(request, r)
	}
	if !found {
		task.Status = apportionv1.TaskStatus_TASK_STATUS_PENDING
		return
	}
	w.onNode[0] = node
	task.Node = &w.onNode[0]
	w.onNode = w.onNode[1:]
}

// status draws the status of a task of a job in the given phase.
func status(phase apportionv1.JobPhase, needed bool, r *source) apportionv1.TaskStatus {
	x := r.below(1000)
	switch phase {
	case apportionv1.JobPhase_JOB_PHASE_RUNNING:
		return running(needed, x)
	case apportionv1.JobPhase_JOB_PHASE_UNKNOWN:
		if x < 500 {
			return apportionv1.TaskStatus_TASK_STATUS_RUNNING
		}
	case apportionv1.JobPhase_JOB_PHASE_COMPLETED:
		if x < 950 {
			return apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED
		}
		return apportionv1.TaskStatus_TASK_STATUS_FAILED
	case apportionv1.JobPhase_JOB_PHASE_UNSPECIFIED, apportionv1.JobPhase_JOB_PHASE_PENDING, apportionv1.JobPhase_JOB_PHASE_INQUEUE:
	}
	return apportionv1.TaskStatus_TASK_STATUS_PENDING
}

func running(needed bool, x int) apportionv1.TaskStatus {
	switch {
	case x < 10:
		return apportionv1.TaskStatus_TASK_STATUS_BOUND
	case x < 30:
		return apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED
	case needed || x < 920:
		return apportionv1.TaskStatus_TASK_STATUS_RUNNING
	case x < 970:
		return apportionv1.TaskStatus_TASK_STATUS_PENDING
	case x < 985:
		return apportionv1.TaskStatus_TASK_STATUS_RELEASING
	case x < 995:
		return apportionv1.TaskStatus_TASK_STATUS_FAILED
	default:
		return apportionv1.TaskStatus_TASK_STATUS_UNKNOWN
	}
}

// detail draws what few tasks have, nil for most. A request of the task's own replaces the given one.
func (w *writer) detail(job *apportionv1.Job, request *vector, r *source) *apportionv1.TaskDetail {
	if job.GetNamespace() == "kube-system" {
		return &apportionv1.TaskDetail{PriorityClass: "system-cluster-critical"}
	}
	switch x := r.below(1000); {
	case x < 20:
		preemptable := false
		return &apportionv1.TaskDetail{Preemptable: &preemptable}
	case x < 40:
		since, cooldown := asOf-int64(r.between(1, 7200))*second, int64(r.between(60, 3600))*second
		return &apportionv1.TaskDetail{ScheduleTime: &since, Cooldown: &cooldown}
	case x < 50:
		own := append(vector(nil), *request...)
		if own[cpu] == absent {
			return nil
		}
		own[memory] += int64(r.between(1, 8)) * mebibyte
		*request = own
		return &apportionv1.TaskDetail{Request: own.resource()}
	default:
		return nil
	}
}
