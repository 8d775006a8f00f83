// Package asfair translates a snapshot of a cluster with Kueue into one that the policy `fair` can judge.
//
// A Cohort becomes a queue, its children are queues below it, and quotas become deserved amounts, guarantees and capabilities. A flavor
// becomes a node with all nominal quota of the flavor, because a Workload of Kueue has no nodes; a workload becomes a gang.
package asfair

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Translation is a cluster as the policy `fair` sees it.
type Translation struct {
	// Snapshot has the queues of the cluster at their positions, and cohorts that are only named behind them, and the jobs at their
	// positions. What it says about Kueue is left out.
	Snapshot *apportionv1.Snapshot
	// Notes say what has no counterpart, a sentence each.
	Notes []string
}

// maxTasks is the largest number of pods that a translation has.
const maxTasks = 1 << 20

// Of translates a snapshot. It does not change it. Workloads for which there is no room have no pods in the translation, and are named
// among the jobs that are left out.
func Of(s *apportionv1.Snapshot) *Translation {
	t := &translator{
		from: s, to: &apportionv1.Snapshot{
			AsOf: s.GetAsOf(), Cluster: s.GetCluster(), Dimensions: s.GetDimensions(), LeftOuts: slices.Clone(s.GetLeftOuts()),
		},
		cohorts: map[string]*cohort{}, sets: map[string]string{}, named: map[uint32]bool{},
	}
	t.index()
	t.makeRoom()
	t.listCohorts()
	t.makeNodes()
	t.makeQueues()
	for _, j := range t.from.GetJobs() {
		t.to.Jobs = append(t.to.Jobs, t.job(j))
	}
	t.describe()
	return &Translation{Snapshot: t.to, Notes: t.notes}
}

// Both returns a snapshot with the queues, jobs and nodes of a translation that keeps what Kueue's own policy judges: either policy decides
// about the same cluster.
func Both(s *apportionv1.Snapshot, t *Translation) *apportionv1.Snapshot {
	both := proto.CloneOf(t.Snapshot)
	both.NodeSets = append(both.NodeSets, s.GetNodeSets()...)
	for i, q := range s.GetQueues() {
		both.Queues[i].Kueue = q.GetKueue()
	}
	for i, j := range s.GetJobs() {
		both.Jobs[i].Kueue = j.GetKueue()
	}
	return both
}

// translator is a translation under way.
type translator struct {
	from, to *apportionv1.Snapshot
	notes    []string
	// named are the dimensions of quotas and requests, pods that of pods, or none.
	named   map[uint32]bool
	pods    int
	cohorts map[string]*cohort
	// names are the cohorts in order of their positions as queues.
	names []string
	// node is the position of the node of each flavor.
	node map[string]uint32
	// joined says that flavors of different groups share a node.
	joined bool
	// sets are the names of the node sets, each by itself.
	sets map[string]string
	// byName and flavors are those of the cluster by name.
	byName  map[string]*apportionv1.Queue
	flavors map[string]*kueue.Flavor
}

// index makes byName, flavors and named.
func (t *translator) index() {
	t.byName, t.flavors = map[string]*apportionv1.Queue{}, map[string]*kueue.Flavor{}
	t.pods = slices.Index(t.from.GetDimensions(), "pods")
	for _, q := range t.from.GetQueues() {
		t.byName[q.GetName()] = q
		t.name(wirekueue.Lists(q.GetKueue())...)
	}
	for _, j := range t.from.GetJobs() {
		for _, p := range j.GetKueue().GetPodSets() {
			t.name(p.GetRequest().GetDimensions())
		}
	}
	for _, s := range t.from.GetNodeSets() {
		if s.GetFlavor() != nil {
			t.flavors[s.GetName()] = new(wirekueue.Flavor(s.GetName(), s.GetFlavor()))
		}
	}
}

// name notes dimensions that quotas or requests have.
func (t *translator) name(lists ...[]uint32) {
	for _, d := range slices.Concat(lists...) {
		t.named[d] = true
	}
}

func (t *translator) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// amounts are amounts by dimension; infinite ones are unlimited.
type amounts map[uint32]float64

