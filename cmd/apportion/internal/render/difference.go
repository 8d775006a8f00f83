package render

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
