package render

import (
	"fmt"
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
)

// Forecast shows when a job starts, by chance.
func (p *Printer) Forecast(a *apportionv1.ForecastAnswer) {
	p.Wrapped("%s", a.GetText())
	if a.GetKind() != apportionv1.ForecastKind_FORECAST_KIND_ODDS {
		return
	}
	p.starts(a)
	p.causes(a)
	p.sources(a)
	p.Line("")
	p.Wrapped("%s with seed %d. No task is evicted in them, and no node fails.", text.Count(int(a.GetRuns()), "run"), a.GetSeed())
}

// starts shows within which times parts of the runs start the job.
func (p *Printer) starts(a *apportionv1.ForecastAnswer) {
	starts := a.GetStarts()
	if len(starts) == 0 {
		return
	}
	p.Heading("Starts")
	table := p.NewTable(">CHANCE", ">WITHIN", "")
	const columns = 30
	last := starts[len(starts)-1]
	for _, percent := range []int{10, 25, 50, 75, 90, 100} {
		at := (int(a.GetRuns())*percent+99)/100 - 1
		if at >= len(starts) {
			table.Row(fmt.Sprintf("%d %%", percent), "later", "")
			continue
		}
		start := starts[max(at, 0)]
		table.Row(fmt.Sprintf("%d %%", percent), duration.Seconds(start), p.Gauge(float64(start), float64(last), columns))
	}
	table.Write(p.Out)
}

// causes shows the jobs on whose ends the start depends.
func (p *Printer) causes(a *apportionv1.ForecastAnswer) {
	if len(a.GetCauses()) == 0 {
		return
	}
	p.Heading("Depends on the end of")
	table := p.NewTable("JOB", ">RUNS")
	for _, cause := range a.GetCauses() {
		table.Row(p.Snapshot.JobName(cause.GetJob()), fmt.Sprintf("%d %%", (100*int(cause.GetRuns())+int(a.GetRuns())/2)/int(a.GetRuns())))
	}
	table.Write(p.Out)
}

// sources shows what runtimes were drawn from.
func (p *Printer) sources(a *apportionv1.ForecastAnswer) {
	p.Heading("Runtimes of other jobs")
	table := p.NewTable("DRAWN FROM", ">JOBS")
	of := a.GetSources()
	for _, row := range []struct {
		from string
		n    uint32
	}{
		{"their stated end", of.GetStated()},
		{"jobs of their size", of.GetAlike()},
		{"jobs of their queue", of.GetQueue()},
		{"all jobs", of.GetAll()},
		{"no history as long", of.GetPrior()},
	} {
		if row.n > 0 {
			table.Row(row.from, strconv.Itoa(int(row.n)))
		}
	}
	table.Write(p.Out)
}

// When shows when a job could start at the earliest, and on which nodes.
func (p *Printer) When(e *apportionv1.Explanation) {
	forecast := e.GetForecast()
	if forecast == nil {
		p.Text(Strong, e.GetText())
		switch verdict := e.GetVerdict(); {
		case verdict == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN && len(e.GetUnjudgedConstraints()) == 0:
			p.Text(Good, "It can start now. Without --when its nodes are shown.")
		case neverRuns(e):
			p.Text(Bad, "It could not start even once every other job has ended.")
		case verdict == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED && !p.Snapshot.Run():
			p.Text(Strong, "When it could start is not known: no job runs, so that there is no end to wait for.")
		case verdict == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED:
			p.Text(Strong, "When it could start is not known: no running job says when it ends. --ends and --runtime say it.")
		}
		return
	}
	if nodes := forecast.GetNodes(); len(nodes) > 0 {
		p.Heading("%s", text.Count(len(nodes), "placement"))
		table := p.NewTable("TASK", "NODE")
		for i, node := range nodes {
			table.Row(p.Snapshot.TaskName(forecast.GetTasks()[i]), p.Snapshot.NodeName(node))
		}
		p.table(table)
		p.Line("")
	}
	paint := Good
	if forecast.GetOutcome() == apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOT_FORESEEN {
		paint = Bad
	}
	p.Text(paint, forecast.GetText())
}

// neverRuns reports whether a job is blocked because it can never run.
func neverRuns(e *apportionv1.Explanation) bool {
	at := int(e.GetBlocking())
	return e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED && at < len(e.GetFindings()) &&
		e.GetFindings()[at].GetCheck() == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY
}
