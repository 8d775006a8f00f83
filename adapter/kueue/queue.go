package kueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

type (
	flavor struct {
		message *apportionv1.NodeSet
		// topology is the name of the Topology by which pods are placed in the flavor; "" for none.
		topology string
	}
	cohort struct {
		message *apportionv1.Queue
		names   []string
	}
	check        struct{ message *apportionv1.KueueCheck }
	clusterQueue struct {
		message *apportionv1.Queue
		names   []string
		// selector selects namespaces.
		selector labels.Selector
		// workloads is how many its status counts.
		workloads int
	}
	localQueue struct {
		queue   string
		stopped bool
		message *apportionv1.KueueLocalQueue
		names   []string
	}
)

// labeled is an object of which the labels are read.
type labeled struct {
	Metadata struct {
		Labels labelSet `json:"labels"`
	} `json:"metadata"`
}

// labels reads a Namespace or a Node.
func (r *reader) labels(_ objects.Metadata, o *labeled) (labelSet, bool) {
	return o.Metadata.Labels, true
}

// withoutNodes returns the flavors whose labels no node has, in a cluster of which nodes are known.
func (r *reader) withoutNodes() []string {
	var names []string
	if len(r.nodes) == 0 {
		return nil
	}
	for _, f := range byName(r.flavors) {
		suits := func(of map[string]string) bool {
			return !slices.ContainsFunc(f.message.GetFlavor().GetNodeLabels(), func(l *apportionv1.KueueLabel) bool {
				value, has := of[l.GetKey()]
				return !has || value != l.GetValue()
			})
		}
		if !slices.ContainsFunc(byName(r.nodes), suits) {
			names = append(names, f.message.GetName())
		}
	}
	return names
}

// taint and toleration are those of Kubernetes.
type (
	taint struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Effect string `json:"effect"`
	}
	toleration struct {
		Key      string `json:"key"`
		Operator string `json:"operator"`
		Value    string `json:"value"`
		Effect   string `json:"effect"`
	}
)

// flavorObject is a ResourceFlavor.
type flavorObject struct {
	Spec struct {
		NodeLabels   map[string]string `json:"nodeLabels"`
		NodeTaints   []taint           `json:"nodeTaints"`
		Tolerations  []toleration      `json:"tolerations"`
		TopologyName string            `json:"topologyName"`
	} `json:"spec"`
}

