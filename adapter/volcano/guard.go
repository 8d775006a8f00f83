package volcano

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// budget is a PodDisruptionBudget on its way into the snapshot.
type budget struct {
	message *apportionv1.DisruptionBudget
	// selector is nil if it selects no pod.
	selector labels.Selector
	// disrupted are pods whose eviction was granted already: the budget does not count them.
	disrupted []string
	written   objects.Origin
}

// budgetShape is what is read of a PodDisruptionBudget.
var budgetShape = objects.Select("spec.selector*", "status.disruptionsAllowed", "status.disruptedPods")

// disruptionBudget reads a PodDisruptionBudget. Volcano's plugin pdb takes an empty selector for one that selects nothing.
func (r *reader) disruptionBudget(m objects.Metadata, root *objects.Value) {
	status := root.Field("status")
	b := budget{
		message: &apportionv1.DisruptionBudget{
			Namespace: m.Namespace, Name: m.Name, DisruptionsAllowed: r.WholeAt(status.Field("disruptionsAllowed")),
		},
		written: objects.Origin{Doc: r.Doc, At: root.At},
	}
	if written := root.Field(specField).Field("selector"); written != nil {
		var selector metav1.LabelSelector
		readAs(r, written, &selector)
		parsed, err := metav1.LabelSelectorAsSelector(&selector)
		switch {
		case err != nil:
			r.Found.Add(r.Doc, written, "not a selector: %v", err)
		case !parsed.Empty():
			b.selector = parsed
		}
	}
	if disrupted := status.Field("disruptedPods"); r.Is(disrupted, objects.Map) {
		for _, pod := range disrupted.Items {
			b.disrupted = append(b.disrupted, pod.Key)
		}
	}
	r.budgets = append(r.budgets, b)
}

// quota is a ResourceQuota on its way into the snapshot.
type quota struct {
	message *apportionv1.NamespaceQuota
	written objects.Origin
}

// quotaShape is what is read of a ResourceQuota.
var quotaShape = objects.Select("spec.hard", "status.hard", "status.used")

// resourceQuota reads a ResourceQuota. Its status repeats the bounds once its controller has seen them: a file may lack it.
func (r *reader) resourceQuota(m objects.Metadata, root *objects.Value) {
	status := root.Field("status")
	hard := status.Field("hard")
	if hard == nil {
		hard = root.Field(specField).Field("hard")
	}
	r.quotas = append(r.quotas, quota{
		message: &apportionv1.NamespaceQuota{
			Namespace: m.Namespace, Name: m.Name, HardAmounts: r.namedAt(hard), UsedAmounts: r.namedAt(status.Field("used")),
		},
		written: objects.Origin{Doc: r.Doc, At: root.At},
	})
}

// namedAt reads quantities under the names of quotas.
func (r *reader) namedAt(v *objects.Value) []*apportionv1.NamedAmount {
	if !r.Is(v, objects.Map) {
		return nil
	}
	for _, item := range v.Items {
		r.QuantityAt(item)
	}
	return namedIn(v)
}

