// Package kueue converts between the contract's messages about Kueue and the types of the policy `kueue`.
package kueue

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Fault reports a violation at a path within the snapshot.
type Fault func(path, format string, args ...any)

// reader converts messages and reports what is wrong with them.
type reader struct {
	fault  Fault
	locals []*kueue.LocalQueue
}

// ClusterOf returns the cluster of a model, or a *model.Error with what is wrong in the messages about Kueue. Queues and jobs keep their
// positions; those without a message about Kueue, and removed ones, do not take part.
func ClusterOf(m *model.Model) (*kueue.Cluster, error) {
	faults := &model.Error{}
	r := reader{fault: func(path, format string, args ...any) { faults.Add(path, format, args...) }}
	own := Extra[*apportionv1.KueueSnapshot](m.Extra)
	out := &kueue.Cluster{
		Now:       m.AsOf,
		Flavors:   many(own.GetFlavors(), "kueue.flavors", r.flavor),
		Cohorts:   many(own.GetCohorts(), "kueue.cohorts", r.cohort),
		Checks:    many(own.GetChecks(), "kueue.checks", r.check),
		Queues:    make([]kueue.Queue, len(m.Queues)),
		Workloads: make([]kueue.Workload, m.Jobs.Len()),
	}
	for i, q := range own.GetLocalQueues() {
		r.locals = append(r.locals, new(r.localQueue(q, fmt.Sprintf("kueue.local_queues[%d]", i))))
	}
	for i := range m.Queues {
		message := Extra[*apportionv1.KueueQueue](m.Queues[i].Extra)
		out.Queues[i] = r.queue(message, fmt.Sprintf("queues[%d].kueue", i))
		out.Queues[i].Name = m.Queues[i].Name
	}
	for j := range model.JobID(m.Jobs.Len()) {
		out.Workloads[j] = r.workload(m, j)
	}
	r.unique(len(out.Flavors), "kueue.flavors", func(i int) string { return out.Flavors[i].Name })
	r.unique(len(out.Cohorts), "kueue.cohorts", func(i int) string { return out.Cohorts[i].Name })
	r.unique(len(out.Checks), "kueue.checks", func(i int) string { return out.Checks[i].Name })
	return out, faults.OrNil()
}

