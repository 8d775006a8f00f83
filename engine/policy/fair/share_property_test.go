package fair

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy/division"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// The numbers are those of the properties in docs/fair.md.

// inner lists the places that divide.
func (s *State) inner() []place {
	var list []place
	for p := range s.tree.queue {
		if !s.tree.isLeaf(place(p)) {
			list = append(list, place(p))
		}
	}
	return list
}

// shareOf returns a queue's share of dimension d, in quanta.
func (s *State) shareOf(name string, d int) int64 {
	q, _ := s.v.Queue(name)
	s.settle()
	return s.division.columns[d].Share[s.tree.at[q]]
}

// Properties 1 to 5 and 12, of every division there is.
func TestPropertiesOfEveryDivision(t *testing.T) {
	eachCluster(t, *divisions, draw.demanding, func(t require.TestingT, _ draw, c *cluster) int {
		s := c.open(t)
		tried := 0
		for d := range s.width {
			column := &s.division.columns[d]
			cut := make([]bool, s.tree.len())
			for _, p := range s.inner() {
				tried++
				pr := s.problem(column, p)
				policytest.RequireProven(t, &pr)
				requireNoBetter(t, pr)
				s.requireDivided(t, column, p, pr)
				for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
					cut[k] = cut[p] || pr.Stage == division.ByGuarantee
				}
			}
			for p := range s.tree.queue {
				s.requireBounds(t, column, place(p), d, cut[p])
			}
		}
		return tried
	})
}

// requireNoBetter checks that the proof fails if a quantum is moved from any child to any other.
func requireNoBetter(t require.TestingT, p division.Problem) {
	for from := range p.Share {
		for to := range p.Share {
			if from == to {
				continue
			}
			p.Share[from]--
			p.Share[to]++
			moved := &failing{}
			policytest.RequireProven(moved, &p)
			require.True(t, moved.failed, "a quantum moved from %d to %d is proven as well: %+v", from, to, p)
			p.Share[from]++
			p.Share[to]--
		}
	}
}

// failing takes note of a failure.
type failing struct{ failed bool }

func (f *failing) Errorf(string, ...any) { f.failed = true }

func (f *failing) FailNow() { f.failed = true }

// requireDivided checks properties 1 and 12 of one division.
func (s *State) requireDivided(t require.TestingT, c *column, p place, pr division.Problem) {
	given, useful, weights, bases := int64(0), int64(0), int64(0), int64(0)
	weighted := true
	for i := range pr.Share {
		given, useful = given+pr.Share[i], useful+c.High[s.tree.first[p]+place(i)]
		weights, bases = weights+pr.Weight[i], bases+pr.Zero(i)
		weighted = weighted && pr.Weight[i] > 0
	}
	require.LessOrEqual(t, given, pr.Amount)
	if pr.Stage != division.ByWeight || !weighted {
		return
	}
	require.Equal(t, min(pr.Amount, useful), given)
	if s.plugin.Base == OnNothing && slices.ContainsFunc(c.Low[s.tree.first[p]:s.tree.end[p]], func(lo int64) bool { return lo > 0 }) {
		return
	}
	n := int64(len(pr.Share))
	for i := range pr.Share {
		// share >= min(hi, b + w/W (Y - Σ b) - 1/2 - n w/(2W)), times 2W.
		w := big.NewInt(pr.Weight[i])
		least := new(big.Int).Mul(w, big.NewInt(2*(pr.Amount-bases)-n))
		least.Add(least, new(big.Int).Mul(big.NewInt(2*pr.Zero(i)-1), big.NewInt(weights)))
		got := new(big.Int).Mul(big.NewInt(pr.Share[i]), big.NewInt(2*weights))
		require.True(t, got.Cmp(least) >= 0 || pr.Share[i] == pr.Ceiling[i], "child %d of %+v", i, pr)
	}
}

// requireBounds checks properties 2, 3 and 4 of one queue. cut: the guarantees do not fit at some ancestor.
func (s *State) requireBounds(t require.TestingT, c *column, p place, d int, cut bool) {
	share, demand := c.Share[p], division.CeilDiv(s.demandOf(p, d), s.quantum[d])
	require.LessOrEqual(t, share, c.Capability[p])
	if p == 0 {
		return
	}
	if !s.plugin.ReserveGuarantee && s.tree.isLeaf(p) {
		require.LessOrEqual(t, share, demand)
	}
	if !cut && s.tree.isLeaf(p) {
		require.GreaterOrEqual(t, share, min(c.Guarantee[p], c.Capability[p], demand))
	}
	require.LessOrEqual(t, s.line(0, p, d), s.line(1, p, d))
	require.LessOrEqual(t, s.line(1, p, d), s.line(2, p, d))
}

