// Package kueue decides as Kueue v0.19.2 does: quotas of flavors in trees of cohorts, flavors for pending workloads, victims, and whole
// cycles of admission.
//
// A Cluster is compiled to a Model once; a Session holds what of it changes. Amounts are accounted by flavor-resource: a pair of a flavor
// and a resource, which is a dimension of this package's account only.
//
// What Kueue decides outside of quotas is not judged: topology-aware placement, provisioning and other admission checks, MultiKueue,
// workload slices, concurrent admission and preemption gates. Workload.Unjudged names what applies to a workload.
package kueue

// Cluster is what Kueue's scheduler sees. Objects refer to each other by name; a name that does not exist is no error, as in Kueue.
type Cluster struct {
	// Now is the time in nanoseconds since 1970; it counts for workloads without a time of reservation.
	Now     int64
	Flavors []Flavor
	Cohorts []Cohort
	Queues  []Queue
	// Checks are the admission checks that exist.
	Checks    []Check
	Workloads []Workload
}

// Flavor is a ResourceFlavor: a kind of nodes.
type Flavor struct {
	Name        string
	Labels      map[string]string
	Taints      []Taint
	Tolerations []Toleration
}

// Cohort is a node of the tree above the queues. A cohort that is named without being listed exists without quota.
type Cohort struct {
	Name string
	// Parent is "" for a root.
	Parent string
	// Weight is the fair weight; 1 is Kueue's default.
	Weight float64
	Groups []Group
}

// Queue is a ClusterQueue.
type Queue struct {
	Name string
	// Cohort is "" for a queue that neither lends nor borrows.
	Cohort string
	// Weight is the fair weight; 1 is Kueue's default.
	Weight      float64
	Groups      []Group
	Preemption  Preemption
	Fungibility Fungibility
	// Stopped is true if the queue's stop policy is not None.
	Stopped bool
	// Checks are the names of the admission checks that workloads of the queue pass.
	Checks []string
	// UsageBased: the usage of the local queues orders the workloads of the queue (admission mode UsageBasedAdmissionFairSharing).
	UsageBased bool
	// Strict: while the first workload that waits is not admitted, those behind it wait, too (queueing strategy StrictFIFO).
	Strict bool
	// StandsFor is the name of a cohort: there is no such queue, and what is asked about its position is about the cohort. "": there is.
	StandsFor string
}

// Group is a resource group: the flavors for the resources that it covers, in the order in which they are tried.
type Group struct {
	Covered []string
	Flavors []FlavorQuota
}

// FlavorQuota has the quotas of a flavor.
type FlavorQuota struct {
	Flavor    string
	Resources []Quota
}

// Quota is the quota of a flavor-resource. Borrowing and Lending are nil for no limit.
type Quota struct {
	Resource           string
	Nominal            Amount
	Borrowing, Lending *Amount
}

// Check is an admission check.
type Check struct {
	Name   string
	Active bool
}

// Choice says which workloads may be evicted.
type Choice uint8

// The choices. Unset differs from Never in one place: it does not forbid the search for victims, which then finds none.
const (
	Unset Choice = iota
	Never
	LowerPriority
	LowerOrNewerEqualPriority
	Any
)

// Preemption says in which cases a queue may evict.
type Preemption struct {
	// Reclaim is about workloads of other queues of the cohort, Within about those of the queue itself.
	Reclaim, Within Choice
	// Borrow allows evictions in the cohort by workloads that borrow.
	Borrow bool
	// Threshold is the highest priority of a workload that one which borrows may evict; nil: no limit but its own priority.
	Threshold *int32
}

// Fungibility says what ends the search among flavors. The zero value is Kueue's default.
type Fungibility struct {
	// BorrowNext: try the next flavor rather than borrow.
	BorrowNext bool
	// PreemptStop: stop at a flavor in which victims exist, rather than try the next.
	PreemptStop bool
	// PreferPreemption: of two flavors the one with less borrowing is better, rather than the one with less preemption.
	PreferPreemption bool
}

// Workload is a set of pods that are admitted together.
type Workload struct {
	Namespace, Name, UID string
	// Queue is the ClusterQueue; "" if the local queue does not exist.
	Queue string
	// LocalQueue is the usage of the workload's local queue; nil: it does not count.
	LocalQueue *LocalQueue
	Priority   int64
	// Boost is the value of the annotation kueue.x-k8s.io/priority-boost.
	Boost int64
	// Created is a time in nanoseconds since 1970, like all others.
	Created int64
	// Reserved is the time of the reservation of quota; nil if the workload has none.
	Reserved *int64
	// Requeued is the time from which a workload waits that an admission check evicted; nil if none did.
	Requeued *int64
	// TimedOut is the time at which the workload was evicted because its pods were not ready; nil if it was not.
	TimedOut *int64
	// Reclaimed is the time at which the workload was evicted by one that borrowed; nil if none did.
	Reclaimed *int64
	// Evicted: the workload is about to leave, and still holds quota.
	Evicted bool
	PodSets []PodSet
	// Admission is what holds quota; nil for a pending workload.
	Admission *Admission
	// Withheld is a reason not to nominate the workload that is found outside of this package, such as a namespace that the queue does not
	// admit; "" if there is none.
	Withheld string
	// Parked: the workload is not in its queue at all, and so never the first.
	Parked bool
	// Unjudged names what Kueue decides of the workload and this package does not.
	Unjudged []string
}

// PodSet is a number of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// Least is the smallest count with which the workload may be admitted; nil: Count.
	Least *int32
	// Reclaimable is the number of pods whose quota is no longer needed.
	Reclaimable int32
	// Requests are those of one pod.
	Requests    []Request
	Tolerations []Toleration
	Selector    map[string]string
	// Affinity has the terms of the required node affinity, of which one must match.
	Affinity []Term
}

// Request is an amount of a resource.
type Request struct {
	Resource string
	Amount   Amount
}

// Admission is the decision about an admitted workload.
type Admission struct {
	Queue   string
	PodSets []AdmittedPodSet
}

// AdmittedPodSet has the flavors and the usage of all pods of a set.
type AdmittedPodSet struct {
	Name string
	// Count is nil for that of the set.
	Count *int32
	Usage []FlavoredUsage
}

// FlavoredUsage is a use of a resource in a flavor. A resource with a flavor of "" has none.
type FlavoredUsage struct {
	Resource, Flavor string
	Amount           Amount
	// Used is false for a resource that has a flavor and no usage.
	Used bool
}

// Taint keeps pods away from the nodes of a flavor.
type Taint struct{ Key, Value, Effect string }

// Toleration lets pods on tainted nodes.
type Toleration struct {
	Key, Value, Effect string
	// Operator is Equal, if "", Exists, Lt or Gt.
	Operator string
}

// Term is a list of requirements, of which all must be met.
type Term []Requirement

// Requirement is about a label of nodes.
type Requirement struct {
	Key string
	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt.
	Operator string
	Values   []string
}