func (a amounts) add(b *apportionv1.Resource, times float64) {
	for i, d := range b.GetDimensions() {
		a[d] += b.GetAmounts()[i] * times
	}
}

func (a amounts) addAll(b amounts) {
	for d, amount := range b {
		a[d] += amount
	}
}

// resource returns amounts without those that are unlimited.
func resource(a amounts) *apportionv1.Resource {
	out := &apportionv1.Resource{}
	for _, d := range slices.Sorted(maps.Keys(a)) {
		if !math.IsInf(a[d], 1) {
			out.Dimensions, out.Amounts = append(out.Dimensions, d), append(out.Amounts, a[d])
		}
	}
	return out
}

// makeNodes makes a node of each flavor. Flavors of different groups of one queue are one node, because a pod uses several of them.
func (t *translator) makeNodes() {
	top := t.joinFlavors()
	offers, members := t.offers(top), map[string][]string{}
	flavors := slices.Sorted(maps.Keys(top))
	for _, f := range flavors {
		members[top.find(f)] = append(members[top.find(f)], f)
	}
	position := map[string]uint32{}
	t.node = map[string]uint32{}
	for _, f := range flavors {
		at := top.find(f)
		if _, made := position[at]; !made {
			position[at] = uint32(len(t.to.GetNodes()))
			t.to.Nodes = append(t.to.Nodes, &apportionv1.Node{
				Name: "flavor-" + strings.Join(members[at], "+"), Allocatable: resource(offers[at]),
			})
		}
		t.node[f] = position[at]
	}
	if t.joined {
		t.note("flavors of different resource groups of one queue are one node here, and cannot be told apart")
	}
}

// joins has for each flavor another one with which it is joined, or itself.
type joins map[string]string

// find returns the flavor that stands for all that are joined with f. It halves the way there, so that no way is long.
func (j joins) find(f string) string {
	if _, ok := j[f]; !ok {
		j[f] = f
	}
	for j[f] != f {
		j[f] = j[j[f]]
		f = j[f]
	}
	return f
}

// joinFlavors joins the flavors of each owner that has several groups.
func (t *translator) joinFlavors() joins {
	top := joins{}
	for _, q := range t.from.GetQueues() {
		quotas := q.GetKueue().GetQuotas()
		several := slices.ContainsFunc(quotas, func(o *apportionv1.Quota) bool { return !sameGroup(o, quotas[0]) })
		for _, o := range quotas {
			here, first := top.find(o.GetNodeSet()), top.find(quotas[0].GetNodeSet())
			if several {
				t.joined = t.joined || here != first
				top[here] = first
			}
		}
	}
	return top
}

// sameGroup reports whether quotas are of one resource group.
func sameGroup(a, b *apportionv1.Quota) bool {
	other := b.GetNominal().GetDimensions()
	return slices.ContainsFunc(a.GetNominal().GetDimensions(), func(d uint32) bool { return slices.Contains(other, d) })
}

// offers returns the nominal quota of joined flavors. An unlimited quota is as much as all workloads want.
func (t *translator) offers(top joins) map[string]amounts {
	offers, wanted := map[string]amounts{}, t.wanted()
	for _, q := range t.from.GetQueues() {
		for _, o := range q.GetKueue().GetQuotas() {
			at := top.find(o.GetNodeSet())
			if offers[at] == nil {
				offers[at] = amounts{}
			}
			offers[at].add(o.GetNominal(), 1)
		}
	}
	for _, offer := range offers {
		for d, amount := range offer {
			if math.IsInf(amount, 1) {
				offer[d] = wanted[d]
			}
		}
	}
	return offers
}

// wanted returns what all workloads request.
func (t *translator) wanted() amounts {
	sum := amounts{}
	for _, j := range t.from.GetJobs() {
		for _, p := range j.GetKueue().GetPodSets() {
			if t.pods >= 0 {
				sum[uint32(t.pods)] += float64(p.GetCount())
			}
			sum.add(p.GetRequest(), float64(max(0, p.GetCount())))
		}
	}
	return sum
}
