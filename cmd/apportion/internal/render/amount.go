package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// at is the amount of a dimension, and whether it is present.
func at(resource *apportionv1.Resource, dimension int) (float64, bool) {
	for i, index := range resource.GetDimensions() {
		if int(index) == dimension && i < len(resource.GetAmounts()) {
			return resource.GetAmounts()[i], true
		}
	}
	return 0, false
}

// value is the amount of a dimension, 0 if it is absent.
func value(resource *apportionv1.Resource, dimension int) float64 {
	amount, _ := at(resource, dimension)
	return amount
}

// amountMark stands before and behind the number of an amount of a table until it is written. The byte is in no text of UTF-8, so that no
// name of a cluster can contain it.
const amountMark = "\xfe"

// tableAmount is an amount in a cell of a table.
type tableAmount struct {
	dimension string
	amount    float64
}

// Amount is an amount in a cell of the table. All amounts of a dimension in a table have one unit.
func (t *Table) Amount(dimension string, amount float64) string {
	t.amounts = append(t.amounts, tableAmount{dimension, amount})
	return amountMark + strconv.Itoa(len(t.amounts)-1) + amountMark
}

// cell shows the amount of a dimension, - if it is absent.
func (t *Table) cell(names text.Names, resource *apportionv1.Resource, dimension int) string {
	amount, present := at(resource, dimension)
	if !present {
		return "-"
	}
	return t.Amount(names.Dimensions[dimension], amount)
}

// inUnits writes the amounts into the cells. Different amounts in one cell get as many decimals as they need to look different.
func (t *Table) inUnits() {
	if len(t.amounts) == 0 {
		return
	}
	all, units := map[string][]float64{}, map[string]quantity.Unit{}
	for _, a := range t.amounts {
		all[a.dimension] = append(all[a.dimension], a.amount)
	}
	for dimension, amounts := range all {
		units[dimension] = quantity.UnitOfTable(dimension, amounts...)
	}
	for _, r := range t.rows {
		for i, cell := range r.cells {
			r.cells[i] = t.written(cell, units)
		}
	}
	t.amounts = nil
}

// written returns a cell with its amounts.
func (t *Table) written(cell string, units map[string]quantity.Unit) string {
	parts := strings.Split(cell, amountMark)
	own := map[int]tableAmount{}
	for i := 1; i < len(parts); i += 2 {
		if n, err := strconv.Atoi(parts[i]); err == nil && n >= 0 && n < len(t.amounts) {
			own[i] = t.amounts[n]
		}
	}
	for i, a := range own {
		unit := units[a.dimension]
		for _, b := range own {
			if a.dimension == b.dimension && a.amount != b.amount && unit.Format(a.amount) == unit.Format(b.amount) {
				unit = unit.Exactly(a.amount, b.amount)
			}
		}
		parts[i] = unit.Format(a.amount)
	}
	return strings.Join(parts, "")
}

// Amounts lists a resource in one line: `8 cpu, 64Gi memory, 8 nvidia.com/gpu`. pods are left out where other things are listed.
func Amounts(names text.Names, resource *apportionv1.Resource) string {
	return listed(names, resource, quantity.Short)
}

// Amounts lists a resource in a cell of the table, as the function of this name does.
func (t *Table) Amounts(names text.Names, resource *apportionv1.Resource) string {
	return listed(names, resource, t.Amount)
}

func listed(names text.Names, resource *apportionv1.Resource, shown func(dimension string, amount float64) string) string {
	var parts []string
	pods := ""
	for i, name := range names.Dimensions {
		amount, present := at(resource, i)
		switch {
		case !present:
		case name == "pods":
			pods = shown(name, amount) + " " + text.Verb(int(amount), "pod", "pods")
		case amount != 0:
			parts = append(parts, shown(name, amount)+" "+name)
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	if pods != "" {
		return pods
	}
	return "nothing"
}

// glyphs are the characters of bars.
type glyphs struct {
	full, empty, mark string
	// parts are eighths of full, without none and all.
	parts []string
}

func (s Style) glyphs() glyphs {
	if s.ASCII {
		return glyphs{full: "#", empty: ".", mark: "|"}
	}
	return glyphs{full: "█", empty: "░", mark: "│", parts: []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"}}
}

// Bar shows in so many columns how much of a bound is used: the mark stands where the bound is, and what is used beyond it lies behind the
// mark. The percentage follows.
func (s Style) Bar(used, bound float64, columns int) string {
	g := s.glyphs()
	switch {
	case math.IsInf(bound, 1):
		return strings.Repeat(g.empty, columns-1) + g.mark + " no bound"
	case bound <= 0 && used <= 0:
		return ""
	case bound <= 0:
		return g.mark + strings.Repeat(g.full, columns-1) + " none deserved"
	}
	percent := fmt.Sprintf(" %3.0f%%", 100*used/bound)
	if used <= bound {
		return s.fill(columns-1, used/bound) + g.mark + percent
	}
	within := max(1, int(math.Round(float64(columns-1)*bound/used)))
	within = min(within, columns-2)
	return strings.Repeat(g.full, within) + g.mark + strings.Repeat(g.full, columns-1-within) + percent
}

// Gauge shows a part of a whole without a mark.
func (s Style) Gauge(part, whole float64, columns int) string {
	if whole <= 0 || math.IsInf(whole, 1) {
		return s.fill(columns, 0)
	}
	return s.fill(columns, min(part/whole, 1))
}

// fill fills a fraction of so many columns.
func (s Style) fill(columns int, fraction float64) string {
	g := s.glyphs()
	fraction = max(0, fraction)
	if len(g.parts) == 0 {
		filled := int(math.Round(fraction * float64(columns)))
		return strings.Repeat(g.full, filled) + strings.Repeat(g.empty, columns-filled)
	}
	eighths := int(math.Round(fraction * float64(columns) * 8))
	text := strings.Repeat(g.full, eighths/8)
	rest := columns - eighths/8
	if eighths%8 > 0 {
		text += g.parts[eighths%8-1]
		rest--
	}
	return text + strings.Repeat(g.empty, rest)
}
