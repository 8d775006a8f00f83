package volcano

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wording "github.com/apportion/apportion/internal/text"
)

// entities are the objects that were read, in their order.
type entities struct {
	queues  []queue
	nodes   []node
	jobs    []job
	pods    []pod
	classes []priorityClass
	// namespaces are those that were read.
	namespaces []namespace
	storage    []stored
	budgets    []budget
	quotas     []quota
}

// Mark notes the entities before an object is read.
func (r *reader) Mark() { r.marked = r.entities }

// Undo drops what was read of a faulty object, and returns the pod if it is one and the name of its job could be read.
func (r *reader) Undo() any {
	var missing any
	if len(r.pods) > len(r.marked.pods) {
		missing = new(r.pods[len(r.marked.pods)])
	}
	r.entities = r.marked
	return missing
}

// Refuse adds the problems for which every server would refuse a snapshot of what was read since the mark, within the limits of the reader.
func (r *reader) Refuse(root *objects.Value) {
	data, err := proto.Marshal(r.alone(&r.marked))
	if err == nil {
		_, err = r.decoder.CompileWithin(data, decode.Guard{Limits: r.Limits})
	}
	if err == nil {
		return
	}
	fault, ok := errors.AsType[*decode.Fault](err)
	if !ok || fault.Violations == nil {
		r.Found.AddText(r.Doc, root.At, "%s", err)
		return
	}
	for _, v := range fault.Violations.Violations {
		r.Found.AddText(r.Doc, root.At, "%s: %s", v.Path[strings.LastIndex(v.Path, "]")+1:], v.Detail)
	}
}

// alone returns the snapshot of the objects that were read since before, with everything that they refer to.
func (r *reader) alone(before *entities) *apportionv1.Snapshot {
	const queueName = "q"
	s, d := &apportionv1.Snapshot{}, &dimensions{}
	for _, q := range r.queues[len(before.queues):] {
		q.message = proto.CloneOf(q.message)
		q.add(s, d)
	}
	for _, n := range r.nodes[len(before.nodes):] {
		n.message = proto.CloneOf(n.message)
		n.add(s, d)
	}
	for _, b := range r.budgets[len(before.budgets):] {
		s.DisruptionBudgets = append(s.DisruptionBudgets, b.message)
	}
	for _, q := range r.quotas[len(before.quotas):] {
		s.Quotas = append(s.Quotas, q.message)
	}
	for _, j := range r.jobs[len(before.jobs):] {
		m := proto.CloneOf(j.message)
		if len(j.named) > 0 && m.Detail == nil {
			m.Detail = &apportionv1.JobDetail{}
		}
		if len(j.named) > 0 {
			m.Detail.QuotaRequests = j.named
		}
		m.MinResources = d.message(j.minResources)
		s.Queues, s.Jobs = append(s.Queues, &apportionv1.Queue{Name: m.GetQueue()}), append(s.Jobs, m)
	}
	for i := range r.pods[len(before.pods):] {
		p := &r.pods[len(before.pods)+i]
		group := &apportionv1.TaskGroup{Role: p.role, Request: d.message(p.request), Tasks: []*apportionv1.Task{p.task}}
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: queueName})
		s.Jobs = append(s.Jobs, &apportionv1.Job{
			Name: cmp.Or(p.group, queueName), Namespace: p.namespace, Queue: queueName, Groups: []*apportionv1.TaskGroup{group},
		})
		s.LeftOuts = append(s.LeftOuts, &apportionv1.LeftOut{Name: p.task.GetName(), Scheduler: p.scheduler})
	}
	s.Dimensions = d.finish()
	return s
}

// tell adds what is left out to the snapshot.
func (r *reader) tell(jobs map[objects.Identity]*job) {
	for _, f := range r.Faulty {
		if f.Name == "" {
			continue
		}
		l := r.LeftOut(f)
		if p, _ := f.Entity.(*pod); p != nil {
			l.Job = r.Shortened(p.group)
			if j := jobs[objects.Identity{Namespace: p.namespace, Name: p.group}]; j != nil {
				l.Queue = j.message.GetQueue()
			}
		}
		r.leftOut = append(r.leftOut, l)
	}
	if more := len(r.leftOut) - model.MaxLeftOut; more > 0 {
		r.leftOut = r.leftOut[:model.MaxLeftOut]
		r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_TRUNCATED, func() string { return "" },
			"%s left out", wording.Are(more, "more job, pod or invalid object"))
	}
}

// leftOutRole is the role of the tasks of a job whose pods are left out.
const leftOutRole = "(left out)"

// miss adds the pods that are left out to their jobs, as tasks of which nothing but the status is known.
func (r *reader) miss(jobs map[objects.Identity]*job) {
	for _, f := range r.Faulty {
		p, _ := f.Entity.(*pod)
		if p == nil || p.group == "" {
			continue
		}
		j := jobs[objects.Identity{Namespace: p.namespace, Name: p.group}]
		if j == nil {
			continue
		}
		group, status := j.group(leftOutRole), p.task.GetStatus()
		if n := len(group.Counts); n == 0 || group.Counts[n-1].GetStatus() != status {
			group.Counts = append(group.Counts, &apportionv1.TaskCount{Status: status})
		}
		group.Counts[len(group.Counts)-1].Count++
	}
}

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
