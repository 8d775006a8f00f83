// Package certificate checks the shares of plugin fair by nothing but the numbers of their certificate, with Go's standard library. It
// takes what queues want and are guaranteed as the certificate states it; package check derives that from the snapshot too.
package certificate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// number is a uint64 in the JSON of Protocol Buffers: a string, absent for 0.
type number struct{ big.Int }

// UnmarshalJSON reads a number.
func (n *number) UnmarshalJSON(data []byte) error {
	if _, ok := n.SetString(strings.Trim(string(data), `"`), 10); !ok || n.Sign() < 0 {
		return fmt.Errorf("%s is not a number", data)
	}
	return nil
}

// portion is one queue's part of a division; a root that is no queue has no index.
type portion struct {
	Queue                                                   json.Number
	Guaranteed, Begin, Useful, Weight, Start, Ceiling, Base number
	Share, GuaranteeLine, FairLine                          number
	Bound                                                   string
}

type division struct {
	Queue     json.Number
	Dimension int
	Amount    number
	Rule      string
	Level     *struct{ Numerator, Denominator string }
	Children  []portion
	Root      *portion
}

func (d *division) at(queue json.Number) string {
	return fmt.Sprintf("queue %s, dimension %d", queue, d.Dimension)
}

// check gathers faults; path is where it is, and onTop whether weights are added to where they begin: the setting base is not NONE.
type check struct {
	faults []string
	path   string
	onTop  bool
}

// Check returns a sentence for each number of the certificate that does not follow from the others. answer is the JSON of a SharesAnswer
// with the derivation of fair, of all queues.
func Check(answer []byte) ([]string, error) {
	var shares struct {
		Plugins []struct {
			Fair *struct {
				Divisions, SatedDivisions, RememberedDivisions []division
				Weights                                        []weighing
			}
		}
	}
	if err := json.Unmarshal(answer, &shares); err != nil { //nolint:musttag // Names differ from the contract's in case only.
		return nil, err
	}
	for _, p := range shares.Plugins {
		if p.Fair != nil {
			c := &check{onTop: onTop(slices.Concat(p.Fair.Divisions, p.Fair.SatedDivisions, p.Fair.RememberedDivisions))}
			given := c.all("divisions", p.Fair.Divisions, nil)
			sated := c.all("satedDivisions", p.Fair.SatedDivisions, given)
			for _, at := range slices.Sorted(maps.Keys(given)) {
				c.path = at
				c.lines(given[at], given[at], cmp.Or(sated[at], given[at]))
				c.lines(cmp.Or(sated[at], given[at]), given[at], cmp.Or(sated[at], given[at]))
			}
			c.memory(p.Fair.RememberedDivisions, p.Fair.Weights, given, sated)
			return c.faults, nil
		}
	}
	return nil, errors.New("no plugin has a certificate of fair: set explain in the request")
}

func onTop(list []division) bool {
	return slices.ContainsFunc(list, func(d division) bool {
		return slices.ContainsFunc(d.Children, func(p portion) bool { return p.Base.Sign() != 0 })
	})
}

// all checks a list of divisions, parents first, and returns what each queue is given of each dimension. A root that has no portion of its
// own in the list divides what it does in the other.
func (c *check) all(name string, list []division, other map[string]*portion) map[string]*portion {
	given := map[string]*portion{}
	for i := range list {
		d := &list[i]
		c.path = fmt.Sprintf("%s[%d]", name, i)
		for k := range d.Children {
			given[d.at(d.Children[k].Queue)] = &d.Children[k]
		}
		if r := d.Root; r != nil {
			given[d.at(r.Queue)] = r
			c.expect("root", fmt.Sprint(&r.Weight, &r.Start, &r.Ceiling, &r.Base, r.Bound == ""), "0 0 0 0 true")
		}
		own := cmp.Or(given[d.at(d.Queue)], other[d.at(d.Queue)], &portion{})
		if len(d.Children) > 0 {
			c.expect("amount", &d.Amount, &own.Share)
			c.divide(d)
		}
	}
	return given
}

