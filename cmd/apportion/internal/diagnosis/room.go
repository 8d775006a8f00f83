package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/client/quantity"
	"github.com/apportion/apportion/client/text"
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
	switch most := e.placement.GetMost(); e.placement.GetOutcome() {
	case apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_FOUND:
		e.find(checkRoom, Passed, "there is room for %s", counted(len(e.Needed), "task"))
	case apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_IMPOSSIBLE:
		e.find(checkRoom, Failed, "the nodes have no room for the %d tasks that the gang needs at the same time; for %d they have", len(e.Needed), most)
	default:
		e.find(checkRoom, Noted, "each task fits by itself; best fit found room for %d of the %d tasks that the gang needs", most, len(e.Needed))
	}
}

func (e *examiner) taskName(number uint32) string { return e.Snapshot.TaskName(number) }

// unfit says what every node lacks: room, or a policy's consent.
func (e *examiner) unfit(row *apportionv1.TaskNodes) string {
	var lacks []string
	refused := make(map[string]int)
	for _, unfit := range row.GetUnfit() {
		if reason := unfit.GetReason(); reason.GetCode() != apportionv1.ReasonCode_REASON_CODE_INSUFFICIENT_RESOURCE {
			why := text.Reason(e.names, reason)
			if refused[why]++; refused[why] == 1 {
				lacks = append(lacks, why)
			}
		}
	}
	for i, why := range lacks {
		lacks[i] = fmt.Sprintf("on %s, %s", counted(refused[why], "node"), why)
	}
	request := e.Snapshot.Tasks[row.GetTask()].Request()
	for i, index := range request.GetDimension() {
		name, amount := e.names.Dimension(index), request.GetAmount()[i]
		if most, enough := e.most(row.GetNode(), index, amount); enough == 0 && amount > 0 {
			lacks = append(lacks, fmt.Sprintf("%s %s asked, at most %s left on a node",
				quantity.Short(name, amount), name, quantity.Short(name, max(0, most))))
		}
	}
	if len(lacks) == 0 {
		return "none has enough of everything at once"
	}
	return strings.Join(lacks, "; ")
}

// most is the largest amount that is idle on a node, and on how many nodes there is enough.
func (e *examiner) most(nodes []uint32, dimension uint32, amount float64) (most float64, enough int) {
	for _, node := range nodes {
		if int(node) >= len(e.accounts) {
			continue
		}
		idle := e.accounts[node].GetIdle()
		for i, index := range idle.GetDimension() {
			if index != dimension {
				continue
			}
			most = max(most, idle.GetAmount()[i])
			if idle.GetAmount()[i] >= amount {
				enough++
			}
		}
	}
	return most, enough
}

// eviction: could room be made? The first kind of task that could is told of.
func (e *examiner) eviction() {
	for i := range e.reclaim {
		claimant := e.taskName(e.Samples[i].Number)
		others := e.victims(e.reclaim[i])
		allowed := i >= len(e.preemptives) || !rejected(e.preemptives[i].GetVerdict())
		if len(others) > 0 && allowed {
			e.find(checkEviction, Noted, "%s may reclaim from %s: %s", claimant, e.queues(others), e.freed(others))
			return
		}
		if i < len(e.preempt) {
			if own := e.victims(e.preempt[i]); len(own) > 0 {
				e.find(checkEviction, Noted, "%s may preempt in its own queue: %s", claimant, e.freed(own))
				return
			}
		}
	}
	for i := range e.preemptives {
		if v := e.preemptives[i].GetVerdict(); rejected(v) {
			e.find(checkEviction, Noted, "the queue may not take from others for %s: %s", e.taskName(e.Samples[i].Number), e.reasons(v))
			return
		}
	}
	e.find(checkEviction, Noted, "nobody may be evicted for the job")
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
		if len(e.Waiting) == 0 && e.Counted == 0 {
			return d.Job + " waits for nothing."
		}
		return fmt.Sprintf("Nothing that is decided here holds %s back: it waits for its turn in queue %s.", d.Job, d.Queue)
	}
	found := e.findings[first]
	return e.headline(d, found) + e.further(e.findings[first+1:])
}

// headline says what holds the job back first.
func (e *examiner) headline(d *Diagnosis, found Finding) string {
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

// further says what else would hold the job back.
func (e *examiner) further(findings []Finding) string {
	reasons := map[string]string{
		checkTasks: "the job is incomplete", checkService: "its queue is not served",
		checkAccount: "its queue may not use that much", checkRoom: "the nodes have no room",
	}
	var also []string
	for _, f := range findings {
		if f.Outcome == Failed {
			also = append(also, reasons[f.Check])
		}
	}
	if len(also) == 0 {
		return ""
	}
	return " Besides, " + strings.Join(also, ", and ") + "."
}

// excess says by how much a bound would be exceeded.
func (e *examiner) excess(v *apportionv1.Verdict) string {
	for _, r := range v.GetReasons() {
		over := r.GetHave() + r.GetNeed() - r.GetLimit()
		if r.Dimension == nil || over <= 0 || r.GetLimit() == 0 && r.GetHave() == 0 {
			continue
		}
		name := e.names.Dimension(r.GetDimension())
		return fmt.Sprintf(" That is %s %s too much: as much must be given back first, or the job ask for less.",
			quantity.Short(name, over), name)
	}
	return ""
}

// wayOut repeats what eviction could do.
func (e *examiner) wayOut() string {
	for _, f := range e.findings {
		if f.Check == checkEviction {
			return " A way out: " + f.Text + "."
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
