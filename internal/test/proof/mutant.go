package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// mutation changes one division of a certificate, in one way.
type mutation struct {
	kind   string
	change func(r *rand.Rand, c *fair, list int, at int)
}

// mutations are all ways, by what is wrong: a number, an order, a line or a parent. A way that ends in "the rest follows" also writes anew
// what follows from the changed number; many of these mutants are certificates of other clusters, and true.
var mutations = []mutation{
	{"a number of a child", func(r *rand.Rand, c *fair, list, at int) { another(r, field(r, child(r, c.lists()[list][at]))) }},
	{"a number of a child, the rest follows", func(r *rand.Rand, c *fair, list, at int) {
		onTop := c.onTop()
		p := child(r, c.lists()[list][at])
		another(r, []*uint64{&p.Guaranteed, &p.Begin, &p.Useful, &p.Weight, &p.Weight, &p.Weight}[r.IntN(6)])
		c.derive(onTop)
	}},
	{"the amount", func(r *rand.Rand, c *fair, list, at int) { another(r, &c.lists()[list][at].Amount) }},
	{"a unit that belongs to another child, the rest follows", func(r *rand.Rand, c *fair, list, at int) {
		onTop, d := c.onTop(), c.lists()[list][at]
		if p := child(r, d); p.Share > 0 {
			p.Share--
			child(r, d).Share++
		}
		c.derive(onTop)
	}},
	{"a unit more or less to divide, the rest follows", func(r *rand.Rand, c *fair, list, at int) {
		onTop, d := c.onTop(), c.lists()[list][at]
		p := child(r, d)
		if c.Sated = nil; r.IntN(2) == 0 {
			d.Amount, p.Share = d.Amount+1, p.Share+1
		} else if d.Amount > 0 && p.Share > 0 {
			d.Amount, p.Share = d.Amount-1, p.Share-1
		}
		if d.Root != nil {
			d.Root.Share = d.Amount
		}
		c.derive(onTop)
	}},
	{"the case", func(r *rand.Rand, c *fair, list, at int) {
		replace(r, &c.lists()[list][at].Case, ofGuarantee, ofDeserved, ofWeight, "")
	}},
	{"a bound", func(r *rand.Rand, c *fair, list, at int) {
		replace(r, &child(r, c.lists()[list][at]).Bound, upper, lower, level, "")
	}},
	{"the base of one child", func(r *rand.Rand, c *fair, list, at int) {
		p := child(r, c.lists()[list][at])
		p.Base = p.Start - p.Base
	}},
	{"the level", func(r *rand.Rand, c *fair, list, at int) {
		d := c.lists()[list][at]
		if d.Level == nil {
			d.Level = &fraction{"1", "2"}
		} else if r.IntN(4) == 0 {
			d.Level = nil
		} else {
			text := []*string{&d.Level.Numerator, &d.Level.Denominator}[r.IntN(2)]
			if n, err := strconv.ParseUint(*text, 10, 64); err == nil {
				another(r, &n)
				*text = strconv.FormatUint(n, 10)
			}
		}
	}},
	{"a line", func(r *rand.Rand, c *fair, list, at int) {
		d := c.lists()[list][at]
		if len(d.portions()) > 0 {
			p := d.portions()[r.IntN(len(d.portions()))]
			another(r, []*uint64{&p.GuaranteeLine, &p.FairLine}[r.IntN(2)])
		}
	}},
	{"the order of children", func(r *rand.Rand, c *fair, list, at int) { exchange(r, c.lists()[list][at].Children) }},
	{"the order of divisions", func(r *rand.Rand, c *fair, list, _ int) { exchange(r, c.lists()[list]) }},
	{"the parent of a division", func(r *rand.Rand, c *fair, list, at int) {
		c.lists()[list][at].Queue = c.lists()[list][r.IntN(len(c.lists()[list]))].Queue
	}},
	{"the queue of a child", func(r *rand.Rand, c *fair, list, at int) {
		child(r, c.lists()[list][at]).Queue = child(r, c.lists()[list][r.IntN(len(c.lists()[list]))]).Queue
	}},
	{"the dimension of a division", func(r *rand.Rand, c *fair, list, at int) { c.lists()[list][at].Dimension += 1 + r.IntN(2) }},
	{"a child left out or repeated", func(r *rand.Rand, c *fair, list, at int) {
		d := c.lists()[list][at]
		d.Children = leaveOutOrRepeat(r, d.Children)
	}},
	{"a division left out or repeated", func(r *rand.Rand, c *fair, list, _ int) {
		of := []*[]*division{&c.Divisions, &c.Sated}[list]
		*of = leaveOutOrRepeat(r, *of)
	}},
	{"the root", func(r *rand.Rand, c *fair, list, at int) {
		switch d := c.lists()[list][at]; {
		case d.Root == nil:
			d.Root = &portion{Queue: d.Queue, Share: d.Amount, FairLine: d.Amount}
		case r.IntN(8) == 0:
			d.Root = nil
		case r.IntN(8) == 0:
			replace(r, &d.Root.Bound, upper, "")
		default:
			another(r, field(r, d.Root))
		}
	}},
	{"all weights, the rest follows", func(r *rand.Rand, c *fair, list, at int) {
		onTop, k := c.onTop(), 2+r.Uint64N(4)
		for _, p := range c.lists()[list][at].Children {
			p.Weight *= k
		}
		c.derive(onTop)
	}},
}

