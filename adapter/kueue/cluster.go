package kueue

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// cluster joins the objects.
func (r *reader) cluster() *Cluster {
	if r.Lenient {
		r.leaveOversized()
	}
	own := &apportionv1.KueueSnapshot{}
	snapshot := &apportionv1.Snapshot{AsOf: nanoseconds(r.now), Kueue: own, Cluster: r.label, LeftOuts: r.kindsNotRead()}
	for _, f := range byName(r.flavors) {
		own.Flavors = append(own.Flavors, f.message)
	}
	for _, c := range byName(r.cohorts) {
		own.Cohorts = append(own.Cohorts, c.message)
	}
	for _, c := range byName(r.checks) {
		own.Checks = append(own.Checks, c.message)
	}
	for _, q := range byName(r.queues) {
		snapshot.Queues = append(snapshot.Queues, q.message)
	}
	locals := map[string]uint32{}
	for _, key := range sortedKeys(r.localQueues) {
		if q := r.localQueues[key]; r.queues[q.queue] != nil && r.queues[q.queue].message.GetKueue().GetUsageBased() {
			locals[key] = uint32(len(own.LocalQueues))
			own.LocalQueues = append(own.LocalQueues, q.message)
		}
	}
	uids := map[string]bool{}
	for _, key := range sortedKeys(r.workloads) {
		w := r.workloads[key]
		uid := w.message.GetUid()
		if uid != "" && uids[uid] {
			r.leave(objects.Identity{Kind: workloadKind, Namespace: w.message.GetNamespace(), Name: w.message.GetName()},
				"metadata.uid: %q is there twice", uid)
			continue
		}
		uids[uid] = true
		if detail := r.place(w); detail != "" {
			snapshot.LeftOuts = append(snapshot.LeftOuts, &apportionv1.LeftOut{
				Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE, Namespace: w.message.Namespace, Name: w.message.Name,
				Queue: r.Shortened(w.message.Queue), Detail: r.Shortened(detail),
			})
			continue
		}
		if index, ok := locals[w.localQueue]; ok {
			w.message.Kueue.LocalQueue = new(index)
		}
		snapshot.Jobs = append(snapshot.Jobs, w.message)
	}
	r.tell(snapshot)
	return &Cluster{
		Account: r.Account, Snapshot: snapshot, Warnings: r.Warnings.All(),
		HasWorkloads: len(r.workloads) > 0 || r.Listed[workloadKind] || len(r.Faulty) > 0,
		WithoutNodes: r.withoutNodes(),
	}
}

// place gives a workload its queue. It returns why the workload has none, or "".
func (r *reader) place(w *workload) string {
	m := w.message
	if withheld := &m.Kueue.Withheld; w.requeueAt != nil && w.requeueAt.After(r.now) {
		switch *withheld {
		case apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED, apportionv1.KueueWithheld_KUEUE_WITHHELD_CHECK:
			*withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_BACKOFF
		default:
		}
	}
	if w.admitted != "" {
		if m.Queue = w.admitted; r.queues[m.Queue] == nil {
			return fmt.Sprintf("ClusterQueue %s does not exist", m.Queue)
		}
		return ""
	}
	local := r.localQueues[w.localQueue]
	if local == nil {
		return fmt.Sprintf("LocalQueue %s does not exist", w.localQueue)
	}
	m.Queue = local.queue
	queue := r.queues[m.Queue]
	if queue == nil {
		return fmt.Sprintf("ClusterQueue %s does not exist", m.Queue)
	}
	own := m.Kueue
	if own.Withheld == apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED {
		switch {
		case local.stopped:
			own.Withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_LOCAL_QUEUE
		case !queue.selector.Matches(r.labelsOf(m.Namespace)):
			own.Withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_NAMESPACE
		}
	}
	r.queueUnjudged(queue.message.GetKueue(), own)
	return ""
}

// labelsOf returns the labels of a namespace; for one that is not among the objects, the label that every namespace has.
func (r *reader) labelsOf(namespace string) labels.Set {
	if set, ok := r.namespaces[namespace]; ok {
		return set
	}
	return labels.Set{"kubernetes.io/metadata.name": namespace}
}

// queueUnjudged notes what of a queue is not judged for its workloads.
func (r *reader) queueUnjudged(q *apportionv1.KueueQueue, own *apportionv1.KueueWorkload) {
	if len(q.GetChecks()) > 0 {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_CHECKS)
	}
	for _, g := range q.GetGroups() {
		if slices.ContainsFunc(g.GetFlavors(), func(f *apportionv1.KueueFlavorQuotas) bool {
			return r.flavors[f.GetName()] != nil && r.flavors[f.GetName()].topology != ""
		}) {
			unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_TOPOLOGY)
		}
	}
}
