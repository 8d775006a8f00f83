package fair

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

func integers(amounts []int64) *model.Integers {
	if amounts == nil {
		return nil
	}
	out := &model.Integers{}
	for d, x := range amounts {
		if x >= 0 {
			out.Dimension, out.Amount = append(out.Dimension, uint32(d)), append(out.Amount, x)
		}
	}
	return out
}

// remembering draws a busy cluster with a memory.
func (d draw) remembering() *cluster {
	c := d.busy()
	c.memory = &model.MemorySpec{
		EpochSeconds: 1 + d.Int64N(20), HalfLife: uint32(1 + d.IntN(40)), Epoch: 100, Offered: integers(d.row(c.width, 3000, 15)),
	}
	c.plugin.Memory = DefaultMemory()
	if d.chance(40) {
		c.plugin.Memory = Memory{Gain: []int64{0, 1, one, 3 * one}[d.IntN(4)], Power: 1 + d.IntN(4)}
	}
	if d.chance(15) {
		c.plugin.Memory.Prices = []Price{{"r0", d.Int64N(5)}, {"none", 3}}
	}
	c.plugin.Memory.Owners, c.plugin.Memory.NoSaving = d.chance(50), d.chance(25)
	for i := range c.queues {
		c.queues[i].memory = &model.QueueMemorySpec{}
		d.budget(c, c.queues[i].memory)
		if d.chance(40) {
			for o := range d.IntN(3) {
				c.queues[i].memory.Owners = append(c.queues[i].memory.Owners, model.OwnerSpec{
					Owner: fmt.Sprint(o), Usage: integers(d.row(c.width, 900, 20)), Weight: uint32(d.IntN(4)),
				})
			}
		}
	}
	for i := range c.jobs {
		c.jobs[i].owner = fmt.Sprint(d.IntN(4))
	}
	d.use(c)
	return c
}

func (d draw) budget(c *cluster, to *model.QueueMemorySpec) {
	if d.chance(20) {
		to.Budget = &model.BudgetSpec{
			Kind: model.BudgetKind(1 + d.IntN(2)), Amount: integers(d.row(c.width, 400, 40)), Spent: integers(d.row(c.width, 200, 20)),
		}
	}
}

// use draws another usage, as at the beginning of an epoch.
func (d draw) use(c *cluster) {
	for i := range c.queues {
		c.queues[i].memory.Usage = nil
		if !d.chance(15) {
			c.queues[i].memory.Usage = integers(d.row(c.width, []int64{3, 900, 1 << 40}[d.IntN(3)], 15))
		}
	}
}

// keep makes the tasks of a cluster those of a state.
func (c *cluster) keep(s *State) {
	t := model.TaskID(0)
	for i := range c.jobs {
		for k := range c.jobs[i].tasks {
			c.jobs[i].tasks[k].status, c.jobs[i].tasks[k].node = s.v.Status(t), s.v.NodeOf(t)
			t++
		}
	}
}

// TestStatesNeverRepeatWhateverUsageSays runs clusters to rest at each of several epochs, at the beginning of which usage is any other. No
// state repeats over all of them, every plan lowers the potential, and its claimant is within both lines, which its victims' queues stay
// above.
func TestStatesNeverRepeatWhateverUsageSays(t *testing.T) {
	plans, saved := 0, 0
	eachCluster(t, *runs, draw.remembering, func(t require.TestingT, d draw, c *cluster) int {
		check := &checker{t, map[string]bool{}}
		for range 1 + d.IntN(5) {
			s := c.open(t)
			before := linesByWeight(s)
			r := &Rest{State: s, check: check}
			for r.moveWithin(t) {
				r.Steps++
				require.Less(t, r.Steps, 10_000, "a run does not end")
				if d.chance(20) {
					s.requireAnew(t)
				}
				if d.chance(10) {
					// Usage may change at any step.
					break
				}
			}
			s.requireAnew(t)
			for q := range s.v.Queues {
				if s.Saved(model.QueueID(q), make([]int64, s.width)) {
					saved++
				}
			}
			plans += r.Plans
			c.keep(s)
			d.use(c)
			if next := c.open(t); next.division.version == s.division.version {
				require.Equal(t, before, linesByWeight(next), "usage does not move the lines by weight")
			}
		}
		return 1
	})
	t.Log(plans, "plans,", saved, "saved blocks at rest")
	require.Greater(t, plans, *runs/60)
	require.Greater(t, saved, *runs/100)
}

