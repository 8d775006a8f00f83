package kueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// Object is one object of the cluster, with the fields that are read. It is immutable.
type Object struct {
	// Namespace is "" for kinds without namespaces.
	Namespace, Name, ResourceVersion string
	// Synced is true for the bookmark that an API server sends after the objects that existed when the watch began.
	Synced bool

	kind, key string
	// entity is nil for a faulty object, and for one that does not take part.
	entity any
	fault  *Faulty
	// sum is a hash of what is read.
	sum uint64
}

// Objects holds the objects of a cluster, and returns a snapshot of them at any time: that of Read with LeaveOutFaulty. It is safe for
// concurrent use.
type Objects struct {
	seed    maphash.Seed
	options []Option

	mutex sync.Mutex
	// kinds are the objects by kind and key.
	kinds map[string]map[string]*Object
}

// NewObjects returns an empty Objects. The options apply to all of its snapshots.
func NewObjects(options ...Option) *Objects {
	return &Objects{seed: maphash.MakeSeed(), options: append(options, LeaveOutFaulty()), kinds: map[string]map[string]*Object{}}
}

// syncedAnnotation marks the bookmark that ends the first objects of a watch (Kubernetes' metav1.InitialEventsAnnotationKey).
const syncedAnnotation = "k8s.io/initial-events-end"

// Read reads one object in JSON; without a kind of its own it has the given one.
func (o *Objects) Read(kind, version string, data []byte) (*Object, error) {
	var h header
	r := newReader(time.Time{}, o.options)
	if err := json.Unmarshal(data, &h); err != nil {
		// What can be read names the object, if it is one.
		if h.Metadata.Name == "" {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		r.fault("", "%v", err)
	}
	out := &Object{
		Namespace: h.Metadata.Namespace, Name: h.Metadata.Name, ResourceVersion: h.Metadata.ResourceVersion, kind: kind,
		Synced: h.Metadata.Annotations[syncedAnnotation] == "true",
	}
	if out.Name == "" {
		return out, nil // A bookmark.
	}
	out.key = h.Metadata.key()
	if h.Kind == "" {
		h.Kind, h.Version = kind, version
	}
	if r.total == 0 {
		r.single(h, data)
		out.entity = r.get(kind, out.key)
	}
	if len(r.faulty) == 0 && r.total > 0 {
		h.Kind = kind
		r.leaveOut(&h, r.total)
	}
	if len(r.faulty) > 0 {
		out.fault = &r.faulty[0]
	}
	out.sum = o.hash(out)
	return out, nil
}

// ReadList reads one page of a list in JSON.
func (o *Objects) ReadList(kind, version string, data []byte) (objects []*Object, next, resourceVersion string, err error) {
	var list struct {
		Metadata struct {
			Continue        string `json:"continue"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, "", "", fmt.Errorf("%s list: %w", kind, err)
	}
	if list.Items == nil {
		return nil, "", "", errors.New(kind + " list: a list without items")
	}
	for _, item := range *list.Items {
		object, err := o.Read(kind, version, item)
		if err != nil {
			return nil, "", "", err
		}
		objects = append(objects, object)
	}
	return objects, list.Metadata.Continue, list.Metadata.ResourceVersion, nil
}

// hash returns a hash of what is read of an object.
func (o *Objects) hash(object *Object) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	add := func(message proto.Message, more ...any) {
		if message != nil {
			data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(message)
			_, _ = h.Write(data)
		}
		_, _ = fmt.Fprintf(&h, "%q", more)
	}
	switch e := object.entity.(type) {
	case map[string]string:
		for _, key := range sortedKeys(e) {
			add(nil, key, e[key])
		}
	case *flavor:
		add(e.message, e.topology)
	case *cohort:
		add(e.message)
	case *check:
		add(e.message)
	case *clusterQueue:
		add(e.message, e.selector.String())
	case *localQueue:
		add(e.message, e.queue, fmt.Sprint(e.stopped))
	case *workload:
		add(e.message, e.localQueue, e.admitted, fmt.Sprint(e.requeueAt))
	}
	if object.fault != nil {
		add(nil, object.fault.Fault)
	}
	return h.Sum64()
}

// Put sets an object that was read. It reports whether anything changes by it.
func (o *Objects) Put(object *Object) (changed bool) {
	if object.key == "" {
		return false
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.kinds[object.kind] == nil {
		o.kinds[object.kind] = map[string]*Object{}
	}
	held := o.kinds[object.kind][object.key]
	o.kinds[object.kind][object.key] = object
	return held == nil || held.sum != object.sum
}

// Remove removes an object. It reports whether it was there.
func (o *Objects) Remove(object *Object) (changed bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	_, changed = o.kinds[object.kind][object.key]
	delete(o.kinds[object.kind], object.key)
	return changed
}

// Replace makes these the objects of a kind. It reports whether anything changes by it.
func (o *Objects) Replace(kind string, objects []*Object) (changed bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	before, now := o.kinds[kind], make(map[string]*Object, len(objects))
	for _, object := range objects {
		held := before[object.key]
		now[object.key] = object
		changed = changed || held == nil || held.sum != object.sum
	}
	o.kinds[kind] = now
	return changed || len(now) != len(before)
}

// Count returns the number of objects of a kind.
func (o *Objects) Count(kind string) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.kinds[kind])
}

// Cluster makes a snapshot of all objects at a time. Those that are faulty are left out.
func (o *Objects) Cluster(now time.Time, options ...Option) *Cluster {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	r := newReader(now, slices.Concat(o.options, options))
	for kind := range kinds {
		// What could not be listed is among the options.
		r.listed[kind] = true
	}
	for _, kind := range sortedKeys(o.kinds) {
		for key, object := range o.kinds[kind] {
			switch e := object.entity.(type) {
			case nil:
				if object.fault != nil {
					r.faulty = append(r.faulty, *object.fault)
				}
			case *workload:
				again := *e
				again.message = proto.CloneOf(e.message)
				r.workloads[key] = &again
			default:
				r.put(kind, key, e)
			}
		}
	}
	return r.cluster()
}
