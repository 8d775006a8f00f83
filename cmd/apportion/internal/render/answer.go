package render

import (
	"strconv"
	"strings"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// views show the kinds of answers, by the names of their fields in the contract's Answer. Answers of other kinds are shown by fields.
var views = map[protoreflect.Name]view{
	"error": shown((*apportionv1.Answer).GetError, func(p *Printer, a *rpcstatus.Status) {
		p.Line("%s %s", p.Paint(Bad, "error:"), client.Describe(status.FromProto(a).Err()))
	}),
	"shares":  shown((*apportionv1.Answer).GetShares, (*Printer).Shares),
	"jobs":    shown((*apportionv1.Answer).GetJobs, (*Printer).Jobs),
	"enqueue": shown((*apportionv1.Answer).GetEnqueue, (*Printer).Enqueue),
	"allocatable": shown((*apportionv1.Answer).GetAllocatable, func(p *Printer, a *apportionv1.AllocatableAnswer) {
		p.Tasks("ALLOCATABLE", a.GetTasks())
	}),
	"preemptive": shown((*apportionv1.Answer).GetPreemptive, func(p *Printer, a *apportionv1.PreemptiveAnswer) {
		p.Tasks("MAY TAKE FROM OTHERS", a.GetTasks())
	}),
	"reclaim": func(p *Printer, step *apportionv1.Step, answer *apportionv1.Answer) {
		p.Victims(p.claimant(step.GetReclaim().GetClaimant()), answer.GetReclaim(), false)
	},
	"preempt": func(p *Printer, step *apportionv1.Step, answer *apportionv1.Answer) {
		p.Victims(p.claimant(step.GetPreempt().GetClaimant()), answer.GetPreempt(), false)
	},
	"order": func(p *Printer, step *apportionv1.Step, answer *apportionv1.Answer) {
		p.order(step.GetOrder(), answer.GetOrder())
	},
	"nodes":     shown((*apportionv1.Answer).GetNodes, (*Printer).Nodes),
	"inspect":   shown((*apportionv1.Answer).GetInspect, (*Printer).inspect),
	"explain":   shown((*apportionv1.Answer).GetExplain, func(p *Printer, a *apportionv1.ExplainAnswer) { p.Text("", a.GetText()) }),
	"plan":      shown((*apportionv1.Answer).GetPlan, (*Printer).Plan),
	"remedies":  shown((*apportionv1.Answer).GetRemedies, (*Printer).Remedies),
	"evictable": shown((*apportionv1.Answer).GetEvictable, (*Printer).evictableTasks),
	"forecast":  shown((*apportionv1.Answer).GetForecast, (*Printer).Forecast),
	"event": func(p *Printer, step *apportionv1.Step, answer *apportionv1.Answer) {
		p.happened(step.GetEvent(), answer.GetEvent())
	},
	"mark": func(p *Printer, step *apportionv1.Step, _ *apportionv1.Answer) {
		if step.GetMark() == nil {
			p.Line("done")
			return
		}
		p.Line("marked")
	},
}

// happened shows what a change has set, and of other events that they happened.
func (p *Printer) happened(e *apportionv1.Event, a *apportionv1.EventAnswer) {
	switch c := e.GetChange(); {
	case c == nil || len(c.GetRemoveJobs()) > 0 && len(a.GetJobs()) == 0:
		p.Line("done")
	case len(c.GetJobs()) == 1 && len(a.GetNodes())+len(a.GetQueues()) == 0:
		tasks := 0
		for _, group := range c.GetJobs()[0].GetGroups() {
			tasks += len(group.GetTasks())
		}
		p.Line("added as job %d with %s", a.GetJobs()[0], text.Count(tasks, "task"))
	default:
		p.Line("changed: %s, %s and %s set", text.Count(len(a.GetNodes()), "node"), text.Count(len(a.GetQueues()), "queue"),
			text.Count(len(a.GetJobs()), "job"))
	}
}

// view shows an answer of one kind.
type view func(p *Printer, step *apportionv1.Step, answer *apportionv1.Answer)

// shown is a view of a message for which the step does not matter.
func shown[A any](of func(*apportionv1.Answer) A, show func(*Printer, A)) view {
	return func(p *Printer, _ *apportionv1.Step, answer *apportionv1.Answer) { show(p, of(answer)) }
}

// Answer shows the answer to a step.
func (p *Printer) Answer(step *apportionv1.Step, answer *apportionv1.Answer) {
	m := answer.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("answer"))
	if field == nil {
		p.Line("an answer of a kind that this version does not support")
		return
	}
	if show := views[field.Name()]; show != nil {
		show(p, step, answer)
		return
	}
	p.fields(m.Get(field).Message().Interface())
}

