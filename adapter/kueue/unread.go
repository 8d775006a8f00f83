package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// WithUnread names kinds of objects that could not be read, such as because the user may not list them, and why. Answers that depend on
// them are not known.
func WithUnread(why map[string]string) Option {
	return func(r *reader) {
		for kind, reason := range why {
			if k, ok := kinds[kind]; ok && strings.HasPrefix(k.versions[0], group) {
				r.unlisted[kind] = reason
			}
		}
	}
}

// kindsNotRead are the kinds of which no object was read although the cluster has some. That a kind is absent proves nothing by itself, as
// kubectl prints several kinds in one list: it is absent by mistake if another object cannot be without it. A list of one kind, as
// `kind: WorkloadList`, says that there are no other objects of its kind.
func (r *reader) kindsNotRead() []*apportionv1.LeftOut {
	var list []*apportionv1.LeftOut
	add := func(kind, why string) {
		list = append(list, &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD, Kind: kind, Detail: r.shortened(why),
		})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.unlisted)) {
		add(kind, r.unlisted[kind])
	}
	for _, kind := range []struct {
		name string
		// count is the number of its objects, proof what proves that there are some; "" is none.
		count int
		proof func() string
	}{
		{queueKind, len(r.queues), r.provesQueues},
		{localQueueKind, len(r.localQueues), r.provesLocalQueues},
		{flavorKind, len(r.flavors), r.provesFlavors},
		{workloadKind, len(r.workloads), r.provesWorkloads},
		{namespaceKind, len(r.namespaces), r.provesNamespaces},
	} {
		faulty := func(f Faulty) bool { return f.Kind == kind.name }
		_, said := r.unlisted[kind.name]
		if kind.count > 0 || said || r.listed[kind.name] || slices.ContainsFunc(r.faulty, faulty) {
			continue
		}
		if proof := kind.proof(); proof != "" {
			add(kind.name, proof)
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
		for _, g := range r.queues[key].message.GetKueue().GetGroups() {
			for _, f := range g.GetFlavors() {
				return "ClusterQueue " + key + " has quota of ResourceFlavor " + f.GetName()
			}
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
