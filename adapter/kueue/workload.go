package kueue

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// workload is a Workload that is not finished.
type workload struct {
	message *apportionv1.Job
	// names are the dimensions of the message.
	names      []string
	localQueue string
	// admitted is the ClusterQueue of a workload that holds quota.
	admitted string
	// requeueAt is the time of the next attempt, if one is set.
	requeueAt *time.Time
}

// condition is a condition of an object.
type condition struct {
	Type   string    `json:"type"`
	Status string    `json:"status"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"lastTransitionTime"`
}

// conditionOf returns whether a condition is true, and the condition, or a zero value.
func conditionOf(list []condition, name string) (bool, condition) {
	for _, c := range list {
		if c.Type == name {
			return c.Status == "True", c
		}
	}
	return false, condition{}
}

// workloadObject is a Workload.
type workloadObject struct {
	Metadata struct {
		Labels      labelSet `json:"labels"`
		Annotations labelSet `json:"annotations"`
		Owners      []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Active    *bool    `json:"active"`
		Priority  int32    `json:"priority"`
		QueueName string   `json:"queueName"`
		PodSets   []podSet `json:"podSets"`
		Gates     []named  `json:"preemptionGates"`
		// MaximumSeconds is how long the workload may be admitted, all times together, before Kueue deactivates it.
		MaximumSeconds *int32 `json:"maximumExecutionTimeSeconds"`
	} `json:"spec"`
	Status struct {
		Conditions      []condition  `json:"conditions"`
		Admission       *admission   `json:"admission"`
		ReclaimablePods []podCount   `json:"reclaimablePods"`
		Checks          []checkState `json:"admissionChecks"`
		RequeueState    struct {
			RequeueAt *time.Time `json:"requeueAt"`
		} `json:"requeueState"`
		// PastSeconds is how long the workload was admitted before; MisspeltPastSeconds is its name in v1beta1.
		PastSeconds         int32 `json:"accumulatedPastExecutionTimeSeconds"`
		MisspeltPastSeconds int32 `json:"accumulatedPastExexcutionTimeSeconds"`
	} `json:"status"`
}

type podSet struct {
	Name     string          `json:"name"`
	Count    *int32          `json:"count"`
	MinCount *int32          `json:"minCount"`
	Template podTemplate     `json:"template"`
	Topology json.RawMessage `json:"topologyRequest"`
}

type podTemplate struct {
	Spec podSpec `json:"spec"`
}

type podCount struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
}

type checkState struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

type admission struct {
	ClusterQueue       string             `json:"clusterQueue"`
	PodSetAssignments  []podSetAssignment `json:"podSetAssignments"`
	TopologyAssignment json.RawMessage    `json:"topologyAssignment"`
}

type podSetAssignment struct {
	Name          string              `json:"name"`
	Count         *int32              `json:"count"`
	Flavors       map[string]string   `json:"flavors"`
	ResourceUsage map[string]quantity `json:"resourceUsage"`
}

// owner returns the owner that an annotation or a label names, as of a PodGroup. Without one, usage is charged to the LocalQueue, as by
// Kueue's AdmissionFairSharing.
func (o *workloadObject) owner() string {
	const key = "apportion.dev/owner"
	if name, ok := o.Metadata.Annotations[key]; ok {
		return name
	}
	return o.Metadata.Labels[key]
}

const (
	boostAnnotation = "kueue.x-k8s.io/priority-boost"
	sliceAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"
	evictedByCheck  = "AdmissionCheck"
	// evictedByTimeout: the pods were not ready in time.
	evictedByTimeout = "PodsReadyTimeout"
	whileBorrowing   = "InCohortReclaimWhileBorrowing"
)

