package kueue

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
)

// Objects holds the objects of a cluster, and returns a snapshot of them at any time: that of Read with LeaveOutFaulty. It is safe for
// concurrent use.
type Objects struct {
	*objects.Store

	seed    maphash.Seed
	options []Option
}

// NewObjects returns an empty Objects. The options apply to all of its snapshots.
func NewObjects(options ...Option) *Objects {
	o := &Objects{seed: maphash.MakeSeed(), options: append(options, LeaveOutFaulty())}
	o.Store = objects.NewStore(kinds.Shape(), o.read, func(string) {})
	return o
}

// read reads an object.
func (o *Objects) read(doc *objects.Document, root *objects.Value, c *objects.Content) {
	r := newReader(time.Time{}, o.options)
	kinds.Object(r, doc, root)
	c.Entity, c.Warnings = r.entity, r.Warnings.Listed
	if len(r.Faulty) > 0 {
		c.Fault = r.Faulty[0]
	}
	c.Sum = o.hash(c)
}

// hash returns a hash of what is kept of an object. What the status of a queue counts is no change.
func (o *Objects) hash(c *objects.Content) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	add := func(message proto.Message, more ...any) {
		if message != nil {
			data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(message)
			_, _ = h.Write(data)
		}
		_, _ = fmt.Fprintf(&h, "%q", more)
	}
	switch e := c.Entity.(type) {
	case map[string]string:
		for _, key := range sortedKeys(e) {
			add(nil, key, e[key])
		}
	case *flavor:
		add(e.message, e.topology)
	case *cohort:
		add(e.message, e.names)
	case *check:
		add(e.message)
	case *clusterQueue:
		add(e.message, e.names, e.selector.String())
	case *localQueue:
		add(e.message, e.names, e.queue, fmt.Sprint(e.stopped))
	case *workload:
		add(e.message, e.names, e.localQueue, e.admitted, fmt.Sprint(e.requeueAt))
	}
	if c.Fault != nil {
		add(nil, c.Fault.Problems.Error())
	}
	return h.Sum64()
}

// Cluster makes a snapshot of all objects at a time. Those that are faulty are left out.
func (o *Objects) Cluster(now time.Time, options ...Option) (cluster *Cluster) {
	o.View(func(list func(kind string) ([]*objects.Content, bool)) {
		r := newReader(now, slices.Concat(o.options, options))
		for _, kind := range kinds.Resources() {
			// What could not be listed is among the options.
			r.Listed[kind.Kind] = true
			held, _ := list(kind.Kind)
			for _, c := range held {
				r.take(c)
			}
		}
		cluster = r.cluster()
	})
	return cluster
}

// take adds an object that was read before.
func (r *reader) take(c *objects.Content) {
	r.Take(c)
	switch e := c.Entity.(type) {
	case labelSet:
		r.namespaces[c.Key] = e
	case *flavor:
		r.flavors[c.Key] = e
	case *cohort:
		r.cohorts[c.Key] = e
	case *check:
		r.checks[c.Key] = e
	case *clusterQueue:
		r.queues[c.Key] = e
	case *localQueue:
		r.localQueues[c.Key] = e
	case *workload:
		again := *e
		again.message = proto.CloneOf(e.message)
		r.workloads[c.Key] = &again
	}
}
