package volcano

import (
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"unique"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Object holds the fields of one object that are read: about half a kilobyte of a pod. It is immutable.
type Object struct {
	// Namespace is "" for kinds without namespaces.
	Namespace, Name, ResourceVersion string
	// Synced is true for the bookmark that an API server sends after the objects that existed when the watch began.
	Synced bool

	content *content
}

// content holds the fields of an object. Equal objects share it.
type content struct {
	kind objects.Kind
	// key identifies the object within its kind. API servers order lists by it.
	key string
	// sum is a hash of the fields that are read.
	sum uint64

	queue    *queue
	node     *node
	job      *job
	pod      *pod
	class    *priorityClass
	space    *namespace
	stored   *stored
	warnings []*apportionv1.Warning
	// fault says that the object is left out; nil if it is not.
	fault *objects.Faulty
}

// Objects holds the objects of a cluster, and returns a snapshot of them at any time, equal to the result of ReadManifests for the same
// objects with LeaveOutFaulty. It is safe for concurrent use.
type Objects struct {
	mutex sync.Mutex
	seed  maphash.Seed
	// options are those of all readers.
	options []Option
	// shared reads each object, and holds what several objects share.
	shared *reader
	kinds  map[string]*objectList
	// generation counts the changes of nodes; the allowed nodes of a placement are cached for one generation.
	generation uint64
	// swept is the number of shared values after the last sweep.
	swept  int
	buffer []byte
}

// NewObjects returns an empty Objects. The options apply to all of its snapshots.
func NewObjects(opts ...Option) *Objects {
	o := &Objects{seed: maphash.MakeSeed(), options: append(opts, LeaveOutFaulty()), kinds: map[string]*objectList{}, generation: 1}
	o.shared = newReader(o.options)
	return o
}

// Read reads one object in JSON.
func (o *Objects) Read(kind objects.Kind, data []byte) (*Object, error) {
	root, err := objects.Scan(kind.Name, data, followedShape)
	if err != nil {
		return nil, err
	}
	return o.object(kind, root)
}

// ReadList reads one page of a list in JSON.
func (o *Objects) ReadList(kind objects.Kind, data []byte) (read []*Object, next, resourceVersion string, err error) {
	list, items, err := objects.ReadItems(kind.Name+" list", data, followedShape)
	if err != nil {
		return nil, "", "", err
	}
	for _, item := range items {
		object, err := o.object(kind, item)
		if err != nil {
			return nil, "", "", err
		}
		read = append(read, object)
	}
	metadata := list.Field(objects.MetadataField)
	return read, metadata.TextOf("continue"), metadata.TextOf(objects.ResourceVersionField), nil
}

// syncedAnnotation marks the bookmark that ends the first objects of a watch (Kubernetes' metav1.InitialEventsAnnotationKey).
const syncedAnnotation = "k8s.io/initial-events-end"

// followedShape is that of the kinds with what a watch needs.
var followedShape = objects.Annotated(objects.Union(kinds.Shape(), objects.Select("metadata.resourceVersion")), syncedAnnotation)

// object makes an Object from the scanned fields of a manifest.
func (o *Objects) object(kind objects.Kind, root *objects.Value) (*Object, error) {
	if root.Type != objects.Map {
		return nil, errors.New(kind.Name + ": not an object")
	}
	metadata := root.Field(objects.MetadataField)
	out := &Object{
		Namespace: metadata.TextOf("namespace"), Name: metadata.TextOf(objects.NameField), ResourceVersion: metadata.TextOf(objects.ResourceVersionField),
		Synced: metadata.Field(objects.AnnotationsField).TextOf(syncedAnnotation) == "true",
	}
	if metadata != nil {
		metadata.Items = slices.DeleteFunc(metadata.Items, func(v *objects.Value) bool { return v.Key == objects.ResourceVersionField })
	}
	if root.Field(objects.KindField) == nil {
		root.Add(&objects.Value{Type: objects.Text, Key: objects.KindField, Text: kind.Name})
		root.Add(&objects.Value{Type: objects.Text, Key: objects.VersionField, Text: kind.Version})
	}
	if out.Name == "" {
		return out, nil // A bookmark.
	}
	key := out.Name
	if out.Namespace != "" {
		key = out.Namespace + "/" + out.Name
	}
	out.Namespace, out.Name = key[:len(key)-len(out.Name)], key[len(key)-len(out.Name):]
	out.Namespace = trimmed(out.Namespace)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.buffer = objects.AppendJSON(o.buffer[:0], root)
	sum := maphash.Bytes(o.seed, o.buffer)
	if held := o.kind(kind).byKey[key]; held != nil && held.sum == sum {
		out.content = held
		return out, nil
	}
	out.content = o.content(kind, key, sum, root)
	return out, nil
}

// trimmed returns a namespace without its final slash.
func trimmed(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace[:len(namespace)-1]
}

// content reads an object with the shared reader.
func (o *Objects) content(kind objects.Kind, key string, sum uint64, root *objects.Value) *content {
	r, doc := o.shared, &objects.Document{Name: kind.Name + " " + key}
	kinds.Object(r, doc, root)
	c := &content{kind: kind, key: key, sum: sum, warnings: r.Warnings.Listed}
	switch {
	case len(r.Faulty) > 0:
		c.fault = r.Faulty[0]
	case len(r.queues) > 0:
		c.queue = &r.queues[0]
	case len(r.nodes) > 0:
		c.node = &r.nodes[0]
	case len(r.jobs) > 0:
		c.job = &r.jobs[0]
		c.job.message.Queue, c.job.priorityClass = once(c.job.message.GetQueue()), once(c.job.priorityClass)
	case len(r.pods) > 0:
		c.pod = r.pods[0].compact(key)
	case len(r.classes) > 0:
		c.class = &r.classes[0]
	case len(r.namespaces) > 0:
		c.space = &r.namespaces[0]
	case len(r.storage) > 0:
		c.stored = &r.storage[0]
	}
	r.forget()
	return c
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

// kind returns the list of a kind.
func (o *Objects) kind(kind objects.Kind) *objectList {
	list := o.kinds[kind.Name]
	if list == nil {
		list = &objectList{byKey: map[string]*content{}}
		o.kinds[kind.Name] = list
	}
	return list
}

// Put sets an object that was read. It reports whether anything changes by it.
func (o *Objects) Put(object *Object) (changed bool) {
	c := object.content
	if c == nil {
		return false
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if held := o.kind(c.kind).byKey[c.key]; held == c || held != nil && held.sum == c.sum {
		return false
	}
	o.kind(c.kind).put(c)
	o.changed(c)
	return true
}

// Remove removes an object. It reports whether it was there.
func (o *Objects) Remove(object *Object) (changed bool) {
	c := object.content
	if c == nil {
		return false
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	list := o.kind(c.kind)
	if list.byKey[c.key] == nil {
		return false
	}
	list.remove(c.key)
	o.changed(c)
	return true
}

// Replace makes these the objects of a kind. It reports whether anything changes by it.
func (o *Objects) Replace(kind objects.Kind, objects []*Object) (changed bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	old, list := o.kind(kind), &objectList{byKey: make(map[string]*content, len(objects))}
	changed = len(old.byKey) != len(objects)
	for _, object := range objects {
		c := object.content
		if c == nil {
			continue
		}
		if held := old.byKey[c.key]; held != nil && held.sum == c.sum {
			c = held
		} else {
			changed = true
		}
		list.put(c)
	}
	o.kinds[kind.Name], list.whole = list, true
	if changed && kind.Name == nodeKind {
		o.generation++
	}
	return changed
}

func (o *Objects) changed(c *content) {
	if c.node != nil || c.kind.Name == nodeKind {
		o.generation++
	}
}

// Count returns the number of objects of a kind.
func (o *Objects) Count(kind objects.Kind) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.kind(kind).byKey)
}

// Cluster makes a snapshot of all objects. Those that are faulty are left out. An error is an *Error.
func (o *Objects) Cluster(opts ...Option) (*Cluster, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	r := newReader(slices.Concat(o.options, opts))
	r.generation = o.generation
	for _, of := range kinds.Resources() {
		kind := of.Kind
		list := o.kinds[kind]
		if list == nil {
			continue
		}
		r.Listed[kind] = list.whole
		for _, c := range list.inOrder() {
			r.take(c)
		}
	}
	cluster, err := r.cluster()
	o.sweep()
	return cluster, err
}

// take adds a copy of an object that was read before.
func (r *reader) take(c *content) {
	r.Warnings.Take(c.warnings)
	switch {
	case c.fault != nil:
		r.Faulty = append(r.Faulty, c.fault)
	case c.space != nil:
		r.namespaces = append(r.namespaces, *c.space)
	case c.stored != nil:
		r.storage = append(r.storage, *c.stored)
	case c.class != nil:
		r.classes = append(r.classes, *c.class)
	case c.queue != nil:
		q := *c.queue
		q.message = proto.CloneOf(q.message)
		r.queues = append(r.queues, q)
	case c.node != nil:
		n := *c.node
		n.message = proto.CloneOf(n.message)
		r.nodes = append(r.nodes, n)
	case c.job != nil:
		j := *c.job
		j.message, j.groups = proto.CloneOf(c.job.message), maps.Clone(c.job.groups)
		j.requests, j.placed = make([][]*amounts, len(c.job.requests)), make([][]placed, len(c.job.placed))
		r.jobs = append(r.jobs, j)
	case c.pod != nil:
		p := *c.pod
		p.task = copyTask(c.pod.task)
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
			Cooldown: d.Cooldown, Condition: d.GetCondition(),
		}
	}
	return out
}

// sweep drops shared values that no object uses any more, once their number has doubled.
func (o *Objects) sweep() {
	const few = 1000
	r := o.shared
	if len(r.units) > few {
		clear(r.units)
	}
	if len(r.requests.byKey)+len(r.placements)+len(r.traits) <= 2*o.swept+few {
		return
	}
	kept, placements, traits := requests{}, placements{}, sharedTraits{}
	if pods := o.kinds[podKind]; pods != nil {
		for _, c := range pods.byKey {
			if c.pod != nil {
				kept.share(c.pod.request)
				placements[c.pod.placed.placement.key] = c.pod.placed.placement
				traits[c.pod.placed.traits.key] = c.pod.placed.traits
			}
		}
	}
	r.requests, r.placements, r.traits = kept, placements, traits
	o.swept = len(kept.byKey) + len(placements) + len(traits)
}
