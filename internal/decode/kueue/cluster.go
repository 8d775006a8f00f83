// Package kueue converts between the contract's messages about Kueue and the types of the policy `kueue`.
package kueue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Fault reports a violation at a path within the snapshot.
type Fault func(path, format string, args ...any)

// reader converts messages and reports what is wrong with them.
type reader struct {
	fault Fault
	// names are the dimensions of all amounts.
	names []string
	// checks has the admission checks of all queues, locals their local queues by queue and owner.
	checks map[string]bool
	locals map[localKey]*kueue.LocalQueue
}

// localKey names a local queue by the position of its queue and the owner of its jobs.
type localKey struct {
	queue model.QueueID
	owner string
}

// ClusterOf returns the cluster of a model, or a *model.Error with what is wrong in the messages about Kueue. Queues and jobs keep their
// positions; those without a message about Kueue, and removed ones, do not take part. The position of a cohort stands for it.
func ClusterOf(m *model.Model) (*kueue.Cluster, error) {
	faults := &model.Error{}
	r := reader{
		fault: func(path, format string, args ...any) { faults.Add(path, format, args...) }, names: m.Dims.OrderedNames(),
		checks: map[string]bool{}, locals: map[localKey]*kueue.LocalQueue{},
	}
	out := &kueue.Cluster{Now: m.AsOf, Queues: make([]kueue.Queue, len(m.Queues)), Workloads: make([]kueue.Workload, m.Jobs.Len())}
	for i := range m.NodeSets {
		if own := Extra[*apportionv1.KueueFlavor](m.NodeSets[i].Extra); own != nil {
			out.Flavors = append(out.Flavors, r.flavor(m.NodeSets[i].Name, own, fmt.Sprintf("node_sets[%d].flavor", i)))
		}
	}
	for i := range m.Queues {
		q := &m.Queues[i]
		own, path := Extra[*apportionv1.KueueQueue](q.Extra), fmt.Sprintf("queues[%d].kueue", i)
		if own.GetCohort() {
			out.Queues[i].StandsFor = q.Name
			out.Cohorts = append(out.Cohorts, kueue.Cohort{
				Name: q.Name, Parent: q.Parent, Weight: r.weight(own.Weight, path+".weight"), Groups: r.groups(own.GetQuotas(), path),
			})
			continue
		}
		out.Queues[i] = r.queue(q, own, path)
		r.localQueues(model.QueueID(i), own.GetLocalQueues(), path)
	}
	for _, name := range slices.Sorted(maps.Keys(r.checks)) {
		out.Checks = append(out.Checks, kueue.Check{Name: name, Active: r.checks[name]})
	}
	for j := range model.JobID(m.Jobs.Len()) {
		out.Workloads[j] = r.workload(m, j)
	}
	return out, faults.OrNil()
}

// Extra returns the message that a model keeps for a policy, or nil.
func Extra[M any](e *model.Extra) M {
	var message M
	if e != nil {
		message, _ = e.Value.(M)
	}
	return message
}

// many converts a list; paths are those of its items.
func many[M, V any](list []M, path string, convert func(M, string) V) []V {
	if len(list) == 0 {
		return nil
	}
	out := make([]V, len(list))
	for i, m := range list {
		out[i] = convert(m, fmt.Sprintf("%s[%d]", path, i))
	}
	return out
}

// unique reports names that are empty, or that occur twice in a list.
func (r *reader) unique(n int, path string, name func(int) string) {
	seen := make(map[string]bool, n)
	for i := range n {
		switch key := name(i); {
		case key == "":
			r.fault(fmt.Sprintf("%s[%d].name", path, i), "a name is needed")
		case seen[key]:
			r.fault(fmt.Sprintf("%s[%d].name", path, i), "%q is there twice", key)
		default:
			seen[key] = true
		}
	}
}

// Flavor converts a flavor. What is wrong with it is left out.
func Flavor(name string, m *apportionv1.KueueFlavor) kueue.Flavor { return lenient.flavor(name, m, "") }

// lenient reports nothing.
var lenient = &reader{fault: func(string, string, ...any) {}}