// Property 6.
func TestNeitherTheOrderOfTheInputNorTheScaleOfWeightsMatters(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		before := c.open(t)
		other := *c
		other.queues = slices.Clone(c.queues)
		d.Shuffle(len(other.queues), func(i, k int) { other.queues[i], other.queues[k] = other.queues[k], other.queues[i] })
		if heaviest := slices.MaxFunc(c.queues, func(l, r queue) int { return int(l.weight) - int(r.weight) }); heaviest.weight < math.MaxInt32/7 {
			for i := range other.queues {
				other.queues[i].weight *= 7
			}
		}
		return requireShares(t, c, before, other.open(t), "", func(before, after int64) bool { return before == after })
	})
}

// requireShares compares the shares of all leaves but one in two clusters.
func requireShares(t require.TestingT, c *cluster, before, after *State, but string, holds func(before, after int64) bool) int {
	for i := range c.queues {
		name := c.queues[i].name
		if name == but || !c.isLeaf(i) {
			continue
		}
		for d := range c.width {
			at := before.dims[d]
			require.True(t, holds(before.shareOf(name, at), after.shareOf(name, at)), "%s of %s: %d before, %d after",
				before.v.Dims.Name(at), name, before.shareOf(name, at), after.shareOf(name, at))
		}
	}
	return len(before.inner()) * c.width
}

// leafOf draws a leaf that is not the root; -1 if there is none.
func (d draw) leaf(c *cluster) int {
	for range 20 {
		if i := d.IntN(len(c.queues)); c.isLeaf(i) && c.queues[i].name != "root" {
			return i
		}
	}
	return -1
}

// Property 7.
func TestAGreaterWeightNeverGetsLess(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		i := d.IntN(len(c.queues))
		before := c.open(t)
		if c.queues[i].weight = min(c.queues[i].weight+uint32(1+d.IntN(5)), math.MaxInt32); c.queues[i].name == "root" {
			return 1
		}
		after := c.open(t)
		for r := range c.width {
			require.GreaterOrEqual(t, after.shareOf(c.queues[i].name, before.dims[r]), before.shareOf(c.queues[i].name, before.dims[r]))
		}
		return len(before.inner()) * c.width
	})
}

// Property 8.
func TestMoreOfAResourceIsLessForNobody(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		before := c.open(t)
		c.total[d.IntN(c.width)] += 1 + d.Int64N(2000)
		return requireShares(t, c, before, c.open(t), "", func(before, after int64) bool { return after >= before })
	})
}

// less draws a demand that is not above another in any dimension.
func (d draw) less(row []int64) []int64 {
	out := slices.Clone(row)
	for i := range out {
		if out[i] > 0 && d.chance(60) {
			out[i] = d.Int64N(out[i] + 1)
		}
	}
	return out
}

// Property 9.
func TestAQueueThatAsksLessTakesNothingFromOthers(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		i := d.leaf(c)
		if i < 0 {
			return 1
		}
		before := c.open(t)
		c.queues[i].demand = d.less(c.queues[i].demand)
		return requireShares(t, c, before, c.open(t), c.queues[i].name, func(before, after int64) bool { return after >= before })
	})
}

// Property 10.
func TestAMisstatedDemandNeverGetsMoreOfTheTrueOne(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		i := d.leaf(c)
		if i < 0 || c.queues[i].demand == nil {
			return 1
		}
		truth, name := c.queues[i].demand, c.queues[i].name
		honest := c.open(t)
		c.queues[i].demand = d.row(c.width, 40, 10)
		misstated := c.open(t)
		for r := range c.width {
			at := honest.dims[r]
			demand := division.CeilDiv(max(0, truth[r]), honest.quantum[at])
			require.LessOrEqual(t, min(misstated.shareOf(name, at), demand), min(honest.shareOf(name, at), demand))
		}
		return len(honest.inner()) * c.width
	})
}

// Property 11.
func TestAQueueThatAsksForNothingChangesNothing(t *testing.T) {
	eachCluster(t, *divisions/4, draw.demanding, func(t require.TestingT, d draw, c *cluster) int {
		i := d.IntN(len(c.queues))
		more := *c
		idle := queue{name: "idle", parent: c.queues[i].parent, weight: uint32(d.IntN(5))}
		flat := !slices.ContainsFunc(c.queues, func(q queue) bool { return q.parent != "" || q.name == "root" })
		if flat && !c.plugin.ReserveGuarantee {
			idle.guarantee, idle.deserved = d.row(c.width, 20, 20), d.row(c.width, 20, 20)
		}
		if c.queues[i].name == "root" {
			idle.parent = ""
		}
		more.queues = append(slices.Clone(c.queues), idle)
		before := c.open(t)
		return requireShares(t, c, before, more.open(t), "", func(before, after int64) bool { return after == before })
	})
}
