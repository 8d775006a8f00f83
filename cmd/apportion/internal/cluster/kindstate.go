package cluster

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// settle is the time after the beginning of a watch within which earlier events may still arrive.
const settle = time.Second

// kindState is the state of one kind, and the store of its reflector.
type kindState struct {
	resource string
	kind     objects.Kind
	needed   bool
	// judges: without the kind some constraints are not judged, and nothing else is missing.
	judges bool
	// missing ends the sentence about a kind that the cluster does not have.
	missing string
	objects store
	pace    *pace
	metrics *metrics
	// reportFault is called when the kind can be read, or no longer.
	reportFault func(resource, fault string, away bool)

	mutex sync.Mutex
	// read is true after all objects were read once, and tried after the API server has answered or refused.
	read, tried bool
	// refused is why the API server refuses the kind; "" if it does not.
	refused string
	// watching is true while a watch is established, since opening.
	watching bool
	opening  time.Time
	// last is the time of the last message of the API server.
	last    time.Time
	version string
	fault   string
}

// listing records that a list was requested.
func (k *kindState) listing() { k.metrics.lists.WithLabelValues(k.resource).Inc() }

// failed records why the kind cannot be read now. It ignores the error of an API server that cannot send lists as a watch, because the
// reflector then lists.
func (k *kindState) failed(err error) {
	if apierrors.IsInvalid(err) {
		return
	}
	k.metrics.errors.WithLabelValues(k.resource).Inc()
	fault := reason(err)
	if apierrors.IsNotFound(err) && k.needed {
		fault = "the cluster has no such kind (" + k.missing + " installed?"
	}
	k.mutex.Lock()
	before := k.fault
	if k.fault = fault; apierrors.IsForbidden(err) {
		k.refused = fault
	}
	k.tried = k.tried || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	k.mutex.Unlock()
	if before != fault {
		k.reportFault(k.resource, fault, unreachable(err))
	}
}

// lacks returns why the kind was never read although the API server has answered; "" if it was, or if the cluster has no such kind.
func (k *kindState) lacks() string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.read {
		return ""
	}
	return k.refused
}

// opened records that a watch is established.
func (k *kindState) opened() {
	k.mutex.Lock()
	k.watching, k.opening = true, time.Now()
	before, read := k.fault, k.read
	k.fault = ""
	k.mutex.Unlock()
	if before != "" && read {
		k.reportFault(k.resource, "", false)
	}
}

// ended records that the watch has ended.
func (k *kindState) ended() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.watching && (!k.settled() || k.last.IsZero()) {
		// The watch may not have sent the events that were missed.
		k.watching = false
		return
	}
	k.watching, k.last = false, laterOf(k.last, k.opening)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settled reports whether the watch has sent the events before it.
func (k *kindState) settled() bool { return k.last.After(k.opening) || time.Since(k.opening) > settle }

// countEvent counts an event.
func (k *kindState) countEvent(event watch.EventType) {
	k.metrics.events.WithLabelValues(k.resource, string(event)).Inc()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.read {
		k.last = time.Now()
	}
}

// Add sets an object.
func (k *kindState) Add(object any) error {
	if i, ok := object.(*item); ok && k.objects.Put(i.Object) {
		k.changed()
	}
	return nil
}

// Update sets an object.
func (k *kindState) Update(object any) error { return k.Add(object) }

// Delete removes an object.
func (k *kindState) Delete(object any) error {
	if i, ok := object.(*item); ok && k.objects.Remove(i.Object) {
		k.changed()
	}
	return nil
}

// Replace replaces all objects of the kind.
func (k *kindState) Replace(list []any, version string) error {
	items := make([]*objects.Object, 0, len(list))
	for _, object := range list {
		if i, ok := object.(*item); ok {
			items = append(items, i.Object)
		}
	}
	changed := k.objects.Replace(k.kind, items)
	k.mutex.Lock()
	first := !k.read
	k.read, k.tried, k.last, k.version, k.fault = true, true, time.Now(), version, ""
	k.mutex.Unlock()
	if changed || first {
		k.changed()
	}
	if first {
		k.reportFault(k.resource, "", false)
	}
	return nil
}

// Resync does nothing, because no derived state could be lost.
func (k *kindState) Resync() error { return nil }

// UpdateResourceVersion records the resource version up to which all changes are known.
func (k *kindState) UpdateResourceVersion(version string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.version = version
}

func (k *kindState) changed() {
	k.metrics.changes.Inc()
	k.pace.note()
}

// answered reports whether the API server has answered or refused, and whether the kind was read.
func (k *kindState) answered() (tried, read bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.tried, k.read
}

// view describes the kind for the next version of the snapshot.
func (k *kindState) view() *apportionv1.ViewedKind {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return &apportionv1.ViewedKind{Resource: k.resource, Read: k.read, ResourceVersion: k.version, Fault: k.fault}
}

// current returns the time up to which all events are known, whether the watch is uninterrupted, and if not, why.
func (k *kindState) current(now time.Time) (until time.Time, standing bool, fault string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case k.watching && k.settled():
		return now, true, ""
	case k.fault != "":
		return k.last, false, k.fault
	case k.watching:
		return k.last, false, ""
	}
	return k.last, false, "its watch is interrupted"
}
