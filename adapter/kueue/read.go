// Package kueue reads the objects of a cluster with Kueue into a snapshot for the policy `kueue`: ClusterQueue, LocalQueue, Cohort,
// ResourceFlavor, AdmissionCheck and Workload of kueue.x-k8s.io/v1beta1 and v1beta2 (Cohort also of v1alpha1), and Namespace. Topology and
// WorkloadPriorityClass are known and not needed: a workload has the priority of its class, and placement by topology is not judged.
//
// Objects of other kinds are counted, not read. Errors name the source, the object and the path of the field.
package kueue

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Cluster is the snapshot of a cluster's objects.
type Cluster struct {
	objects.Account

	// Snapshot has the queues and workloads by name. It lists the first of the faulty objects.
	Snapshot *apportionv1.Snapshot
	// Warnings name what was not read.
	Warnings []*apportionv1.Warning
	// HasWorkloads reports whether a workload was read, or a list of workloads without any.
	HasWorkloads bool
	// WithoutNodes are the flavors whose labels no node has; empty if no nodes are among the objects.
	WithoutNodes []string
}

// Option changes how objects are read.
type Option func(*reader)

// LeaveOutFaulty leaves invalid objects out and lists them, where otherwise they are an error.
func LeaveOutFaulty() Option { return func(r *reader) { r.Lenient = true } }

// WithLimits are those of the server for which the snapshot is made: an object that exceeds them by itself is invalid.
func WithLimits(l decode.Limits) Option { return func(r *reader) { r.Limits = l } }

// WithClusterLabel sets the snapshot's label, which has no effect on decisions.
func WithClusterLabel(label string) Option { return func(r *reader) { r.label = label } }

// reader collects objects.
type reader struct {
	objects.Reader

	now   time.Time
	label string
	// decoder decodes the objects that are judged alone.
	decoder decode.Decoder
	// past has the finished workloads; nil if they are not read.
	past map[string]*past

	entities
	// dimensions are those of the object that is read.
	dimensions
	// entity is that of the object that is read, and drop removes it; nil: the object has none.
	entity any
	drop   func()
}

func newReader(now time.Time, options []Option) *reader {
	r := &reader{Reader: objects.NewReader(), now: now, entities: newEntities()}
	r.Unlisted = map[string]string{}
	for _, option := range options {
		option(r)
	}
	return r
}

// Hides reports that every object counts.
func (r *reader) Hides(objects.Identity, *objects.Value) bool { return false }

// Mark forgets the entity of the object before.
func (r *reader) Mark() { r.entity, r.drop, r.dimensions = nil, nil, dimensions{} }

// Undo drops the entity of a faulty object.
func (r *reader) Undo() any {
	if r.drop != nil {
		r.drop()
	}
	r.entity = nil
	return nil
}

// Read reads all sources at a time, which decides what is in the future. An error is an *objects.Error.
func Read(sources []objects.Source, now time.Time, options ...Option) (*Cluster, error) {
	r := newReader(now, options)
	kinds.Each(r, sources)
	cluster := r.cluster()
	r.Found.Append(&r.Clashes)
	if err := r.Found.Err(); err != nil {
		return nil, err
	}
	return cluster, nil
}

// byName returns the values of a map in the order of the keys.
func byName[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}

// Recognizes reports whether a text is likely to hold objects of Kueue.
func Recognizes(data []byte) bool { return bytes.Contains(data, []byte(apiGroup+"/")) }
