package kueue

import "slices"

// Model is a compiled cluster. It is immutable, and safe for concurrent use by sessions.
type Model struct {
	settings Settings
	now      int64

	flavors   []flavor
	resources []string
	// order is the place of each resource in the order in which Kueue visits them; pods is the resource that counts pods.
	order []int32
	pods  int32
	// nodes are the queues in their order, then the cohorts: those listed, then those that are only named.
	nodes  []node
	queues []queue
	trees  []tree
	// standIns has the cohort of each position among the queues that stands for one.
	standIns map[int32]int32
	// topDown lists the cohorts that are not below a cycle, each after its parent.
	topDown   []int32
	workloads []workload

	quotas accounts
	// usage is the usage of each node in its row.
	usage []Amount
	// locals are the local queues whose usage counts.
	locals []LocalUsage
}

// none is the index of nothing.
const none = -1

// flavor is a compiled flavor. It exists if it is listed.
type flavor struct {
	Flavor

	exists bool
}

// node is a queue or a cohort.
type node struct {
	name   string
	parent int32
	// tree is none below a cycle of cohorts.
	tree int32
	// row is the position of the node's amounts in each slab; their number is that of the tree's flavor-resources.
	row    int32
	weight float64
	// height is that of a cohort: 0 without children, else the longest way down to a leaf.
	height int32
	// lendable is the position of a cohort's row of lendable amounts, one for each resource of the tree.
	lendable int32
	// cohorts and queues are the children that take part, by name.
	cohorts, queues []int32
}

// tree has the flavor-resources of the nodes below a root, ascending by the names of resource and flavor.
type tree struct {
	root     int32
	pairs    []pair
	resource []int32
	// resources are the resources of the pairs: resource[i] is a position in it.
	resources []int32
}

// pair is a flavor-resource.
type pair struct{ flavor, resource int32 }

// queue has what only queues have.
type queue struct {
	groups      []group
	preemption  Preemption
	fungibility Fungibility
	inactive    Inactivity
	// missing is the flavor or the admission check that inactive is about.
	missing string
	// inCycle: the queue is below a cycle of cohorts.
	inCycle    bool
	usageBased bool
	strict     bool
	// width is the number of resources and flavors of all groups: a look for one of them compares so many at most.
	width int
	// admitted hold quota, pending wait.
	admitted, pending []int32
}

// active reports whether the queue takes part.
func (q *queue) active() bool { return q.inactive == Active && !q.inCycle }

// group is a compiled resource group.
type group struct {
	covered []int32
	// places are the positions in covered by resource; nil for a short list.
	places  map[int32]int
	flavors []int32
	// frs[f*len(covered)+r] is the flavor-resource of flavors[f] and covered[r].
	frs []int32
}

// fr returns the flavor-resource of a flavor and a resource by their positions.
func (g *group) fr(flavor, resource int) int32 { return g.frs[flavor*len(g.covered)+resource] }

// groupOf returns the first group that covers a resource and the resource's position in it, or nil.
func (q *queue) groupOf(resource int32) (*group, int) {
	for i := range q.groups {
		if k := q.groups[i].position(resource); k != none {
			return &q.groups[i], k
		}
	}
	return nil, 0
}

// shortList is the length from which a list is looked up by a map.
const shortList = 32

// index sets places.
func (g *group) index() {
	if len(g.covered) < shortList {
		return
	}
	g.places = make(map[int32]int, len(g.covered))
	for k, resource := range slices.Backward(g.covered) {
		g.places[resource] = k
	}
}

// position returns the first position of a resource among those that the group covers, or none.
func (g *group) position(resource int32) int {
	if g.places == nil {
		return slices.Index(g.covered, resource)
	}
	if k, ok := g.places[resource]; ok {
		return k
	}
	return none
}

// accounts are slabs with a row for each node.
type accounts struct {
	nominal, borrowing, lending []Amount
	// subtree is what the node and those below it have for the parent and themselves, local the part that is never lent, potential what
	// the node could have without any usage.
	subtree, local, potential []Amount
	kept                      []kept
	// lendable has a row for each cohort.
	lendable []Amount
}

// kept says which amounts an account has.
type kept uint8

const (
	hasQuota kept = 1 << iota
	hasBorrowing
	hasLending
	// hasSubtree: the node or one below it lists the flavor-resource.
	hasSubtree
	// hasUsage: a workload of the node or below it uses the flavor-resource.
	hasUsage
)

// Inactivity says why a queue admits nothing.
type Inactivity uint8

// The reasons, the first that applies.
const (
	Active Inactivity = iota
	Stopped
	FlavorNotFound
	CheckNotFound
	CheckInactive
	// CohortCycle: the queue is below a cycle of cohorts.
	CohortCycle
)

// String returns Kueue's word for the reason.
func (i Inactivity) String() string {
	return [...]string{"Ready", "Stopped", "FlavorNotFound", "AdmissionCheckNotFound", "AdmissionCheckInactive", "CohortCycle"}[i]
}

// workload is a compiled workload.
type workload struct {
	*Workload

	// queue is a node, or none; for an admitted one that of its admission.
	queue    int32
	holds    bool
	priority int64
	// since orders workloads in their queue.
	since int64
	// reserved is the time of the reservation, or now.
	reserved int64
	// usage has each flavor-resource once; assigned are those that the workload has a flavor for.
	usage    []Use
	assigned []int32
	podSets  []podSet
	// local is the local queue among the locals, none if its usage does not count.
	local int32
}

// Use is an amount of a flavor-resource of a tree; see Model.FlavorResource.
type Use struct {
	FR     int32
	Amount Amount
}

// podSet is a set of a pending workload.
type podSet struct {
	*PodSet

	count int32
	// requests are those of all pods, without `pods`, and in the order in which Kueue visits them.
	requests []request
	// rules is the number of requirements on flavors and of their values.
	rules int
}

type request struct {
	resource int32
	amount   Amount
}
