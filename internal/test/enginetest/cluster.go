// Package enginetest draws the clusters on which the tests of several packages of the engine ask their questions.
package enginetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

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
	Runs = flag.Int("plans", 150, "how many clusters plans are tried on")
	Seed = flag.Uint64("planseed", 1, "seed of the first cluster")
)

// Policies are the policies that plans are tried under.
func Policies() map[string]engine.Policy {
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

// Dice draws random numbers.
type Dice struct {
	*rand.Rand

	// limited clusters have room left on nodes, limits at every level of the tree, and jobs that wait for admission. With budgets, hard
	// budgets that pay for as much in an epoch take the place of limits.
	limited, budgets bool
}

// Chance is true so many times of a hundred.
func (d Dice) Chance(percent int) bool { return d.IntN(100) < percent }

// Between draws a number.
func (d Dice) Between(least, most int) int { return least + d.IntN(most-least+1) }

// Amounts are cpu in cores, and GPUs.
func Amounts(cpu, gpu int) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{1000 * float64(cpu), 1000 * float64(gpu)}}
}

// EpochOfBudgets is the length of the epochs in which budgets are paid, in seconds.
const EpochOfBudgets = 3600

// BudgetFor is a hard budget, of which half is spent, that pays for so much during an epoch. GPUs are counted whole, and cores in
// thousandths.
func BudgetFor(most *model.Amounts) *model.BudgetSpec {
	amount, spent := &model.Integers{Dimension: most.Dimension}, &model.Integers{Dimension: most.Dimension}
	for i, d := range most.Dimension {
		left := int64(most.Amount[i]) * EpochOfBudgets
		if d == 1 {
			left /= 1000
		}
		amount.Amount, spent.Amount = append(amount.Amount, 2*left), append(spent.Amount, left)
	}
	return &model.BudgetSpec{Kind: model.HardBudget, Amount: amount, Spent: spent}
}

// PlanCluster is a small busy cluster: each node is filled with running tasks, and some jobs wait.
func PlanCluster(t require.TestingT, seed uint64, tree bool) *model.Model {
	return DrawnCluster(t, seed, tree, nil)
}

// LimitedCluster is PlanCluster with room left on nodes, limits at every level of the tree, and jobs that wait for admission.
func LimitedCluster(t require.TestingT, seed uint64, tree bool) *model.Model {
	return Dice{Rand: rand.New(rand.NewPCG(seed, 17)), limited: true}.cluster(t, tree, nil)
}

// BudgetCluster is LimitedCluster in which hard budgets take the place of limits, as a tree.
func BudgetCluster(t require.TestingT, seed uint64) *model.Model {
	return Dice{Rand: rand.New(rand.NewPCG(seed, 17)), limited: true, budgets: true}.cluster(t, true, nil)
}

// DrawnCluster is PlanCluster in which keeper, if not nil, reserves room of nodes and says when jobs end.
func DrawnCluster(t require.TestingT, seed uint64, tree bool, keeper *Keeper) *model.Model {
	return Dice{Rand: rand.New(rand.NewPCG(seed, 17))}.cluster(t, tree, keeper)
}