// fields shows a message as YAML, with the names of its fields in JSON.
func (p *Printer) fields(message proto.Message) {
	data, err := document.JSON(message)
	if err == nil {
		data, err = document.YAML(data)
	}
	if err != nil {
		p.Line("%s %v", p.Paint(Bad, "error:"), err)
		return
	}
	for line := range strings.Lines(string(data)) {
		p.Line("%s", strings.TrimSuffix(line, "\n"))
	}
}

// claimant is the number of the task that a selection names.
func (p *Printer) claimant(tasks *apportionv1.Selector) uint32 {
	if len(tasks.GetIndices()) > 0 {
		return tasks.GetIndices()[0]
	}
	if len(tasks.GetNames()) > 0 {
		if number, err := p.Snapshot.Task(tasks.GetNames()[0]); err == nil {
			return number
		}
	}
	return ^uint32(0)
}

// order shows a list, ties in brackets.
func (p *Printer) order(step *apportionv1.OrderStep, answer *apportionv1.OrderAnswer) {
	name := p.Names.Queue
	switch step.GetSubject().(type) {
	case *apportionv1.OrderStep_Jobs:
		name = p.Snapshot.JobName
	case *apportionv1.OrderStep_Tasks:
		name = p.Snapshot.TaskName
	default:
	}
	var parts []string
	rest := answer.GetItems()
	for _, run := range answer.GetTies() {
		n := min(int(run), len(rest))
		names := make([]string, n)
		for i, index := range rest[:n] {
			names[i] = name(index)
		}
		rest = rest[n:]
		if n > 1 {
			parts = append(parts, "["+strings.Join(names, ", ")+"]")
			continue
		}
		parts = append(parts, names...)
	}
	for _, index := range rest {
		parts = append(parts, name(index))
	}
	p.Line("%s", strings.Join(parts, ", "))
	if len(answer.GetTies()) > 0 && len(parts) < len(answer.GetItems()) {
		p.Line("those in brackets differ only in age and name")
	}
	if answer.GetIntransitive() {
		p.Line("the comparison is not transitive: this order is one of several")
	}
	if len(answer.GetPairs()) == 0 {
		return
	}
	table := p.NewTable("LEFT", "RIGHT", ">COMPARES", "LEFT FIRST")
	for _, pair := range answer.GetPairs() {
		table.Row(name(pair.GetLeft()), name(pair.GetRight()), strconv.Itoa(int(pair.GetCompare())), strconv.FormatBool(pair.GetLess()))
	}
	p.table(table)
}

// Nodes shows where tasks fit.
func (p *Printer) Nodes(answer *apportionv1.NodesAnswer) {
	headings := []string{"TASK", "NODE", "FITS", ">SCORE"}
	for _, row := range answer.GetTasks()[:min(1, len(answer.GetTasks()))] {
		for _, part := range row.GetPlugins() {
			headings = append(headings, ">"+strings.ToUpper(part.GetPlugin()))
		}
	}
	plugins := len(headings) - 4
	table := p.NewTable(append(headings, "WHY")...)
	for _, row := range answer.GetTasks() {
		why := make(map[uint32]string, len(row.GetCauses()))
		for _, unfit := range row.GetCauses() {
			why[unfit.GetNode()] = text.Reason(p.Names, unfit)
		}
		task := p.Snapshot.TaskName(row.GetTask())
		for i, node := range row.GetNodes() {
			fits := i < len(row.GetFits()) && row.GetFits()[i]
			cells := []string{task, p.Snapshot.NodeName(node), p.mark(fits), scoreAt(row.GetScores(), i)}
			for k := range plugins {
				if k < len(row.GetPlugins()) {
					cells = append(cells, scoreAt(row.GetPlugins()[k].GetScores(), i))
				} else {
					cells = append(cells, "")
				}
			}
			table.Row(append(cells, why[node])...)
			task = ""
		}
	}
	p.table(table)
	if placement := answer.GetPlacement(); placement != nil {
		p.placement(answer, placement)
	}
}

