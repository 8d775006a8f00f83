package render

import (
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// memoryDifference returns a table of the parts of siblings by the weights that follow from usage, where they differ. It needs the
// derivations of the shares, and is empty without a memory.
func (p *Printer) memoryDifference(before, after *apportionv1.SharesAnswer) *Table {
	was, is := lookup.Memory(dividing(before)), lookup.Memory(dividing(after))
	table := p.NewTable("QUEUE", "RESOURCE", ">USED", ">PART", ">PART WITH MEMORY")
	if len(was) == 0 && len(is) == 0 {
		return table
	}
	shown := dividing(after).GetQueues()
	var resources []*apportionv1.Resource
	for _, q := range shown {
		resources = append(resources, q.GetDeserved(), q.GetAllocated(), q.GetRequest())
	}
	for _, q := range p.inOrder(after, shown) {
		name := q.GetName()
		for _, d := range p.shown(nil, resources...) {
			key := [2]uint32{q.GetQueue(), uint32(d)}
			old, had := was[key]
			now, has := is[key]
			// Without a memory the weights are as written.
			if !had {
				old = lookup.Remembered{Part: now.Part, PartWithMemory: now.Part}
			}
			if !has {
				now = lookup.Remembered{Part: old.Part, PartWithMemory: old.Part}
			}
			row := []string{
				p.between(used(old), used(now)), p.between(percent(old.Part), percent(now.Part)),
				p.between(finePercent(old.PartWithMemory), finePercent(now.PartWithMemory)),
			}
			if strings.Contains(strings.Join(row, ""), p.arrow()) {
				table.Row(append([]string{name, p.Names.Dimensions[d]}, row...)...)
				name = ""
			}
		}
	}
	return table
}

// between shows a text, or what becomes of it.
func (p *Printer) between(before, after string) string {
	if before == after {
		return after
	}
	return before + " " + p.arrow() + " " + after
}

// orderDifference says which queues come first, if that differs; "" if it does not.
func (p *Printer) orderDifference(before, after *apportionv1.SharesAnswer) string {
	was, is := p.firstQueues(before), p.firstQueues(after)
	if was == is || was == "" || is == "" {
		return ""
	}
	return fmt.Sprintf("queue order: %s (now %s)", is, was)
}

// firstQueues names the first queues in their order.
func (p *Printer) firstQueues(answer *apportionv1.SharesAnswer) string {
	const most = 10
	var names []string
	ranked := map[uint32]bool{}
	for _, s := range answer.GetStandings() {
		ranked[s.GetQueue()] = s.Rank != nil
	}
	for _, q := range p.inOrder(answer, dividing(answer).GetQueues()) {
		switch {
		case !ranked[q.GetQueue()]:
		case len(names) == most:
			return strings.Join(names, ", ") + ", …"
		default:
			names = append(names, q.GetName())
		}
	}
	return strings.Join(names, ", ")
}
