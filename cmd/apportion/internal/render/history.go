package render

import (
	"fmt"
	"math"
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
)

// Clock writes times as an answer shows them at a time: the time of the day, with the day unless it is today.
func Clock(now time.Time) func(int64) string {
	day := now.Format(time.DateOnly)
	return func(ns int64) string {
		at := time.Unix(0, ns).In(now.Location())
		if at.Format(time.DateOnly) == day {
			return at.Format("15:04")
		}
		return at.Format("2006-01-02 15:04")
	}
}

// History shows what jobs waited for, and what queues deserved and held, with at most so many rows of each; 0: all.
func (p *Printer) History(h *apportionv1alpha1.GetHistoryResponse, most int, clock func(int64) string) {
	for _, job := range h.GetJobs() {
		p.Wrapped("%s: job of queue %s", p.Paint(Strong, job.GetName()), job.GetQueue())
		p.Text("", text.Waited(job, h.GetBegins(), clock))
		p.Line("")
		p.waits(job, most, clock)
		p.Line("")
	}
	for _, queue := range h.GetQueues() {
		p.Wrapped("%s: %s.", p.Paint(Strong, "queue "+queue.GetQueue()), queueSince(queue, clock))
		p.Line("")
		p.Sparklines(queue)
		p.samples(queue, most, clock)
		p.Line("")
	}
	p.Text("", text.Reaches(h, clock))
}

// waits lists the intervals of a job.
func (p *Printer) waits(job *apportionv1alpha1.JobHistory, most int, clock func(int64) string) {
	table := p.NewTable("FROM", "UNTIL", ">FOR", "WAITED").Wrap(lineWidth).Optional("FOR")
	list := job.GetIntervals()
	hidden := 0
	if most > 0 {
		hidden = max(len(list)-most, 0)
	}
	for i, one := range list[hidden:] {
		if before := hidden + i - 1; i > 0 && list[before].GetEndTime() != one.GetStartTime() {
			from := list[before].GetEndTime()
			until := one.GetStartTime()
			table.Row(clock(from), clock(until), duration.Rough(time.Duration(until-from)), text.Say("didNotWait"))
		}
		until, why := clock(one.GetEndTime()), text.OfOne(one.GetText())
		if one.GetLasts() {
			until = "now"
		}
		if n := int(one.GetMerged()); n > 0 {
			why += text.Say("merged", "causes", text.Are(n, "older cause"))
		}
		table.Row(clock(one.GetStartTime()), until, duration.Rough(time.Duration(one.GetEndTime()-one.GetStartTime())), why)
	}
	p.table(table)
	p.more(hidden, "older cause")
}

// queueSince says since when jobs of a queue wait and it is not served.
func queueSince(q *apportionv1alpha1.QueueHistory, clock func(int64) string) string {
	waits := text.Say("noneWaits")
	if q.GetWaitingSince() != 0 {
		waits = text.Say("jobsWait", "since", clock(q.GetWaitingSince()))
	}
	if q.GetOverusedSince() != 0 {
		waits += text.Say("unserved", "since", clock(q.GetOverusedSince()))
	}
	return waits
}

// QueueSince is what of the history of a queue is said beside its present numbers.
func (p *Printer) QueueSince(h *apportionv1alpha1.GetHistoryResponse, clock func(int64) string) {
	for _, q := range h.GetQueues() {
		p.Line("")
		p.Text("", queueSince(q, clock)+". "+text.Reaches(h, clock))
		p.Sparklines(q)
	}
}

// Next says when waiting jobs could start, as far as that is foreseen.
func (p *Printer) Next(a *apportionv1.ExplainAnswer) {
	heading := false
	for _, e := range a.GetJobs() {
		if e.GetForecast() == nil {
			continue
		}
		if !heading {
			p.Heading("%s", text.Say("comesNext"))
			heading = true
		}
		p.Text("", e.GetForecast().GetText())
	}
}

// sparkWidth is the number of columns of a sparkline.
const sparkWidth = 60

// Sparklines shows for each resource how much of what a queue deserved it held, from the oldest to the newest sample.
func (p *Printer) Sparklines(q *apportionv1alpha1.QueueHistory) {
	table := p.NewTable("RESOURCE", "ALLOCATED OVER TIME", ">NOW", ">DESERVED")
	samples := q.GetSamples()
	if len(samples) < 2 {
		return
	}
	for d, name := range q.GetDimensions() {
		if !p.wanted(name) {
			continue
		}
		held, deserved, most := make([]float64, len(samples)), 0.0, 0.0
		for i, s := range samples {
			a := amountOf(s, d)
			held[i], deserved = a.GetAllocated(), a.GetDeserved()
			most = max(most, a.GetAllocated(), a.GetDeserved())
		}
		if most == 0 {
			continue
		}
		table.Row(name, p.spark(held, most, sparkWidth), table.Amount(name, held[len(held)-1]), table.Amount(name, deserved))
	}
	if !table.Empty() {
		p.table(table)
	}
}

// wanted reports whether a resource is shown.
func (p *Printer) wanted(resource string) bool {
	if len(p.Resources) == 0 {
		return !slices.Contains(seldom, resource)
	}
	return slices.ContainsFunc(p.Resources, func(asked string) bool { return Matches(resource, asked) })
}

func amountOf(s *apportionv1alpha1.QueueSample, dimension int) *apportionv1alpha1.QueueAmount {
	for _, a := range s.GetAmounts() {
		if int(a.GetDimension()) == dimension {
			return a
		}
	}
	return nil
}

// spark draws values up to most, in at most so many columns, of which each is the largest of its values.
func (s Style) spark(values []float64, most float64, columns int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	if s.ASCII {
		levels = []rune("_.-~=+*#")
	}
	n := min(len(values), columns)
	out := make([]rune, n)
	for i := range n {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		level := int(math.Ceil(slices.Max(part)/most*float64(len(levels)))) - 1
		out[i] = levels[min(max(level, 0), len(levels)-1)]
	}
	return string(out)
}

// samples lists the newest samples of a queue.
func (p *Printer) samples(q *apportionv1alpha1.QueueHistory, most int, clock func(int64) string) {
	p.Line("")
	table := p.NewTable("FROM", "UNTIL", ">WAITING", "RESOURCE", ">DESERVED", ">ALLOCATED", ">REQUEST").Optional("REQUEST", "UNTIL")
	list := q.GetSamples()
	if most > 0 {
		list = list[max(len(list)-most, 0):]
	}
	for _, s := range list {
		from, until, waiting := clock(s.GetStartTime()), clock(s.GetEndTime()), fmt.Sprintf("%.4g", s.GetWaitingJobs())
		for _, a := range s.GetAmounts() {
			name := q.GetDimensions()[a.GetDimension()]
			if !p.wanted(name) {
				continue
			}
			table.Row(from, until, waiting, name, table.Amount(name, a.GetDeserved()), table.Amount(name, a.GetAllocated()),
				table.Amount(name, a.GetRequest()))
			from, until, waiting = "", "", ""
		}
		if from != "" {
			table.Row(from, until, waiting, "nothing")
		}
	}
	p.table(table)
	p.more(len(q.GetSamples())-len(list), "older sample")
}