// workload reads a Workload. One that is finished is kept with the past, if that is read.
func (r *reader) workload(meta objects.Metadata, o *workloadObject) (*workload, bool) {
	finished, _ := conditionOf(o.Status.Conditions, "Finished")
	if finished && r.past == nil {
		return nil, false
	}
	own := &apportionv1.KueueWorkload{PriorityBoost: boost(o.Metadata.Annotations[boostAnnotation])}
	for _, owner := range o.Metadata.Owners {
		own.Origins = append(own.Origins, &apportionv1.KueueOrigin{Kind: owner.Kind, Name: owner.Name})
	}
	w := &workload{
		localQueue: meta.Namespace + "/" + o.Spec.QueueName, requeueAt: o.Status.RequeueState.RequeueAt, message: &apportionv1.Job{
			Uid: meta.UID, Namespace: meta.Namespace, Name: meta.Name, Priority: o.Spec.Priority,
			CreateTime: meta.Created, Kueue: own, Owner: o.owner(),
		},
	}
	switch {
	case o.Spec.QueueName == "":
	case w.message.GetOwner() == "":
		w.message.Owner = w.localQueue
	default:
		own.LocalQueue = w.localQueue
	}
	if finished {
		r.readPodSets(o, own)
		r.remember(w, o)
		return nil, false
	}
	o.readEnd(w.message)
	r.readConditions(o, own)
	if o.Spec.Active != nil && !*o.Spec.Active {
		if own.ReserveTime != nil {
			// Its quota counts no longer.
			return nil, false
		}
		own.Withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_INACTIVE
	}
	r.readPodSets(o, own)
	if reserved := own.ReserveTime != nil; reserved && o.Status.Admission != nil {
		w.admitted = o.Status.Admission.ClusterQueue
		r.admission(o.Status.Admission, own)
	}
	if o.Metadata.Annotations[sliceAnnotation] != "" {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_SLICE)
	}
	if len(o.Spec.Gates) > 0 {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_GATES)
	}
	w.names = r.names
	return w, true
}

func (r *reader) readPodSets(o *workloadObject, own *apportionv1.KueueWorkload) {
	reclaimable := map[string]int32{}
	for _, p := range o.Status.ReclaimablePods {
		reclaimable[p.Name] = p.Count
	}
	for i := range o.Spec.PodSets {
		r.readPodSet(&o.Spec.PodSets[i], fmt.Sprintf("spec.podSets[%d]", i), own, reclaimable[o.Spec.PodSets[i].Name])
	}
}

// readEnd reads how long a workload may run, and until when if it is admitted, from its longest execution time: Kueue deactivates a
// workload that was admitted for longer.
func (o *workloadObject) readEnd(job *apportionv1.Job) {
	if o.Spec.MaximumSeconds == nil {
		return
	}
	left := int64(*o.Spec.MaximumSeconds) - int64(max(o.Status.PastSeconds, o.Status.MisspeltPastSeconds, 0))
	// One that has no time left is deactivated as soon as it is admitted.
	job.ExpectedRuntime = max(left, 1) * int64(time.Second)
	if admitted, c := conditionOf(o.Status.Conditions, "Admitted"); admitted && !c.Since.IsZero() {
		if at := nanoseconds(c.Since); at > 0 && at < math.MaxInt64-job.ExpectedRuntime {
			job.ExpectedEnd, job.EndIsDeadline = at+job.ExpectedRuntime, true
		}
	}
}

// readConditions reads what the conditions and the state of a workload say.
func (r *reader) readConditions(o *workloadObject, own *apportionv1.KueueWorkload) {
	conditions := o.Status.Conditions
	if reserved, c := conditionOf(conditions, "QuotaReserved"); reserved {
		own.ReserveTime = new(nanoseconds(c.Since))
	}
	evicted, c := conditionOf(conditions, "Evicted")
	own.Evicted = evicted
	switch {
	case evicted && c.Reason == evictedByCheck:
		own.RequeueTime = new(nanoseconds(c.Since))
	case evicted && c.Reason == evictedByTimeout:
		own.TimeoutTime = new(nanoseconds(c.Since))
	}
	if preempted, c := conditionOf(conditions, "Preempted"); preempted && c.Reason == whileBorrowing {
		own.ReclaimTime = new(nanoseconds(c.Since))
	}
	for _, c := range o.Status.Checks {
		if c.State == "Retry" || c.State == "Rejected" {
			own.Withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_CHECK
		}
	}
}

