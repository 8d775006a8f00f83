package volcano

import (
	"slices"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// WithUnread names kinds of objects that could not be read, such as because the user may not list them, and why. Answers that depend on
// them are not known.
func WithUnread(why map[string]string) Option { return func(r *reader) { r.Unlisted = why } }

// kindsNotRead are the kinds that other objects prove to exist, or that could not be listed.
func (r *reader) kindsNotRead() []*apportionv1.LeftOut {
	expected := []objects.Expected{
		{Kind: queueKind, Count: len(r.queues), Proof: r.provesQueues},
		{Kind: podGroupKind, Count: len(r.jobs), Proof: r.provesPodGroups},
		{Kind: podKind, Count: len(r.pods), Proof: r.provesPods},
		{Kind: nodeKind, Count: len(r.nodes), Proof: r.provesNodes},
		{Kind: classKind, Count: len(r.classes), Proof: r.provesClasses},
	}
	var list []*apportionv1.LeftOut
	for _, kind := range expected {
		why, said := r.Unlisted[kind.Kind]
		switch {
		case said && kind.Kind == classKind && r.provesClasses() == "":
			// The priority of a job may be known without its class.
			why = ""
		case !said && r.dump:
			why = r.Lacks(kind)
		}
		if why != "" {
			list = append(list, r.Unreadable(kind.Kind, why))
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
