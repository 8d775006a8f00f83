// Package division divides amounts in whole quanta through a tree of places, by weight within bounds: what is guaranteed, what is deserved
// and what there is a use for. It knows places and numbers only.
//
// Before a division each place has its settings, and each leaf what it demands. Bound finds the bounds of all places bottom up: Low is at
// most Begin, and Begin at most High. Share divides top down: each place is given between Low and High, unless the guarantees do not fit
// above it, and no quantum could go to a sibling with a smaller signpost. What a place with children is given is divided among these as far
// as there is a use for it.
package division

// Place is a position in a tree.
type Place int32

// Tree lists places, each after its parent, siblings side by side in order of rank: those below p are First[p] … End[p]-1. Place 0 is the
// root.
type Tree struct{ First, End []Place }

func (t *Tree) isLeaf(p Place) bool { return t.First[p] == t.End[p] }

// Base says what weights are applied on top of.
type Base uint8

// The bases.
const (
	// OnNothing lets weights decide the whole share; a guarantee only lifts it.
	OnNothing Base = iota
	// OnGuarantee adds the weighted share to the guarantee.
	OnGuarantee
	// OnDeserved adds the weighted share to deserved.
	OnDeserved
)

// Rule says how guarantees and weights count.
type Rule struct {
	Base Base
	// ReserveGuarantee withholds unused guarantees.
	ReserveGuarantee bool
}

// Stage is the case in which a place divides.
type Stage uint8

// The cases.
const (
	// ByGuarantee: the guarantees do not fit.
	ByGuarantee Stage = iota + 1
	// ByDeserved: what is deserved does not fit.
	ByDeserved
	// ByWeight: what is left is divided by weight.
	ByWeight
)

// Column is the division of one dimension. All lists are by place, and all amounts in quanta.
type Column struct {
	// Low is guaranteed, Begin is where weights begin, High is what there is a use for.
	Low, Begin, High []int64
	// Share is the amount that the place receives.
	Share []int64
	// Settings: Capability is above all amounts where none is stated, Deserved -1.
	Capability, Guarantee, Deserved []int64
	// Guaranteed and Deserving are the weights of the first two cases.
	Guaranteed, Deserving []int64
	// Weight are the weights of the last case.
	Weight []int64
	// Total is what there is.
	Total int64
}

// Demand is what leaves demand: an amount for each place, Width apart, which is rounded up to quanta.
type Demand struct {
	Amount  []int64
	Width   int
	Quantum int64
	// All says that each leaf that demands anything demands Whole, which may be 0.
	All   bool
	Whole int64
}

func (w *Demand) of(p Place) int64 {
	demand := w.Amount[int(p)*w.Width]
	if w.All && demand > 0 {
		demand = w.Whole
	}
	return CeilDiv(demand, w.Quantum)
}

// CeilDiv returns ⌈x / y⌉ for x >= 0.
func CeilDiv(x, y int64) int64 { return (x + y - 1) / y }

// often is how many places are done between two calls of a function that lets others go on.
const often = 1024

// Bound sets the bounds of all places, bottom up, and calls look often.
func (c *Column) Bound(t Tree, rule Rule, w Demand, look func()) {
	for p := Place(len(t.First)) - 1; p >= 0; p-- {
		if p%often == often-1 {
			look()
		}
		ceiling := c.Capability[p]
		if t.isLeaf(p) {
			c.High[p] = min(ceiling, w.of(p))
			c.Guaranteed[p] = min(c.Guarantee[p], ceiling)
			c.Low[p] = min(c.Guaranteed[p], c.High[p])
			if rule.ReserveGuarantee {
				c.Low[p] = c.Guaranteed[p]
			}
		} else {
			var low, high, guaranteed int64
			for k := t.First[p]; k < t.End[p]; k++ {
				low, high, guaranteed = low+c.Low[k], high+c.High[k], guaranteed+c.Guaranteed[k]
			}
			c.High[p] = min(ceiling, high)
			c.Guaranteed[p] = min(ceiling, max(c.Guarantee[p], guaranteed))
			c.Low[p] = min(c.High[p], max(min(c.Guarantee[p], c.High[p]), low))
			if rule.ReserveGuarantee {
				c.Low[p] = min(ceiling, max(c.Guarantee[p], low))
			}
		}
		c.High[p] = max(c.High[p], c.Low[p])
		if c.Begin[p], c.Deserving[p] = c.Low[p], c.Guaranteed[p]; rule.Base == OnDeserved {
			c.begin(&t, p)
		}
	}
}

// begin moves the line where weights begin, and the weight of the second case, to what is deserved.
func (c *Column) begin(t *Tree, p Place) {
	target, weight := c.Deserved[p], c.Deserved[p]
	if target < 0 {
		target, weight = 0, 0
		for k := t.First[p]; k < t.End[p]; k++ {
			target, weight = target+c.Begin[k], weight+c.Deserving[k]
		}
	}
	c.Begin[p] = max(c.Low[p], min(target, c.High[p]))
	c.Deserving[p] = max(c.Guaranteed[p], min(c.Capability[p], weight))
}

// Divide divides top down what there is, within the bounds, and calls look often.
func (d *Divider) Divide(c *Column, t Tree, base Base, look func()) {
	c.Share[0] = min(c.Total, c.Capability[0])
	if t.isLeaf(0) {
		c.Share[0] = min(c.Share[0], c.High[0])
	}
	for p := range Place(len(t.First)) {
		if p%often == often-1 {
			look()
		}
		if !t.isLeaf(p) {
			d.Run(c.Problem(t, p, base))
		}
	}
}

// Problem is the division of a place's share among its children.
func (c *Column) Problem(t Tree, p Place, base Base) Problem {
	from, to := t.First[p], t.End[p]
	pr := Problem{Amount: c.Share[p], Stage: ByWeight, Share: c.Share[from:to]}
	var low, begin int64
	for k := from; k < to; k++ {
		low, begin = low+c.Low[k], begin+c.Begin[k]
	}
	switch {
	case low > pr.Amount:
		pr.Stage, pr.Weight, pr.Ceiling = ByGuarantee, c.Guaranteed[from:to], c.Low[from:to]
	case begin > pr.Amount:
		pr.Stage, pr.Weight, pr.Start, pr.Ceiling = ByDeserved, c.Deserving[from:to], c.Low[from:to], c.Begin[from:to]
	default:
		pr.Weight, pr.Start, pr.Ceiling = c.Weight[from:to], c.Begin[from:to], c.High[from:to]
		if base != OnNothing {
			pr.Base = pr.Start
		}
	}
	return pr
}
