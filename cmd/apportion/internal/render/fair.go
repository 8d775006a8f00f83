package render

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// divisions shows how fair divides, dimension by dimension, parents first, and what it keeps for tasks that are entitled to it.
func (p *Printer) divisions(d *apportionv1.FairDerivation) {
	p.Heading("fair divides %s", Amounts(p.Names, d.GetTotal()))
	p.Line("Each queue gets weight × level, counted from BASE and rounded to whole units, but at least FROM and at most TO.")
	for _, dimension := range p.shown(nil, d.GetTotal()) {
		quantum := uint64(1)
		if dimension < len(d.GetQuanta()) {
			quantum = d.GetQuanta()[dimension]
		}
		for _, division := range d.GetDivisions() {
			if int(division.GetDimension()) == dimension && len(division.GetChildren()) > 0 {
				p.division(division, units{p.Names.Dimensions[dimension], quantum, quantity.Short})
			}
		}
	}
	p.claims(d)
	if r := d.GetReservation(); r != nil {
		p.Line("\n%s", text.Reservation(p.Snapshot.JobName(r.GetJob()), r))
	}
}

// units writes numbers of quanta as amounts of a dimension.
type units struct {
	dimension string
	quantum   uint64
	shown     func(dimension string, amount float64) string
}

func (u units) short(quanta uint64) string {
	return u.shown(u.dimension, float64(quanta)*float64(u.quantum))
}

// exact writes a fraction of quanta.
func (u units) exact(quanta *big.Rat) string {
	x, _ := new(big.Rat).Mul(quanta, new(big.Rat).SetInt(new(big.Int).SetUint64(u.quantum))).Float64()
	return u.shown(u.dimension, x)
}

// division shows how one queue divides one dimension.
func (p *Printer) division(d *apportionv1.FairDivision, u units) {
	name := "the cluster"
	if d.Queue != nil {
		name = "queue " + p.Names.Queue(d.GetQueue())
	}
	p.Line("\n%s has %s %s to divide: %s", name, u.short(d.GetAmount()), u.dimension, caseOf(d.GetRule()))
	level := ratOf(d.GetLevel())
	if level == nil {
		p.Line("no queue gets more than FROM, so there is no level")
	} else {
		p.Line("the level is %s (%s units of %s for each unit of weight)", u.exact(level), level.RatString(), u.short(1))
	}
	based := slices.ContainsFunc(d.GetChildren(), func(c *apportionv1.FairPortion) bool { return c.GetBase() > 0 })
	headings := []string{"QUEUE", ">WEIGHT", ">BASE", ">BY LEVEL", ">FROM", ">TO", ">ENTITLED", "HELD BY", ">FAIR SHARE", ">GUARANTEE"}
	if !based {
		headings = slices.Delete(headings, 2, 3)
	}
	table := p.NewTable(headings...)
	u.shown = table.Amount
	for _, c := range d.GetChildren() {
		by := "-"
		if level != nil && c.GetWeight() > 0 {
			by = u.exact(new(big.Rat).Add(integer(c.GetBase()), new(big.Rat).Mul(integer(c.GetWeight()), level)))
		}
		cells := []string{
			p.Names.Queue(c.GetQueue()), weightOf(d, c, u), u.short(c.GetBase()), by, u.short(c.GetStart()), u.short(c.GetCeiling()),
			u.short(c.GetShare()), holds(d, c), u.short(c.GetFairLine()), u.short(c.GetGuaranteeLine()),
		}
		if !based {
			cells = slices.Delete(cells, 2, 3)
		}
		table.Row(cells...)
	}
	p.table(table)
}

// caseOf says what weighs in a division.
func caseOf(c apportionv1.FairCase) string {
	return cmp.Or(text.Word(c), text.Word(apportionv1.FairCase_FAIR_CASE_WEIGHT))
}

// weightOf writes the weight that counts: that of the queue, or an amount that is cut in proportion.
func weightOf(d *apportionv1.FairDivision, c *apportionv1.FairPortion, u units) string {
	if d.GetRule() == apportionv1.FairCase_FAIR_CASE_WEIGHT {
		return fmt.Sprint(c.GetWeight())
	}
	return u.short(c.GetWeight())
}

