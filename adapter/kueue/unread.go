package kueue

import (
	"fmt"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// WithUnread names kinds of objects that could not be read, such as because the user may not list them, and why. Answers that depend on
// them are not known.
func WithUnread(why map[string]string) Option {
	return func(r *reader) {
		for _, kind := range Kinds() {
			if reason, said := why[kind.Kind]; said && kind.Group == apiGroup {
				r.Unlisted[kind.Kind] = reason
			}
		}
	}
}

// kindsNotRead are the kinds that could not be listed, or that other objects prove to exist.
func (r *reader) kindsNotRead() []*apportionv1.LeftOut {
	var list []*apportionv1.LeftOut
	for _, kind := range sortedKeys(r.Unlisted) {
		list = append(list, r.Unreadable(kind, r.Unlisted[kind]))
	}
	for _, kind := range []objects.Expected{
		{Kind: queueKind, Count: len(r.queues), Proof: r.provesQueues},
		{Kind: localQueueKind, Count: len(r.localQueues), Proof: r.provesLocalQueues},
		{Kind: flavorKind, Count: len(r.flavors), Proof: r.provesFlavors},
		{Kind: workloadKind, Count: len(r.workloads), Proof: r.provesWorkloads},
		{Kind: namespaceKind, Count: len(r.namespaces), Proof: r.provesNamespaces},
	} {
		if proof := r.Lacks(kind); proof != "" {
			list = append(list, r.Unreadable(kind.Kind, proof))
		}
	}
	return list
}

// provesQueues names a LocalQueue or a workload with quota: each has a ClusterQueue.
func (r *reader) provesQueues() string {
	if keys := sortedKeys(r.localQueues); len(keys) > 0 {
		return "LocalQueue " + keys[0] + " is of ClusterQueue " + r.localQueues[keys[0]].queue
	}
	for _, key := range sortedKeys(r.workloads) {
		if queue := r.workloads[key].admitted; queue != "" {
			return "Workload " + key + " has quota of ClusterQueue " + queue
		}
	}
	return ""
}

// provesLocalQueues names a workload that waits in one.
func (r *reader) provesLocalQueues() string {
	for _, key := range sortedKeys(r.workloads) {
		if w := r.workloads[key]; w.admitted == "" && !strings.HasSuffix(w.localQueue, "/") {
			return "Workload " + key + " waits in LocalQueue " + w.localQueue
		}
	}
	return ""
}

// provesFlavors names a ClusterQueue with quota, which is of a flavor.
func (r *reader) provesFlavors() string {
	for _, key := range sortedKeys(r.queues) {
		for _, q := range r.queues[key].message.GetKueue().GetQuotas() {
			return "ClusterQueue " + key + " has quota of ResourceFlavor " + q.GetNodeSet()
		}
	}
	return ""
}

// provesWorkloads names a ClusterQueue whose status counts some.
func (r *reader) provesWorkloads() string {
	for _, key := range sortedKeys(r.queues) {
		if n := r.queues[key].workloads; n > 0 {
			return fmt.Sprintf("the status of ClusterQueue %s counts %d", key, n)
		}
	}
	return ""
}

// provesNamespaces names a workload that waits for a ClusterQueue that selects namespaces by labels.
func (r *reader) provesNamespaces() string {
	for _, key := range sortedKeys(r.workloads) {
		w := r.workloads[key]
		local := r.localQueues[w.localQueue]
		if w.admitted != "" || local == nil || r.queues[local.queue] == nil {
			continue
		}
		selector := r.queues[local.queue].selector
		_, selects := selector.Requirements()
		if selects && !selector.Matches(r.labelsOf(w.message.GetNamespace())) {
			return "Workload " + key + " waits in ClusterQueue " + local.queue + ", which selects namespaces by labels"
		}
	}
	return ""
}
