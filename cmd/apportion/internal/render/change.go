package render

import (
	"math"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/text"
)

// Changes shows which queues deserve something else after than before.
func (p *Printer) Changes(before, after *apportionv1.SharesAnswer) {
	was, is := dividing(before), dividing(after)
	if was == nil || is == nil {
		return
	}
	earlier := make(map[uint32]*apportionv1.QueueShare, len(was.GetQueues()))
	for _, q := range was.GetQueues() {
		earlier[q.GetQueue()] = q
	}
	var resources []*apportionv1.Resource
	for _, q := range is.GetQueues() {
		resources = append(resources, q.GetDeserved())
	}
	dimensions := p.shown(nil, resources...)
	deserved, would := catalogue.TermsOf(was.GetPlugin()).Deserved, catalogue.TermsOf(is.GetPlugin()).Would
	table := p.NewTable("QUEUE", "RESOURCE", ">"+strings.ToUpper(deserved), ">"+strings.ToUpper(would), ">CHANGE", ">ALLOCATED")
	for _, q := range is.GetQueues() {
		old, name := earlier[q.GetQueue()], p.Names.Queue(q.GetQueue())
		if len(q.GetChildren()) > 0 && old.GetDeserved() == nil {
			// Only the second policy divides among queues that have queues below.
			continue
		}
		for _, d := range dimensions {
			if x, y := value(old.GetDeserved(), d), value(q.GetDeserved(), d); !differ(x, y) {
				continue
			}
			table.Row(name, p.Names.Dimensions[d], table.cell(p.Names, old.GetDeserved(), d), table.cell(p.Names, q.GetDeserved(), d),
				change(table, p.Names.Dimensions[d], value(q.GetDeserved(), d)-value(old.GetDeserved(), d)),
				table.cell(p.Names, q.GetAllocated(), d))
			name = ""
		}
	}
	p.Line("")
	if table.Empty() {
		p.Line("%s.", text.Say("noChange"))
		return
	}
	p.table(table)
}

// change writes a difference with its sign.
func change(table *Table, dimension string, by float64) string {
	if by > 0 {
		return "+" + table.Amount(dimension, by)
	}
	return "-" + table.Amount(dimension, -by)
}

// differ says whether two amounts differ by more than rounding.
func differ(x, y float64) bool {
	return x != y && math.Abs(x-y) > 1e-9*max(math.Abs(x), math.Abs(y))
}
