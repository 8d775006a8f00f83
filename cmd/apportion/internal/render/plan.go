package render

import (
	"cmp"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// Plan shows where tasks go and which are evicted, or what is lacking.
func (p *Printer) Plan(a *apportionv1.PlanAnswer) {
	if len(a.GetPlacements()) > 0 {
		p.Heading("%s", text.Count(len(a.GetPlacements()), "placement"))
		table := p.NewTable("TASK", "NODE", "")
		for _, placed := range a.GetPlacements() {
			when := ""
			if placed.GetAfterRelease() {
				when = "after release"
			}

			table.Row(p.Snapshot.TaskName(placed.GetTask()), placed.GetNodeName(), when)
		}
		p.table(table)
	}
	if len(a.GetVictims()) > 0 {
		p.Heading("%s", text.Count(len(a.GetVictims()), "eviction"))
		table := p.NewTable("TASK", "QUEUE", "NODE", "FREES", "FOR", "ALLOWED BY", "RETURNS")
		for _, victim := range a.GetVictims() {
			claimant := p.Snapshot.TaskName(victim.GetClaimant())
			if victim.GetForLimit() {
				claimant = "limit"
			}
			table.Row(p.Snapshot.TaskName(victim.GetTask()), p.Names.Queue(victim.GetQueue()), victim.GetNodeName(),
				text.Amounts(p.Names, victim.GetFreed()), claimant, strings.Join(victim.GetPlugins(), ", "), returns(victim.GetReturns()))
		}
		p.table(table)
	}
	if n := a.GetKueue(); n != nil && a.GetMiss() == nil {
		p.kueuePlan(n)
	}
	paint := Good
	if a.GetMiss() != nil {
		paint = Bad
	} else {
		p.Line("")
	}
	p.Text(paint, a.GetText())
}

func returns(way apportionv1.VictimReturn) string {
	return cmp.Or(text.Word(way), "no")
}
