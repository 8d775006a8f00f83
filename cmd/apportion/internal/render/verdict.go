package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// Enqueue shows which jobs may enter.
func (p *Printer) Enqueue(answer *apportionv1.EnqueueAnswer) {
	if len(answer.GetJobs()) == 0 {
		p.Line("no job is asked about")
		return
	}
	table := p.NewTable("JOB", "QUEUE", "MAY ENTER", "WHY")
	for _, j := range answer.GetJobs() {
		table.Row(p.Snapshot.JobName(j.GetJob()), p.queueOf(j.GetJob()), p.Vote(j.GetVerdict().GetVote()),
			p.Reasons(j.GetVerdict().GetCauses()))
	}
	p.table(table)
}

// queueOf is the queue of a job.
func (p *Printer) queueOf(job uint32) string {
	if jobs := p.Snapshot.GetJobs(); int(job) < len(jobs) {
		return jobs[job].GetQueue()
	}
	return "?"
}

// Tasks shows verdicts about tasks under the question's name.
func (p *Printer) Tasks(question string, verdicts []*apportionv1.TaskVerdict) {
	table := p.NewTable("TASK", question, "WHY")
	for _, v := range verdicts {
		name := "all together"
		if v.Task != nil {
			name = p.Snapshot.TaskName(v.GetTask())
		}
		table.Row(name, p.Vote(v.GetVerdict().GetVote()), p.Reasons(v.GetVerdict().GetCauses()))
		for _, check := range v.GetChecks() {
			table.Row("  "+p.mark(check.GetPassed()), "", p.check(check))
		}
	}
	p.table(table)
}

// check says have + need against limit, and whether the rule of the cause holds: not where the test was passed.
func (p *Printer) check(r *apportionv1.Cause) string {
	var parts []string
	if r.Queue != nil {
		parts = append(parts, "queue "+p.Names.Queue(r.GetQueue()))
	}
	if of := r.GetDimensions(); len(of) > 0 {
		d := int(of[0])
		if d < len(p.Names.Dimensions) {
			of := quantity.Alike(p.Names.Dimensions[d], r.GetHave(), r.GetNeed(), r.GetLimit())
			parts = append(parts, fmt.Sprintf("%s: %s with %s against %s", p.Names.Dimensions[d], of[0], of[1], of[2]))
		}
	}
	if len(r.GetDimensions()) == 0 && (r.GetHave() != 0 || r.GetLimit() != 0) {
		parts = append(parts, fmt.Sprintf("%s against %s", quantity.Short("pods", r.GetHave()), quantity.Short("pods", r.GetLimit())))
	}
	rule := text.Enum(r.GetCode(), "CAUSE_CODE_")
	switch negated, negative := strings.CutPrefix(rule, "not "); {
	case r.GetPassed() && negative:
		rule = negated
	case r.GetPassed() && !strings.HasPrefix(rule, "no "):
		rule = "not " + rule
	}
	parts = append(parts, strings.TrimSpace(rule+" ("+r.GetPlugin()+")"))
	return strings.Join(parts, ", ")
}

func (p *Printer) mark(passed bool) string {
	switch {
	case passed && p.ASCII:
		return p.Paint(Good, "ok")
	case passed:
		return p.Paint(Good, "✓")
	case p.ASCII:
		return p.Paint(Bad, "no")
	}
	return p.Paint(Bad, "✗")
}

// Jobs shows where jobs stand.
func (p *Printer) Jobs(answer *apportionv1.JobsAnswer) {
	table := p.NewTable("JOB", "QUEUE", ">MINIMUM", ">TASKS", ">READY", ">PIPELINED", "VALID", "READY", "STARVING", "WHY")
	for _, j := range answer.GetJobs() {
		table.Row(p.Snapshot.JobName(j.GetJob()), p.queueOf(j.GetJob()), count(j.GetMinAvailable()), count(j.GetTotalTasks()),
			count(j.GetReadyTasks()), count(j.GetPipelinedTasks()), p.Vote(j.GetValid().GetVote()), p.Vote(j.GetReady().GetVote()),
			text.Vote(j.GetStarving().GetVote()), p.firstReasons(j))
	}
	p.table(table)
}