// Unit returns how many units of the contract one of Kueue's units of a resource is. Kueue counts thousandths of cores and whole units of
// all else, the contract thousandths of all but memory and pods.
func Unit(resource string) float64 {
	switch resource {
	case "cpu", "memory", "pods":
		return 1
	}
	return 1000
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
func Flavor(m *apportionv1.KueueFlavor) kueue.Flavor { return lenient.flavor(m, "") }

// lenient reports nothing.
var lenient = &reader{fault: func(string, string, ...any) {}}

func (r *reader) flavor(m *apportionv1.KueueFlavor, path string) kueue.Flavor {
	return kueue.Flavor{
		Name: m.GetName(), Labels: labels(m.GetNodeLabels()), Tolerations: tolerations(m.GetTolerations()),
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

func (r *reader) cohort(m *apportionv1.KueueCohort, path string) kueue.Cohort {
	return kueue.Cohort{
		Name: m.GetName(), Parent: m.GetParent(), Weight: r.weight(m.GetWeight(), m != nil && m.Weight != nil, path),
		Groups: r.groups(m.GetGroups(), path+".groups"),
	}
}

// weight returns a fair weight, 1 if it is absent.
func (r *reader) weight(weight float64, there bool, path string) float64 {
	if !there {
		return 1
	}
	return r.number(weight, path+".weight")
}

// number returns a number that must be finite and not negative.
func (r *reader) number(n float64, path string) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		r.fault(path, "%v is not a finite number of at least 0", n)
		return 0
	}
	return n
}

// amount returns an amount, which must not be negative.
func (r *reader) amount(n int64, path string) kueue.Amount {
	if n < 0 {
		r.fault(path, "%d is negative", n)
		return 0
	}
	return kueue.Amount(n)
}

// optional returns an amount, or nil if it is absent.
func (r *reader) optional(n *int64, path string) *kueue.Amount {
	if n == nil {
		return nil
	}
	return new(r.amount(*n, path))
}

// groups converts the groups of an owner, which together cover each resource once.
func (r *reader) groups(list []*apportionv1.KueueResourceGroup, path string) []kueue.Group {
	out, covered := many(list, path, r.group), map[string]bool{}
	for i, g := range list {
		for k, name := range g.GetCoveredResources() {
			path := fmt.Sprintf("%s[%d].covered_resources[%d]", path, i, k)
			if r.resource(name, path); covered[name] {
				r.fault(path, "%q is there twice", name)
			}
			covered[name] = true
		}
	}
	return out
}

func (r *reader) group(m *apportionv1.KueueResourceGroup, path string) kueue.Group {
	return kueue.Group{
		Covered: m.GetCoveredResources(),
		Flavors: many(m.GetFlavors(), path+".flavors", func(f *apportionv1.KueueFlavorQuotas, path string) kueue.FlavorQuota {
			if f.GetName() == "" {
				r.fault(path+".name", "a flavor needs a name")
			}
			quotas := many(f.GetResources(), path+".resources", r.quota)
			r.resources(len(quotas), path+".resources", func(i int) string { return quotas[i].Resource })
			return kueue.FlavorQuota{Flavor: f.GetName(), Resources: quotas}
		}),
	}
}

func (r *reader) quota(m *apportionv1.KueueQuota, path string) kueue.Quota {
	if m == nil {
		m = &apportionv1.KueueQuota{}
	}
	if m.Name == "" {
		r.fault(path+".name", "a quota needs the name of a resource")
	}
	return kueue.Quota{
		Resource: m.Name, Nominal: r.amount(m.Nominal, path+".nominal"),
		Borrowing: r.optional(m.BorrowingLimit, path+".borrowing_limit"), Lending: r.optional(m.LendingLimit, path+".lending_limit"),
	}
}

func (r *reader) check(m *apportionv1.KueueCheck, _ string) kueue.Check {
	return kueue.Check{Name: m.GetName(), Active: m.GetActive()}
}

func (r *reader) localQueue(m *apportionv1.KueueLocalQueue, path string) kueue.LocalQueue {
	usage := func(list []*apportionv1.KueueUsage, path string) []kueue.Usage {
		return many(list, path, func(u *apportionv1.KueueUsage, path string) kueue.Usage {
			return kueue.Usage{Resource: r.resource(u.GetName(), path+".name"), Amount: r.number(u.GetAmount(), path+".amount")}
		})
	}
	if m.GetName() == "" {
		r.fault(path+".name", "a name is needed")
	}
	return kueue.LocalQueue{
		Namespace: m.GetNamespace(), Name: m.GetName(), Weight: r.weight(m.GetWeight(), m != nil && m.Weight != nil, path),
		Consumed: usage(m.GetConsumedUsages(), path+".consumed_usages"), Penalty: usage(m.GetPenaltyUsages(), path+".penalty_usages"),
	}
}

func (r *reader) queue(m *apportionv1.KueueQueue, path string) kueue.Queue {
	return kueue.Queue{
		Cohort: m.GetCohort(), Weight: r.weight(m.GetWeight(), m != nil && m.Weight != nil, path),
		Groups: r.groups(m.GetGroups(), path+".groups"), Preemption: r.preemption(m.GetPreemption(), path+".preemption"),
		Fungibility: kueue.Fungibility{
			BorrowNext: m.GetFungibility().GetBorrowNext(), PreemptStop: m.GetFungibility().GetPreemptStop(),
			PreferPreemption: m.GetFungibility().GetPreferPreemption(),
		},
		Stopped: m.GetStopped(), Checks: m.GetChecks(), UsageBased: m.GetUsageBased(), Strict: m.GetStrict(),
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