func (d Dice) cluster(t require.TestingT, tree bool, keeper *Keeper) *model.Model {
	b := model.NewBuilder(1_000_000)
	b.Dimensions([]string{"cpu", "gpu"})
	if d.budgets {
		b.Memory(&model.MemorySpec{EpochSeconds: EpochOfBudgets, HalfLife: 28})
	}
	cpu, gpu := make([]int, d.Between(1, 4)), make([]int, 4)
	for n := range cpu {
		cpu[n], gpu[n] = d.Between(4, 8), d.Between(0, 4)
		spec := model.NodeSpec{Name: fmt.Sprintf("n%d", n), Allocatable: Amounts(cpu[n], gpu[n])}
		if d.limited {
			spec.Allocatable = Amounts(cpu[n]+d.IntN(5), gpu[n]+d.IntN(2))
		}
		if d.Chance(7) {
			spec.Unschedulable = &model.Unschedulable{Cause: model.Cordoned}
		}
		keeper.reserve(&spec, cpu[n], gpu[n])
		b.Node(spec)
	}
	b.NodeSet(model.NodeSetSpec{Name: "last", Nodes: []uint32{uint32(len(cpu) - 1)}})
	queues := d.Queues(b, tree, len(cpu))
	for j := range d.Between(3, 7) {
		waits := j >= 2 && d.Chance(60)
		minimum := d.Between(1, 3)
		spec := model.JobSpec{
			UID: fmt.Sprintf("j%d", j), Queue: queues[d.IntN(len(queues))], Priority: int32(d.IntN(3)), MinAvailable: uint32(minimum),
			Phase: model.PhaseInqueue, CreateTime: int64(d.IntN(5)),
		}
		keeper.last(&spec)
		if d.limited && waits && d.Chance(25) {
			spec.Phase, spec.MinResources = model.PhasePending, Amounts(minimum, 0)
		}
		b.Job(spec)
		for g := range d.Between(1, 2) {
			request := Amounts(d.Between(1, 3), d.IntN(2))
			spec := model.GroupSpec{Role: fmt.Sprint(g), Request: request}
			if d.Chance(10) {
				spec.NodeSet = "last"
			}
			if d.Chance(20) {
				spec.MinAvailable, spec.HasMin = 1, true
			}
			b.Group(spec)
			for k := range d.Between(1, 3) {
				d.task(b, fmt.Sprintf("j%d-%d-%d", j, g, k), request, waits, cpu, gpu)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

// Queues adds queues, at random a tree, and returns those that take jobs.
func (d Dice) Queues(b *model.Builder, tree bool, nodes int) []string {
	var leaves []string
	add := func(name, parent string, leaf bool) {
		spec := model.QueueSpec{
			Name: name, Parent: parent, Weight: uint32(d.Between(1, 3)), Reclaimable: d.Chance(90), CreateTime: int64(d.IntN(3)),
		}
		if d.Chance(60) {
			spec.Deserved = Amounts(d.Between(1, 3*nodes), d.Between(0, 2*nodes))
		}
		if leaf && d.Chance(20) || d.limited && d.Chance(50) {
			spec.Capability = Amounts(d.Between(3, 6*nodes), d.Between(1, 4*nodes))
		}
		if leaf && d.Chance(20) {
			spec.Guarantee = Amounts(1, 0)
		}
		if d.budgets && spec.Capability != nil {
			spec.Memory, spec.Capability = &model.QueueMemorySpec{Budget: BudgetFor(spec.Capability)}, nil
		}
		b.Queue(spec)
		if leaf {
			leaves = append(leaves, name)
		}
	}
	if tree {
		b.Queue(model.QueueSpec{Name: "root", Weight: 1, Reclaimable: true})
		for i := range d.Between(1, 2) {
			add(fmt.Sprintf("p%d", i), "root", false)
			for k := range d.Between(1, 2) {
				add(fmt.Sprintf("q%d%d", i, k), fmt.Sprintf("p%d", i), true)
			}
		}
		return leaves
	}
	for i := range d.Between(2, 3) {
		add(fmt.Sprintf("q%d", i), "", true)
	}
	return leaves
}

// task adds a task: one that waits, or one that runs on a node that has room, or else waits.
func (d Dice) task(b *model.Builder, uid string, request *model.Amounts, waits bool, cpu, gpu []int) {
	spec := model.TaskSpec{
		UID: uid, Node: model.None, Index: -1, Preemptable: d.Chance(92), Priority: int32(d.IntN(2)), CreateTime: int64(d.IntN(4)),
	}
	c, g := int(request.Amount[0]/1000), int(request.Amount[1]/1000)
	if n := d.IntN(len(cpu)); !waits && cpu[n] >= c && gpu[n] >= g {
		cpu[n] -= c
		gpu[n] -= g
		spec.Status, spec.Node = model.Running, model.NodeID(n)
		if d.Chance(4) {
			spec.Status = model.Releasing
		}
	}
	if d.Chance(5) {
		spec.Detail = &model.Detail{PriorityClass: "system-node-critical"}
	}
	if d.Chance(5) {
		spec.Detail = &model.Detail{ScheduleTime: 999_999, HasScheduleTime: true, Cooldown: int64(d.IntN(3)), HasCooldown: true}
	}
	b.Task(&spec)
}

// EachJob calls try for every waiting job of random clusters under every policy.
func EachJob(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	eachJobOn(t, runs, func(name string, seed uint64) *model.Model { return PlanCluster(t, seed, name == "tree") }, try)
}

// EachLimitedJob is EachJob on limited clusters; under fair half of them are trees.
func EachLimitedJob(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	eachJobOn(t, runs, func(name string, seed uint64) *model.Model {
		return LimitedCluster(t, seed, name == "tree" || name == "fair" && seed%2 == 0)
	}, try)
}

func eachJobOn(
	t require.TestingT, runs int, cluster func(name string, seed uint64) *model.Model,
	try func(name string, seed uint64, s *engine.Session, j model.JobID),
) {
	for i := range runs {
		seed := *Seed + uint64(i)
		for name, p := range Policies() {
			s, err := engine.Open(cluster(name, seed), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				try(name, seed, s, j)
			}
		}
	}
}

// Keeper draws reservations of nodes and ends of jobs; nil draws none.
type Keeper struct{ Dice }

// NewKeeper returns a keeper that draws by a seed.
func NewKeeper(seed uint64) *Keeper { return &Keeper{Dice{Rand: rand.New(rand.NewPCG(seed, 23))}} }

func (k *Keeper) reserve(spec *model.NodeSpec, cpu, gpu int) {
	if k == nil {
		return
	}
	for range k.IntN(3) {
		r := model.ReservationSpec{From: Now + int64(k.Between(-20, 40))}
		if k.Chance(70) {
			r.Until = min(r.From+int64(k.Between(1, 40)), Soon)
		}
		if k.Chance(85) {
			r.Request = Amounts(k.Between(1, max(1, cpu-1)), k.Between(0, gpu))
		}
		if k.Chance(60) {
			r.Holder = fmt.Sprint("j", k.IntN(7))
		}
		spec.Reservations = append(spec.Reservations, r)
	}
}

func (k *Keeper) last(spec *model.JobSpec) {
	if k == nil {
		return
	}
	if k.Chance(60) {
		spec.ExpectedRuntime = int64(k.Between(1, 50))
	}
	if k.Chance(60) {
		spec.ExpectedEnd = Now + int64(k.Between(-5, 50))
	}
}

// EachReservedJob is EachJob on clusters of which nodes are reserved.
func EachReservedJob(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	for i := range runs {
		seed := *Seed + uint64(i)
		for name, p := range Policies() {
			s, err := engine.Open(DrawnCluster(t, seed, name == "tree", NewKeeper(seed)), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				try(name, seed, s, j)
			}
		}
	}
}

// Cores are cpu alone.
func Cores(n int) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * float64(n)}}
}

// Opened builds a snapshot and opens a session on it.
func Opened(t *testing.T, plugin engine.Entry, feed func(b *model.Builder)) *engine.Session {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	feed(b)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}, plugin}}}, nil)
	require.NoError(t, err)
	return s
}

// Now is the time of the clusters of plans, and Soon the time before which all that is known to end or begin does.
const (
	Now  = 1_000_000
	Soon = Now + 60
)
