package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/cooldown"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// How many clusters the properties of plans are tried on; `make properties` tries more. A seed names one cluster: failures tell it.
var (
	planRuns = flag.Int("plans", 150, "how many clusters plans are tried on")
	planSeed = flag.Uint64("planseed", 1, "seed of the first cluster")
)

// planPolicies are the policies that plans are tried under.
func planPolicies() map[string]engine.Policy {
	entry := func(p ...engine.Entry) engine.Tier { return p }
	guard := entry(engine.Entry{Plugin: priority.Plugin{}}, engine.Entry{Plugin: gang.Plugin{}}, engine.Entry{Plugin: conformance.Plugin{}})
	return map[string]engine.Policy{
		"proportion": {Walk: engine.Volcano, Tiers: []engine.Tier{guard, {{Plugin: drf.Plugin{}}, {Plugin: proportion.Plugin{}}}}},
		"capacity": {Tiers: []engine.Tier{
			{{Plugin: priority.Plugin{}}},
			{{Plugin: gang.Plugin{}}, {Plugin: cooldown.Plugin{}}, {Plugin: capacity.Plugin{}}},
		}},
		"tree": {Walk: engine.Volcano, Tiers: []engine.Tier{guard, {{Plugin: capacity.Plugin{Hierarchical: true}}}}},
		"fair": {Tiers: []engine.Tier{
			{{Plugin: priority.Plugin{}}},
			{{Plugin: gang.Plugin{}}, {Plugin: conformance.Plugin{}}, {Plugin: fair.Plugin{Base: fair.OnGuarantee}}},
		}},
	}
}

// dice draws random numbers.
type dice struct {
	*rand.Rand

	// limited clusters have room left on nodes, limits at every level of the tree, and jobs that wait for admission. With budgets, hard
	// budgets that pay for as much in an epoch take the place of limits.
	limited, budgets bool
}

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) between(least, most int) int { return least + d.IntN(most-least+1) }

// amounts are cpu in cores, and GPUs.
func amounts(cpu, gpu int) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{1000 * float64(cpu), 1000 * float64(gpu)}}
}

const epochOfBudgets = 3600

// budgetFor is a hard budget, of which half is spent, that pays for so much during an epoch. GPUs are counted whole, and cores in thousandths.
func budgetFor(most *model.Amounts) *model.BudgetSpec {
	amount, spent := &model.Integers{Dimension: most.Dimension}, &model.Integers{Dimension: most.Dimension}
	for i, d := range most.Dimension {
		left := int64(most.Amount[i]) * epochOfBudgets
		if d == 1 {
			left /= 1000
		}
		amount.Amount, spent.Amount = append(amount.Amount, 2*left), append(spent.Amount, left)
	}
	return &model.BudgetSpec{Kind: model.HardBudget, Amount: amount, Spent: spent}
}

// planCluster is a small busy cluster: each node is filled with running tasks, and some jobs wait.
func planCluster(t require.TestingT, seed uint64, tree bool) *model.Model {
	return drawnCluster(t, seed, tree, nil)
}

// limitedCluster is planCluster with room left on nodes, limits at every level of the tree, and jobs that wait for admission.
func limitedCluster(t require.TestingT, seed uint64, tree bool) *model.Model {
	return dice{Rand: rand.New(rand.NewPCG(seed, 17)), limited: true}.cluster(t, tree, nil)
}

// budgetCluster is limitedCluster in which hard budgets take the place of limits, as a tree.
func budgetCluster(t require.TestingT, seed uint64) *model.Model {
	return dice{Rand: rand.New(rand.NewPCG(seed, 17)), limited: true, budgets: true}.cluster(t, true, nil)
}

// drawnCluster is planCluster in which keeper, if not nil, reserves room of nodes and says when jobs end.
func drawnCluster(t require.TestingT, seed uint64, tree bool, keeper *keeper) *model.Model {
	return dice{Rand: rand.New(rand.NewPCG(seed, 17))}.cluster(t, tree, keeper)
}

