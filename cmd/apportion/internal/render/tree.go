package render

import (
	"math"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/text"
)

// Tree shows the queues as a tree, with a gauge for each dimension: what is allocated, of what the queue may hold at most or of the
// cluster's total where nothing bounds it.
func (p *Printer) Tree(answer *apportionv1.SharesAnswer, total *apportionv1.Resource) {
	plugin := dividing(answer)
	if plugin == nil {
		p.Line("%s.", text.Say("noDivision"))
		return
	}
	if len(plugin.GetHierarchyCauses()) > 0 {
		p.Line("%s: %s\n", plugin.GetPlugin(), p.Paint(Bad, p.Reasons(plugin.GetHierarchyCauses())))
	}
	shares := make(map[string]*apportionv1.QueueShare)
	resources := []*apportionv1.Resource{}
	for _, q := range plugin.GetQueues() {
		shares[p.Names.Queue(q.GetQueue())] = q
		resources = append(resources, q.GetDeserved(), q.GetAllocated(), q.GetGuarantee())
	}
	dimensions := p.shown(nil, resources...)
	terms := catalogue.TermsOf(plugin.GetPlugin())
	table := p.NewTable("QUEUE", "RESOURCE", "", ">ALLOCATED", ">OF", ">GUARANTEE", ">"+strings.ToUpper(terms.Deserved), ">CAPABILITY").
		Optional("CAPABILITY", "GUARANTEE", "")
	capabilities := p.capabilities()
	for _, b := range p.branches() {
		share := shares[b.name]
		label, rest := b.label(p.ASCII)
		if share == nil || !share.GetParticipating() {
			table.Row(label, "no jobs")
			continue
		}
		if share.GetOverused() {
			label += p.Paint(Bad, " ("+terms.Overused+")")
		}
		p.branchRows(table, share, capabilities[b.name], total, dimensions, label, rest)
	}
	p.table(table)
	p.Line("")
	p.Text("", p.glyphs().full+" allocated; a gauge is full at OF: what the queue may hold at most, or else the cluster's total.")
	p.Text("", "- means not set, or nothing allocated; 0 means none; unlimited means that no capability is set.")
}

// capabilities are those that the snapshot sets, by queue.
func (p *Printer) capabilities() map[string]*apportionv1.Resource {
	set := make(map[string]*apportionv1.Resource, len(p.Snapshot.GetQueues()))
	for _, q := range p.Snapshot.GetQueues() {
		set[q.GetName()] = q.GetCapability()
	}
	return set
}

// capability shows the capability of a queue: that which is set, or which counts in its place. 0 of cpu or memory bounds nothing.
func (p *Printer) capability(table *Table, set, counts *apportionv1.Resource, dimension int) string {
	name := p.Names.Dimensions[dimension]
	// A snapshot numbers its dimensions as answers do.
	amount, present := at(set, dimension)
	if present && (amount > 0 || name != "cpu" && name != "memory") {
		return table.cell(p.Names, set, dimension)
	}
	if value(counts, dimension) > 0 {
		return table.cell(p.Names, counts, dimension)
	}
	return "unlimited"
}

func (p *Printer) branchRows(
	table *Table, share *apportionv1.QueueShare, capability, total *apportionv1.Resource, dimensions []int, label, rest string,
) {
	for _, d := range dimensions {
		bound, present := at(share.GetRealCapability(), d)
		shown := table.cell(p.Names, share.GetRealCapability(), d)
		if !present || math.IsInf(bound, 1) {
			bound, shown = value(total, d), table.cell(p.Names, total, d)
		}
		gauge := func(columns int) string {
			return p.Gauge(value(share.GetAllocated(), d), bound, min(columns, 2*standardBar/3))
		}
		table.BarRow(2, gauge, label, p.Names.Dimensions[d], "", table.cell(p.Names, share.GetAllocated(), d), shown,
			table.cell(p.Names, share.GetGuarantee(), d), table.cell(p.Names, share.GetDeserved(), d),
			p.capability(table, capability, share.GetCapability(), d))
		label = rest
	}
	if len(dimensions) == 0 {
		table.Row(label)
	}
}

// dividing is the first plugin that has accounts of queues.
func dividing(answer *apportionv1.SharesAnswer) *apportionv1.PluginShares {
	for _, plugin := range answer.GetPlugins() {
		if len(plugin.GetQueues()) > 0 || len(plugin.GetHierarchyCauses()) > 0 {
			return plugin
		}
	}
	return nil
}

// branch is a queue and its place in the tree.
type branch struct {
	name string
	// above says of each level whether more siblings follow there; the last one is the queue's own.
	above []bool
	// inner queues have children.
	inner bool
}

// label is the prefix of the queue's row, and of the rows that continue it.
func (b branch) label(ascii bool) (first, rest string) {
	pass, blank, fork, last := "│  ", "   ", "├─ ", "└─ "
	if ascii {
		pass, fork, last = "|  ", "|- ", "`- "
	}
	var lead strings.Builder
	for i, more := range b.above {
		if i < len(b.above)-1 {
			if more {
				lead.WriteString(pass)
			} else {
				lead.WriteString(blank)
			}
		}
	}
	first, rest = lead.String(), lead.String()
	if n := len(b.above); n > 0 {
		if b.above[n-1] {
			first, rest = first+fork, rest+pass
		} else {
			first, rest = first+last, rest+blank
		}
	}
	if b.inner {
		rest += strings.TrimRight(pass, " ")
	}
	return first + b.name, rest
}

// branches are the queues, each before its children, in the order of the snapshot. Queues whose parent is missing, or that form a cycle,
// come last, each as a tree of its own.
func (p *Printer) branches() []branch {
	queues := p.Snapshot.GetQueues()
	children := make(map[string][]string)
	known := make(map[string]bool, len(queues))
	for _, q := range queues {
		known[q.GetName()] = true
	}
	var tops []string
	for _, q := range queues {
		parent := q.GetParent()
		if parent == "" && q.GetName() != rootQueue && known[rootQueue] {
			parent = rootQueue
		}
		if parent == "" || !known[parent] || q.GetName() == rootQueue {
			tops = append(tops, q.GetName())
			continue
		}
		children[parent] = append(children[parent], q.GetName())
	}
	w := walk{children: children, seen: make(map[string]bool, len(queues))}
	for _, top := range tops {
		w.visit(top)
	}
	for _, q := range queues {
		w.visit(q.GetName())
	}
	return w.list
}

const rootQueue = "root"

// walk lists a forest, each node once.
type walk struct {
	children map[string][]string
	seen     map[string]bool
	list     []branch
}

// visit lists a node and all below it that are not listed yet. A stack in place of recursion: the depth is the input's.
func (w *walk) visit(top string) {
	stack := []branch{{name: top}}
	for len(stack) > 0 {
		b := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.seen[b.name] {
			continue
		}
		w.seen[b.name] = true
		below := w.children[b.name]
		b.inner = len(below) > 0
		w.list = append(w.list, b)
		for i, name := range slices.Backward(below) {
			stack = append(stack, branch{name: name, above: append(slices.Clone(b.above), i < len(below)-1)})
		}
	}
}
