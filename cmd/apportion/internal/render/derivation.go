package render

import (
	"cmp"
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// derivation shows how a plugin came to its shares, if it was asked for.
func (p *Printer) derivation(plugin *apportionv1.PluginShares) {
	if d := plugin.GetProportion(); d != nil {
		p.rounds(d)
	}
	if d := plugin.GetCapacity(); d != nil {
		p.levels(plugin.GetPlugin(), d)
	}
	if d := plugin.GetFair(); d != nil {
		p.divisions(d)
	}
}

// rounds shows proportion's rounds: what each step left of a queue's deserved.
func (p *Printer) rounds(d *apportionv1.ProportionDerivation) {
	p.Heading("proportion divides %s", Amounts(p.Names, d.GetTotal()))
	p.Wrapped("guaranteed to all queues together: %s", Amounts(p.Names, d.GetTotalGuarantee()))
	for i, round := range d.GetRounds() {
		p.Line("")
		p.Wrapped("round %d divides %s by weights of %d in all", i+1, Amounts(p.Names, round.GetRemaining()), round.GetTotalWeight())
		table := p.NewTable("QUEUE", ">WEIGHT", "RESOURCE", ">BY WEIGHT", ">AT MOST", ">AS REQUESTED", ">AS GUARANTEED", "")
		resources := []*apportionv1.Resource{round.GetRemaining()}
		for _, s := range round.GetShares() {
			resources = append(resources, s.GetDeserved())
		}
		dimensions := p.shown(nil, resources...)
		for _, s := range round.GetShares() {
			name, weight, met := p.Names.Queue(s.GetQueue()), fmt.Sprintf("%d/%d", s.GetWeight(), round.GetTotalWeight()), ""
			if s.GetMet() {
				met = "met"
			}
			for _, dimension := range dimensions {
				table.Row(name, weight, p.Names.Dimensions[dimension], table.cell(p.Names, s.GetWeighted(), dimension),
					table.cell(p.Names, s.GetCapped(), dimension), table.cell(p.Names, s.GetRequested(), dimension),
					table.cell(p.Names, s.GetDeserved(), dimension), met)
				name, weight, met = "", "", ""
			}
		}
		p.table(table)
	}
	p.Line("\nit ends after %s: %s", text.Count(len(d.GetRounds()), "round"), end(d.GetEnd()))
}

// end says why the rounds ended.
func end(reason apportionv1.ProportionEnd) string {
	return cmp.Or(text.Word(reason), text.Enum(reason, "PROPORTION_END_"))
}

// levels shows capacity's numbers level by level, parents first.
func (p *Printer) levels(plugin string, d *apportionv1.CapacityDerivation) {
	p.Heading("%s: level by level", plugin)
	table := p.NewTable("QUEUE", "RESOURCE", ">CAPABILITY", ">RESOLVED", ">PARENT HAS", ">SIBLINGS' GUARANTEES", ">AT MOST",
		">DESERVED WRITTEN", ">USED")
	var resources []*apportionv1.Resource
	for _, level := range d.GetLevels() {
		resources = append(resources, level.GetDeserved(), level.GetCapability(), level.GetSiblingGuarantee())
	}
	dimensions := p.shown(nil, resources...)
	for _, level := range d.GetLevels() {
		name := strings.Repeat("  ", int(min(level.GetDepth(), maxIndent))) + p.Names.Queue(level.GetQueue())
		for _, dimension := range dimensions {
			table.Row(name, p.Names.Dimensions[dimension], table.cell(p.Names, level.GetCapability(), dimension),
				table.cell(p.Names, level.GetResolvedCapability(), dimension),
				table.cell(p.Names, level.GetParentRealCapability(), dimension),
				table.cell(p.Names, level.GetSiblingGuarantee(), dimension), table.cell(p.Names, level.GetRealCapability(), dimension),
				table.cell(p.Names, level.GetWrittenDeserved(), dimension), table.cell(p.Names, level.GetDeserved(), dimension))
			name = ""
		}
	}
	p.table(table)
}

// maxIndent bounds how far a tree is indented.
const maxIndent = 32
