package kubescheduler

import (
	corev1 "k8s.io/api/core/v1"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// bound counts the pods that are bound and stay, secured also those that may be bound.
func (j *job) bound() int {
	count := 0
	for _, p := range j.pods {
		if p.node != "" && !p.releasing {
			count++
		}
	}
	return count
}

func (j *job) secured() int {
	count := 0
	for _, p := range j.pods {
		if !p.releasing && (p.node != "" || p.released) {
			count++
		}
	}
	return count
}

func (j *job) holding() int {
	count := 0
	for _, p := range j.pods {
		if !p.releasing && (p.node != "" || p.released || p.reserved) {
			count++
		}
	}
	return count
}

// status is the status of a pod as the mirror has it.
func (p *pod) status() (apportionv1.TaskStatus, string) {
	switch {
	case p.node != "" && p.releasing:
		return apportionv1.TaskStatus_TASK_STATUS_RELEASING, p.node
	case p.node != "" && p.object.Status.Phase == corev1.PodRunning:
		return apportionv1.TaskStatus_TASK_STATUS_RUNNING, p.node
	case p.node != "":
		return apportionv1.TaskStatus_TASK_STATUS_BOUND, p.node
	case p.planned != "" && len(p.victims) > 0:
		return apportionv1.TaskStatus_TASK_STATUS_PIPELINED, p.planned
	case p.planned != "":
		return apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, p.planned
	}
	return apportionv1.TaskStatus_TASK_STATUS_PENDING, ""
}