// namedIn is namedAt for quantities that were read before, so that what is wrong with them is known. The list is in the order of the names.
func namedIn(v *objects.Value) (list []*apportionv1.NamedAmount) {
	if v == nil || v.Type != objects.Map {
		return nil
	}
	for _, item := range v.Items {
		if q, err := objects.Quantity(item.Text); err == nil {
			list = append(list, &apportionv1.NamedAmount{Name: once(item.Key), Amount: namedAmount(item.Key, &q)})
		}
	}
	slices.SortFunc(list, func(a, b *apportionv1.NamedAmount) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

// namedAmount is a quantity in the unit of the resource behind `requests.` or `limits.`; counts of objects are in ones.
func namedAmount(name string, q *resource.Quantity) float64 {
	u := unitOf(strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits."))
	switch {
	case u == milli && overflows(q, milli):
		const thousandths = 1000
		return q.AsApproximateFloat64() * thousandths
	case u == milli:
		return amountOf(q, milli)
	case overflows(q, whole):
		return q.AsApproximateFloat64()
	}
	return amountOf(q, whole)
}

// quotaNames reports whether Volcano's controllers, or the quotas of a namespace, name a resource that the scheduler leaves out: it counts
// for quotas alone.
func quotaNames(name string) bool {
	return strings.HasPrefix(name, "count/") || strings.HasPrefix(name, "requests.") || strings.HasPrefix(name, "limits.")
}

// guard names the disruption budgets that select tasks of the jobs, and what the jobs ask of the quotas of their namespaces.
func (r *reader) guard(snapshot *apportionv1.Snapshot, jobs []*job) {
	r.budgets = kept(r.budgets, model.MaxEntries, func(b *budget, format string, args ...any) {
		of := objects.Identity{Kind: budgetKind, Namespace: b.message.GetNamespace(), Name: b.message.GetName()}
		r.Leave(of, b.written, format, args...)
	}, "more than %d disruption budgets")
	r.quotas = kept(r.quotas, model.MaxEntries, func(q *quota, format string, args ...any) {
		of := objects.Identity{Kind: quotaKind, Namespace: q.message.GetNamespace(), Name: q.message.GetName()}
		r.Leave(of, q.written, format, args...)
	}, "more than %d quotas")
	if len(r.budgets) > 0 {
		r.guardTasks(snapshot, jobs)
	}
	asked := map[string]bool{}
	for i := range r.quotas {
		asked[r.quotas[i].message.GetNamespace()] = false
	}
	for _, j := range jobs {
		if _, bounded := asked[j.message.GetNamespace()]; bounded {
			asked[j.message.GetNamespace()] = true
			if len(j.named) > 0 {
				j.detail().QuotaRequests = j.named
			}
		}
	}
	for i := range r.quotas {
		if q := r.quotas[i].message; asked[q.GetNamespace()] {
			snapshot.Quotas = append(snapshot.Quotas, q)
		}
	}
}

// detail returns the rarely used properties of a job, which are there then.
func (j *job) detail() *apportionv1.JobDetail {
	if j.message.Detail == nil {
		j.message.Detail = &apportionv1.JobDetail{}
	}
	return j.message.GetDetail()
}

// guardTasks names the disruption budgets that select tasks.
func (r *reader) guardTasks(snapshot *apportionv1.Snapshot, jobs []*job) {
	selections, budgets := newSelections(nil), map[uint32][]int{}
	for i := range r.budgets {
		if b := &r.budgets[i]; b.selector != nil {
			n := selections.number(podSelection{&podTerm{selector: b.selector, namespaces: []string{b.message.GetNamespace()}}})
			budgets[n] = append(budgets[n], i)
		}
	}
	used, of := make([]bool, len(r.budgets)), map[*traits][]int{}
	for _, j := range jobs {
		for i, group := range j.message.GetGroups() {
			for k, task := range group.GetTasks() {
				t := j.placed[i][k].traits
				if t == nil || ended(task.GetStatus()) {
					continue
				}
				list, known := of[t]
				if !known {
					numbers, whole := selections.of(t)
					if !whole {
						r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_DROPPED, func() string { return "" },
							"there are too many disruption budgets and pods to hold all against each other: some pods lack theirs")
						return
					}
					for _, n := range numbers {
						list = append(list, budgets[n]...)
					}
					of[t] = list
				}
				r.guardTask(task, list, used)
			}
		}
	}
	for i := range r.budgets {
		if used[i] {
			snapshot.DisruptionBudgets = append(snapshot.DisruptionBudgets, r.budgets[i].message)
		}
	}
}

// guardTask names the budgets of a task, as many as a snapshot takes.
func (r *reader) guardTask(task *apportionv1.Task, list []int, used []bool) {
	const most = 64
	var names []string
	for _, i := range list {
		if b := &r.budgets[i]; len(names) < most && !slices.Contains(b.disrupted, task.GetName()) {
			names, used[i] = append(names, b.message.GetName()), true
		}
	}
	if slices.Sort(names); len(names) == 0 {
		return
	}
	if task.Detail == nil {
		task.Detail = &apportionv1.TaskDetail{}
	}
	task.Detail.DisruptionBudgets = &apportionv1.DisruptionBudgetNames{Names: names}
}

// ended reports whether tasks of a status hold and ask for nothing any more.
func ended(status apportionv1.TaskStatus) bool {
	return status == apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED || status == apportionv1.TaskStatus_TASK_STATUS_FAILED
}
