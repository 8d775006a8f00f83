package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/client/quantity"
	"github.com/apportion/apportion/client/text"
	"github.com/apportion/apportion/cmd/apportion/internal/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// room: is there a node for each kind of task?
func (e *examiner) room() {
	failed := false
	for _, row := range e.nodes.GetTasks() {
		fitting := 0
		for _, fits := range row.GetFits() {
			if fits {
				fitting++
			}
		}
		if fitting == 0 {
			failed = true
			e.find(checkRoom, Failed, "no node of %d can take %s: %s", len(row.GetNode()), e.taskName(row.GetTask()), e.unfit(row))
		}
	}
	if failed || len(e.nodes.GetTasks()) == 0 {
		return
	}
	if placed := e.pack(); placed < len(e.Needed) {
		e.find(checkRoom, Failed, "the nodes have room for %d of the %d tasks that the gang needs", placed, len(e.Needed))
		return
	}
	e.find(checkRoom, Passed, "there is room for %s", counted(len(e.Needed), "task"))
}

func (e *examiner) taskName(number uint32) string { return e.Snapshot.TaskName(number) }

// unfit counts nodes by what they lack.
func (e *examiner) unfit(row *apportionv1.TaskNodes) string {
	type lack struct {
		text  string
		nodes int
		most  float64
		known bool
	}
	var lacks []*lack
	byText := make(map[string]*lack)
	for _, unfit := range row.GetUnfit() {
		reason := unfit.GetReason()
		what := text.Reason(e.names, &apportionv1.Reason{Plugin: reason.GetPlugin(), Code: reason.GetCode()})
		insufficient := reason.GetCode() == apportionv1.ReasonCode_REASON_CODE_INSUFFICIENT_RESOURCE && reason.Dimension != nil
		if insufficient {
			what = "have too little " + e.names.Dimension(reason.GetDimension()) + " left"
		}
		l := byText[what]
		if l == nil {
			l = &lack{text: what}
			byText[what] = l
			lacks = append(lacks, l)
		}
		l.nodes++
		if insufficient {
			name := e.names.Dimension(reason.GetDimension())
			if free := reason.GetLimit() - reason.GetHave(); !l.known || free > l.most {
				l.most, l.known = free, true
				l.text = fmt.Sprintf("%s: %s asked, at most %s free", what, quantity.Short(name, reason.GetNeed()), quantity.Short(name, max(0, free)))
			}
		}
	}
	parts := make([]string, len(lacks))
	for i, l := range lacks {
		parts[i] = fmt.Sprintf("%d %s", l.nodes, l.text)
	}
	return strings.Join(parts, "; ")
}

// pack counts how many of the needed tasks go on nodes together, the first node that fits taking each. Another packing may do better, so
// this says when a gang surely fits, not when it surely does not.
func (e *examiner) pack() int {
	fits := make(map[*apportionv1.Resource][]uint32)
	for _, row := range e.nodes.GetTasks() {
		var nodes []uint32
		for i, node := range row.GetNode() {
			if i < len(row.GetFits()) && row.GetFits()[i] {
				nodes = append(nodes, node)
			}
		}
		fits[e.Snapshot.Tasks[row.GetTask()].Request()] = nodes
	}
	free := e.free()
	placed := 0
	for _, task := range e.Needed {
		request := task.Request()
		nodes, asked := fits[request]
		if !asked || slices.ContainsFunc(nodes, func(node uint32) bool { return take(free[node], request) }) {
			placed++
		}
	}
	return placed
}

// free is what every node has left.
func (e *examiner) free() [][]float64 {
	free := make([][]float64, len(e.Snapshot.GetNodes()))
	add := func(node int, resource *apportionv1.Resource, sign float64) {
		for i, index := range resource.GetDimension() {
			if int(index) < len(free[node]) && i < len(resource.GetAmount()) {
				free[node][index] += sign * resource.GetAmount()[i]
			}
		}
	}
	for i, node := range e.Snapshot.GetNodes() {
		free[i] = make([]float64, len(e.Snapshot.GetDimensions()))
		add(i, node.GetAllocatable(), 1)
		add(i, node.GetUsedByOthers(), -1)
	}
	for _, task := range e.Snapshot.Tasks {
		if task.Node != nil && int(task.GetNode()) < len(free) && task.GetStatus() != apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED &&
			task.GetStatus() != apportionv1.TaskStatus_TASK_STATUS_FAILED {
			add(int(task.GetNode()), task.Request(), -1)
		}
	}
	return free
}

