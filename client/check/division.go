package check

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check/certificate"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Lines of a queue by position, after the guarantee and the fair share: the entitlement, and what past usage makes of it, which is the same
// without a memory.
const (
	entitlement = 2
	withMemory  = 3
)

// bound is section 2 of the rules for one queue and dimension, in quanta: guarantee, where weights begin, what there is a use for, and the
// weights of the first two cases.
type bound struct{ lo, m, hi, guaranteed, deserving, capability int64 }

// certificate looks for the first answer with the shares of all queues and their derivation, and checks the derivation. An answer that
// lacks one that was asked for is found where the answer is checked.
func (c *check) certificate(steps []*apportionv1.Step, answers []*apportionv1.Answer) {
	for i, step := range steps {
		// A step that fails changes nothing.
		if c.settings == nil || slices.Contains(changing, memberOf(step)) && memberOf(answers[i]) != "error" {
			return
		}
		if !ofAll(step.GetShares()) {
			continue
		}
		for _, p := range answers[i].GetShares().GetPlugins() {
			if c.fair = p.GetFair(); c.fair != nil {
				before := c.numbers
				c.divisions()
				c.derived = c.numbers - before
				return
			}
		}
	}
}

// ofAll reports whether a question is about all numbers of the shares of all queues, and their derivation.
func ofAll(step *apportionv1.SharesStep) bool {
	e := step.GetExplain()
	derived := e != nil && e.GetQueues() == nil && e.GetJobs() == nil && e.GetTasks() == nil
	return derived && step.GetQueues() == nil && len(step.GetFields()) == 0
}

// divisions checks the certificate and forms the lines. What the certificate takes as given must be what follows from the snapshot: what is
// divided, and what each queue is guaranteed, may use and weighs. That the shares follow from it, package certificate checks.
func (c *check) divisions() {
	var sated []map[int]bound
	for d := range c.dims {
		c.bounds, sated = append(c.bounds, c.bound(d, false)), append(sated, c.bound(d, true))
	}
	expect(c.findings, "quanta", fmt.Sprint(c.fair.GetQuanta()), fmt.Sprint(c.unit))
	c.resource("total", c.fair.GetTotal(), c.resourceOf(c.all))
	byWeight := func(_, q int) int64 { return c.weight(q) }
	other := c.list("sated_divisions", c.fair.GetSatedDivisions(), sated, byWeight)
	given := c.list("divisions", c.fair.GetDivisions(), c.bounds, byWeight)
	remembered := given
	if c.GetMemory() == nil {
		expect(c.findings, "remembered_divisions: entries", len(c.fair.GetRememberedDivisions()), 0)
		expect(c.findings, "weights: entries", len(c.fair.GetWeights()), 0)
	} else {
		c.weights()
		byMemory := func(d, q int) int64 { return c.effective[d][q] }
		remembered = c.list("remembered_divisions", c.fair.GetRememberedDivisions(), c.bounds, byMemory)
	}
	shares := &apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{{Fair: c.fair}}}
	data, err := protojson.Marshal(shares)
	if err == nil {
		var faults []string
		faults, err = certificate.Check(data)
		c.faults = append(c.faults, faults...)
	}
	if err != nil {
		c.wrong("the certificate cannot be read: %v", err)
	}
	c.lines = map[int][][4]int64{}
	for _, q := range c.order {
		for d := range c.dims {
			lo, e := c.bounds[d][q].lo, given[d][q]
			c.lines[q] = append(c.lines[q], [4]int64{min(lo, e), min(e, max(lo, other[d][q])), e, remembered[d][q]})
		}
	}
}

// bound sets the bounds of all queues, bottom up.
func (c *check) bound(d int, sated bool) map[int]bound {
	out := map[int]bound{}
	for _, q := range slices.Backward(c.order) {
		var below bound
		for _, k := range c.kids[q] {
			b := out[k]
			below = bound{
				below.lo + b.lo, below.m + b.m, below.hi + b.hi, below.guaranteed + b.guaranteed, below.deserving + b.deserving, 0,
			}
		}
		b := bound{capability: c.capability[q][d]}
		if b.capability != unlimited {
			b.capability /= c.unit[d]
		}
		guarantee, deserved := c.limit(q, d, (*apportionv1.Queue).GetGuarantee, 0), c.limit(q, d, (*apportionv1.Queue).GetDeserved, -1)
		want := below.hi
		if len(c.kids[q]) == 0 {
			want = c.demand[q][d]
			if sated && want > 0 {
				want = c.all[d]
			}
			want = (want + c.unit[d] - 1) / c.unit[d]
		}
		b.hi = min(b.capability, want)
		b.guaranteed = min(b.capability, max(guarantee, below.guaranteed))
		b.lo = min(b.hi, max(min(guarantee, b.hi), below.lo))
		if c.settings.GetReserveGuarantee() {
			b.lo = min(b.capability, max(guarantee, below.lo))
		}
		b.hi = max(b.hi, b.lo)
		b.m, b.deserving = b.lo, b.guaranteed
		if c.settings.GetBase() == apportionv1.FairBase_FAIR_BASE_DESERVED {
			target, weight := deserved, deserved
			if deserved < 0 {
				target, weight = below.m, below.deserving
			}
			b.m, b.deserving = max(b.lo, min(target, b.hi)), max(b.guaranteed, min(b.capability, weight))
		}
		out[q] = b
	}
	return out
}