// firstReasons are the reasons of the first verdict that is a no.
func (p *Printer) firstReasons(j *apportionv1.JobStanding) string {
	for _, v := range []*apportionv1.Verdict{j.GetValid(), j.GetReady(), j.GetPipelined()} {
		if v.GetVote() != apportionv1.Vote_VOTE_PERMIT {
			return p.Reasons(v.GetCauses())
		}
	}
	return ""
}

func count(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// Victims shows the tasks that the claimant may evict, and why others are spared. all lists every spared task, otherwise a few for each
// reason.
func (p *Printer) Victims(claimant uint32, answer *apportionv1.VictimsAnswer, all bool) {
	name := p.Snapshot.TaskName(claimant)
	if int(claimant) < len(p.Snapshot.Tasks) {
		t := p.Snapshot.Tasks[claimant]
		p.Wrapped("%s of queue %s asks for %s", name, t.Job.GetQueue(), Amounts(p.Names, t.Request()))
	}
	switch {
	case !answer.GetDecided():
		p.Wrapped("%s: no plugin of the policy has an opinion on evictions", name)
	case answer.GetPlan().GetMade() && len(answer.GetVictims()) == 0:
		p.Wrapped("%s needs no eviction: there is room, or room is being released", name)
	case answer.GetPlan() != nil && !answer.GetPlan().GetMade():
		p.Wrapped("%s may evict no task: %s", name, p.Reasons([]*apportionv1.Cause{answer.GetPlan().GetRefusal()}))
	case len(answer.GetVictims()) == 0:
		p.Line("%s may evict no task", name)
	default:
		p.Heading("%s may evict, in this order:", name)
		table := p.NewTable("TASK", "QUEUE", "NODE", ">PRIORITY", "FREES")
		for _, number := range evictions(answer) {
			p.victimRow(table, number)
		}
		p.table(table)
	}
	p.plan(answer.GetPlan(), len(answer.GetVictims()))
	if answer.GetByChance() {
		p.Line("")
		p.Wrapped("%s", text.ByChance)
	}
	p.votes(answer)
	p.spared(answer.GetProtections(), all)
	p.checks(answer.GetChecks())
}

// NeverAsks says why Volcano's reclaim action would not ask for these victims; nil: it would.
func (p *Printer) NeverAsks(refused *apportionv1.Verdict) {
	if refused != nil {
		p.Line("")
		p.Wrapped("Volcano's reclaim action does not ask for this task: its queue may take nothing from others, because %s.",
			p.Reasons(refused.GetCauses()))
	}
}

// evictableTasks shows which tasks some claimant may evict.
func (p *Printer) evictableTasks(answer *apportionv1.EvictableAnswer) {
	plan := answer.GetPlan()
	switch {
	case plan != nil && !plan.GetMade():
		p.Wrapped("the claimants may evict no task: %s", p.Reasons([]*apportionv1.Cause{plan.GetRefusal()}))
	case plan != nil && len(answer.GetReclaimVictims()) == 0:
		p.Line("the claimants need no eviction: there is room, or room is being released")
	case len(answer.GetReclaimVictims())+len(answer.GetPreemptVictims()) == 0:
		p.Line("no task may be evicted")
	}
	for _, list := range []struct {
		by    string
		tasks []uint32
	}{{"queues other than its own", answer.GetReclaimVictims()}, {"its own queue", answer.GetPreemptVictims()}} {
		if len(list.tasks) == 0 {
			continue
		}
		p.Heading("some claimant may evict, of %s:", list.by)
		table := p.NewTable("TASK", "QUEUE", "NODE", ">PRIORITY", "FREES")
		for _, number := range list.tasks {
			p.victimRow(table, number)
		}
		p.table(table)
	}
	p.plan(plan, len(answer.GetReclaimVictims()))
	if n := len(answer.GetLeftClaimants()); n > 0 {
		p.Line("%s not looked at, because of the limit", text.Are(n, "claimant"))
	}
}

// evictions are the victims in the order of eviction.
func evictions(answer *apportionv1.VictimsAnswer) []uint32 {
	if len(answer.GetEvictions()) > 0 {
		return answer.GetEvictions()
	}
	order := make([]uint32, 0, len(answer.GetVictims()))
	for _, v := range answer.GetVictims() {
		order = append(order, v.GetTask())
	}
	return order
}

func (p *Printer) victimRow(table *Table, number uint32) {
	if int(number) >= len(p.Snapshot.Tasks) {
		table.Row(p.Snapshot.TaskName(number))
		return
	}
	t := p.Snapshot.Tasks[number]
	node := "-"
	if t.Node != nil {
		node = p.Snapshot.NodeName(t.GetNode())
	}
	table.Row(t.Name(), t.Job.GetQueue(), node, strconv.Itoa(int(t.Job.GetPriority())), table.Amounts(p.Names, t.Request()))
}

// votes tells how each plugin voted.
func (p *Printer) votes(answer *apportionv1.VictimsAnswer) {
	if len(answer.GetPlugins()) == 0 {
		return
	}
	p.Line("")
	for _, plugin := range answer.GetPlugins() {
		says := fmt.Sprintf("names %d", len(plugin.GetVictims()))
		if plugin.GetVote() != apportionv1.Vote_VOTE_PERMIT {
			says = text.Vote(plugin.GetVote())
		}
		deciding := ""
		if answer.Tier != nil && answer.GetTier() == plugin.GetTier() {
			deciding = ", the deciding tier"
		}
		p.Line("%s (tier %d%s): %s", plugin.GetPlugin(), plugin.GetTier()+1, deciding, says)
	}
}

// fewSpared is the number of tasks that are named for each reason unless all are requested.
const fewSpared = 3

// spared groups those left alone by the words of their reason.
func (p *Printer) spared(spared []*apportionv1.Cause, all bool) {
	if len(spared) == 0 {
		return
	}
	p.Heading("left alone: %d", len(spared))
	if all {
		table := p.NewTable("TASK", "WHY")
		for _, s := range spared {
			table.Row(p.Snapshot.TaskName(s.GetTask()), text.Reason(p.Names, s))
		}
		p.table(table)
		return
	}
	groups := make(map[string][]string)
	var whys []string
	for _, s := range spared {
		why := text.Reason(p.Names, s)
		if _, ok := groups[why]; !ok {
			whys = append(whys, why)
		}
		groups[why] = append(groups[why], p.Snapshot.TaskName(s.GetTask()))
	}
	slices.SortStableFunc(whys, func(a, b string) int { return cmp.Compare(len(groups[b]), len(groups[a])) })
	table := p.NewTable(">TASKS", "WHY", "FOR EXAMPLE")
	for _, why := range whys {
		names := groups[why]
		table.Row(strconv.Itoa(len(names)), why, strings.Join(names[:min(fewSpared, len(names))], ", "))
	}
	p.table(table)
}

// checks lists every test of every candidate.
func (p *Printer) checks(checks []*apportionv1.Cause) {
	if len(checks) == 0 {
		return
	}
	p.Heading("checks")
	table := p.NewTable("TASK", "", "WHAT WAS TESTED")
	last := ""
	for _, check := range checks {
		name := p.Snapshot.TaskName(check.GetTask())
		shown := name
		if name == last {
			shown = ""
		}
		last = name
		table.Row(shown, p.mark(check.GetPassed()), p.check(check))
	}
	p.table(table)
}
