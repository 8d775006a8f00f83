package main

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// fair is the certificate in the JSON of an answer: the divisions that give the entitlements, and those that give the fair shares.
type fair struct {
	Divisions []*division `json:"divisions,omitempty"`
	Sated     []*division `json:"satedDivisions,omitempty"`
}

type division struct {
	Queue     *int       `json:"queue,omitempty"`
	Dimension int        `json:"dimension,omitempty"`
	Amount    uint64     `json:"amount,omitempty,string"`
	Case      string     `json:"rule,omitempty"`
	Level     *fraction  `json:"level,omitempty"`
	Children  []*portion `json:"children,omitempty"`
	Root      *portion   `json:"root,omitempty"`
}

type fraction struct {
	Numerator   string `json:"numerator"`
	Denominator string `json:"denominator"`
}

type portion struct {
	Queue         *int   `json:"queue,omitempty"`
	Guaranteed    uint64 `json:"guaranteed,omitempty,string"`
	Begin         uint64 `json:"begin,omitempty,string"`
	Useful        uint64 `json:"useful,omitempty,string"`
	Weight        uint64 `json:"weight,omitempty,string"`
	Start         uint64 `json:"start,omitempty,string"`
	Ceiling       uint64 `json:"ceiling,omitempty,string"`
	Base          uint64 `json:"base,omitempty,string"`
	Share         uint64 `json:"share,omitempty,string"`
	GuaranteeLine uint64 `json:"guaranteeLine,omitempty,string"`
	FairLine      uint64 `json:"fairLine,omitempty,string"`
	Bound         string `json:"bound,omitempty"`
}

const (
	ofGuarantee, ofDeserved, ofWeight = "FAIR_CASE_GUARANTEE", "FAIR_CASE_DESERVED", "FAIR_CASE_WEIGHT"
	upper, lower, level               = "FAIR_BOUND_UPPER", "FAIR_BOUND_LOWER", "FAIR_BOUND_LEVEL"
)

// lists are the two lists of divisions.
func (c *fair) lists() [][]*division { return [][]*division{c.Divisions, c.Sated} }

// only returns a copy of what a certificate says of one dimension, which is a certificate of its own.
func (c *fair) only(dimension int) *fair {
	var out [2][]*division
	for i, list := range c.lists() {
		for _, d := range list {
			if d.Dimension != dimension {
				continue
			}
			own := *d
			own.Children = nil
			for _, p := range d.Children {
				own.Children = append(own.Children, new(*p))
			}
			if d.Root != nil {
				own.Root = new(*d.Root)
			}
			if d.Level != nil {
				own.Level = new(*d.Level)
			}
			out[i] = append(out[i], &own)
		}
	}
	return &fair{Divisions: out[0], Sated: out[1]}
}

// numbers is a certificate as proof/main.ml reads it: numbers and names of cases and bounds, each list after its length, what may be absent
// after 0 or 1. A queue that is none is -1.
func (c *fair) numbers() string {
	var b strings.Builder
	for i, list := range c.lists() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(&b, len(list))
		for _, d := range list {
			fmt.Fprintf(&b, " %d %d %d %s", number(d.Queue), d.Dimension, d.Amount, short(d.Case))
			if d.Level == nil {
				b.WriteString(" 0")
			} else {
				fmt.Fprintf(&b, " 1 %s %s", d.Level.Numerator, d.Level.Denominator)
			}
			fmt.Fprintf(&b, " %d", len(d.Children))
			for _, p := range d.Children {
				p.write(&b)
			}
			if d.Root == nil {
				b.WriteString(" 0")
			} else {
				b.WriteString(" 1")
				d.Root.write(&b)
			}
		}
	}
	return b.String()
}

func (p *portion) write(b *strings.Builder) {
	fmt.Fprintf(b, " %d %d %d %d %d %d %d %d %d %d %d %s", number(p.Queue), p.Guaranteed, p.Begin, p.Useful, p.Weight, p.Start,
		p.Ceiling, p.Base, p.Share, p.GuaranteeLine, p.FairLine, short(p.Bound))
}

func number(queue *int) int {
	if queue == nil {
		return -1
	}
	return *queue
}

// short is the last word of the name of a case or a bound; - if there is none.
func short(name string) string {
	if name == "" {
		return "-"
	}
	return name[strings.LastIndex(name, "_")+1:]
}

// derive writes everything anew that follows from what queues are and from their shares, so that what remains wrong is a share, an
// amount or a number that queues bring. onTop is the setting base.
func (c *fair) derive(onTop bool) {
	for _, list := range c.lists() {
		for _, d := range list {
			d.derive(onTop)
		}
	}
	given, sated := map[int]*portion{}, map[int]*portion{}
	for i, of := range []map[int]*portion{given, sated} {
		for _, d := range c.lists()[i] {
			for _, p := range d.portions() {
				of[number(p.Queue)] = p
			}
		}
	}
	for q, e := range given {
		s := sated[q]
		if s == nil {
			s = e
		}
		for _, p := range []*portion{e, s} {
			p.GuaranteeLine, p.FairLine = min(e.Guaranteed, e.Share), min(max(e.Guaranteed, s.Share), e.Share)
		}
	}
}

// portions are those of the children, then that of the root.
func (d *division) portions() []*portion {
	if d.Root == nil {
		return d.Children
	}
	return append(slices.Clip(d.Children), d.Root)
}

func (d *division) derive(onTop bool) {
	var lo, begin uint64
	for _, p := range d.Children {
		lo, begin = lo+p.Guaranteed, begin+p.Begin
	}
	d.Case = ofWeight
	if lo > d.Amount {
		d.Case = ofGuarantee
	} else if begin > d.Amount {
		d.Case = ofDeserved
	}
	d.Level = nil
	var last *big.Rat
	for _, p := range d.Children {
		switch d.Case {
		case ofGuarantee:
			p.Start, p.Ceiling, p.Base = 0, p.Guaranteed, 0
		case ofDeserved:
			p.Start, p.Ceiling, p.Base = p.Guaranteed, p.Begin, 0
		default:
			p.Start, p.Ceiling, p.Base = p.Begin, p.Useful, 0
			if onTop {
				p.Base = p.Begin
			}
		}
		if p.Bound = level; p.Share == p.Ceiling {
			p.Bound = upper
		} else if p.Share == p.Start {
			p.Bound = lower
		}
		if p.Share <= p.Start || p.Weight == 0 {
			continue
		}
		odd := new(big.Int).SetUint64(2*(p.Share-p.Base) - 1)
		if s := new(big.Rat).SetFrac(odd, new(big.Int).SetUint64(2*p.Weight)); last == nil || s.Cmp(last) > 0 {
			last = s
		}
	}
	if last != nil {
		d.Level = &fraction{last.Num().String(), last.Denom().String()}
	}
}