// list checks that a list has every division once, with what follows from the snapshot; it returns the shares by dimension and queue.
func (c *check) list(
	name string, divisions []*apportionv1.FairDivision, bounds []map[int]bound, weight func(d, q int) int64,
) []map[int]int64 {
	shares := make([]map[int]int64, len(c.dims))
	at := 0
	for _, q := range c.order {
		for d := range shares {
			if q != c.top && len(c.kids[q]) == 0 {
				continue
			}
			path := fmt.Sprintf("%s[%d]", name, at)
			if at++; at > len(divisions) {
				c.wrong("%s is missing", path)
				continue
			}
			got, want := divisions[at-1], c.stated(divisions[at-1], q, d, bounds[d], weight)
			if q == c.top {
				shares[d] = map[int]int64{q: c.whole(d, bounds[d][q])}
				want.Amount, want.Root = uint64(shares[d][q]), nil
				if name != "sated_divisions" {
					want.Root = c.ofTheRoot(got, bounds[d][q], want.GetAmount())
				}
			}
			c.compare(path, got, want, nil)
			for i, k := range c.kids[q][:min(len(c.kids[q]), len(got.GetChildren()))] {
				shares[d][k] = int64(got.GetChildren()[i].GetShare())
			}
		}
	}
	expect(c.findings, name+": number of divisions", len(divisions), at)
	return shares
}

// whole is what the root divides of a dimension, in quanta: all that there is, within its limit and, without children, what it has a use
// for.
func (c *check) whole(d int, b bound) int64 {
	most := min(c.all[d]/c.unit[d], b.capability)
	if len(c.kids[c.top]) == 0 {
		most = min(most, b.hi)
	}
	return most
}

// stated is a division with the numbers that follow from the snapshot, and its own ones elsewhere.
func (c *check) stated(got *apportionv1.FairDivision, q, d int, b map[int]bound, weight func(d, q int) int64) *apportionv1.FairDivision {
	want := proto.CloneOf(got)
	want.Queue, want.Dimension, want.Children, want.Root = indexOf(q), uint32(d), nil, nil
	for i, k := range c.kids[q] {
		p := &apportionv1.FairPortion{}
		if i < len(got.GetChildren()) {
			p = proto.CloneOf(got.GetChildren()[i])
		}
		p.Queue, p.Guaranteed, p.Begin, p.Useful, p.Base = indexOf(k), uint64(b[k].lo), uint64(b[k].m), uint64(b[k].hi), 0
		switch got.GetRule() {
		case apportionv1.FairCase_FAIR_CASE_GUARANTEE:
			p.Weight = uint64(b[k].guaranteed)
		case apportionv1.FairCase_FAIR_CASE_DESERVED:
			p.Weight = uint64(b[k].deserving)
		case apportionv1.FairCase_FAIR_CASE_UNSPECIFIED, apportionv1.FairCase_FAIR_CASE_WEIGHT:
			p.Weight = uint64(weight(d, k))
			if c.settings.GetBase() > apportionv1.FairBase_FAIR_BASE_NONE {
				p.Base = p.GetBegin()
			}
		}
		want.Children = append(want.Children, p)
	}
	return want
}

// ofTheRoot is the root's own portion in a division.
func (c *check) ofTheRoot(got *apportionv1.FairDivision, b bound, share uint64) *apportionv1.FairPortion {
	return &apportionv1.FairPortion{
		Queue: indexOf(c.top), Guaranteed: uint64(b.lo), Begin: uint64(b.m), Useful: uint64(b.hi), Share: share,
		GuaranteeLine: got.GetRoot().GetGuaranteeLine(), FairLine: got.GetRoot().GetFairLine(),
	}
}

// indexOf is a queue as answers name it.
func indexOf(q int) *uint32 {
	if q == root {
		return nil
	}
	return new(uint32(q))
}
