package kueue

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// cluster joins the objects.
func (r *reader) cluster() *Cluster {
	if r.Lenient {
		r.leaveOversized()
	}
	snapshot := &apportionv1.Snapshot{
		AsOf: nanoseconds(r.now), Cluster: r.label, LeftOuts: r.kindsNotRead(), Dimensions: r.listDimensions(),
	}
	position := map[string]uint32{}
	for i, name := range snapshot.GetDimensions() {
		position[name] = uint32(i)
	}
	for _, f := range byName(r.flavors) {
		snapshot.NodeSets = append(snapshot.NodeSets, f.message)
	}
	snapshot.Queues = r.allQueues(position)
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
		w.message.Kueue = renumbered(w.message.GetKueue(), w.names, position)
		snapshot.Jobs = append(snapshot.Jobs, w.message)
	}
	r.tell(snapshot)
	return &Cluster{
		Account: r.Account, Snapshot: snapshot, Warnings: r.Warnings.All(),
		HasWorkloads: len(r.workloads) > 0 || r.Listed[workloadKind] || len(r.Faulty) > 0,
		WithoutNodes: r.withoutNodes(),
	}
}

// allQueues returns the queues, then the cohorts, those that are only named included.
func (r *reader) allQueues(position map[string]uint32) []*apportionv1.Queue {
	var queues, cohorts []*apportionv1.Queue
	add := func(list []*apportionv1.Queue, m *apportionv1.Queue, names []string) []*apportionv1.Queue {
		return append(list, &apportionv1.Queue{
			Name: m.GetName(), Parent: r.cohortName(m.GetParent()), CreateTime: m.GetCreateTime(),
			Kueue: renumbered(m.GetKueue(), names, position),
		})
	}
	locals := map[string][]*apportionv1.KueueLocalQueue{}
	for _, q := range byName(r.localQueues) {
		if of := r.queues[q.queue]; of != nil && of.message.GetKueue().GetUsageBased() {
			locals[q.queue] = append(locals[q.queue], renumbered(q.message, q.names, position))
		}
	}
	listed := map[string]bool{"": true}
	name := func(cohort string) {
		if !listed[cohort] && r.cohorts[cohort] == nil {
			listed[cohort] = true
			cohorts = append(cohorts, &apportionv1.Queue{
				Name: r.cohortName(cohort), Kueue: &apportionv1.KueueQueue{Cohort: true, Weight: new(0.0)},
			})
		}
	}
	for _, q := range byName(r.queues) {
		queues = add(queues, q.message, q.names)
		own := queues[len(queues)-1].GetKueue()
		own.LocalQueues = locals[q.message.GetName()]
		for _, c := range own.GetChecks() {
			if known := r.checks[c.GetName()]; known != nil {
				c.Active = known.message.Active
			}
		}
		name(q.message.GetParent())
	}
	for _, c := range byName(r.cohorts) {
		cohorts = add(cohorts, c.message, c.names)
		cohorts[len(cohorts)-1].Name = r.cohortName(c.message.GetName())
		name(c.message.GetParent())
	}
	slices.SortFunc(cohorts, func(a, b *apportionv1.Queue) int { return strings.Compare(a.GetName(), b.GetName()) })
	return append(queues, cohorts...)
}

// CohortPrefix begins the name of a cohort that a queue of the snapshot would have otherwise. No object's name has a slash.
const CohortPrefix = "cohort/"

// cohortName returns the name of a cohort among the queues of a snapshot.
func (r *reader) cohortName(cohort string) string {
	if r.queues[cohort] != nil || cohort == "root" {
		return CohortPrefix + cohort
	}
	return cohort
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
	if slices.ContainsFunc(q.GetQuotas(), func(o *apportionv1.Quota) bool {
		return r.flavors[o.GetNodeSet()] != nil && r.flavors[o.GetNodeSet()].topology != ""
	}) {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_TOPOLOGY)
	}
}
