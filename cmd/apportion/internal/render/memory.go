package render

import (
	"fmt"
	"math"
	"strconv"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// memory shows what queues used, the weights that follow from it, and up to which amount each is given first what becomes free. It needs
// the derivation of the shares, and prints nothing without a memory.
func (p *Printer) memory(answer *apportionv1.SharesAnswer, plugin *apportionv1.PluginShares) {
	of := lookup.Memory(plugin)
	table := p.NewTable("QUEUE", "RESOURCE", ">USED", ">PART", ">WEIGHT", ">WITH MEMORY", ">FIRST UP TO", ">ALLOCATED", "BUDGET").
		Optional("ALLOCATED", "BUDGET")
	for _, q := range p.inOrder(answer, plugin.GetQueues()) {
		name := p.Names.Queue(q.GetQueue())
		for _, d := range p.shown(nil, q.GetRequest(), q.GetAllocated(), q.GetDeserved(), q.GetWithMemory()) {
			r, known := of[[2]uint32{q.GetQueue(), uint32(d)}]
			budget := p.budget(q.GetQueue(), uint32(d))
			if !known || len(p.Resources) == 0 && !touches(q, d) && budget == "" {
				continue
			}
			table.Row(name, p.Names.Dimensions[d], used(r), percent(r.Part), strconv.FormatUint(r.Weight, 10), significant(r.WithMemory),
				table.cell(p.Names, q.GetWithMemory(), d), table.cell(p.Names, q.GetAllocated(), d), budget)
			name = ""
		}
	}
	if table.Empty() {
		return
	}
	m := p.Snapshot.GetMemory()
	p.Line("")
	since := time.Unix(m.GetEpoch()*m.GetEpochSeconds(), 0).UTC().Format("2006-01-02 15:04")
	p.Wrapped("%s.", text.Say("withMemory", "half", HalfLife(m), "since", since))
	p.table(table)
}

// used says which part of its siblings' usage is the queue's.
func used(r lookup.Remembered) string {
	switch {
	case r.New:
		return "new"
	case !r.Known:
		return "-"
	}
	return percent(r.Used)
}

func percent(part float64) string { return strconv.Itoa(int(math.Round(100*part))) + "%" }

// finePercent writes a part in percent, below 10 with two digits.
func finePercent(part float64) string {
	if x := 100 * part; x > 0 && x < 9.95 {
		return strconv.FormatFloat(x, 'g', 2, 64) + "%"
	}
	return percent(part)
}

// significant writes three digits of a number, or all before the point.
func significant(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// budget says what is left of a queue's budget for a dimension; "" without one.
func (p *Printer) budget(queue, dimension uint32) string {
	if int(queue) >= len(p.Snapshot.GetQueues()) {
		return ""
	}
	b := p.Snapshot.GetQueues()[queue].GetBudget()
	left, stated := lookup.Left(b, dimension)
	if !stated {
		return ""
	}
	kind := "hard"
	if b.GetKind() == apportionv1.BudgetKind_BUDGET_KIND_SOFT {
		kind = "soft"
	}
	if left == 0 {
		return kind + ", nothing left"
	}
	return fmt.Sprintf("%s, %d%% left", kind, int(100*left))
}

// HalfLife writes after which time usage counts half.
func HalfLife(m *apportionv1.Memory) string {
	seconds := int64(m.GetHalfLifeEpochs()) * m.GetEpochSeconds()
	return duration.Format(time.Duration(seconds) * time.Second)
}
