package volcano

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wording "github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/wire"
)

// Faulty is an object that is left out of a cluster, because it is invalid or because the snapshot has no room for it.
type Faulty struct {
	// Kind, Namespace and Name are empty where they cannot be read.
	Kind, Namespace, Name string
	Problems              *objects.Error

	queue string
	at    objects.Origin
	// missing is the pod, if it is one and the name of its job could be read.
	missing *pod
}

// String names the object and its first problem.
func (f *Faulty) String() string {
	name := cmp.Or(f.Name, "at "+f.at.String())
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s: %s", cmp.Or(f.Kind, "object"), name, f.detail())
}

// Place is where the object was written, as `file:line`.
func (f *Faulty) Place() string { return f.at.String() }

// detail returns the first problem, and the number of the others.
func (f *Faulty) detail() string {
	first := f.Problems.Problems[0]
	text := first.Message
	if first.Path != "" {
		text = first.Path + ": " + text
	}
	if more := f.Problems.Total - 1; more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}
	return text
}

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
}

// object reads one object. It adds nothing for an object that is faulty.
func (r *reader) object(doc *objects.Document, root *objects.Value) {
	r.advance(doc, root)
	r.Doc = doc
	r.objects++
	before, warned, found := r.entities, r.Warnings, r.Found
	r.Found = objects.Problems{}
	kindName, m := r.read(root)
	if r.Found.Total == 0 {
		r.refuse(&before, root)
	}
	own := r.Found
	if r.Found = found; own.Total == 0 {
		return
	}
	if !r.lenient {
		r.Found.Append(&own)
		return
	}
	f := &Faulty{Kind: kindName, Namespace: m.namespace, Name: m.name, Problems: own.All(), at: objects.Origin{Doc: doc, At: root.At}}
	if len(r.pods) > len(before.pods) {
		p := r.pods[len(before.pods)]
		f.missing = &p
	}
	r.entities, r.Warnings = before, warned
	r.faulty = append(r.faulty, f)
}

// refuse adds the problems for which every server would refuse a snapshot of what was read since before, within the limits of the reader.
func (r *reader) refuse(before *entities, root *objects.Value) {
	data, err := proto.Marshal(r.alone(before))
	if err == nil {
		_, err = r.decoder.CompileWithin(data, wire.Guard{Limits: r.limits})
	}
	if err == nil {
		return
	}
	fault, ok := errors.AsType[*wire.Fault](err)
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
	for _, j := range r.jobs[len(before.jobs):] {
		m := proto.CloneOf(j.message)
		m.MinResources = d.message(j.minResources)
		s.Queues, s.Jobs = append(s.Queues, &apportionv1.Queue{Name: m.GetQueue()}), append(s.Jobs, m)
	}
	for _, p := range r.pods[len(before.pods):] {
		group := &apportionv1.TaskGroup{Role: p.role, Request: d.message(p.request), Tasks: []*apportionv1.Task{p.task}}
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: queueName})
		s.Jobs = append(s.Jobs, &apportionv1.Job{
			Name: cmp.Or(p.group, queueName), Namespace: p.namespace, Queue: queueName, Groups: []*apportionv1.TaskGroup{group},
		})
		s.LeftOut = append(s.LeftOut, &apportionv1.LeftOut{Name: p.task.GetName(), Scheduler: p.scheduler})
	}
	s.Dimensions = d.finish()
	return s
}

// leave leaves out an object that was read without a problem.
func (r *reader) leave(kindName, namespace, name string, at objects.Origin, format string, args ...any) *Faulty {
	var p objects.Problems
	p.AddText(at.Doc, at.At, format, args...)
	f := &Faulty{Kind: kindName, Namespace: namespace, Name: name, Problems: p.All(), at: at}
	r.faulty = append(r.faulty, f)
	return f
}

// tell adds what is left out to the snapshot.
func (r *reader) tell(jobs map[identity]*job) {
	for _, f := range r.faulty {
		if f.Name == "" {
			continue
		}
		l := &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: r.shortened(f.Kind), Namespace: r.shortened(f.Namespace),
			Name: r.shortened(f.Name), Queue: r.shortened(f.queue), Detail: r.shortened(f.detail()),
		}
		if p := f.missing; p != nil {
			l.Job = r.shortened(p.group)
			if j := jobs[identity{namespace: p.namespace, name: p.group}]; j != nil {
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
func (r *reader) miss(jobs map[identity]*job) {
	for _, f := range r.faulty {
		if f.missing == nil || f.missing.group == "" {
			continue
		}
		j := jobs[identity{namespace: f.missing.namespace, name: f.missing.group}]
		if j == nil {
			continue
		}
		group, status := j.group(leftOutRole), f.missing.task.GetStatus()
		if n := len(group.Counts); n == 0 || group.Counts[n-1].GetStatus() != status {
			group.Counts = append(group.Counts, &apportionv1.TaskCount{Status: status})
		}
		group.Counts[len(group.Counts)-1].Count++
	}
}