func (r *reader) flavor(name string, m *apportionv1.KueueFlavor, path string) kueue.Flavor {
	return kueue.Flavor{
		Name: name, Labels: labels(m.GetNodeLabels()), Tolerations: tolerations(m.GetTolerations()),
		Taints: many(m.GetTaints(), path+".taints", func(t *apportionv1.KueueTaint, path string) kueue.Taint {
			if t.GetKey() == "" {
				r.fault(path+".key", "a key is needed")
			}
			return kueue.Taint{Key: t.GetKey(), Value: t.GetValue(), Effect: t.GetEffect()}
		}),
	}
}

func labels(list []*apportionv1.KueueLabel) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, l := range list {
		out[l.GetKey()] = l.GetValue()
	}
	return out
}

func tolerations(list []*apportionv1.KueueToleration) []kueue.Toleration {
	return many(list, "", func(t *apportionv1.KueueToleration, _ string) kueue.Toleration {
		return kueue.Toleration{Key: t.GetKey(), Operator: t.GetComparison(), Value: t.GetValue(), Effect: t.GetEffect()}
	})
}

// weight returns a fair weight, 1 if it is absent.
func (r *reader) weight(weight *float64, path string) float64 {
	if weight == nil {
		return 1
	}
	return r.number(*weight, path)
}

// number returns a number that must be finite and not negative.
func (r *reader) number(n float64, path string) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		r.fault(path, "%v is not a finite number of at least 0", n)
		return 0
	}
	return n
}

// groups makes the resource groups of quotas, which together cover each resource once.
func (r *reader) groups(list []*apportionv1.Quota, path string) []kueue.Group {
	var out []kueue.Group
	groupOf := map[string]int{}
	for i, m := range list {
		path := fmt.Sprintf("%s.quotas[%d]", path, i)
		if m.GetNodeSet() == "" {
			r.fault(path+".node_set", "a flavor needs a name")
		}
		quotas := r.quotas(m, path)
		at, known := len(out), len(quotas) > 0
		if known {
			if at, known = groupOf[quotas[0].Resource]; !known {
				at = len(out)
			}
		}
		if at == len(out) {
			out = append(out, kueue.Group{})
			for _, q := range quotas {
				if _, twice := groupOf[q.Resource]; twice {
					r.fault(path+".nominal", "quotas of other dimensions have %q, too", q.Resource)
				}
				groupOf[q.Resource] = at
				out[at].Covered = append(out[at].Covered, q.Resource)
			}
		}
		g := &out[at]
		elsewhere := func(q kueue.Quota) bool { return !slices.Contains(g.Covered, q.Resource) }
		if len(quotas) != len(g.Covered) || slices.ContainsFunc(quotas, elsewhere) {
			r.fault(path+".nominal", "the quotas of a resource group have the same dimensions")
		}
		g.Flavors = append(g.Flavors, kueue.FlavorQuota{Flavor: m.GetNodeSet(), Resources: quotas})
	}
	return out
}

// quotas returns the quotas of a flavor.
func (r *reader) quotas(m *apportionv1.Quota, path string) []kueue.Quota {
	out := make([]kueue.Quota, 0, len(m.GetNominal().GetDimensions()))
	r.eachAmount(m.GetNominal(), path+".nominal", func(resource string, amount kueue.Amount) {
		out = append(out, kueue.Quota{Resource: resource, Nominal: amount})
	})
	limits := func(m *apportionv1.Resource, path string, set func(*kueue.Quota, kueue.Amount)) {
		r.eachAmount(m, path, func(resource string, amount kueue.Amount) {
			if i := slices.IndexFunc(out, func(q kueue.Quota) bool { return q.Resource == resource }); i >= 0 {
				set(&out[i], amount)
			} else {
				r.fault(path, "there is no nominal quota of %q", resource)
			}
		})
	}
	limits(m.GetBorrowingLimit(), path+".borrowing_limit", func(q *kueue.Quota, a kueue.Amount) { q.Borrowing = &a })
	limits(m.GetLendingLimit(), path+".lending_limit", func(q *kueue.Quota, a kueue.Amount) { q.Lending = &a })
	return out
}

