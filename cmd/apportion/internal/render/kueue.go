package render

import (
	"math"
	"strconv"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// ofKueue reports whether the shares of a plugin are accounts of Kueue.
func ofKueue(plugin *apportionv1.PluginShares) bool {
	return len(plugin.GetQueues()) > 0 && plugin.GetQueues()[0].GetKueue() != nil
}

// kueue shows the accounts of queues and cohorts: one row for each flavor and resource.
func (p *Printer) kueue(plugin *apportionv1.PluginShares) {
	table := p.NewTable("QUEUE", "COHORT", ">SHARE", "FLAVOR", "RESOURCE", ">NOMINAL", ">USED", ">AVAILABLE", ">AT MOST").
		Optional("COHORT", "SHARE", "NOMINAL", "AT MOST")
	for _, q := range plugin.GetQueues() {
		p.kueueRows(table, p.Names.Queue(q.GetQueue()), q.GetKueue())
	}
	p.table(table)
	cohorts := p.NewTable("COHORT", "PARENT", ">SHARE", "FLAVOR", "RESOURCE", ">OWN", ">USED", ">AVAILABLE", ">IN ALL").
		Optional("PARENT", "SHARE", "OWN", "IN ALL")
	for _, c := range plugin.GetKueueCohorts() {
		p.kueueRows(cohorts, visible.Text(c.GetName()), c.GetShare())
	}
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
		nominal, used := "-", text.KueueQuantity(a.GetResource(), a.GetUsage())
		if a.Nominal != nil {
			nominal = text.KueueQuantity(a.GetResource(), a.GetNominal())
		}
		if a.GetBorrowing() {
			used = p.Paint(Strong, used)
		}
		resource := visible.Text(a.GetResource())
		if resource == share.GetResource() {
			resource += "*"
		}
		table.Row(name, parent, weighted, visible.Text(a.GetFlavor()), resource, nominal, used,
			text.KueueQuantity(a.GetResource(), a.GetAvailable()), text.KueueQuantity(a.GetResource(), a.GetPotential()))
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
			amount := text.KueueQuantity(f.GetResource(), f.GetAmount())
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
