package kueue

import (
	"fmt"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// withheldPrefix and unjudgedPrefix begin the names of the values of both enums.
const (
	withheldPrefix = "KUEUE_WITHHELD_"
	unjudgedPrefix = "KUEUE_UNJUDGED_"
)

// foreign is the reason not to nominate a job that has no message about Kueue.
const foreign = "FOREIGN"

// workload converts a job.
func (r *reader) workload(view *model.Model, id model.JobID) kueue.Workload {
	j := view.Jobs.At(id)
	m := Extra[*apportionv1.KueueWorkload](j.Extra)
	out := kueue.Workload{Namespace: j.Namespace, Name: j.Name, UID: j.UID, Withheld: foreign, Parked: true}
	if m == nil || j.Queue == model.None {
		return out
	}
	path := fmt.Sprintf("jobs[%d].kueue", id)
	out.Queue = view.Queues[j.Queue].Name
	out.Priority, out.Boost, out.Created = int64(j.Priority), int64(m.GetPriorityBoost()), j.CreateTime
	out.Reserved, out.Requeued, out.Reclaimed, out.Evicted = m.ReserveTime, m.RequeueTime, m.ReclaimTime, m.GetEvicted()
	out.TimedOut = m.TimeoutTime
	out.Withheld = ""
	w := m.GetWithheld()
	switch w {
	case apportionv1.KueueWithheld_KUEUE_WITHHELD_LOCAL_QUEUE, apportionv1.KueueWithheld_KUEUE_WITHHELD_BACKOFF,
		apportionv1.KueueWithheld_KUEUE_WITHHELD_INACTIVE:
		out.Parked = true
	default:
		out.Parked = false
	}
	if w != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED {
		out.Withheld = strings.TrimPrefix(w.String(), withheldPrefix)
	}
	for _, u := range m.GetUnjudgedParts() {
		out.Unjudged = append(out.Unjudged, strings.TrimPrefix(u.String(), unjudgedPrefix))
	}
	if m.LocalQueue != nil {
		if int(*m.LocalQueue) >= len(r.locals) {
			r.fault(path+".local_queue", "there is no local queue %d", *m.LocalQueue)
		} else {
			out.LocalQueue = r.locals[*m.LocalQueue]
		}
	}
	out.PodSets = many(m.GetPodSets(), path+".pod_sets", r.podSet)
	r.unique(len(out.PodSets), path+".pod_sets", func(i int) string { return out.PodSets[i].Name })
	if a := m.GetAdmission(); a != nil {
		out.Admission = &kueue.Admission{
			Queue: out.Queue, PodSets: many(a.GetPodSets(), path+".admission.pod_sets", r.admittedPodSet),
		}
	}
	return out
}

// PodSet converts a pod set. What is wrong with it is left out.
func PodSet(m *apportionv1.KueuePodSet) kueue.PodSet {
	return lenient.podSet(m, "")
}

func (r *reader) podSet(m *apportionv1.KueuePodSet, path string) kueue.PodSet {
	if m == nil {
		m = &apportionv1.KueuePodSet{}
	}
	out := kueue.PodSet{
		Name: m.Name, Count: r.count(m.Count, path+".count"), Reclaimable: r.count(m.Reclaimable, path+".reclaimable"),
		Tolerations: tolerations(m.GetTolerations()), Selector: labels(m.GetSelectorLabels()), Least: m.MinCount,
		Requests: many(m.GetRequests(), path+".requests", func(a *apportionv1.KueueAmount, path string) kueue.Request {
			return kueue.Request{Resource: r.resource(a.GetName(), path+".name"), Amount: r.amount(a.GetAmount(), path+".amount")}
		}),
		Affinity: many(m.GetAffinityTerms(), path, func(t *apportionv1.KueueNodeTerm, _ string) kueue.Term {
			return many(t.GetExpressions(), path, func(e *apportionv1.KueueRequirement, _ string) kueue.Requirement {
				return kueue.Requirement{Key: e.GetKey(), Operator: e.GetComparison(), Values: e.GetValues()}
			})
		}),
	}
	if out.Least != nil && (*out.Least < 0 || *out.Least > out.Count) {
		r.fault(path+".min_count", "%d is not from 0 to %d", *out.Least, out.Count)
		out.Least = nil
	}
	r.resources(len(out.Requests), path+".requests", func(i int) string { return out.Requests[i].Resource })
	return out
}

// count returns a number of pods, which must not be negative.
func (r *reader) count(n int32, path string) int32 {
	if n < 0 {
		r.fault(path, "%d is negative", n)
		return 0
	}
	return n
}

func (r *reader) resource(name, path string) string {
	if name == "" {
		r.fault(path, "the name of a resource is needed")
	}
	return name
}

// resources reports resources that are there twice.
func (r *reader) resources(n int, path string, name func(int) string) {
	if n < 2 || n == 2 && name(0) != name(1) {
		return
	}
	seen := make(map[string]bool, n)
	for i := range n {
		if key := name(i); key != "" && seen[key] {
			r.fault(fmt.Sprintf("%s[%d]", path, i), "%q is there twice", key)
		} else {
			seen[key] = true
		}
	}
}

func (r *reader) admittedPodSet(m *apportionv1.KueueAdmittedPodSet, path string) kueue.AdmittedPodSet {
	if m == nil {
		m = &apportionv1.KueueAdmittedPodSet{}
	}
	out := kueue.AdmittedPodSet{
		Name: m.Name,
		Usage: many(m.Usages, path+".usages", func(u *apportionv1.KueueFlavoredUsage, path string) kueue.FlavoredUsage {
			return kueue.FlavoredUsage{
				Resource: r.resource(u.GetResource(), path+".resource"), Flavor: u.GetFlavor(), Used: u != nil && u.Amount != nil,
				Amount: r.amount(u.GetAmount(), path+".amount"),
			}
		}),
	}
	if m.Count != nil {
		out.Count = new(r.count(*m.Count, path+".count"))
	}
	r.resources(len(out.Usage), path+".usages", func(i int) string { return out.Usage[i].Resource })
	return out
}