// check notes an admission check, and returns its name. Of a check that several queues have, one that says that it is active counts.
func (r *reader) check(m *apportionv1.KueueCheck, path string) string {
	if m.GetName() == "" {
		r.fault(path+".name", "a name is needed")
	} else if m.Active != nil {
		r.checks[m.Name] = r.checks[m.Name] || *m.Active
	}
	return m.GetName()
}

// localQueues keeps the local queues of a queue.
func (r *reader) localQueues(queue model.QueueID, list []*apportionv1.KueueLocalQueue, path string) {
	for i, m := range list {
		path := fmt.Sprintf("%s.local_queues[%d]", path, i)
		key := localKey{queue, m.GetOwner()}
		switch {
		case m.GetOwner() == "":
			r.fault(path+".owner", "a name is needed")
			continue
		case r.locals[key] != nil:
			r.fault(path+".owner", "%q is there twice", m.GetOwner())
		}
		r.locals[key] = new(r.localQueue(m, path))
	}
}

// LocalQueue converts a local queue, whose amounts are of named dimensions. What is wrong with it is left out.
func LocalQueue(m *apportionv1.KueueLocalQueue, names []string) kueue.LocalQueue {
	r := reader{fault: lenient.fault, names: names}
	return r.localQueue(m, "")
}

func (r *reader) localQueue(m *apportionv1.KueueLocalQueue, path string) kueue.LocalQueue {
	usage := func(m *apportionv1.Resource, path string) []kueue.Usage {
		var out []kueue.Usage
		r.each(m, path, func(i int, resource string, amount float64) {
			used := r.number(amount, fmt.Sprintf("%s.amounts[%d]", path, i)) / standard(resource)
			out = append(out, kueue.Usage{Resource: resource, Amount: used})
		})
		return out
	}
	namespace, name, named := strings.Cut(m.GetOwner(), "/")
	if !named {
		namespace, name = "", namespace
	}
	return kueue.LocalQueue{
		Namespace: namespace, Name: name, Weight: r.weight(m.Weight, path+".weight"),
		Consumed: usage(m.GetConsumed(), path+".consumed"), Penalty: usage(m.GetPenalty(), path+".penalty"),
	}
}

func (r *reader) queue(q *model.Queue, m *apportionv1.KueueQueue, path string) kueue.Queue {
	if m == nil {
		m = &apportionv1.KueueQueue{}
	}
	return kueue.Queue{
		Name: q.Name, Cohort: q.Parent, Weight: r.weight(m.Weight, path+".weight"), Groups: r.groups(m.GetQuotas(), path),
		Preemption: r.preemption(m.GetPreemption(), path+".preemption"),
		Fungibility: kueue.Fungibility{
			BorrowNext: m.GetFungibility().GetBorrowNext(), PreemptStop: m.GetFungibility().GetPreemptStop(),
			PreferPreemption: m.GetFungibility().GetPreferPreemption(),
		},
		Stopped: m.GetStopped(), Checks: many(m.GetChecks(), path+".checks", r.check), UsageBased: m.GetUsageBased(),
		Strict: m.GetStrict(),
	}
}

func (r *reader) preemption(m *apportionv1.KueuePreemption, path string) kueue.Preemption {
	if m == nil {
		return kueue.Preemption{Reclaim: kueue.Never, Within: kueue.Never}
	}
	return kueue.Preemption{
		Reclaim: r.choice(m.GetReclaimWithinCohort(), path+".reclaim_within_cohort"),
		Within:  r.choice(m.GetWithinClusterQueue(), path+".within_cluster_queue"),
		Borrow:  m.GetBorrowWithinCohort(), Threshold: m.MaxPriorityThreshold,
	}
}

// choice converts a choice; both lists have the same order.
func (r *reader) choice(c apportionv1.KueueChoice, path string) kueue.Choice {
	if _, ok := apportionv1.KueueChoice_name[int32(c)]; !ok {
		r.fault(path, "no choice %d", c)
		return kueue.Never
	}
	return kueue.Choice(c)
}
