package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// Shares shows who deserves what, in queue order.
func (p *Printer) Shares(answer *apportionv1.SharesAnswer) {
	first := true
	for _, plugin := range answer.GetPlugins() {
		if len(plugin.GetQueues()) == 0 && len(plugin.GetHierarchyCauses()) == 0 {
			continue
		}
		if !first {
			p.Line("")
		}
		first = false
		if ofKueue(plugin) {
			p.kueue(plugin)
			continue
		}
		p.plugin(answer, plugin)
	}
	for _, plugin := range answer.GetPlugins() {
		p.memory(answer, plugin)
		p.jobShares(plugin)
		p.fairTree(plugin)
		if !p.Brief {
			p.derivation(plugin)
		}
	}
	p.standings(answer.GetStandings())
}

// plugin shows the queues of one plugin: one row for each dimension that matters.
func (p *Printer) plugin(answer *apportionv1.SharesAnswer, plugin *apportionv1.PluginShares) {
	if len(plugin.GetHierarchyCauses()) > 0 {
		p.Line("%s: %s", plugin.GetPlugin(), p.Paint(Bad, p.Reasons(plugin.GetHierarchyCauses())))
	}
	var dominant []uint32
	var resources []*apportionv1.Resource
	for _, q := range plugin.GetQueues() {
		if q.Dominant != nil && q.GetShare() > 0 {
			dominant = append(dominant, q.GetDominant())
		}
		resources = append(resources, q.GetDeserved(), q.GetAllocated(), q.GetRequest(), q.GetGuarantee())
	}
	dimensions := p.shown(dominant, resources...)
	terms := catalogue.TermsOf(plugin.GetPlugin())
	deserves := strings.ToUpper(terms.Deserved)
	bars := "ALLOCATED OF " + deserves
	table := p.NewTable("QUEUE", ">WEIGHT", "RESOURCE", ">GUARANTEE", ">"+deserves, ">ALLOCATED", ">REQUEST", ">AT MOST", bars).
		Optional("WEIGHT", "GUARANTEE", "REQUEST", "AT MOST", bars)
	weighted := slices.ContainsFunc(plugin.GetQueues(), func(q *apportionv1.QueueShare) bool { return q.GetWeight() > 0 })
	var idle []string
	for _, q := range p.inOrder(answer, plugin.GetQueues()) {
		if !q.GetParticipating() {
			idle = append(idle, p.Names.Queue(q.GetQueue()))
			continue
		}
		weight := "-"
		if weighted {
			weight = strconv.FormatUint(uint64(q.GetWeight()), 10)
		}
		p.queueRows(table, q, weight, terms, dimensions)
	}
	if !table.Empty() {
		p.table(table)
	}
	if len(idle) > 0 {
		p.Wrapped("%s%s", text.Say("noShare"), strings.Join(idle, ", "))
	}
}

func (p *Printer) queueRows(table *Table, q *apportionv1.QueueShare, weight string, terms catalogue.Terms, dimensions []int) {
	name := p.Names.Queue(q.GetQueue())
	if q.GetOverused() {
		name = p.Paint(Bad, name+" ("+terms.Overused+")")
	}
	rows := 0
	for _, d := range dimensions {
		if len(p.Resources) == 0 && !touches(q, d) {
			continue
		}
		rows++
		dimension := p.Names.Dimensions[d]
		if q.Dominant != nil && int(q.GetDominant()) == d && q.GetShare() > 0 {
			dimension += "*"
		}
		allocated, deserved := value(q.GetAllocated(), d), value(q.GetDeserved(), d)
		bar := func(columns int) string {
			if deserved <= 0 && allocated > 0 {
				return p.Paint(Bad, p.Bar(allocated, deserved, columns))
			}
			return p.Bar(allocated, deserved, columns)
		}
		table.BarRow(8, bar, name, weight, dimension, table.cell(p.Names, q.GetGuarantee(), d), table.cell(p.Names, q.GetDeserved(), d),
			table.cell(p.Names, q.GetAllocated(), d), table.cell(p.Names, q.GetRequest(), d),
			table.cell(p.Names, q.GetRealCapability(), d), "")
		name, weight = "", ""
	}
	if rows == 0 {
		table.Row(name, weight, "nothing")
	}
}

// touches says whether a dimension means anything to a queue.
func touches(q *apportionv1.QueueShare, dimension int) bool {
	for _, r := range []*apportionv1.Resource{q.GetGuarantee(), q.GetDeserved(), q.GetAllocated(), q.GetRequest(), q.GetInqueue()} {
		if value(r, dimension) != 0 {
			return true
		}
	}
	return false
}