// divide checks one division: the case, each child, the sum, the level, and that no quantum belongs to another child.
func (c *check) divide(d *division) {
	lo, m, sum, most := new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	var last, next *big.Rat
	lastChild, nextChild := 0, 0
	for i := range d.Children {
		p := &d.Children[i]
		c.child(d.Rule, i, p)
		top := &p.Ceiling.Int
		if p.Weight.Sign() == 0 {
			top = &p.Start.Int
		}
		lo.Add(lo, &p.Guaranteed.Int)
		m.Add(m, &p.Begin.Int)
		sum.Add(sum, &p.Share.Int)
		most.Add(most, top)
		c.expect(fmt.Sprintf("children[%d].share", i), &p.Share, maxOf(&p.Start.Int, minOf(&p.Share.Int, top)))
		if s := p.signpost(-1); p.Share.Cmp(&p.Start.Int) > 0 && s != nil && (last == nil || s.Cmp(last) >= 0) {
			last, lastChild = s, i
		}
		if s := p.signpost(1); p.Share.Cmp(top) < 0 && s != nil && (next == nil || s.Cmp(next) < 0) {
			next, nextChild = s, i
		}
	}
	of := "FAIR_CASE_WEIGHT"
	if lo.Cmp(&d.Amount.Int) > 0 {
		of = "FAIR_CASE_GUARANTEE"
	} else if m.Cmp(&d.Amount.Int) > 0 {
		of = "FAIR_CASE_DESERVED"
	}
	c.expect("rule", d.Rule, of)
	c.expect("sum of shares", sum, minOf(most, &d.Amount.Int))
	if last != nil && next != nil && cmp.Or(last.Cmp(next), cmp.Compare(lastChild, nextChild)) > 0 {
		c.expect("owner of a quantum", lastChild, nextChild)
	}
	stated := "<nil>"
	if d.Level != nil {
		stated = d.Level.Numerator + "/" + d.Level.Denominator
	}
	c.expect("level", stated, last)
}

// child checks a child's bounds in this case, and which of them determines its share.
func (c *check) child(of string, i int, p *portion) {
	start, ceiling, base, least := &p.Begin.Int, &p.Useful.Int, new(big.Int), new(big.Int)
	switch {
	case of == "FAIR_CASE_GUARANTEE":
		start, ceiling, least = base, &p.Guaranteed.Int, &p.Guaranteed.Int
	case of == "FAIR_CASE_DESERVED":
		start, ceiling, least = &p.Guaranteed.Int, &p.Begin.Int, &p.Begin.Int
	case c.onTop:
		base = start
	}
	bound := "LEVEL"
	if p.Share.Cmp(ceiling) == 0 {
		bound = "UPPER"
	} else if p.Share.Cmp(start) == 0 {
		bound = "LOWER"
	}
	at := fmt.Sprintf("children[%d].", i)
	c.expect(at+"start", &p.Start, start)
	c.expect(at+"ceiling", &p.Ceiling, ceiling)
	c.expect(at+"base", &p.Base, base)
	c.expect(at+"useful", &p.Useful, maxOf(&p.Guaranteed.Int, &p.Useful.Int))
	c.expect(at+"weight", &p.Weight, maxOf(least, &p.Weight.Int))
	c.expect(at+"begin", &p.Begin, maxOf(&p.Guaranteed.Int, minOf(&p.Begin.Int, &p.Useful.Int)))
	c.expect(at+"bound", p.Bound, "FAIR_BOUND_"+bound)
}

// lines checks the guarantee and fair lines that e states by the queue's portions of the two divisions.
func (c *check) lines(e, given, sated *portion) {
	c.expect("guarantee line", &e.GuaranteeLine, minOf(&given.Guaranteed.Int, &given.Share.Int))
	c.expect("fair line", &e.FairLine, minOf(maxOf(&given.Guaranteed.Int, &sated.Share.Int), &given.Share.Int))
}

// signpost is (share - base + n/2) / weight: of the last quantum with n -1, of the next with 1; nil without a weight.
func (p *portion) signpost(n int64) *big.Rat {
	if p.Weight.Sign() == 0 {
		return nil
	}
	odd := new(big.Int).Sub(&p.Share.Int, &p.Base.Int)
	return new(big.Rat).SetFrac(odd.Add(odd.Lsh(odd, 1), big.NewInt(n)), new(big.Int).Lsh(&p.Weight.Int, 1))
}

func minOf(x, y *big.Int) *big.Int { return slices.MinFunc([]*big.Int{x, y}, (*big.Int).Cmp) }
func maxOf(x, y *big.Int) *big.Int { return slices.MaxFunc([]*big.Int{x, y}, (*big.Int).Cmp) }

// expect notes a fault if two values are not written alike.
func (c *check) expect(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.faults = append(c.faults, fmt.Sprintf("%s: %s is %v, not %v", c.path, what, got, want))
	}
}