// boost reads the annotation of the priority boost; a value that is not a number counts as absent, as in Kueue.
func boost(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// nanoseconds returns a time in nanoseconds since 1970; 0 for none.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// unjudged adds the name of something that is not judged, unless it is listed already.
func unjudged(m *apportionv1.KueueWorkload, what apportionv1.KueueUnjudged) {
	if !slices.Contains(m.UnjudgedParts, what) {
		m.UnjudgedParts = append(m.UnjudgedParts, what)
	}
}

func (r *reader) readPodSet(p *podSet, path string, own *apportionv1.KueueWorkload, reclaimable int32) {
	m := &apportionv1.KueuePodSet{Name: p.Name, Count: 1, MinCount: p.MinCount, Reclaimable: reclaimable}
	if p.Count != nil {
		m.Count = *p.Count
	}
	own.PodSets = append(own.PodSets, m)
	if len(p.Topology) > 0 && string(p.Topology) != "null" {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_TOPOLOGY)
	}
	pod := corev1.Pod{Spec: r.podSpec(&p.Template.Spec, path+".template.spec.")}
	if aboveLimit(&pod.Spec) {
		own.Withheld = apportionv1.KueueWithheld_KUEUE_WITHHELD_ABOVE_LIMIT
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		unjudged(own, apportionv1.KueueUnjudged_KUEUE_UNJUDGED_RESOURCE_CLAIMS)
	}
	limitsAsRequests(&pod.Spec)
	requests := resource.PodRequests(&pod, resource.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		r.put(&m.Request, string(name), max(0, amountOf(string(name), &q)), path+".template.spec")
	}
	m.SelectorLabels = labelList(pod.Spec.NodeSelector)
	for _, t := range pod.Spec.Tolerations {
		m.Tolerations = append(m.Tolerations, &apportionv1.KueueToleration{
			Key: t.Key, Comparison: string(t.Operator), Value: t.Value, Effect: string(t.Effect),
		})
	}
	m.AffinityTerms = nodeAffinity(pod.Spec.Affinity)
}

// nodeAffinity returns the terms of the required node affinity.
func nodeAffinity(a *corev1.Affinity) []*apportionv1.KueueNodeTerm {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var terms []*apportionv1.KueueNodeTerm
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		term := &apportionv1.KueueNodeTerm{}
		for _, e := range t.MatchExpressions {
			term.Expressions = append(term.Expressions, &apportionv1.KueueRequirement{
				Key: e.Key, Comparison: string(e.Operator), Values: e.Values,
			})
		}
		terms = append(terms, term)
	}
	return terms
}

// eachContainer visits the resources of the containers of a pod.
func eachContainer(spec *corev1.PodSpec, visit func(*corev1.ResourceRequirements)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i].Resources)
	}
	if spec.Resources != nil {
		visit(spec.Resources)
	}
}

// aboveLimit reports whether a container requests more than its limit.
func aboveLimit(spec *corev1.PodSpec) bool {
	above := false
	eachContainer(spec, func(r *corev1.ResourceRequirements) {
		for name, limit := range r.Limits {
			if request, ok := r.Requests[name]; ok && request.Cmp(limit) > 0 {
				above = true
			}
		}
	})
	return above
}

// limitsAsRequests sets the requests that are missing to the limits, as Kueue does.
func limitsAsRequests(spec *corev1.PodSpec) {
	eachContainer(spec, func(r *corev1.ResourceRequirements) {
		for name, limit := range r.Limits {
			if _, ok := r.Requests[name]; !ok {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = limit
			}
		}
	})
}

// admission reads what the pod sets of a workload use.
func (r *reader) admission(a *admission, own *apportionv1.KueueWorkload) {
	own.Admitted = true
	for i, p := range a.PodSetAssignments {
		at := slices.IndexFunc(own.GetPodSets(), func(s *apportionv1.KueuePodSet) bool { return s.GetName() == p.Name })
		if at < 0 {
			r.Fault(fmt.Sprintf("status.admission.podSetAssignments[%d].name", i), "there is no pod set %q", p.Name)
			continue
		}
		set := own.GetPodSets()[at]
		set.AdmittedCount = p.Count
		for _, name := range sortedKeys(p.ResourceUsage) {
			path := fmt.Sprintf("status.admission.podSetAssignments[%d].resourceUsage.%s", i, name)
			r.put(&wirekueue.UseOf(set, p.Flavors[name]).Used, name, r.amount(name, p.ResourceUsage[name], path), path)
		}
		for _, name := range sortedKeys(p.Flavors) {
			if _, ok := p.ResourceUsage[name]; !ok {
				u := wirekueue.UseOf(set, p.Flavors[name])
				u.UnusedDimensions = append(u.UnusedDimensions, r.number(name))
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