// mutate returns a certificate of one dimension of another one, with one thing changed, and what that is. It looks for a division in which
// several children get something.
func mutate(r *rand.Rand, certificates []sourced) (string, *fair) {
	for {
		c := certificates[r.IntN(len(certificates))].certificate
		list := r.IntN(2)
		if len(c.lists()[list]) == 0 {
			continue
		}
		d := c.lists()[list][r.IntN(len(c.lists()[list]))]
		if r.IntN(8) > 0 && (len(d.Children) < 2 || d.Amount == 0) {
			continue
		}
		out := c.only(d.Dimension)
		at := slices.IndexFunc(out.lists()[list], func(x *division) bool { return number(x.Queue) == number(d.Queue) })
		m := mutations[r.IntN(len(mutations))]
		m.change(r, out, list, at)
		return m.kind, out
	}
}

// onTop reports whether a base is not 0.
func (c *fair) onTop() bool {
	return slices.ContainsFunc(slices.Concat(c.Divisions, c.Sated), func(d *division) bool {
		return slices.ContainsFunc(d.Children, func(p *portion) bool { return p.Base != 0 })
	})
}

// child is one of the children; one that the division does not have if there is none.
func child(r *rand.Rand, d *division) *portion {
	if len(d.Children) == 0 {
		return &portion{}
	}
	return d.Children[r.IntN(len(d.Children))]
}

func field(r *rand.Rand, p *portion) *uint64 {
	fields := []*uint64{
		&p.Guaranteed, &p.Begin, &p.Useful, &p.Weight, &p.Start, &p.Ceiling, &p.Base, &p.Share, &p.GuaranteeLine, &p.FairLine,
	}
	return fields[r.IntN(len(fields))]
}

// another makes a number one more or less, twice as large, 0, or another small one.
func another(r *rand.Rand, n *uint64) {
	switch *n++; r.IntN(5) {
	case 0:
	case 1:
		*n = max(*n, 2) - 2
	case 2:
		*n = 2 * (*n - 1)
	case 3:
		*n = 0
	default:
		*n = r.Uint64N(20)
	}
}

func replace(r *rand.Rand, text *string, by ...string) { *text = by[r.IntN(len(by))] }

func exchange[T any](r *rand.Rand, list []T) {
	if len(list) > 1 {
		i, j := r.IntN(len(list)), r.IntN(len(list))
		list[i], list[j] = list[j], list[i]
	}
}

func leaveOutOrRepeat[T any](r *rand.Rand, list []T) []T {
	if len(list) == 0 {
		return list
	}
	i := r.IntN(len(list))
	if r.IntN(2) == 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return slices.Insert(slices.Clone(list), i, list[i])
}