// take takes a request from what is free, if there is enough of everything.
func take(free []float64, request *apportionv1.Resource) bool {
	enough := func(i int) bool {
		index := int(request.GetDimension()[i])
		return request.GetAmount()[i] <= 0 || index < len(free) && free[index] >= request.GetAmount()[i]
	}
	for i := range request.GetDimension() {
		if !enough(i) {
			return false
		}
	}
	for i, index := range request.GetDimension() {
		if int(index) < len(free) {
			free[index] -= request.GetAmount()[i]
		}
	}
	return true
}

// eviction: could room be made?
func (e *examiner) eviction() {
	for i := range e.reclaim {
		claimant := e.taskName(e.Samples[i].Number)
		others, own := e.victims(e.reclaim[i]), []lookup.Task(nil)
		if i < len(e.preempt) {
			own = e.victims(e.preempt[i])
		}
		switch {
		case rejected(e.preemptive) && len(others) > 0:
			e.find(checkEviction, Noted, "%s would find %s in other queues, but its queue may not take: %s",
				claimant, counted(len(others), "victim"), e.reasons(e.preemptive))
		case len(others) > 0:
			e.find(checkEviction, Noted, "%s may reclaim from %s: %s", claimant, e.queues(others), e.freed(others))
		case len(own) > 0:
			e.find(checkEviction, Noted, "%s may preempt %s of its own queue: %s", claimant, counted(len(own), "task"), e.freed(own))
		default:
			e.find(checkEviction, Noted, "%s may evict nobody", claimant)
		}
	}
}

func (e *examiner) victims(answer *apportionv1.VictimsAnswer) []lookup.Task {
	var tasks []lookup.Task
	for _, victim := range answer.GetVictims() {
		if int(victim.GetTask()) < len(e.Snapshot.Tasks) {
			tasks = append(tasks, e.Snapshot.Tasks[victim.GetTask()])
		}
	}
	return tasks
}

// queues names the queues of tasks, in the order of their first task.
func (e *examiner) queues(tasks []lookup.Task) string {
	var names []string
	for _, task := range tasks {
		if queue := task.Job.GetQueue(); !slices.Contains(names, queue) {
			names = append(names, queue)
		}
	}
	if len(names) == 1 {
		return "queue " + names[0]
	}
	return "queues " + strings.Join(names, ", ")
}

// freed says how many tasks there are and what they hold.
func (e *examiner) freed(tasks []lookup.Task) string {
	return counted(len(tasks), "running task") + " with " + e.sum(tasks) + " could be evicted"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// verdict says in plain words what holds the job back.
func (e *examiner) verdict(d *Diagnosis) string {
	first := slices.IndexFunc(e.findings, func(f Finding) bool { return f.Outcome == Failed })
	if first < 0 {
		if len(e.Waiting) == 0 {
			return d.Job + " waits for nothing."
		}
		return fmt.Sprintf("Nothing that is decided here holds %s back: it waits for its turn in queue %s.", d.Job, d.Queue)
	}
	found := e.findings[first]
	switch found.Check {
	case checkAdmission:
		return fmt.Sprintf("%s waits outside queue %s, because %s.%s", d.Job, d.Queue, bare(found.Text), e.excess(e.enqueue))
	case checkTasks:
		return fmt.Sprintf("%s waits because it is incomplete: %s.", d.Job, bare(found.Text))
	case checkService:
		return fmt.Sprintf("%s waits because its queue is not served: %s.", d.Job, bare(found.Text))
	case checkAccount:
		return fmt.Sprintf("%s waits because its queue may not use more: %s.%s", d.Job, bare(found.Text), e.excess(e.jointly))
	}
	return fmt.Sprintf("%s waits for room: %s.%s", d.Job, bare(found.Text), e.wayOut())
}

// excess says by how much a bound would be exceeded.
func (e *examiner) excess(v *apportionv1.Verdict) string {
	for _, r := range v.GetReasons() {
		over := r.GetHave() + r.GetNeed() - r.GetLimit()
		if r.Dimension == nil || over <= 0 || r.GetLimit() == 0 && r.GetHave() == 0 {
			continue
		}
		name := e.names.Dimension(r.GetDimension())
		return fmt.Sprintf(" That is %s %s too much: as much must be given back first, or the job ask for less.", quantity.Short(name, over), name)
	}
	return ""
}

// wayOut repeats what eviction could do.
func (e *examiner) wayOut() string {
	for _, f := range e.findings {
		if f.Check == checkEviction {
			return " " + strings.ToUpper(f.Text[:1]) + f.Text[1:] + "."
		}
	}
	return ""
}

// bare is a text without the plugin behind it.
func bare(clause string) string {
	if i := strings.LastIndex(clause, " ("); i > 0 && strings.HasSuffix(clause, ")") {
		return clause[:i]
	}
	return clause
}
