package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// Listing says how waiting jobs are listed.
type Listing struct {
	// Most is the number of jobs up to which each is listed, and otherwise of rows of each table of causes and queues.
	Most int
	// Grouped lists the jobs of each cause together; else they are one table.
	Grouped bool
}

// Pending shows the jobs that wait: each with its reason if there are few, else the kinds of causes and the queues, the worst first.
func (p *Printer) Pending(a *apportionv1.ExplainAnswer, show Listing) {
	switch {
	case len(a.GetJobs()) == 0:
	case len(a.GetJobs()) > show.Most:
		p.kinds(a, show.Most)
	case show.Grouped:
		p.pendingGroups(a)
	default:
		p.table(p.pendingTable(a.GetJobs(), ""))
	}
	if out := a.GetLeftOuts(); len(out) > 0 {
		p.Heading("%d %s", len(out), text.Say("notConsidered"))
		p.leftOut(out)
	}
	if len(a.GetJobs()) > 0 || len(a.GetLeftOuts()) > 0 {
		p.Line("")
	}
	if len(a.GetJobs()) <= show.Most {
		p.Text(Strong, a.GetText())
	} else {
		// The tables have the causes.
		p.Text(Strong, text.Waiting(a))
		p.Text("", fmt.Sprintf("Select jobs, such as %s, or list --all; `%s queue NAME` shows one queue.",
			Quoted([]string{"--queue", p.Names.Queue(a.GetQueues()[0].GetQueue())}), cmp.Or(p.Program, "apportion")))
	}
}

// pendingGroups lists the jobs of each cause, kind by kind.
func (p *Printer) pendingGroups(a *apportionv1.ExplainAnswer) {
	of := make(map[uint32]*apportionv1.Explanation, len(a.GetJobs()))
	for _, e := range a.GetJobs() {
		of[e.GetJob()] = e
	}
	for i, kind := range a.GetKinds() {
		if i > 0 {
			p.Line("")
		}
		heading := text.KindOf(kind)
		p.Text(Strong, heading)
		var jobs []*apportionv1.Explanation
		for _, g := range kind.GetGroups() {
			for _, j := range a.GetGroups()[g].GetJobs() {
				jobs = append(jobs, of[j])
			}
		}
		p.table(p.pendingTable(jobs, heading))
	}
}

// kinds shows the kinds of causes with the queues in which most jobs wait for each, and the queues in which most jobs are blocked.
func (p *Printer) kinds(a *apportionv1.ExplainAnswer, most int) {
	named := 2
	if p.small() {
		named = 1
	}
	table := p.NewTable(">JOBS", ">QUEUES", ">TASKS", "MOST IN", "WHY").Wrap(lineWidth).Optional("TASKS", "QUEUES", "MOST IN")
	list := a.GetKinds()
	for _, kind := range list[:min(most, len(list))] {
		var queues []string
		for _, q := range kind.GetQueues()[:min(named, len(kind.GetQueues()))] {
			queues = append(queues, fmt.Sprintf("%s (%d)", p.Names.Queue(q.GetQueue()), q.GetJobCount()))
		}
		table.Row(count(kind.GetJobCount()), count(uint32(len(kind.GetQueues()))), count(kind.GetTaskCount()),
			strings.Join(queues, ", "), strings.TrimPrefix(kind.GetText(), "because "))
	}
	p.table(table)
	p.more(len(list)-most, "cause")
	p.Line("")
	queues := p.NewTable("QUEUE", ">JOBS", ">BLOCKED", ">TASKS", "MOSTLY").Wrap(lineWidth).Optional("TASKS")
	all := a.GetQueues()
	for _, q := range all[:min(most, len(all))] {
		queues.Row(p.Names.Queue(q.GetQueue()), count(q.GetJobCount()), count(q.GetBlockedCount()), count(q.GetTaskCount()),
			p.mostly(list[q.GetKind()]))
	}
	p.table(queues)
	p.more(len(all)-most, "queue")
}

// small reports whether the terminal is so narrow that whole causes would take several lines each.
func (p *Printer) small() bool { return p.Width > 0 && p.Width < lineWidth }

// mostly is the cause of most jobs of a queue, on a narrow terminal in a few words.
func (p *Printer) mostly(kind *apportionv1.PendingKind) string {
	const few = 32
	cause := strings.TrimPrefix(kind.GetText(), "because ")
	if words := text.KindFares(kind); p.small() && len(cause) > few && words != "" {
		return words
	}
	return cause
}

// more says how many rows are not shown.
func (p *Printer) more(rows int, noun string) {
	if rows > 0 {
		p.Line("%s", "and "+text.Count(rows, "more "+noun))
	}
}

// leftOut lists what is not considered. Of pods that another scheduler places the first are named.
func (p *Printer) leftOut(list []*apportionv1.LeftOutExplanation) {
	const named = 3
	pods := map[string]int{}
	for _, l := range list {
		scheduler := l.GetLeftOut().GetScheduler()
		if pods[scheduler]++; scheduler == "" || pods[scheduler] <= named {
			p.Text("", l.GetText())
		}
	}
	delete(pods, "")
	for _, scheduler := range slices.Sorted(maps.Keys(pods)) {
		if more := pods[scheduler] - named; more > 0 {
			p.Text("", fmt.Sprintf("%s left to scheduler %s.", text.Are(more, "more pod"), scheduler))
		}
	}
}

// pendingTable is a table of jobs that wait. FOUND does not repeat the end of the heading.
func (p *Printer) pendingTable(jobs []*apportionv1.Explanation, heading string) *Table {
	headings := []string{"JOB", "QUEUE", "PHASE", ">TASKS", "SINCE", "FOUND"}
	if p.Since == nil {
		headings = slices.Delete(headings, 4, 5)
	}
	table := p.NewTable(headings...).Wrap(lineWidth).Optional("TASKS", "PHASE", "QUEUE")
	for _, e := range jobs {
		cells := []string{e.GetName(), p.Names.Queue(e.GetQueue()), text.Enum(e.GetPhase(), "JOB_PHASE_"), count(e.GetWaitingTasks())}
		if p.Since != nil {
			cells = append(cells, p.Since[e.GetJob()])
		}
		found := text.Found(e)
		if strings.HasSuffix(heading, ": "+found) {
			found = ""
		}
		table.Row(append(cells, found)...)
	}
	return table
}
