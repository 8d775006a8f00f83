package volcano

import (
	"maps"
	"slices"
	"unique"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Objects holds the objects of a cluster, and returns a snapshot of them at any time, equal to the result of ReadManifests for the same
// objects with LeaveOutFaulty. It is safe for concurrent use.
type Objects struct {
	*objects.Store

	// options are those of all readers.
	options []Option
	// shared reads each object, and holds what several objects share. It is used under the lock of the store, as the next two are.
	shared *reader
	// generation counts the changes of nodes; the allowed nodes of a placement are cached for one generation.
	generation uint64
	// swept is the number of shared values after the last sweep.
	swept int
}

// NewObjects returns an empty Objects. The options apply to all of its snapshots.
func NewObjects(opts ...Option) *Objects {
	o := &Objects{options: append(opts, LeaveOutFaulty()), generation: 1}
	o.shared = newReader(o.options)
	o.Store = objects.NewStore(kinds.Shape(), o.read, func(kind string) {
		if kind == nodeKind {
			o.generation++
		}
	})
	return o
}

// read reads an object with the shared reader.
func (o *Objects) read(doc *objects.Document, root *objects.Value, c *objects.Content) {
	r := o.shared
	kinds.Object(r, doc, root)
	c.Warnings = r.Warnings.Listed
	switch {
	case len(r.Faulty) > 0:
		c.Fault = r.Faulty[0]
	case len(r.queues) > 0:
		c.Entity = &r.queues[0]
	case len(r.nodes) > 0:
		c.Entity = &r.nodes[0]
	case len(r.jobs) > 0:
		j := &r.jobs[0]
		j.message.Queue, j.priorityClass = once(j.message.GetQueue()), once(j.priorityClass)
		c.Entity = j
	case len(r.pods) > 0:
		c.Entity = r.pods[0].compact(c.Key)
	case len(r.classes) > 0:
		c.Entity = &r.classes[0]
	case len(r.namespaces) > 0:
		c.Entity = &r.namespaces[0]
	case len(r.storage) > 0:
		c.Entity = &r.storage[0]
	case len(r.budgets) > 0:
		c.Entity = &r.budgets[0]
	case len(r.quotas) > 0:
		c.Entity = &r.quotas[0]
	}
	r.forget()
}

// forget prepares the reader for the next object. Shared values stay.
func (r *reader) forget() {
	again := newReader(nil)
	again.units, again.requests, again.placements, again.decoder = r.units, r.requests, r.placements, r.decoder
	again.Limits, again.Lenient, again.starts, again.traits = r.Limits, r.Lenient, r.starts, r.traits
	*r = *again
}

// once returns a text whose memory all objects share.
func once(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(text).Value()
}

// compact returns a pod whose texts are shared with others and with its key.
func (p *pod) compact(key string) *pod {
	c := *p
	c.group, c.role, c.node, c.scheduler, c.namespace = once(p.group), once(p.role), once(p.node), once(p.scheduler), once(p.namespace)
	c.task.Name = key[len(key)-len(p.task.GetName()):]
	if d := c.task.GetDetail(); d != nil {
		d.PriorityClass, d.Condition = once(d.GetPriorityClass()), once(d.GetCondition())
	}
	return &c
}

// Cluster makes a snapshot of all objects. Those that are faulty are left out. An error is an *Error.
func (o *Objects) Cluster(opts ...Option) (cluster *Cluster, err error) {
	o.View(func(list func(kind string) ([]*objects.Content, bool)) {
		r := newReader(slices.Concat(o.options, opts))
		r.generation = o.generation
		for _, kind := range kinds.Resources() {
			held, whole := list(kind.Kind)
			r.Listed[kind.Kind] = whole
			for _, c := range held {
				r.take(c)
			}
		}
		cluster, err = r.cluster()
		pods, _ := list(podKind)
		o.sweep(pods)
	})
	return cluster, err
}

// take adds a copy of an object that was read before.
func (r *reader) take(c *objects.Content) {
	r.Take(c)
	switch e := c.Entity.(type) {
	case *namespace:
		r.namespaces = append(r.namespaces, *e)
	case *stored:
		r.storage = append(r.storage, *e)
	case *budget:
		r.budgets = append(r.budgets, *e)
	case *quota:
		r.quotas = append(r.quotas, *e)
	case *priorityClass:
		r.classes = append(r.classes, *e)
	case *queue:
		q := *e
		q.message = proto.CloneOf(q.message)
		r.queues = append(r.queues, q)
	case *node:
		n := *e
		n.message = proto.CloneOf(n.message)
		r.nodes = append(r.nodes, n)
	case *job:
		j := *e
		j.message, j.groups = proto.CloneOf(e.message), maps.Clone(e.groups)
		j.requests, j.placed = make([][]*amounts, len(e.requests)), make([][]placed, len(e.placed))
		j.unstated = make([][]unstatedCount, len(e.unstated))
		r.jobs = append(r.jobs, j)
	case *pod:
		p := *e
		p.task = copyTask(e.task)
		r.pods = append(r.pods, p)
	}
}

// copyTask copies the task of a pod, without the fields that a snapshot adds: node, own request, node set and constraints.
func copyTask(t *apportionv1.Task) *apportionv1.Task {
	out := &apportionv1.Task{
		Uid: t.GetUid(), Status: t.GetStatus(), Priority: t.Priority, Name: t.GetName(), CreateTime: t.GetCreateTime(), Index: t.Index,
	}
	if d := t.GetDetail(); d != nil {
		out.Detail = &apportionv1.TaskDetail{
			Preemptable: d.Preemptable, Gate: d.GetGate(), PriorityClass: d.GetPriorityClass(), ScheduleTime: d.ScheduleTime,
			Cooldown: d.Cooldown, Condition: d.GetCondition(), NominatedNode: d.GetNominatedNode(), NeverPreempts: d.GetNeverPreempts(),
			RevocableZone: d.GetRevocableZone(), Unlabelled: d.GetUnlabelled(),
		}
	}
	return out
}

// sweep drops shared values that no pod uses any more, once their number has doubled.
func (o *Objects) sweep(pods []*objects.Content) {
	const few = 1000
	r := o.shared
	if len(r.units) > few {
		clear(r.units)
	}
	if len(r.requests.byKey)+len(r.placements)+len(r.traits) <= 2*o.swept+few {
		return
	}
	kept, placements, traits := requests{}, placements{}, sharedTraits{}
	for _, c := range pods {
		if p, ok := c.Entity.(*pod); ok {
			kept.share(p.request)
			placements[p.placed.placement.key] = p.placed.placement
			traits[p.placed.traits.key] = p.placed.traits
		}
	}
	r.requests, r.placements, r.traits = kept, placements, traits
	o.swept = len(kept.byKey) + len(placements) + len(traits)
}