// placement shows whether all tasks have room at the same time, and where.
func (p *Printer) placement(answer *apportionv1.NodesAnswer, placement *apportionv1.JointPlacement) {
	p.Line("")
	tasks := text.Count(len(answer.GetTasks()), "task")
	one, most := len(answer.GetTasks()) == 1, int(placement.GetMost())
	switch placement.GetOutcome() {
	case apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_FOUND:
		if one {
			p.Line("The task has room:")
		} else {
			p.Line("All %s have room at the same time:", tasks)
		}
		table := p.NewTable("TASK", "NODE")
		for i, node := range placement.GetNodes() {
			if i < len(answer.GetTasks()) {
				table.Row(p.Snapshot.TaskName(answer.GetTasks()[i].GetTask()), p.Snapshot.NodeName(node))
			}
		}
		p.table(table)
	case apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_IMPOSSIBLE:
		if one {
			p.Line("The task does not fit.")
		} else {
			p.Line("The %s do not fit at the same time; %d of them %s.", tasks, most, text.Verb(most, "does", "do"))
		}
	default:
		if one {
			p.Line("No placement of the task was found.")
		} else {
			p.Line("No placement of all %s was found; best fit places %d of them.", tasks, most)
		}
	}
}

func scoreAt(scores []float64, i int) string {
	if i >= len(scores) {
		return ""
	}
	return quantity.Short("pods", scores[i])
}

// inspect shows what was understood.
func (p *Printer) inspect(a *apportionv1.InspectAnswer) {
	p.Line("%s, %s, %s, %s", text.Count(int(a.GetQueueCount()), "queue"), text.Count(int(a.GetJobCount()), "job"),
		text.Count(int(a.GetTaskCount()), "task"), text.Count(int(a.GetNodeCount()), "node"))
	p.Line("total: %s", Amounts(p.Names, a.GetTotal()))
	if len(a.GetNodes()) > 0 {
		p.inspectNodes(a.GetNodes())
	}
	if len(a.GetJobs()) > 0 {
		table := p.NewTable("JOB", "QUEUE", "PHASE", ">PRIORITY", ">MINIMUM", ">READY", "ALLOCATED", "MINIMUM RESOURCES")
		for _, j := range a.GetJobs() {
			minimum := "-"
			if j.GetMinResources() != nil {
				minimum = table.Amounts(p.Names, j.GetMinResources())
			}
			table.Row(p.Snapshot.JobName(j.GetJob()), p.Names.Queue(j.GetQueue()), text.Enum(j.GetPhase(), "JOB_PHASE_"),
				strconv.Itoa(int(j.GetPriority())), count(j.GetMinAvailable()), count(j.GetReadyTasks()),
				table.Amounts(p.Names, j.GetAllocated()), minimum)
		}
		p.Line("")
		p.table(table)
	}
	if len(a.GetTasks()) > 0 {
		p.inspectTasks(a.GetTasks())
	}
}

// inspectNodes has a column of reservations if a node has one.
func (p *Printer) inspectNodes(nodes []*apportionv1.InspectedNode) {
	kept, reserved := make([]string, len(nodes)), false
	for i, n := range nodes {
		kept[i] = p.Snapshot.Reserved(p.Names, n.GetReservations())
		reserved = reserved || kept[i] != ""
	}
	headings := []string{"NODE", "ALLOCATABLE", "USED", "IDLE", "RESERVED"}
	if !reserved {
		headings = headings[:4]
	}
	table := p.NewTable(headings...)
	for i, n := range nodes {
		cells := []string{n.GetName()}
		for _, amounts := range []*apportionv1.Resource{n.GetAllocatable(), n.GetUsed(), n.GetIdle()} {
			cells = append(cells, table.Amounts(p.Names, amounts))
		}
		cells = append(cells, kept[i])
		table.Row(cells[:len(headings)]...)
	}
	p.Line("")
	p.table(table)
}

func (p *Printer) inspectTasks(tasks []*apportionv1.InspectedTask) {
	table := p.NewTable("TASK", "JOB", "ROLE", "STATUS", "NODE", ">PRIORITY", "REQUEST", "")
	for _, t := range tasks {
		node := "-"
		if t.Node != nil {
			node = p.Snapshot.NodeName(t.GetNode())
		}
		var marks []string
		for _, m := range []struct {
			set  bool
			word string
		}{{t.GetGated(), "gated"}, {t.GetBestEffort(), "best effort"}, {!t.GetPreemptable(), "not preemptable"}} {
			if m.set {
				marks = append(marks, m.word)
			}
		}
		table.Row(p.Snapshot.TaskName(t.GetTask()), p.Snapshot.JobName(t.GetJob()), t.GetRole(), text.Enum(t.GetStatus(), "TASK_STATUS_"),
			node, strconv.Itoa(int(t.GetPriority())), table.Amounts(p.Names, t.GetRequest()), strings.Join(marks, ", "))
	}
	p.Line("")
	p.table(table)
}
