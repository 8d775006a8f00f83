package kueue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	units "github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// Patches returns the changes of objects that make a remedy of a job of a snapshot.
func Patches(snapshot *lookup.Snapshot, job uint32, r *apportionv1.Remedy) []objects.Patch {
	var out []objects.Patch
	if int(job) >= len(snapshot.GetJobs()) {
		return nil
	}
	of := snapshot.GetJobs()[job]
	names := text.NamesOf(&apportionv1.Basis{Dimensions: snapshot.GetDimensions()}, snapshot.Snapshot)
	var quotas []quotaPatch
	for _, e := range r.GetEdits() {
		switch e.GetKind() { //nolint:exhaustive // The others change no object of Kueue.
		case apportionv1.EditKind_EDIT_KIND_NOMINAL, apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT,
			apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT:
			quotas = withQuota(quotas, quotaPatchOf(snapshot, e))
		case apportionv1.EditKind_EDIT_KIND_OPEN:
			name := names.Queue(e.GetQueue().GetIndex())
			out = append(out, objects.Patch{Kubectl: merged(queueKind, "", name, objects.Part{"stopPolicy": "None"})})
		case apportionv1.EditKind_EDIT_KIND_FLAVOR:
			out = append(out, objects.Patch{
				Why:  "Create this flavor, with the labels and taints of its nodes if it has some:",
				YAML: "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: " + e.GetNodeSet() + "\n",
			})
		case apportionv1.EditKind_EDIT_KIND_PRIORITY:
			out = append(out, objects.Patch{Kubectl: merged(workloadKind, of.GetNamespace(), of.GetName(),
				objects.Part{"priority": int64(e.GetAmount())})})
		case apportionv1.EditKind_EDIT_KIND_END:
			if at := e.GetJob().GetIndex(); int(at) < len(snapshot.GetJobs()) {
				ended := snapshot.GetJobs()[at]
				out = append(out, objects.Patch{
					Kubectl: merged(workloadKind, ended.GetNamespace(), ended.GetName(), objects.Part{"active": false}),
				})
			}
		case apportionv1.EditKind_EDIT_KIND_MINIMUM:
			out = append(out, minimumPatch(of, e)...)
		case apportionv1.EditKind_EDIT_KIND_REQUEST:
			out = append(out, objects.Patch{
				Why: fmt.Sprintf("The template of the pods of %s needs %s %s, for all containers together: submit the job again.",
					e.GetRole(), text.Exactly(names.Dimension(e.GetDimension()), e.GetAmount()), names.Dimension(e.GetDimension())),
			})
		}
	}
	for _, q := range quotas {
		of := objects.Target{Resource: kinds.Resource(q.kind)}
		out = append(out, objects.Patch{Kubectl: of.Command("json", q.operations, q.name)})
	}
	return out
}

// merged is a command that merges a part into the specification of an object.
func merged(kind, namespace, name string, part objects.Part) []string {
	of := objects.Target{Resource: kinds.Resource(kind), Namespace: namespace}
	return of.Command("merge", objects.Part{"spec": part}, name)
}

// minimumPatch lets a Job of Kubernetes be admitted with fewer pods. Other kinds have no setting for it.
func minimumPatch(of *apportionv1.Job, e *apportionv1.Edit) []objects.Patch {
	for _, origin := range of.GetKueue().GetOrigins() {
		if origin.GetKind() == "Job" && len(of.GetKueue().GetPodSets()) == 1 {
			return []objects.Patch{{Kubectl: []string{
				"kubectl", "annotate", "--overwrite", "jobs.batch", origin.GetName(), "--namespace=" + of.GetNamespace(),
				"kueue.x-k8s.io/job-min-parallelism=" + strconv.FormatInt(int64(e.GetAmount()), 10),
			}}}
		}
	}
	const why = "Only a Job of Kubernetes states how few pods it needs, in its annotation kueue.x-k8s.io/job-min-parallelism."
	return []objects.Patch{{Why: why}}
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// quotaPatch has all operations on the quotas of one object.
type quotaPatch struct {
	kind, name string
	operations []operation
}

// withQuota adds a patch to that of the same object, so that each object has one.
func withQuota(list []quotaPatch, q quotaPatch) []quotaPatch {
	if len(q.operations) == 0 {
		return list
	}
	at := slices.IndexFunc(list, func(known quotaPatch) bool { return known.kind == q.kind && known.name == q.name })
	if at < 0 {
		return append(list, q)
	}
	list[at].operations = append(list[at].operations, q.operations...)
	return list
}

// quotaPatchOf returns the operations that change a quota: they test first that the place still has this quota.
func quotaPatchOf(snapshot *lookup.Snapshot, e *apportionv1.Edit) (q quotaPatch) {
	field := map[apportionv1.EditKind]string{
		apportionv1.EditKind_EDIT_KIND_NOMINAL:         "nominalQuota",
		apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT: "borrowingLimit",
		apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT:   "lendingLimit",
	}[e.GetKind()]
	at := int(e.GetQueue().GetIndex())
	if at >= len(snapshot.GetQueues()) || int(e.GetDimension()) >= len(snapshot.GetDimensions()) {
		return q
	}
	of, resource := snapshot.GetQueues()[at], snapshot.GetDimensions()[e.GetDimension()]
	if q.kind = queueKind; of.GetKueue().GetCohort() {
		q.kind = cohortKind
	}
	q.name = strings.TrimPrefix(of.GetName(), CohortPrefix)
	// The flavors of each group so far, by its first dimension.
	flavors, groups := map[uint32]int{}, []uint32{}
	for _, quota := range of.GetKueue().GetQuotas() {
		dimensions := quota.GetNominal().GetDimensions()
		if len(dimensions) == 0 {
			continue
		}
		first := dimensions[0]
		if !slices.Contains(groups, first) {
			groups = append(groups, first)
		}
		flavor := fmt.Sprintf("/spec/resourceGroups/%d/flavors/%d", slices.Index(groups, first), flavors[first])
		flavors[first]++
		for k, d := range dimensions {
			if quota.GetNodeSet() != e.GetNodeSet() || d != e.GetDimension() {
				continue
			}
			at := fmt.Sprintf("%s/resources/%d", flavor, k)
			q.operations = append(q.operations,
				operation{"test", flavor + "/name", e.GetNodeSet()}, operation{"test", at + "/name", resource},
				operation{"add", at + "/" + field, units.Format(resource, e.GetAmount())})
		}
	}
	return q
}