func (r *reader) flavor(meta objects.Metadata, o *flavorObject) (*flavor, bool) {
	m := &apportionv1.KueueFlavor{NodeLabels: labelList(o.Spec.NodeLabels), Tolerations: tolerations(o.Spec.Tolerations)}
	for _, t := range o.Spec.NodeTaints {
		m.Taints = append(m.Taints, &apportionv1.KueueTaint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return &flavor{message: &apportionv1.NodeSet{Name: meta.Name, Flavor: m}, topology: o.Spec.TopologyName}, true
}

func labelList(set map[string]string) []*apportionv1.KueueLabel {
	var out []*apportionv1.KueueLabel
	for _, key := range sortedKeys(set) {
		out = append(out, &apportionv1.KueueLabel{Key: key, Value: set[key]})
	}
	return out
}

func tolerations(list []toleration) []*apportionv1.KueueToleration {
	var out []*apportionv1.KueueToleration
	for _, t := range list {
		out = append(out, &apportionv1.KueueToleration{Key: t.Key, Comparison: t.Operator, Value: t.Value, Effect: t.Effect})
	}
	return out
}

// resourceGroup is a group of a ClusterQueue or a Cohort.
type resourceGroup struct {
	CoveredResources []string `json:"coveredResources"`
	Flavors          []struct {
		Name      string `json:"name"`
		Resources []struct {
			Name           string    `json:"name"`
			NominalQuota   quantity  `json:"nominalQuota"`
			BorrowingLimit *quantity `json:"borrowingLimit"`
			LendingLimit   *quantity `json:"lendingLimit"`
		} `json:"resources"`
	} `json:"flavors"`
}

// quotas returns the quotas of resource groups. As Kueue's own checks have it, a flavor has quotas of all resources that its group covers.
func (r *reader) quotas(list []resourceGroup) []*apportionv1.Quota {
	var out []*apportionv1.Quota
	for i, g := range list {
		for f, flavor := range g.Flavors {
			m, of := &apportionv1.Quota{NodeSet: flavor.Name}, fmt.Sprintf("spec.resourceGroups[%d].flavors[%d].resources", i, f)
			names := make([]string, len(flavor.Resources))
			for k, q := range flavor.Resources {
				names[k] = q.Name
				path := fmt.Sprintf("%s[%d].", of, k)
				r.quantity(&m.Nominal, q.Name, &q.NominalQuota, path+"nominalQuota")
				r.quantity(&m.BorrowingLimit, q.Name, q.BorrowingLimit, path+"borrowingLimit")
				r.quantity(&m.LendingLimit, q.Name, q.LendingLimit, path+"lendingLimit")
			}
			if !slices.Equal(names, g.CoveredResources) {
				r.Fault(of, "they are not the covered resources in their order")
			}
			out = append(out, m)
		}
	}
	return out
}

// cohortObject is a Cohort.
type cohortObject struct {
	Spec struct {
		// ParentName is called Parent before v1beta2.
		ParentName     string          `json:"parentName"`
		Parent         string          `json:"parent"`
		ResourceGroups []resourceGroup `json:"resourceGroups"`
		FairSharing    *fairSharing    `json:"fairSharing"`
	} `json:"spec"`
}

func (r *reader) cohort(meta objects.Metadata, o *cohortObject) (*cohort, bool) {
	own := &apportionv1.KueueQueue{Cohort: true, Weight: r.weight(o.Spec.FairSharing), Quotas: r.quotas(o.Spec.ResourceGroups)}
	m := &apportionv1.Queue{Name: meta.Name, Parent: cmp.Or(o.Spec.ParentName, o.Spec.Parent), Kueue: own, CreateTime: meta.Created}
	return &cohort{m, r.names}, true
}

// checkObject is an AdmissionCheck.
type checkObject struct {
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

func (r *reader) check(meta objects.Metadata, o *checkObject) (*check, bool) {
	active, _ := conditionOf(o.Status.Conditions, "Active")
	return &check{&apportionv1.KueueCheck{Name: meta.Name, Active: &active}}, true
}

// named is a reference by name.
type named struct {
	Name string `json:"name"`
}

// queueSpec is the spec of a ClusterQueue.
type queueSpec struct {
	// CohortName is called Cohort before v1beta2.
	CohortName        string                `json:"cohortName"`
	Cohort            string                `json:"cohort"`
	ResourceGroups    []resourceGroup       `json:"resourceGroups"`
	FairSharing       *fairSharing          `json:"fairSharing"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	StopPolicy        string                `json:"stopPolicy"`
	QueueingStrategy  string                `json:"queueingStrategy"`
	Preemption        *preemption           `json:"preemption"`
	FlavorFungibility struct {
		WhenCanBorrow  string `json:"whenCanBorrow"`
		WhenCanPreempt string `json:"whenCanPreempt"`
		Preference     string `json:"preference"`
	} `json:"flavorFungibility"`
	AdmissionChecks         []string `json:"admissionChecks"`
	AdmissionChecksStrategy struct {
		AdmissionChecks []named `json:"admissionChecks"`
	} `json:"admissionChecksStrategy"`
	AdmissionScope struct {
		AdmissionMode string `json:"admissionMode"`
	} `json:"admissionScope"`
}

type preemption struct {
	ReclaimWithinCohort string `json:"reclaimWithinCohort"`
	WithinClusterQueue  string `json:"withinClusterQueue"`
	BorrowWithinCohort  *struct {
		Policy               string `json:"policy"`
		MaxPriorityThreshold *int32 `json:"maxPriorityThreshold"`
	} `json:"borrowWithinCohort"`
}

// queueObject is a ClusterQueue.
type queueObject struct {
	Spec   queueSpec `json:"spec"`
	Status struct {
		Pending   int `json:"pendingWorkloads"`
		Reserving int `json:"reservingWorkloads"`
	} `json:"status"`
}

func (r *reader) queue(meta objects.Metadata, o *queueObject) (*clusterQueue, bool) {
	s := &o.Spec
	own := &apportionv1.KueueQueue{
		Weight: r.weight(s.FairSharing), Quotas: r.quotas(s.ResourceGroups), Stopped: s.StopPolicy != "" && s.StopPolicy != "None",
		UsageBased: s.AdmissionScope.AdmissionMode == "UsageBasedAdmissionFairSharing", Preemption: r.preemption(s.Preemption),
	}
	own.Strict = r.one(s.QueueingStrategy, "spec.queueingStrategy", "", "BestEffortFIFO", "StrictFIFO") == 2
	for _, name := range s.AdmissionChecks {
		own.Checks = append(own.Checks, &apportionv1.KueueCheck{Name: name})
	}
	for _, c := range s.AdmissionChecksStrategy.AdmissionChecks {
		own.Checks = append(own.Checks, &apportionv1.KueueCheck{Name: c.Name})
	}
	const path, tryNextFlavor = "spec.flavorFungibility.", "TryNextFlavor"
	if f := s.FlavorFungibility; f.WhenCanBorrow+f.WhenCanPreempt+f.Preference != "" {
		own.Fungibility = &apportionv1.KueueFungibility{
			BorrowNext:       r.one(f.WhenCanBorrow, path+"whenCanBorrow", "", "MayStopSearch", "Borrow", tryNextFlavor) == 3,
			PreemptStop:      r.one(f.WhenCanPreempt, path+"whenCanPreempt", "", tryNextFlavor, "MayStopSearch", "Preempt") > 1,
			PreferPreemption: r.one(f.Preference, path+"preference", "", "BorrowingOverPreemption", "PreemptionOverBorrowing") == 2,
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
	if err != nil {
		r.Fault("spec.namespaceSelector", "%v", err)
	}
	return &clusterQueue{
		message: &apportionv1.Queue{Name: meta.Name, Parent: cmp.Or(s.CohortName, s.Cohort), Kueue: own, CreateTime: meta.Created},
		names:   r.names, selector: selector, workloads: o.Status.Pending + o.Status.Reserving,
	}, true
}

// one returns the position of a word in a list of the possible ones.
func (r *reader) one(word, path string, words ...string) int {
	i := slices.Index(words, word)
	if i < 0 {
		known := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
		r.Fault(path, "no value %q; there are %s", word, strings.Join(known, ", "))
	}
	return max(i, 0)
}

func (r *reader) preemption(p *preemption) *apportionv1.KueuePreemption {
	if p == nil {
		return nil
	}
	choice := func(word, path string) apportionv1.KueueChoice {
		return apportionv1.KueueChoice(r.one(word, path, "", "Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"))
	}
	m := &apportionv1.KueuePreemption{
		ReclaimWithinCohort: choice(p.ReclaimWithinCohort, "spec.preemption.reclaimWithinCohort"),
		WithinClusterQueue:  choice(p.WithinClusterQueue, "spec.preemption.withinClusterQueue"),
	}
	if b := p.BorrowWithinCohort; b != nil {
		m.BorrowWithinCohort = b.Policy != "Never"
		m.MaxPriorityThreshold = b.MaxPriorityThreshold
		r.one(b.Policy, "spec.preemption.borrowWithinCohort.policy", "", "Never", "LowerPriority")
	}
	return m
}

// localQueueObject is a LocalQueue.
type localQueueObject struct {
	Spec struct {
		ClusterQueue string       `json:"clusterQueue"`
		StopPolicy   string       `json:"stopPolicy"`
		FairSharing  *fairSharing `json:"fairSharing"`
	} `json:"spec"`
	Status struct {
		FairSharing struct {
			Status struct {
				Consumed map[string]quantity `json:"consumedResources"`
			} `json:"admissionFairSharingStatus"`
		} `json:"fairSharing"`
	} `json:"status"`
}

func (r *reader) localQueue(meta objects.Metadata, o *localQueueObject) (*localQueue, bool) {
	q := &localQueue{queue: o.Spec.ClusterQueue, stopped: o.Spec.StopPolicy != "" && o.Spec.StopPolicy != "None"}
	q.message = &apportionv1.KueueLocalQueue{Owner: meta.Full(), Weight: r.weight(o.Spec.FairSharing)}
	const path = "status.fairSharing.admissionFairSharingStatus.consumedResources."
	consumed := o.Status.FairSharing.Status.Consumed
	for _, name := range sortedKeys(consumed) {
		if parsed, ok := r.parse(consumed[name], path+name); ok {
			q.message.Consumed = r.consumed(q.message.Consumed, name, &parsed)
		}
	}
	q.names = r.names
	return q, true
}