// holds says what holds a share where it is.
func holds(d *apportionv1.FairDivision, c *apportionv1.FairPortion) string {
	switch {
	case c.GetUseful() == 0:
		return text.Say("heldUseless")
	case c.GetBound() == apportionv1.FairBound_FAIR_BOUND_LEVEL:
		return text.Say("heldLevel")
	case c.GetBound() == apportionv1.FairBound_FAIR_BOUND_LOWER && c.GetStart() == 0:
		return text.Say("heldWeight")
	case c.GetBound() == apportionv1.FairBound_FAIR_BOUND_UPPER && d.GetRule() == apportionv1.FairCase_FAIR_CASE_WEIGHT:
		return text.Say("heldDemand")
	case d.GetRule() == apportionv1.FairCase_FAIR_CASE_DESERVED && c.GetBound() == apportionv1.FairBound_FAIR_BOUND_UPPER,
		d.GetRule() == apportionv1.FairCase_FAIR_CASE_WEIGHT && c.GetBegin() > c.GetGuaranteed():
		return text.Say("heldDeserved")
	}
	return text.Say("heldGuarantee")
}

// claims shows what is kept for tasks that are entitled to it.
func (p *Printer) claims(d *apportionv1.FairDerivation) {
	table := p.NewTable("QUEUE", "COULD BE GIVEN NOW", "LEAVES TO OTHERS")
	for _, q := range d.GetQueues() {
		claimed, aside := p.listed(table, q.GetClaimed()), p.listed(table, q.GetAside())
		if claimed != "-" || aside != "-" {
			table.Row(p.Names.Queue(q.GetQueue()), claimed, aside)
		}
	}
	if table.Empty() {
		p.Line("\nno entitled task could be given anything now: all that is free may be borrowed")
		return
	}
	p.Line("\nwhat entitled tasks could be given now, and what a queue leaves to others when it borrows:")
	p.table(table)
}

// listed lists the amounts to show; - if there are none.
func (p *Printer) listed(table *Table, r *apportionv1.Resource) string {
	var parts []string
	for _, d := range p.shown(nil, r) {
		if x := value(r, d); x != 0 {
			parts = append(parts, table.Amount(p.Names.Dimensions[d], x)+" "+p.Names.Dimensions[d])
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func integer(x uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(x)) }

// ratOf reads a fraction; nil if it is absent or none.
func ratOf(f *apportionv1.Fraction) *big.Rat {
	if f == nil {
		return nil
	}
	x, ok := new(big.Rat).SetString(f.GetNumerator() + "/" + f.GetDenominator())
	if !ok {
		return nil
	}
	return x
}

// lineNames are the lines of a queue in words.
var lineNames = map[apportionv1.FairLine]string{
	apportionv1.FairLine_FAIR_LINE_GUARANTEE:   "guarantee",
	apportionv1.FairLine_FAIR_LINE_FAIR_SHARE:  "fair share",
	apportionv1.FairLine_FAIR_LINE_ENTITLEMENT: "entitlement",
}

// plan prints the line that entitles the claimant of a plan, and the nodes of its tasks.
func (p *Printer) plan(plan *apportionv1.ReclaimPlan, victims int) {
	if !plan.GetMade() {
		return
	}
	if victims > 0 {
		line := lineNames[plan.GetLine()]
		p.Line("")
		p.Wrapped("The plan takes from queues that hold more than their %s, for a queue within its %s.", line, line)
		p.balance(plan)
	}
	if nodes := plan.GetNodes(); len(nodes) > 0 {
		count := map[uint32]int{}
		var names []string
		for _, node := range nodes {
			count[node]++
		}
		for _, node := range slices.Sorted(maps.Keys(count)) {
			names = append(names, fmt.Sprintf("%s on node %s", text.Count(count[node], "task"), p.Snapshot.NodeName(node)))
		}
		p.Wrapped("The claimant gets room for %s.", strings.Join(names, ", "))
	}
}

// balance compares what the claimant gains with what the victims lose under the first line in which they differ.
func (p *Printer) balance(plan *apportionv1.ReclaimPlan) {
	for i, f := range plan.GetFalls() {
		if i >= len(plan.GetRises()) {
			return
		}
		fall, rise := ratOf(f), ratOf(plan.GetRises()[i])
		if fall == nil || rise == nil || fall.Cmp(rise) == 0 {
			continue
		}
		gain, _ := fall.Float64()
		cost, _ := rise.Float64()
		p.Wrapped("The claimant's queue comes nearer to its %s by %.3g of the cluster; the victims' queues fall below theirs by %.3g.",
			lineNames[apportionv1.FairLine(i+1)], gain, cost)
		return
	}
}
