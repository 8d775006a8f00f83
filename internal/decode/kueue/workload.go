package kueue

import (
	"cmp"
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
	if Extra[*apportionv1.KueueQueue](view.Queues[j.Queue].Extra).GetCohort() {
		r.fault(fmt.Sprintf("jobs[%d].queue", id), "a cohort takes no jobs")
		return out
	}
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
	out.LocalQueue = r.locals[localKey{j.Queue, cmp.Or(m.GetLocalQueue(), j.Owner)}]
	out.PodSets = many(m.GetPodSets(), path+".pod_sets", r.podSet)
	r.unique(len(out.PodSets), path+".pod_sets", func(i int) string { return out.PodSets[i].Name })
	if m.GetAdmitted() {
		out.Admission = &kueue.Admission{Queue: out.Queue, PodSets: many(m.GetPodSets(), path+".pod_sets", r.admittedPodSet)}
	}
	return out
}

// PodSet converts a pod set, whose amounts are of named dimensions. What is wrong with it is left out.
func PodSet(m *apportionv1.KueuePodSet, names []string) kueue.PodSet {
	r := reader{fault: lenient.fault, names: names}
	return r.podSet(m, "")
}

func (r *reader) podSet(m *apportionv1.KueuePodSet, path string) kueue.PodSet {
	if m == nil {
		m = &apportionv1.KueuePodSet{}
	}
	out := kueue.PodSet{
		Name: m.Name, Count: r.count(m.Count, path+".count"), Reclaimable: r.count(m.Reclaimable, path+".reclaimable"),
		Tolerations: tolerations(m.GetTolerations()), Selector: labels(m.GetSelectorLabels()), Least: m.MinCount,
		Affinity: many(m.GetAffinityTerms(), path, func(t *apportionv1.KueueNodeTerm, _ string) kueue.Term {
			return many(t.GetExpressions(), path, func(e *apportionv1.KueueRequirement, _ string) kueue.Requirement {
				return kueue.Requirement{Key: e.GetKey(), Operator: e.GetComparison(), Values: e.GetValues()}
			})
		}),
	}
	r.eachAmount(m.GetRequest(), path+".request", func(resource string, amount kueue.Amount) {
		out.Requests = append(out.Requests, kueue.Request{Resource: resource, Amount: amount})
	})
	if out.Least != nil && (*out.Least < 0 || *out.Least > out.Count) {
		r.fault(path+".min_count", "%d is not from 0 to %d", *out.Least, out.Count)
		out.Least = nil
	}
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

func (r *reader) admittedPodSet(m *apportionv1.KueuePodSet, path string) kueue.AdmittedPodSet {
	if m == nil {
		m = &apportionv1.KueuePodSet{}
	}
	out := kueue.AdmittedPodSet{Name: m.Name}
	if m.AdmittedCount != nil {
		out.Count = new(r.count(*m.AdmittedCount, path+".admitted_count"))
	}
	seen := map[string]bool{}
	add := func(path string, u kueue.FlavoredUsage) {
		if seen[u.Resource] {
			r.fault(path, "%q is there twice", u.Resource)
		}
		seen[u.Resource] = true
		out.Usage = append(out.Usage, u)
	}
	for i, u := range m.GetUses() {
		path := fmt.Sprintf("%s.uses[%d]", path, i)
		r.eachAmount(u.GetUsed(), path+".used", func(resource string, amount kueue.Amount) {
			add(path+".used", kueue.FlavoredUsage{Resource: resource, Flavor: u.GetNodeSet(), Used: true, Amount: amount})
		})
		for k, d := range u.GetUnusedDimensions() {
			if name, ok := r.dimension(d, path, "unused_dimensions", k); ok {
				add(path+".unused_dimensions", kueue.FlavoredUsage{Resource: name, Flavor: u.GetNodeSet()})
			}
		}
	}
	return out
}