func (d dice) cluster(t require.TestingT, tree bool, keeper *keeper) *model.Model {
	b := model.NewBuilder(1_000_000)
	b.Dimensions([]string{"cpu", "gpu"})
	if d.budgets {
		b.Memory(&model.MemorySpec{EpochSeconds: epochOfBudgets, HalfLife: 28})
	}
	cpu, gpu := make([]int, d.between(1, 4)), make([]int, 4)
	for n := range cpu {
		cpu[n], gpu[n] = d.between(4, 8), d.between(0, 4)
		spec := model.NodeSpec{Name: fmt.Sprintf("n%d", n), Allocatable: amounts(cpu[n], gpu[n])}
		if d.limited {
			spec.Allocatable = amounts(cpu[n]+d.IntN(5), gpu[n]+d.IntN(2))
		}
		if d.chance(7) {
			spec.Unschedulable = &model.Unschedulable{Cause: model.Cordoned}
		}
		keeper.reserve(&spec, cpu[n], gpu[n])
		b.Node(spec)
	}
	b.NodeSet(model.NodeSetSpec{Name: "last", Nodes: []uint32{uint32(len(cpu) - 1)}})
	queues := d.queues(b, tree, len(cpu))
	for j := range d.between(3, 7) {
		waits := j >= 2 && d.chance(60)
		minimum := d.between(1, 3)
		spec := model.JobSpec{
			UID: fmt.Sprintf("j%d", j), Queue: queues[d.IntN(len(queues))], Priority: int32(d.IntN(3)), MinAvailable: uint32(minimum),
			Phase: model.PhaseInqueue, CreateTime: int64(d.IntN(5)),
		}
		keeper.last(&spec)
		if d.limited && waits && d.chance(25) {
			spec.Phase, spec.MinResources = model.PhasePending, amounts(minimum, 0)
		}
		b.Job(spec)
		for g := range d.between(1, 2) {
			request := amounts(d.between(1, 3), d.IntN(2))
			spec := model.GroupSpec{Role: fmt.Sprint(g), Request: request}
			if d.chance(10) {
				spec.NodeSet = "last"
			}
			if d.chance(20) {
				spec.MinAvailable, spec.HasMin = 1, true
			}
			b.Group(spec)
			for k := range d.between(1, 3) {
				d.task(b, fmt.Sprintf("j%d-%d-%d", j, g, k), request, waits, cpu, gpu)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

func (d dice) queues(b *model.Builder, tree bool, nodes int) []string {
	var leaves []string
	add := func(name, parent string, leaf bool) {
		spec := model.QueueSpec{Name: name, Parent: parent, Weight: uint32(d.between(1, 3)), Reclaimable: d.chance(90), CreateTime: int64(d.IntN(3))}
		if d.chance(60) {
			spec.Deserved = amounts(d.between(1, 3*nodes), d.between(0, 2*nodes))
		}
		if leaf && d.chance(20) || d.limited && d.chance(50) {
			spec.Capability = amounts(d.between(3, 6*nodes), d.between(1, 4*nodes))
		}
		if leaf && d.chance(20) {
			spec.Guarantee = amounts(1, 0)
		}
		if d.budgets && spec.Capability != nil {
			spec.Memory, spec.Capability = &model.QueueMemorySpec{Budget: budgetFor(spec.Capability)}, nil
		}
		b.Queue(spec)
		if leaf {
			leaves = append(leaves, name)
		}
	}
	if tree {
		b.Queue(model.QueueSpec{Name: "root", Weight: 1, Reclaimable: true})
		for i := range d.between(1, 2) {
			add(fmt.Sprintf("p%d", i), "root", false)
			for k := range d.between(1, 2) {
				add(fmt.Sprintf("q%d%d", i, k), fmt.Sprintf("p%d", i), true)
			}
		}
		return leaves
	}
	for i := range d.between(2, 3) {
		add(fmt.Sprintf("q%d", i), "", true)
	}
	return leaves
}

// task adds a task: one that waits, or one that runs on a node that has room, or else waits.
func (d dice) task(b *model.Builder, uid string, request *model.Amounts, waits bool, cpu, gpu []int) {
	spec := model.TaskSpec{
		UID: uid, Node: model.None, Index: -1, Preemptable: d.chance(92), Priority: int32(d.IntN(2)), CreateTime: int64(d.IntN(4)),
	}
	c, g := int(request.Amount[0]/1000), int(request.Amount[1]/1000)
	if n := d.IntN(len(cpu)); !waits && cpu[n] >= c && gpu[n] >= g {
		cpu[n] -= c
		gpu[n] -= g
		spec.Status, spec.Node = model.Running, model.NodeID(n)
		if d.chance(4) {
			spec.Status = model.Releasing
		}
	}
	if d.chance(5) {
		spec.Detail = &model.Detail{PriorityClass: "system-node-critical"}
	}
	if d.chance(5) {
		spec.Detail = &model.Detail{ScheduleTime: 999_999, HasScheduleTime: true, Cooldown: int64(d.IntN(3)), HasCooldown: true}
	}
	b.Task(&spec)
}

// eachPlan calls try for every waiting job of random clusters under every policy.
func eachPlan(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	eachPlanOn(t, runs, func(name string, seed uint64) *model.Model { return planCluster(t, seed, name == "tree") }, try)
}

// eachLimitedPlan is eachPlan on limited clusters; under fair half of them are trees.
func eachLimitedPlan(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	eachPlanOn(t, runs, func(name string, seed uint64) *model.Model {
		return limitedCluster(t, seed, name == "tree" || name == "fair" && seed%2 == 0)
	}, try)
}

func eachPlanOn(
	t require.TestingT, runs int, cluster func(name string, seed uint64) *model.Model,
	try func(name string, seed uint64, s *engine.Session, j model.JobID),
) {
	for i := range runs {
		seed := *planSeed + uint64(i)
		for name, p := range planPolicies() {
			s, err := engine.Open(cluster(name, seed), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				try(name, seed, s, j)
			}
		}
	}
}
