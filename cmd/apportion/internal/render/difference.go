package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Side is the state of a cluster before or after a change.
type Side struct {
	Shares *apportionv1.SharesAnswer
	// Waiting are all jobs that wait, Held some of those that something holds back, with who could be evicted for them.
	Waiting, Held *apportionv1.ExplainAnswer
}

// Difference shows two clusters side by side where they differ: the shares of queues, the jobs that wait, and who could be evicted.
func (p *Printer) Difference(before, after Side) {
	p.shareDifference(before.Shares, after.Shares)
	p.waitingDifference(before.Waiting, after.Waiting)
	p.evictionDifference(before.Held, after.Held)
}

// shareDifference has a row for each queue and resource with an amount that differs.
func (p *Printer) shareDifference(before, after *apportionv1.SharesAnswer) {
	was, is := dividing(before), dividing(after)
	if was == nil || is == nil {
		return
	}
	earlier := make(map[string]*apportionv1.QueueShare, len(was.GetQueues()))
	for _, q := range was.GetQueues() {
		earlier[q.GetName()] = q
	}
	amounts := []func(*apportionv1.QueueShare) *apportionv1.Resource{
		(*apportionv1.QueueShare).GetDeserved, (*apportionv1.QueueShare).GetAllocated,
		(*apportionv1.QueueShare).GetRequest, (*apportionv1.QueueShare).GetRealCapability,
	}
	columns := []string{"QUEUE", "RESOURCE", ">DESERVED", ">ALLOCATED", ">REQUEST", ">AT MOST"}
	all := slices.Concat(was.GetQueues(), is.GetQueues())
	if slices.ContainsFunc(all, func(q *apportionv1.QueueShare) bool { return q.GetWithMemory() != nil }) {
		columns, amounts = append(columns, ">FIRST UP TO"), append(amounts, firstUpTo)
	}
	var resources []*apportionv1.Resource
	for _, q := range all {
		resources = append(resources, q.GetDeserved(), q.GetAllocated(), q.GetWithMemory())
	}
	dimensions := p.shown(nil, resources...)
	table := p.NewTable(columns...)
	for _, q := range p.inOrder(after, is.GetQueues()) {
		old, name := earlier[q.GetName()], q.GetName()
		for _, d := range dimensions {
			row, differs := []string{name, p.Names.Dimensions[d]}, false
			for _, amount := range amounts {
				row = append(row, p.fromTo(table, amount(old), amount(q), d))
				differs = differs || changed(amount(old), amount(q), d)
			}
			if differs {
				table.Row(row...)
				name = ""
			}
		}
	}
	weights := p.memoryDifference(before, after)
	p.Line("")
	switch {
	case !table.Empty():
		p.table(table)
	case weights.Empty():
		p.Line("no queue would have another share")
	default:
		p.Line("no queue would have another share, but usage would change the weights")
	}
	if weights.Empty() {
		return
	}
	p.Heading("weights with memory")
	p.table(weights)
	if order := p.orderDifference(before, after); order != "" {
		p.Line("%s", order)
	}
}

// firstUpTo returns the amount up to which a queue is given first what becomes free: what it deserves, unless the cluster has a memory.
func firstUpTo(q *apportionv1.QueueShare) *apportionv1.Resource {
	if q.GetWithMemory() != nil {
		return q.GetWithMemory()
	}
	return q.GetDeserved()
}

// changed reports whether an amount differs by more than rounding.
func changed(before, after *apportionv1.Resource, dimension int) bool {
	x, had := at(before, dimension)
	y, has := at(after, dimension)
	return had != has || differ(x, y)
}

// fromTo shows an amount, or what becomes of it.
func (p *Printer) fromTo(table *Table, before, after *apportionv1.Resource, dimension int) string {
	is := table.cell(p.Names, after, dimension)
	if !changed(before, after, dimension) {
		return is
	}
	return table.cell(p.Names, before, dimension) + " " + p.arrow() + " " + is
}