// moveWithin is move, and requires of a plan under the entitlement what memory forbids of it.
func (r *Rest) moveWithin(t require.TestingT) bool {
	check := *r.check
	check.t = t
	r.check = &check
	return r.move()
}

func linesByWeight(s *State) [][]int64 {
	s.settle()
	var all [][]int64
	for p := range place(s.tree.len()) {
		for d := range s.width {
			row := []int64{}
			for i := range lines {
				row = append(row, s.line(i, p, d))
			}
			all = append(all, row)
		}
	}
	return all
}

// TestPropertiesOfLinesWithMemory: the factor of an idle queue is bounded; the guarantee is within the line with memory; no queue has more
// than there is; hard budgets are kept; without history or gain the line is the entitlement; more usage of one queue does not raise its
// line, nor lower a sibling's weight; demand does not change weights.
func TestPropertiesOfLinesWithMemory(t *testing.T) {
	eachCluster(t, *runs*3, draw.remembering, func(t require.TestingT, d draw, c *cluster) int {
		s := c.open(t)
		s.settle()
		for dim := range s.width {
			w, steered := s.weighed(dim), s.steered(dim)
			for p := place(0); int(p) < s.tree.len(); p++ {
				require.LessOrEqual(t, s.line(0, p, dim), s.lineWithMemory(p, dim))
				require.LessOrEqual(t, w.factor[p], int64(MaxFactor*one))
				sum := int64(0)
				for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
					sum += steered.Share[k]
				}
				require.LessOrEqual(t, sum, steered.Share[p])
				if b := s.budgetOf(p, model.HardBudget, dim); b != nil {
					require.LessOrEqual(t, steered.Share[p]*s.memory.EpochSeconds, left(b, dim))
					require.LessOrEqual(t, s.division.columns[dim].Share[p]*s.memory.EpochSeconds, left(b, dim))
				}
			}
		}
		requireUsageLowers(t, d, c, s)
		still := *c
		still.plugin.Memory.Gain = 0
		still.queues = slices.Clone(c.queues)
		for i := range still.queues {
			still.queues[i].memory = nil
		}
		s = still.open(t)
		s.settle()
		for dim := range s.width {
			require.Equal(t, s.division.columns[dim].Share, s.steered(dim).Share, "without gain and budgets both lines are one")
		}
		return 1
	})
}

// requireUsageLowers gives one queue more usage.
func requireUsageLowers(t require.TestingT, d draw, c *cluster, s *State) {
	i := d.IntN(len(c.queues))
	of := c.queues[i].memory
	if of.Usage == nil || len(of.Usage.Amount) == 0 || s.tree.at[i] == none {
		return
	}
	more := *c
	more.queues = slices.Clone(c.queues)
	amounts := slices.Clone(of.Usage.Amount)
	amounts[d.IntN(len(amounts))] += 1 + d.Int64N(1<<20)
	more.queues[i].memory = &model.QueueMemorySpec{
		Usage: &model.Integers{Dimension: of.Usage.Dimension, Amount: amounts}, Budget: of.Budget, Owners: of.Owners,
	}
	if d.chance(50) {
		// What was kept idle for it counts as used.
		risen := make([]int64, len(amounts))
		for j := range risen {
			risen[j] = amounts[j] - of.Usage.Amount[j]
		}
		same := more.open(t)
		more.queues[i].memory = &model.QueueMemorySpec{
			Usage: of.Usage, Reserved: &model.Integers{Dimension: of.Usage.Dimension, Amount: risen}, Budget: of.Budget, Owners: of.Owners,
		}
		reserved := more.open(t)
		for dim := range s.width {
			require.Equal(t, same.weighed(dim).weight, reserved.weighed(dim).weight)
		}
	}
	then, p := more.open(t), s.tree.at[i]
	then.settle()
	for dim := range s.width {
		was, is := s.weighed(dim), then.weighed(dim)
		require.LessOrEqual(t, is.weight[p], was.weight[p])
		require.LessOrEqual(t, then.steered(dim).Share[p], s.steered(dim).Share[p])
		for k := place(1); int(k) < s.tree.len(); k++ {
			if k != p && s.tree.parent[k] == s.tree.parent[p] && s.memory.usage[k] != nil {
				require.GreaterOrEqual(t, is.weight[k], was.weight[k], "no stated sibling's weight falls")
			}
			if s.tree.parent[k] != s.tree.parent[p] {
				require.Equal(t, was.weight[k], is.weight[k], "weights of other places do not change")
			}
		}
	}
}

