package volcano

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// WithUnread names kinds of objects that could not be read, such as because the user may not list them, and why. Answers that depend on
// them are not known.
func WithUnread(why map[string]string) Option { return func(r *reader) { r.unlisted = why } }

// kindsNotRead are the kinds of which no object was read although the cluster has some, and so were not listed. That a kind is absent
// proves nothing by itself, as kubectl prints several kinds in one list: it is absent by mistake if another object cannot be without it. A
// list of one kind, as `kind: PodList`, says that there are no other objects of its kind.
func (r *reader) kindsNotRead() []*apportionv1.LeftOut {
	var list []*apportionv1.LeftOut
	add := func(kind, why string) {
		list = append(list, &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD, Kind: kind, Detail: r.shortened(why),
		})
	}
	for _, kind := range []struct {
		name string
		// count is the number of its objects, proof what proves that there are some; "" is none.
		count int
		proof func() string
	}{
		{queueKind, len(r.queues), r.provesQueues},
		{podGroupKind, len(r.jobs), r.provesPodGroups},
		{podKind, len(r.pods), r.provesPods},
		{nodeKind, len(r.nodes), r.provesNodes},
		{classKind, len(r.classes), r.provesClasses},
	} {
		faulty := func(f *Faulty) bool { return f.Kind == kind.name }
		if why, said := r.unlisted[kind.name]; said {
			// The priority of a job may be known without its class.
			if kind.name != classKind || r.provesClasses() != "" {
				add(kind.name, why)
			}
			continue
		}
		if !r.dump || kind.count > 0 || r.listed[kind.name] || slices.ContainsFunc(r.faulty, faulty) {
			continue
		}
		if proof := kind.proof(); proof != "" {
			add(kind.name, proof)
		}
	}
	return list
}

// provesQueues names a PodGroup: each is in a queue.
func (r *reader) provesQueues() string {
	if len(r.jobs) == 0 {
		return ""
	}
	j := &r.jobs[0]
	return "PodGroup " + j.message.GetNamespace() + "/" + j.message.GetName() + " is in queue " + j.message.GetQueue()
}

// provesPodGroups names a pod of the scheduler that is on a node and in a PodGroup. One that waits may wait because it has none.
func (r *reader) provesPodGroups() string {
	for i := range r.pods {
		if p := &r.pods[i]; p.group != "" && p.node != "" && !p.terminated && slices.Contains(r.schedulers, p.scheduler) {
			return "Pod " + p.namespace + "/" + p.task.GetName() + " is in PodGroup " + p.group
		}
	}
	return ""
}

// provesPods names a PodGroup that has entered its queue, and so has pods. One that waits for that may have none yet.
func (r *reader) provesPods() string {
	for i := range r.jobs {
		m := r.jobs[i].message
		switch m.GetPhase() {
		case apportionv1.JobPhase_JOB_PHASE_INQUEUE:
			return "PodGroup " + m.GetNamespace() + "/" + m.GetName() + " has entered its queue"
		case apportionv1.JobPhase_JOB_PHASE_RUNNING:
			return "PodGroup " + m.GetNamespace() + "/" + m.GetName() + " is running"
		default:
		}
	}
	return ""
}

// provesNodes names a pod on a node.
func (r *reader) provesNodes() string {
	for i := range r.pods {
		if p := &r.pods[i]; p.node != "" && !p.terminated {
			return "Pod " + p.namespace + "/" + p.task.GetName() + " is on node " + p.node
		}
	}
	return ""
}