func (p *Printer) arrow() string {
	if p.ASCII {
		return "->"
	}
	return "→"
}

// waitingDifference has a row for each job whose outcome differs, and counts the others.
func (p *Printer) waitingDifference(before, after *apportionv1.ExplainAnswer) {
	earlier := explanations(before)
	table := p.NewTable("JOB", "QUEUE", "NOW", "THEN", "FOUND THEN").Wrap(lineWidth / 2)
	same, seen := 0, map[string]bool{}
	for _, e := range after.GetJobs() {
		seen[e.GetUid()] = true
		now, then := outcome(earlier[e.GetUid()]), outcome(e)
		if now == then {
			same++
			continue
		}
		table.Row(e.GetName(), p.Names.Queue(e.GetQueue()), now, p.Paint(paintOf(e), then), text.Found(e))
	}
	for _, e := range before.GetJobs() {
		if !seen[e.GetUid()] {
			table.Row(e.GetName(), p.Names.Queue(e.GetQueue()), outcome(e), "-", "")
		}
	}
	if table.Empty() {
		p.Line("\n%s", unaffected(same))
		return
	}
	p.Heading("jobs that wait")
	p.table(table)
	if same > 0 {
		p.Line("the outcome of %s would stay the same", text.Count(same, "other waiting job"))
	}
}

// unaffected says that so many waiting jobs have the outcome that they had.
func unaffected(same int) string {
	switch same {
	case 0:
		return "no job would wait"
	case 1:
		return "the outcome of the waiting job would stay the same"
	}
	return "the outcome of the " + text.Count(same, "waiting job") + " would stay the same"
}

func explanations(a *apportionv1.ExplainAnswer) map[string]*apportionv1.Explanation {
	of := make(map[string]*apportionv1.Explanation, len(a.GetJobs()))
	for _, e := range a.GetJobs() {
		of[e.GetUid()] = e
	}
	return of
}

// outcome says in a few words how a job fares. Nil: it does not wait.
func outcome(e *apportionv1.Explanation) string {
	if e == nil {
		return "-"
	}
	return text.Fares(e)
}

func paintOf(e *apportionv1.Explanation) Paint {
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return Good
	default:
		return Bad
	}
}

// evictionDifference has a row for each job for which others could be evicted before or after.
func (p *Printer) evictionDifference(before, after *apportionv1.ExplainAnswer) {
	was, is := explanations(before), explanations(after)
	table := p.NewTable("JOB", "COULD EVICT NOW", "COULD EVICT THEN")
	row := func(e *apportionv1.Explanation) {
		now, then := p.evictable(was[e.GetUid()]), p.evictable(is[e.GetUid()])
		if now != then {
			table.Row(e.GetName(), now, then)
		}
	}
	for _, e := range after.GetJobs() {
		row(e)
	}
	for _, e := range before.GetJobs() {
		if is[e.GetUid()] == nil {
			row(e)
		}
	}
	if table.Empty() {
		return
	}
	p.Heading("who could be evicted")
	p.table(table)
}

// evictable says who could be evicted for a job.
func (p *Printer) evictable(e *apportionv1.Explanation) string {
	for _, f := range e.GetFindings() {
		if f.GetCheck() != apportionv1.CheckKind_CHECK_KIND_EVICTION {
			continue
		}
		could := f.GetEvictable()
		switch {
		case could.GetPlanned() && could.GetCount() == 0:
			return "not needed"
		case could.GetCount() == 0:
			return "nothing"
		}
		queues := make([]string, len(could.GetQueues()))
		for i, queue := range could.GetQueues() {
			queues[i] = p.Names.Queue(queue)
		}
		words := fmt.Sprintf("%d of %s", could.GetCount(), strings.Join(queues, ", "))
		if could.GetEnough() {
			return words + ": enough"
		}
		return words + ": not enough"
	}
	return "not needed"
}

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
