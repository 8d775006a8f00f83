// Package asfair translates a snapshot of a cluster with Kueue into one that the policy `fair` can judge.
//
// A Cohort becomes a queue, its children are queues below it, and quotas become deserved amounts, guarantees and capabilities. A flavor
// becomes a node with all nominal quota of the flavor, because a Workload of Kueue has no nodes; a workload becomes a gang.
package asfair

import (
	"cmp"
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
	// Snapshot has the queues of the cluster at their positions and the cohorts behind them, and the jobs at their positions. What it says
	// about Kueue is left out.
	Snapshot *apportionv1.Snapshot
	// Notes say what has no counterpart, a sentence each.
	Notes []string
}

// maxTasks is the largest number of pods that a translation has, maxDimensions that of resources, which the capability of each queue lists.
const maxTasks, maxDimensions = 1 << 20, 64

// Of translates a snapshot. It does not change it. Workloads for which there is no room have no pods in the translation, and are named
// among the jobs that are left out. The error says that quotas name too many resources.
func Of(s *apportionv1.Snapshot) (*Translation, error) {
	t := &translator{
		from: s, to: &apportionv1.Snapshot{AsOf: s.GetAsOf(), Cluster: s.GetCluster(), LeftOuts: slices.Clone(s.GetLeftOuts())},
		position: map[string]uint32{}, cohorts: map[string]*cohort{}, sets: map[string]string{},
	}
	t.index()
	t.makeRoom()
	t.listDimensions()
	if n := len(t.to.GetDimensions()); n > maxDimensions {
		return nil, fmt.Errorf("there are %d resources, and at most %d are judged by another policy than kueue", n, maxDimensions)
	}
	t.listCohorts()
	t.makeNodes()
	t.makeQueues()
	for _, j := range t.from.GetJobs() {
		t.to.Jobs = append(t.to.Jobs, t.job(j))
	}
	t.describe()
	return &Translation{Snapshot: t.to, Notes: t.notes}, nil
}

// Both returns a snapshot with the queues, jobs and nodes of a translation that keeps what Kueue's own policy judges: either policy decides
// about the same cluster.
func Both(s *apportionv1.Snapshot, t *Translation) *apportionv1.Snapshot {
	both := proto.CloneOf(t.Snapshot)
	both.Kueue = s.GetKueue()
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
	// named are the resources of quotas and requests.
	named []string
	// position of each resource in the dimensions.
	position map[string]uint32
	cohorts  map[string]*cohort
	// names are the cohorts in order of their positions as queues.
	names []string
	// node is the position of the node of each flavor.
	node map[string]uint32
	// joined says that flavors of different groups share a node.
	joined bool
	// sets are the names of the node sets, each by itself.
	sets map[string]string
	// byName and flavors are those of the cluster by name, active its admission checks that are.
	byName  map[string]*apportionv1.Queue
	flavors map[string]*kueue.Flavor
	active  map[string]bool
}

// index makes byName, flavors and active.
func (t *translator) index() {
	t.byName, t.flavors, t.active = map[string]*apportionv1.Queue{}, map[string]*kueue.Flavor{}, map[string]bool{}
	for _, q := range t.from.GetQueues() {
		t.byName[q.GetName()] = q
	}
	for _, f := range t.from.GetKueue().GetFlavors() {
		t.flavors[f.GetName()] = new(wirekueue.Flavor(f))
	}
	for _, c := range t.from.GetKueue().GetChecks() {
		t.active[c.GetName()] = t.active[c.GetName()] || c.GetActive()
	}
}

func (t *translator) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// listDimensions lists cpu, memory, and all resources of quotas and requests by name.
func (t *translator) listDimensions() {
	all := map[string]bool{}
	for _, groups := range t.quotas() {
		for _, g := range groups {
			for _, f := range g.GetFlavors() {
				for _, q := range f.GetResources() {
					all[q.GetName()] = true
				}
			}
		}
	}
	for _, j := range t.from.GetJobs() {
		for _, p := range j.GetKueue().GetPodSets() {
			for _, r := range p.GetRequests() {
				all[r.GetName()] = true
			}
		}
	}
	t.named = slices.Sorted(maps.Keys(all))
	delete(all, "cpu")
	delete(all, "memory")
	t.to.Dimensions = append([]string{"cpu", "memory"}, slices.Sorted(maps.Keys(all))...)
	for i, name := range t.to.GetDimensions() {
		t.position[name] = uint32(i)
	}
}

// quotas returns the groups of all queues and cohorts.
func (t *translator) quotas() [][]*apportionv1.KueueResourceGroup {
	var all [][]*apportionv1.KueueResourceGroup
	for _, q := range t.from.GetQueues() {
		all = append(all, q.GetKueue().GetGroups())
	}
	for _, c := range t.from.GetKueue().GetCohorts() {
		all = append(all, c.GetGroups())
	}
	return all
}

// amounts are amounts by resource, in Kueue's units. A sum that exceeds int64 is unlimited.
type amounts map[string]int64

const unlimited = math.MaxInt64

func (a amounts) add(resource string, amount int64) {
	if amount > unlimited-a[resource] {
		a[resource] = unlimited
		return
	}
	a[resource] += amount
}

func (a amounts) addAll(b amounts) {
	for resource, amount := range b {
		a.add(resource, amount)
	}
}

// resource returns amounts in the contract's units: thousandths of everything but memory and pods. Unlimited amounts are left out.
func (t *translator) resource(a amounts) *apportionv1.Resource {
	out := &apportionv1.Resource{}
	for _, name := range slices.SortedFunc(maps.Keys(a), func(l, r string) int { return cmp.Compare(t.position[l], t.position[r]) }) {
		if a[name] == unlimited {
			continue
		}
		out.Dimensions = append(out.Dimensions, t.position[name])
		out.Amounts = append(out.Amounts, float64(a[name])*wirekueue.Unit(name))
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
				Name: "flavor-" + strings.Join(members[at], "+"), Allocatable: t.resource(offers[at]),
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
	for _, groups := range t.quotas() {
		first := ""
		for _, g := range groups {
			for _, f := range g.GetFlavors() {
				here := top.find(f.GetName())
				if first = cmp.Or(first, f.GetName()); len(groups) > 1 {
					t.joined = t.joined || here != top.find(first)
					top[here] = top.find(first)
				}
			}
		}
	}
	return top
}

// offers returns the nominal quota of joined flavors. An unlimited quota is as much as all workloads want.
func (t *translator) offers(top joins) map[string]amounts {
	offers, wanted := map[string]amounts{}, t.wanted()
	for _, groups := range t.quotas() {
		for _, g := range groups {
			for _, f := range g.GetFlavors() {
				at := top.find(f.GetName())
				if offers[at] == nil {
					offers[at] = amounts{}
				}
				for _, q := range f.GetResources() {
					offers[at].add(q.GetName(), q.GetNominal())
				}
			}
		}
	}
	for _, offer := range offers {
		for resource, amount := range offer {
			if amount == unlimited {
				offer[resource] = wanted[resource]
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
			sum.add("pods", int64(p.GetCount()))
			for _, r := range p.GetRequests() {
				sum.add(r.GetName(), product(r.GetAmount(), p.GetCount()))
			}
		}
	}
	return sum
}

func product(amount int64, count int32) int64 {
	if count > 0 && amount > unlimited/int64(count) {
		return unlimited
	}
	return amount * int64(max(0, count))
}
