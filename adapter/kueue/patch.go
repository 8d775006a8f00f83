package kueue

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Patches returns the changes of objects that make a remedy of a job of a snapshot.
func Patches(snapshot *lookup.Snapshot, job uint32, r *apportionv1.Remedy) []objects.Patch {
	var out []objects.Patch
	if int(job) >= len(snapshot.GetJobs()) {
		return nil
	}
	of := snapshot.GetJobs()[job]
	var quotas []quotaPatch
	for _, e := range r.GetEdits() {
		switch e.GetKind() { //nolint:exhaustive // The others change no object of Kueue.
		case apportionv1.EditKind_EDIT_KIND_NOMINAL, apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT,
			apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT:
			quotas = withQuota(quotas, quotaPatchOf(snapshot, e))
		case apportionv1.EditKind_EDIT_KIND_OPEN:
			name := text.NamesOf(nil, snapshot.Snapshot).Queue(e.GetQueue().GetIndex())
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
					e.GetRole(), text.KueueExact(e.GetResource(), int64(e.GetAmount())), e.GetResource()),
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
	var groups []*apportionv1.KueueResourceGroup
	if of := e.GetQueue(); of.Index == nil {
		q.kind, q.name = cohortKind, of.GetName()
		at := slices.IndexFunc(snapshot.GetKueue().GetCohorts(), func(c *apportionv1.KueueCohort) bool { return c.GetName() == q.name })
		if at >= 0 {
			groups = snapshot.GetKueue().GetCohorts()[at].GetGroups()
		}
	} else if at := of.GetIndex(); int(at) < len(snapshot.GetQueues()) {
		q.kind, q.name, groups = queueKind, snapshot.GetQueues()[at].GetName(), snapshot.GetQueues()[at].GetKueue().GetGroups()
	}
	for g, group := range groups {
		for f, flavor := range group.GetFlavors() {
			for k, quota := range flavor.GetResources() {
				if flavor.GetName() != e.GetNodeSet() || quota.GetName() != e.GetResource() {
					continue
				}
				of := fmt.Sprintf("/spec/resourceGroups/%d/flavors/%d", g, f)
				at := fmt.Sprintf("%s/resources/%d", of, k)
				q.operations = append(q.operations,
					operation{"test", of + "/name", flavor.GetName()}, operation{"test", at + "/name", quota.GetName()},
					operation{"add", at + "/" + field, text.KueueSetting(e.GetResource(), int64(e.GetAmount()))})
			}
		}
	}
	return q
}
