package render

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// Queue shows one queue for the people who use it: its settings and shares, what runs, what waits and why, at most so many jobs (0: all),
// and what comes next. Without known shares it leaves them out.
func (p *Printer) Queue(index uint32, shares *apportionv1.SharesAnswer, explained *apportionv1.ExplainAnswer, most int) {
	queue := p.Snapshot.GetQueues()[index]
	p.Wrapped("%s: %s", p.Paint(Strong, "queue "+queue.GetName()), p.settings(queue))
	if shares != nil {
		p.Line("")
		p.QueueShares(shares)
	}
	p.Line("")
	if shares != nil {
		p.Text("", p.standing(index, shares))
	}
	p.Text("", p.running(index))
	jobs := explained.GetJobs()
	if len(jobs) > 0 {
		p.Heading("waiting, in the order in which they are served")
		shown := jobs
		if most > 0 {
			shown = jobs[:min(most, len(jobs))]
		}
		p.table(p.pendingTable(shown, ""))
		p.more(len(jobs)-len(shown), "job")
		if owners := p.owners(queue); owners != "" {
			p.Text("", strings.ToUpper(owners[:1])+owners[1:]+".")
		}
	}
	if out := explained.GetLeftOuts(); len(out) > 0 {
		p.Heading("%d %s", len(out), text.Say("notConsidered"))
		p.leftOut(out)
	}
	p.Line("")
	p.Text(Strong, waitsIn(explained))
	if len(jobs) > 0 {
		p.Text(Strong, "First in line: "+jobs[0].GetText())
		if next := firstInTurn(jobs); next > 0 {
			p.Text(Strong, "The first that nothing holds back: "+jobs[next].GetName()+".")
		}
		p.Line("")
		p.Copied("%s", p.command("explain", jobs[0].GetName()))
	}
}

// firstInTurn returns the position of the first job that only waits for its turn, -1 if there is none.
func firstInTurn(jobs []*apportionv1.Explanation) int {
	return slices.IndexFunc(jobs, func(e *apportionv1.Explanation) bool {
		return e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN
	})
}

// command is a command of this program about the same input.
func (p *Printer) command(words ...string) string {
	program := "apportion"
	if p.Program != "" {
		program = p.Program
	}
	return Quoted(append(append(strings.Fields(program), words...), p.Input...))
}

// settings are the state and the settings of a queue that differ from those of a new one.
func (p *Printer) settings(queue *apportionv1.Queue) string {
	state := text.Enum(queue.GetState(), "QUEUE_STATE_")
	if queue.GetState() == apportionv1.QueueState_QUEUE_STATE_UNSPECIFIED {
		state = "open"
	}
	parts := []string{state}
	if queue.GetPriority() != 0 {
		parts = append(parts, fmt.Sprintf("priority %d", queue.GetPriority()))
	}
	if parent := queue.GetParent(); parent != "" && parent != "root" {
		parts = append(parts, "below "+parent)
	}
	return strings.Join(parts, ", ")
}

// standing says when the queue is served.
func (p *Printer) standing(index uint32, shares *apportionv1.SharesAnswer) string {
	for _, s := range shares.GetStandings() {
		if s.GetQueue() != index {
			continue
		}
		if s.GetOverused() {
			return "It is " + text.Say("notServed") + ": " + p.Reasons(s.GetCauses()) + "."
		}
		if s.Rank != nil {
			return "It is " + text.Rank(s.GetRank()) + "."
		}
	}
	return "It takes no part in the order of queues: none of its jobs waits or runs."
}

// running counts the jobs of the queue that have tasks on nodes, and these tasks.
func (p *Printer) running(index uint32) string {
	name := p.Snapshot.GetQueues()[index].GetName()
	jobs, tasks := 0, 0
	var last *apportionv1.Job
	for i := range p.Snapshot.Tasks {
		task := &p.Snapshot.Tasks[i]
		if task.Node == nil || task.Job.GetQueue() != name {
			continue
		}
		tasks++
		if task.Job != last {
			jobs, last = jobs+1, task.Job
		}
	}
	if jobs == 0 {
		return "None of its jobs has a task on a node."
	}
	return fmt.Sprintf("%s %s %s on nodes.", text.Count(jobs, "job"), text.Verb(jobs, "has", "have"), text.Count(tasks, "task"))
}

// waitsIn says what the jobs of the queue wait for, without counting nodes.
func waitsIn(a *apportionv1.ExplainAnswer) string {
	jobs := len(a.GetJobs())
	if jobs == 0 {
		return text.Say("noneWaits") + "."
	}
	parts := make([]string, 0, len(a.GetKinds()))
	for _, kind := range a.GetKinds() {
		parts = append(parts, text.KindOf(kind))
	}
	return fmt.Sprintf("%s %s: %s.", text.Count(jobs, "job"), text.Verb(jobs, "waits", "wait"), strings.Join(parts, "; "))
}