// TestNothingChangesWithoutAMemory: usage, budgets and owners are ignored where the snapshot has no memory.
func TestNothingChangesWithoutAMemory(t *testing.T) {
	eachCluster(t, *runs, draw.remembering, func(t require.TestingT, _ draw, c *cluster) int {
		c.memory = nil
		mine := c.open(t)
		plain := *c
		plain.queues, plain.jobs = slices.Clone(c.queues), slices.Clone(c.jobs)
		plain.plugin.Memory = Memory{}
		for i := range plain.queues {
			plain.queues[i].memory = nil
		}
		for i := range plain.jobs {
			plain.jobs[i].owner = ""
		}
		its := plain.open(t)
		r, o := &Rest{State: mine}, &Rest{State: its}
		for range 20 {
			require.Equal(t, linesByWeight(its), linesByWeight(mine))
			require.Equal(t, its.Order(), mine.Order())
			moved := r.move()
			require.Equal(t, o.move(), moved)
			for task := range mine.v.Tasks.All() {
				require.Equal(t, its.v.Status(task), mine.v.Status(task))
				require.Equal(t, its.v.NodeOf(task), mine.v.NodeOf(task))
			}
			if !moved {
				break
			}
		}
		warned := 0
		mine.Warnings(func(w policy.Warning) {
			if w.Code == policy.MemoryIgnored {
				warned++
			}
		})
		require.LessOrEqual(t, warned, 1)
		return 1
	})
}

// child is a queue of a worked example: its usage in thousands (-1: not known), what it holds and what it asks for, in devices.
type child struct {
	name, parent    string
	usage           int64
	guarantee, asks int64
	budget          *model.BudgetSpec
}

func example(devices, offered int64, memory Memory, list ...child) *cluster {
	c := &cluster{
		width: 1, total: []int64{devices}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: memory},
		memory: &model.MemorySpec{EpochSeconds: 21600, HalfLife: 28, Epoch: 1, Offered: integers([]int64{offered})},
	}
	for _, k := range list {
		q := queue{name: k.name, parent: k.parent, weight: 1, guarantee: []int64{k.guarantee}, memory: &model.QueueMemorySpec{Budget: k.budget}}
		if k.usage >= 0 {
			q.memory.Usage = integers([]int64{k.usage})
		}
		if k.asks > 0 {
			q.demand = []int64{k.asks}
		}
		c.queues = append(c.queues, q)
	}
	return c
}