// inOrder sorts queues by their rank, those without jobs last.
func (p *Printer) inOrder(answer *apportionv1.SharesAnswer, queues []*apportionv1.QueueShare) []*apportionv1.QueueShare {
	ranks := make(map[uint32]uint32)
	for _, s := range answer.GetStandings() {
		if s.Rank != nil {
			ranks[s.GetQueue()] = s.GetRank()
		}
	}
	rank := func(q *apportionv1.QueueShare) uint32 {
		if r, ok := ranks[q.GetQueue()]; ok {
			return r
		}
		return math.MaxUint32
	}
	sorted := slices.Clone(queues)
	slices.SortStableFunc(sorted, func(a, b *apportionv1.QueueShare) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// standings names the order of queues and says who is not served.
func (p *Printer) standings(standings []*apportionv1.QueueStanding) {
	ranked := slices.DeleteFunc(slices.Clone(standings), func(s *apportionv1.QueueStanding) bool { return s.Rank == nil })
	slices.SortStableFunc(ranked, func(a, b *apportionv1.QueueStanding) int { return cmp.Compare(a.GetRank(), b.GetRank()) })
	names := make([]string, len(ranked))
	for i, s := range ranked {
		names[i] = p.Names.Queue(s.GetQueue())
	}
	if len(names) > 0 {
		p.Line("")
		p.Wrapped("queue order: %s", strings.Join(names, ", "))
	}
	for _, s := range standings {
		if s.GetOverused() {
			p.Wrapped("%s: %s", p.Paint(Bad, "not served"), p.why(s.GetCauses(), p.Names.Queue(s.GetQueue())+" is overused"))
		}
	}
}

// why says reasons in words, or the fallback if there are none.
func (p *Printer) why(reasons []*apportionv1.Cause, fallback string) string {
	if len(reasons) == 0 {
		return fallback
	}
	return p.Reasons(reasons)
}

// jobShares shows the jobs of DRF, the smallest share first.
func (p *Printer) jobShares(plugin *apportionv1.PluginShares) {
	if len(plugin.GetJobs()) == 0 {
		return
	}
	jobs := slices.Clone(plugin.GetJobs())
	slices.SortStableFunc(jobs, func(a, b *apportionv1.JobShare) int { return cmp.Compare(a.GetShare(), b.GetShare()) })
	p.Heading("%s: dominant shares of jobs", plugin.GetPlugin())
	table := p.NewTable("JOB", ">SHARE", "DOMINANT", "ALLOCATED")
	for _, j := range jobs {
		dominant := "-"
		if j.Dominant != nil {
			dominant = p.Names.Dimension(j.GetDominant())
		}
		table.Row(p.Snapshot.JobName(j.GetJob()), fmt.Sprintf("%.4f", j.GetShare()), dominant, table.Amounts(p.Names, j.GetAllocated()))
	}
	p.table(table)
}

// fairTree shows the tree of hierarchical DRF.
func (p *Printer) fairTree(plugin *apportionv1.PluginShares) {
	if len(plugin.GetTreeNodes()) == 0 {
		return
	}
	p.Heading("%s: weighted tree", plugin.GetPlugin())
	table := p.NewTable("NODE", ">WEIGHT", ">SHARE", "SATURATED", "ALLOCATED")
	depths := make([]int, len(plugin.GetTreeNodes()))
	for i, n := range plugin.GetTreeNodes() {
		if n.Parent != nil && int(n.GetParent()) < i {
			depths[i] = depths[n.GetParent()] + 1
		}
		saturated := ""
		if n.GetSaturated() {
			saturated = "yes"
		}
		name := n.GetName()
		if n.Job != nil {
			name = p.Snapshot.JobName(n.GetJob())
		}
		table.Row(strings.Repeat("  ", depths[i])+name, quantity.Short("pods", n.GetWeight()), fmt.Sprintf("%.4f", n.GetShare()),
			saturated, table.Amounts(p.Names, n.GetAllocated()))
	}
	p.table(table)
}

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

// ofKueue reports whether the shares of a plugin are accounts of Kueue.
func ofKueue(plugin *apportionv1.PluginShares) bool {
	return len(plugin.GetQueues()) > 0 && plugin.GetQueues()[0].GetKueue() != nil
}

// kueue shows the accounts of queues and cohorts: one row for each flavor and resource.
func (p *Printer) kueue(plugin *apportionv1.PluginShares) {
	table := p.NewTable("QUEUE", "COHORT", ">SHARE", "FLAVOR", "RESOURCE", ">NOMINAL", ">USED", ">AVAILABLE", ">AT MOST").
		Optional("COHORT", "SHARE", "NOMINAL", "AT MOST")
	rows := func(table *Table, cohorts bool) {
		for _, q := range plugin.GetQueues() {
			if q.GetKueue().GetCohort() == cohorts {
				p.kueueRows(table, p.Names.Queue(q.GetQueue()), q.GetKueue())
			}
		}
	}
	rows(table, false)
	p.table(table)
	cohorts := p.NewTable("COHORT", "PARENT", ">SHARE", "FLAVOR", "RESOURCE", ">OWN", ">USED", ">AVAILABLE", ">IN ALL").
		Optional("PARENT", "SHARE", "OWN", "IN ALL")
	rows(cohorts, true)
	if !cohorts.Empty() {
		p.Line("")
		p.table(cohorts)
	}
	p.kueueLocals(plugin.GetKueueLocals())
}

// kueueLocals shows the usage of the local queues by which workloads come in order.
func (p *Printer) kueueLocals(list []*apportionv1.KueueLocalShare) {
	table := p.NewTable("LOCAL QUEUE", "QUEUE", ">WEIGHT", ">CONSUMED", ">ENTRY PENALTY", ">USAGE")
	for _, l := range list {
		name := visible.Text(strings.TrimPrefix(l.GetNamespace()+"/"+l.GetName(), "/"))
		table.Row(name, p.Names.Queue(l.GetQueue()), text.KueueUsage(l.GetWeight()), text.KueueUsage(l.GetConsumed()),
			text.KueueUsage(l.GetPenalty()), text.KueueUsage(l.GetUsage()))
	}
	if table.Empty() {
		return
	}
	p.Line("")
	p.table(table)
	if half := list[0].GetHalfLife(); half > 0 {
		p.Line("Usage counts half after %s.", duration.Format(time.Duration(half)))
	}
}

func (p *Printer) kueueRows(table *Table, name string, share *apportionv1.KueueShare) {
	if share.GetInactive() != apportionv1.KueueInactivity_KUEUE_INACTIVITY_UNSPECIFIED {
		reason := text.Enum(share.GetInactive(), "KUEUE_INACTIVITY_")
		table.Row(p.Paint(Bad, name+" (inactive)"), visible.Text(share.GetParent()), "-", reason, "-", "-", "-", "-", "-")
		return
	}
	parent, weighted := visible.Text(share.GetParent()), kueueShare(share)
	if len(share.GetAccounts()) == 0 {
		table.Row(name, parent, weighted, "-", "-", "-", "-", "-", "-")
	}
	for _, a := range share.GetAccounts() {
		nominal, used := "-", quantity.Short(a.GetResource(), a.GetUsage())
		if a.Nominal != nil {
			nominal = quantity.Short(a.GetResource(), a.GetNominal())
		}
		if a.GetBorrowing() {
			used = p.Paint(Strong, used)
		}
		resource := visible.Text(a.GetResource())
		if resource == share.GetResource() {
			resource += "*"
		}
		table.Row(name, parent, weighted, visible.Text(a.GetFlavor()), resource, nominal, used,
			quantity.Short(a.GetResource(), a.GetAvailable()), quantity.Short(a.GetResource(), a.GetPotential()))
		name, parent, weighted = "", "", ""
	}
}

// kueueShare shows a weighted share, in percent of what can be lent.
func kueueShare(share *apportionv1.KueueShare) string {
	const perMille = 10
	switch weighted := share.GetWeighted(); {
	case math.IsInf(weighted, 1):
		return "unlimited"
	default:
		return strconv.FormatFloat(weighted/perMille, 'f', 1, 64) + "%"
	}
}

// kueuePlan shows the flavors that a job gets, and the jobs that it evicts.
func (p *Printer) kueuePlan(n *apportionv1.KueueNomination) {
	table := p.NewTable("POD SET", ">PODS", "RESOURCE", "FLAVOR", ">AMOUNT")
	flavors := 0
	for _, set := range n.GetPodSets() {
		name, pods := visible.Text(set.GetName()), strconv.Itoa(int(set.GetCount()))
		for _, f := range set.GetFlavors() {
			amount := quantity.Short(f.GetResource(), f.GetAmount())
			table.Row(name, pods, visible.Text(f.GetResource()), visible.Text(f.GetFlavor()), amount)
			name, pods = "", ""
			flavors++
		}
	}
	p.Heading("%s", text.Count(flavors, "flavor"))
	p.table(table)
	if len(n.GetVictims()) == 0 {
		return
	}
	p.Heading("%s", text.Count(len(n.GetVictims()), "eviction"))
	evictions := p.NewTable("JOB", "QUEUE", "REASON", "RETURNS")
	for _, v := range n.GetVictims() {
		way := "no"
		switch {
		case v.GetServedFirst():
			way = "served first"
		case v.GetTakesBack():
			way = "takes back"
		}
		evictions.Row(visible.Text(v.GetName()), p.Names.Queue(v.GetQueue()), text.KueueReason(v.GetReason()), way)
	}
	p.table(evictions)
}
