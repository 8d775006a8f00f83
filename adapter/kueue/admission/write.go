package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// change is the answer to a Workload.
type change struct {
	*standing

	state, message string
	// after is how long Kueue waits before it gives quota again.
	after time.Duration
	// reason of the event; "": none is written.
	reason string
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch returns the operations that make a change, none if nothing changes. The API server refuses them for a Workload that has changed
// since it was read.
func (c *change) patch(now time.Time) []operation {
	var operations []operation
	set := func(path string, value any) { operations = append(operations, operation{"add", path, value}) }
	for _, i := range c.own {
		held, path := c.Status.Checks[i], fmt.Sprintf("/status/admissionChecks/%d/", i)
		// A Workload that leaves loses the answer Ready. Else only what waits is answered, and what left waits again.
		returns := held.State == stateRetry && c.state == statePending
		if held.State != statePending && c.state != stateRetry && !returns || held.State == c.state && held.Message == short(c.message) {
			continue
		}
		set(path+"state", c.state)
		set(path+"message", short(c.message))
		if held.State != c.state {
			set(path+"lastTransitionTime", now.UTC().Format(time.RFC3339))
		}
		switch {
		case c.state == stateRetry:
			set(path+"requeueAfterSeconds", int(c.after/time.Second))
		case returns:
			set(path+"retryCount", held.RetryCount+1)
		}
	}
	if len(operations) == 0 {
		return nil
	}
	if c.state == stateRetry {
		operations = append(operations, c.evicted(now))
	}
	set("/metadata/resourceVersion", c.Metadata.ResourceVersion)
	return operations
}

// evicted returns the operation that sets the condition Evicted. Kueue sets it itself for a check in Retry, but up to v0.19.2 only when
// requeueAfterSeconds is over: the quota would be free for no time at all, and the Workload would take it again before Kueue tries those
// for which it left. With the condition, the controller of the job stops it and gives the quota back at once, and Kueue holds the Workload
// back until then, as its KEP-3258 says.
func (c *change) evicted(now time.Time) operation {
	condition := metav1.Condition{
		Type: "Evicted", Status: metav1.ConditionTrue, Reason: "AdmissionCheck", ObservedGeneration: c.Metadata.Generation,
		LastTransitionTime: metav1.NewTime(now), Message: "Evicted due to AdmissionChecks of " + ControllerName + ": " + short(c.message),
	}
	const path = "/status/conditions"
	for i, held := range c.Status.Conditions {
		if held.Type == condition.Type {
			return operation{"replace", fmt.Sprint(path, "/", i), condition}
		}
	}
	if len(c.Status.Conditions) == 0 {
		return operation{"add", path, []metav1.Condition{condition}}
	}
	return operation{"add", path + "/-", condition}
}

// write carries out changes. A Workload that has changed in the meantime is decided about again, and one that the API server refuses does
// not keep the others.
func (c *Controller) write(ctx context.Context, changes []change) error {
	var refused error
	for i := range changes {
		err := c.writeOne(ctx, &changes[i])
		if _, said := errors.AsType[*apierrors.StatusError](err); err != nil && !said {
			return err
		}
		refused = cmp.Or(refused, err)
	}
	return refused
}

func (c *Controller) writeOne(ctx context.Context, one *change) error {
	operations := one.patch(c.now())
	if len(operations) == 0 {
		return nil
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	of := c.clients.Resource(schema.GroupVersionResource{Group: group, Version: c.version, Resource: "workloads"})
	now, err := of.Namespace(one.Metadata.Namespace).Patch(ctx, one.Metadata.Name, types.JSONPatchType, body, metav1.PatchOptions{},
		"status")
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		c.cluster.wake()
		return nil
	case err != nil:
		return fmt.Errorf("the Workload %s: %w", one.key, err)
	}
	c.cluster.put(workloadKind, group+"/"+c.version, now)
	if one.reason == "" {
		return nil
	}
	c.log.InfoContext(ctx, "decided", "workload", one.key, "decision", one.reason, "sentence", one.message)
	if err := c.event(ctx, one); err != nil {
		c.log.WarnContext(ctx, "an event is not written", "workload", one.key, "error", err)
	}
	return nil
}

// event tells a decision in an Event of the Workload.
func (c *Controller) event(ctx context.Context, one *change) error {
	kind := "Normal"
	if one.state == stateRejected || one.state == stateRetry {
		kind = "Warning"
	}
	now := c.now()
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata": map[string]any{
			"name": fmt.Sprintf("%s.%x", one.Metadata.Name, now.UnixNano()), "namespace": one.Metadata.Namespace,
		},
		"eventTime":           now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		"reportingController": ControllerName, "reportingInstance": ControllerName,
		"action": "Deciding", "reason": one.reason, "type": kind, "note": short(one.message),
		"regarding": map[string]any{
			"apiVersion": group + "/" + c.version, "kind": workloadKind, "namespace": one.Metadata.Namespace, "name": one.Metadata.Name,
			"uid": one.uid, "resourceVersion": one.Metadata.ResourceVersion,
		},
	}}
	events := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	_, err := c.clients.Resource(events).Namespace(one.Metadata.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

// short cuts a sentence to what the note of an Event may have.
func short(text string) string {
	const limit, more = 1000, " …"
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit-len(more)], "") + more
	}
	return text
}

// activate tells Kueue that the AdmissionChecks of this controller are served.
func (c *Controller) activate(ctx context.Context, checks map[string]*checkObject) error {
	for name, check := range checks {
		if check.active() {
			continue
		}
		active := metav1.Condition{
			Type: "Active", Status: metav1.ConditionTrue, Reason: "Active", Message: "Apportion decides",
			ObservedGeneration: check.Metadata.Generation, LastTransitionTime: metav1.NewTime(c.now()),
		}
		conditions := []metav1.Condition{active}
		for i := range check.Status.Conditions {
			if check.Status.Conditions[i].Type != active.Type {
				conditions = append(conditions, check.Status.Conditions[i])
			}
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": check.Metadata.ResourceVersion},
			"status":   map[string]any{"conditions": conditions},
		})
		if err != nil {
			return err
		}
		of := c.clients.Resource(schema.GroupVersionResource{Group: group, Version: c.version, Resource: "admissionchecks"})
		_, err = of.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the AdmissionCheck %s: %w", name, err)
		}
	}
	return nil
}

// active reports whether Kueue knows that the check is served.
func (o *checkObject) active() bool {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == "Active" {
			return c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Metadata.Generation
		}
	}
	return false
}