func TestWorkedExamplesOfMemory(t *testing.T) {
	kai := Memory{Gain: one, Power: 1}
	budget := func(kind model.BudgetKind, spent int64) *model.BudgetSpec {
		return &model.BudgetSpec{Kind: kind, Amount: integers([]int64{360_000}), Spent: integers([]int64{spent})}
	}
	million := int64(1_000_000)
	idle := func(name string) child { return child{name: name} }
	for name, x := range map[string]struct {
		of               *cluster
		factors          []int64
		byWeight, memory []int64
	}{
		"1: two queues, linear": {
			example(16, million, kai, child{name: "a", usage: 600_000, asks: 99}, child{name: "b", asks: 99}),
			[]int64{59578, 131072},
			[]int64{8, 8},
			[]int64{5, 11},
		},
		"1b: the same with the defaults": {
			example(16, million, DefaultMemory(), child{name: "a", usage: 600_000, asks: 99}, child{name: "b", asks: 99}),
			[]int64{49553, 1048576},
			[]int64{8, 8},
			[]int64{1, 15},
		},
		"3: a quiet week does not decide": {
			example(16, million, DefaultMemory(), child{name: "a", usage: 10_000, asks: 99}, child{name: "b", asks: 99}),
			[]int64{933223, 1048576},
			[]int64{8, 8},
			[]int64{8, 8},
		},
		"3: unless nothing is known of what was offered": {
			example(16, 0, DefaultMemory(), child{name: "a", usage: 10_000, asks: 99}, child{name: "b", asks: 99}),
			nil,
			[]int64{8, 8},
			[]int64{0, 16},
		},
		"4: of eight queues two ask": {
			example(16, million, DefaultMemory(), child{name: "a", usage: 700_000, asks: 99}, child{name: "b", usage: 300_000, asks: 99},
				idle("c"), idle("d"), idle("e"), idle("f"), idle("g"), idle("h")),
			[]int64{3309, 15593},
			[]int64{8, 8},
			[]int64{3, 13},
		},
		"5: a guarantee is kept": {
			example(16, million, DefaultMemory(), child{name: "a", usage: million, guarantee: 6, asks: 99}, child{name: "b", asks: 99}),
			[]int64{21399, 1048576},
			[]int64{8, 8},
			[]int64{6, 10},
		},
		"7: a new queue is the average": {
			example(15, million, DefaultMemory(), child{name: "a", usage: 700_000, asks: 99}, child{name: "b", usage: 300_000, asks: 99},
				child{name: "c", usage: -1, asks: 99}),
			[]int64{38778, 133744, 65536},
			[]int64{5, 5, 5},
			[]int64{2, 9, 4},
		},
		"8: a hard budget": {
			example(16, million, DefaultMemory(), child{name: "a", usage: 500_000, asks: 99, budget: budget(model.HardBudget, 273_600)},
				child{name: "b", usage: 500_000, asks: 99}),
			[]int64{65536, 65536},
			[]int64{4, 12},
			[]int64{4, 12},
		},
		"9: a soft budget": {
			example(16, million, DefaultMemory(), child{name: "a", usage: 500_000, asks: 99, budget: budget(model.SoftBudget, 315_000)},
				child{name: "b", usage: 500_000, asks: 99}),
			[]int64{65536, 65536},
			[]int64{8, 8},
			[]int64{5, 11},
		},
		"6: a tree": {
			example(16, million, DefaultMemory(), child{name: "d1", usage: 500_000}, child{name: "d2", usage: 500_000},
				child{name: "x", parent: "d1", usage: 400_000, asks: 99}, child{name: "y", parent: "d1", usage: 100_000, asks: 99},
				child{name: "z", parent: "d2", usage: 500_000, asks: 99}),
			[]int64{65536, 65536, 31170, 216646, 65536},
			[]int64{8, 8, 4, 4, 8},
			[]int64{8, 8, 1, 7, 8},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := x.of.open(t)
			s.settle()
			r0, _ := s.v.Dims.Index("r0")
			for q := range x.byWeight {
				p := s.tree.at[q]
				if x.factors != nil && q < len(x.factors) {
					require.Equal(t, x.factors[q], s.weighed(r0).factor[p], "factor of %s", x.of.queues[q].name)
				}
				require.Equal(t, x.byWeight[q], s.line(2, p, r0), "entitlement of %s", x.of.queues[q].name)
				require.Equal(t, x.memory[q], s.lineWithMemory(p, r0), "line with memory of %s", x.of.queues[q].name)
			}
		})
	}
}

// TestWideNumbersAreThoseOfBigOnes compares the arithmetic with math/big.
func TestWideNumbersAreThoseOfBigOnes(t *testing.T) {
	d := drawFrom(*seed)
	for range 20_000 {
		w := wide{d.Uint64() >> d.IntN(64), d.Uint64() >> d.IntN(64), d.Uint64() >> d.IntN(64)}
		if d.chance(50) {
			w[2] = 0
		}
		x := max(1, int64(d.Uint64()>>(1+d.IntN(62))))
		big1 := w.Integer()
		require.Zero(t, w.times(x).Integer().Cmp(new(big.Int).Mul(big1, big.NewInt(x))))
		require.Zero(t, w.over(x).Integer().Cmp(new(big.Int).Quo(big1, big.NewInt(x))))
		require.Zero(t, w.plus(w).Integer().Cmp(new(big.Int).Lsh(big1, 1)))
		o := wideOf(x)
		for o.times(1<<38).compare(w) < 0 {
			o = o.times(1 << 7).plus(wideOf(1))
		}
		require.Equal(t, new(big.Int).Quo(big1, o.Integer()).Int64(), w.quotient(o))
	}
}

func TestTheGainIsBounded(t *testing.T) {
	for power := 1; power <= MaxPower; power++ {
		for _, gain := range []int64{0, one, 3 * one, 3*one + 1, 15 * one, 15*one + 1, 255 * one, 255*one + 1, 1<<32 - 1} {
			m := Memory{Gain: gain, Power: power}
			factor := new(big.Int).Exp(big.NewInt(one+gain), big.NewInt(int64(power)), nil)
			most := new(big.Int).Lsh(big.NewInt(MaxFactor), uint(16*power))
			require.Equal(t, factor.Cmp(most) <= 0, m.Bounded(), "gain %d, power %d", gain, power)
		}
	}
	require.Equal(t, 19, bits.Len64(uint64(DefaultMemory().Gain+one)))
}
