package render

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// When shows when a job could start at the earliest, and on which nodes.
func (p *Printer) When(e *apportionv1.Explanation) {
	forecast := e.GetForecast()
	if forecast == nil {
		p.Text(Strong, e.GetText())
		switch verdict := e.GetVerdict(); {
		case verdict == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN && len(e.GetUnjudged()) == 0:
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
	if nodes := forecast.GetNode(); len(nodes) > 0 {
		p.Heading("%s", text.Count(len(nodes), "placement"))
		table := p.NewTable("TASK", "NODE")
		for i, node := range nodes {
			table.Row(p.Snapshot.TaskName(forecast.GetTask()[i]), p.Snapshot.NodeName(node))
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
