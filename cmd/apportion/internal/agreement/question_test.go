package agreement_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/variation"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// asked asks about one cluster under one policy.
type asked struct {
	require.TestingT
	*tally

	snapshot *apportionv1.Snapshot
	policy   *apportionv1.Policy
	where    string
	decider  *client.Client
}

// simulate asks steps in order; none may fail.
func (a *asked) simulate(steps ...*apportionv1.Step) []*apportionv1.Answer {
	return a.on(a.snapshot, steps...)
}

func (a *asked) on(snapshot *apportionv1.Snapshot, steps ...*apportionv1.Step) []*apportionv1.Answer {
	return a.about(client.Input{Snapshot: snapshot, Policy: a.policy}, steps...)
}

// about asks about an input.
func (a *asked) about(in client.Input, steps ...*apportionv1.Step) []*apportionv1.Answer {
	if a.decider == nil {
		a.decider = client.InProcess()
	}
	answered, err := a.decider.Simulate(context.Background(), in, steps...)
	require.NoError(a, err, a.where)
	for i := range answered.Answers {
		require.NoError(a, answered.Err(i), "%s: %v", a.where, steps[i])
	}
	return answered.Answers
}

func uids(uid ...string) *apportionv1.Selector { return &apportionv1.Selector{Names: uid} }

func explain(jobs *apportionv1.Selector) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: jobs}}}
}

func plan(uid string, means apportionv1.PlanMeans) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{Job: uids(uid), Means: means}}}
}

func planTasks(means apportionv1.PlanMeans, tasks ...uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{Tasks: &apportionv1.Selector{Indices: tasks}, Means: means}}}
}

// standing is the explanation's verdict about a job alone, without the jobs that come first.
type standing string

const (
	runsNow standing = "runs now"
	held    standing = "is held back"
	unknown standing = "is not known"
)

// stands returns how a job stands, and the check that holds it back.
func stands(e *apportionv1.Explanation) (standing, *apportionv1.Finding) {
	at := runsNow
	for _, f := range e.GetFindings() {
		if f.GetCheck() > apportionv1.CheckKind_CHECK_KIND_NODES {
			continue
		}
		switch f.GetOutcome() {
		case apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED:
			return held, f
		case apportionv1.CheckOutcome_CHECK_OUTCOME_NOT_KNOWN:
			at = unknown
		}
	}
	return at, nil
}

// planned are the outcomes of a plan without evictions that go with how a job stands.
var planned = map[standing]apportionv1.PlanOutcome{
	runsNow: apportionv1.PlanOutcome_PLAN_OUTCOME_MADE, held: apportionv1.PlanOutcome_PLAN_OUTCOME_NONE,
	unknown: apportionv1.PlanOutcome_PLAN_OUTCOME_NOT_FOUND,
}

// means are all means of a plan, that without evictions first.
var means = []apportionv1.PlanMeans{
	apportionv1.PlanMeans_PLAN_MEANS_PLACE, apportionv1.PlanMeans_PLAN_MEANS_RECLAIM,
	apportionv1.PlanMeans_PLAN_MEANS_PREEMPT, apportionv1.PlanMeans_PLAN_MEANS_ANY,
}

// all compares all answers about all waiting jobs.
func (a *asked) all(remedies bool) {
	waiting := a.simulate(explain(nil))[0].GetExplain().GetJobs()
	for _, e := range waiting {
		steps := []*apportionv1.Step{explain(uids(e.GetUid()))}
		for _, m := range means {
			steps = append(steps, plan(e.GetUid(), m))
		}
		answers := a.simulate(steps...)
		a.questions["explain"]++
		a.questions["plan"] += len(means)
		j := &job{asked: a, at: fmt.Sprintf("%s, %s", a.where, e.GetUid()), explained: answers[0].GetExplain().GetJobs()[0]}
		for i := range means {
			j.plans = append(j.plans, answers[1+i].GetPlan())
		}
		j.compareText(e)
		j.comparePlans()
		j.compareChoices()
		j.compareUnjudged()
		j.apply()
		j.advise()
		j.count()
		if findings := j.explained.GetFindings(); len(findings) > 0 && findings[0].GetCheck() == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY {
			a.questions["can never run"]++
		}
		if remedies {
			j.compareRemedies()
		}
	}
}

// job holds the answers about one job.
type job struct {
	*asked

	at        string
	explained *apportionv1.Explanation
	plans     []*apportionv1.PlanAnswer
}

func (j *job) contradicts(kind, format string, args ...any) {
	j.contradiction(kind, "%s: %s", j.at, fmt.Sprintf(format, args...))
}

// compareText requires that the list of waiting jobs says of a job what the question about it alone says.
func (j *job) compareText(listed *apportionv1.Explanation) {
	was, is := proto.CloneOf(listed), proto.CloneOf(j.explained)
	is.Forecast, is.Text, was.Text = nil, "", ""
	is.Findings = slices.DeleteFunc(is.Findings, func(f *apportionv1.Finding) bool {
		return f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_EVICTION
	})
	if !proto.Equal(was, is) {
		j.contradicts("the list and the job alone differ", "%v, not %v", was, is)
	}
}

// comparePlans requires that explain, plan and forecast agree on whether a job runs now.
func (j *job) comparePlans() {
	now, by := stands(j.explained)
	place := j.plans[0]
	if j.explained.GetNeededTasks() == 0 && now != held {
		// Nothing is to be placed: the job waits to be admitted.
		return
	}
	if planned[now] != place.GetOutcome() {
		kind := fmt.Sprintf("explain: %s, place: %s", now, strings.TrimPrefix(place.GetOutcome().String(), "PLAN_OUTCOME_"))
		j.contradicts(kind, "%s | %s | %v", j.explained.GetText(), place.GetText(), by.GetCheck())
	}
	if miss := place.GetMiss(); now == held && miss != nil && miss.GetCheck() != by.GetCheck() {
		j.contradicts(fmt.Sprintf("explain blames %s, plan %s", by.GetCheck(), miss.GetCheck()), "%s | %s", j.explained.GetText(), place.GetText())
	}
	if made := place.GetOutcome() == planned[runsNow]; made && len(place.GetPlacements()) != int(j.explained.GetNeededTasks()) {
		j.contradicts("explain and plan need different numbers of tasks", "%d, %d", j.explained.GetNeededTasks(), len(place.GetPlacements()))
	}
	for i, p := range j.plans {
		if made := p.GetOutcome() == planned[runsNow]; !made && place.GetOutcome() == planned[runsNow] && len(p.GetVictims()) == 0 {
			j.contradicts("a plan with more means is not made", "%s: %s", means[i], p.GetText())
		}
	}
	for _, f := range j.explained.GetFindings() {
		if now == held && f.GetEvictable().GetPlanned() && f.GetEvictable().GetCount() == 0 {
			j.contradicts("held back, but no eviction is needed", "%s | %s", j.explained.GetText(), f.GetText())
		}
	}
	if f := j.explained.GetForecast(); f != nil && (f.GetOutcome() == apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOW) != (now == runsNow) {
		j.contradicts("explain and forecast disagree", "%s | %s", j.explained.GetText(), f.GetText())
	}
}

// compareUnjudged requires that every question names the constraints that none judges, and that none claims to know more.
func (j *job) compareUnjudged() {
	unjudged := j.explained.GetUnjudgedConstraints()
	now, _ := stands(j.explained)
	if (len(unjudged) > 0 && now == runsNow) && j.explained.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN {
		j.contradicts("explain: constraints count as judged", "%s", j.explained.GetText())
	}
	if f := j.explained.GetForecast(); f != nil && f.GetOutcome() != apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOT_FORESEEN &&
		strings.Contains(f.GetText(), notJudged) != (len(unjudged) > 0) {
		j.contradicts("forecast: constraints count as judged", "%s", f.GetText())
	}
	for i, p := range j.plans {
		if !slices.Equal(p.GetUnjudgedConstraints(), unjudged) || p.GetMiss() == nil && strings.Contains(p.GetText(), notJudged) != (len(unjudged) > 0) {
			j.contradicts("plan: constraints count as judged", "%s: %s", means[i], p.GetText())
		}
	}
	if j.explained.GetNeededTasks() == 0 && now != held {
		return
	}
	if offers := slices.ContainsFunc(j.snapshot.GetNodes(), func(n *apportionv1.Node) bool { return n.GetAllocatable() != nil }); offers {
		return
	}
	if now == runsNow {
		j.contradicts("explain: a job runs without nodes", "%s", j.explained.GetText())
	}
	for i, p := range j.plans {
		if made := p.GetOutcome() == planned[runsNow]; made || i == 0 && (p.GetOutcome() == planned[held]) != (now == held) {
			j.contradicts("plan and explain differ without nodes", "%s: %s | %s", means[i], p.GetText(), j.explained.GetText())
		}
	}
}

const notJudged = "which are not judged here"

// compareChoices requires that no other choice of as many tasks can be placed if the answer is that there provably is no plan.
func (j *job) compareChoices() {
	index, ok := j.position()
	if !ok || j.explained.GetNeededTasks() == 0 || len(j.snapshot.GetJobs()[index].GetGroups()) == 0 {
		return
	}
	snapshot := lookup.Of(j.snapshot)
	var waiting []uint32
	for _, task := range snapshot.TasksOf(index) {
		if task.Pending() && task.GetDetail().GetGate() == apportionv1.TaskGate_TASK_GATE_UNSPECIFIED {
			waiting = append(waiting, task.Number)
		}
	}
	for i, p := range j.plans {
		if p.GetOutcome() != planned[held] || j.enters() {
			continue
		}
		tried := 0
		choices(waiting, int(j.explained.GetNeededTasks()), func(tasks []uint32) bool {
			if !j.wholeRoles(snapshot, index, tasks) {
				return true
			}
			j.questions["plan"]++
			other := j.simulate(planTasks(means[i], tasks...))[0].GetPlan()
			if other.GetOutcome() == planned[runsNow] && other.GetReady() {
				j.contradicts("NONE, but another choice of tasks has a plan", "%s: %v: %s | %s", means[i], tasks, p.GetText(), other.GetText())
				return false
			}
			tried++
			return tried < 24
		})
	}
}

// wholeRoles reports whether the tasks contain as many of each role as it lacks.
func (j *job) wholeRoles(snapshot *lookup.Snapshot, index uint32, tasks []uint32) bool {
	have, minimum := map[string]int{}, 0
	for _, task := range snapshot.TasksOf(index) {
		switch task.GetStatus() {
		case apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED, apportionv1.TaskStatus_TASK_STATUS_PENDING:
			if slices.Contains(tasks, task.Number) {
				have[task.Group.GetRole()]++
			}
		case apportionv1.TaskStatus_TASK_STATUS_RELEASING, apportionv1.TaskStatus_TASK_STATUS_FAILED:
		default:
			have[task.Group.GetRole()]++
		}
	}
	job := j.snapshot.GetJobs()[index]
	whole := true
	for _, group := range job.GetGroups() {
		minimum += int(group.GetMinAvailable())
		whole = whole && have[group.GetRole()] >= int(group.GetMinAvailable())
	}
	// Minima of roles do not count if their sum exceeds the minimum of the job.
	return whole || minimum > int(job.GetMinAvailable())
}

func (j *job) enters() bool { return j.explained.GetPhase() == apportionv1.JobPhase_JOB_PHASE_PENDING }

func (j *job) position() (uint32, bool) {
	at := slices.IndexFunc(j.snapshot.GetJobs(), func(job *apportionv1.Job) bool { return job.GetUid() == j.explained.GetUid() })
	return uint32(at), at >= 0
}

// choices calls try for each set of n of some tasks until it returns false.
func choices(tasks []uint32, n int, try func([]uint32) bool) bool {
	if n == 0 {
		return try(nil)
	}
	for i := range len(tasks) - n + 1 {
		if !choices(tasks[i+1:], n-1, func(rest []uint32) bool { return try(append([]uint32{tasks[i]}, rest...)) }) {
			return false
		}
	}
	return true
}

// apply requires that a job runs by itself once the victims of a plan are gone.
func (j *job) apply() {
	for i, p := range j.plans {
		if p.GetOutcome() != planned[runsNow] || len(p.GetVictims()) == 0 {
			continue
		}
		var steps []*apportionv1.Step
		if p.GetEnters() {
			steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
				Jobs: uids(p.GetUid()), Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION,
			}}})
		}
		var gone []uint32
		for _, victim := range p.GetVictims() {
			gone = append(gone, victim.GetTask())
		}
		steps = append(steps, evict(gone), explain(uids(p.GetUid())))
		answers := j.simulate(steps...)
		j.questions["plan applied"]++
		after := answers[len(answers)-1].GetExplain().GetJobs()[0]
		if now, by := stands(after); now != runsNow {
			j.contradicts(fmt.Sprintf("an applied plan of %s leaves %s", means[i], by.GetCheck()), "%s | %s | %s",
				p.GetText(), after.GetText(), by.GetText())
		}
	}
}

// evict is the step in which running tasks are gone and wait again.
func evict(tasks []uint32) *apportionv1.Step {
	return event.Evict(&apportionv1.Selector{Indices: tasks}, apportionv1.TaskStatus_TASK_STATUS_PENDING)
}

// compareRemedies requires that remedies and explain agree on whether a job runs, now and after each remedy.
func (j *job) compareRemedies() {
	j.questions["remedies"]++
	answer := j.simulate(&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: &apportionv1.RemediesStep{
		Job: uids(j.explained.GetUid()),
	}}})[0].GetRemedies()
	now, by := stands(j.explained)
	if answer.GetOutcome() == apportionv1.RemedyOutcome_REMEDY_OUTCOME_WAITS_FOR_NOTHING {
		j.contradicts("remedies: waits for nothing", "%s", j.explained.GetText())
		return
	}
	unjudged := len(j.explained.GetUnjudgedConstraints()) > 0
	if !slices.Equal(answer.GetUnjudgedConstraints(), j.explained.GetUnjudgedConstraints()) {
		j.contradicts("remedies: other constraints are not judged", "%v, not %v", answer.GetUnjudgedConstraints(), j.explained.GetUnjudgedConstraints())
	}
	if unjudged && now == runsNow {
		if answer.GetCheck() != apportionv1.CheckKind_CHECK_KIND_CONSTRAINTS || answer.GetOutcome() != apportionv1.RemedyOutcome_REMEDY_OUTCOME_NOT_JUDGED {
			j.contradicts("remedies: constraints count as judged", "%s", answer.GetText())
		}
		return
	}
	if (answer.GetOutcome() == apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW) != (now == runsNow) {
		j.contradicts("explain and remedies disagree: "+string(now), "%s | %s", j.explained.GetText(), answer.GetText())
		return
	}
	if now == held && answer.GetCheck() != by.GetCheck() {
		j.contradicts(fmt.Sprintf("explain blames %s, remedies %s", by.GetCheck(), answer.GetCheck()), "%s | %s",
			j.explained.GetText(), answer.GetText())
	}
	for _, remedy := range answer.GetRemedies() {
		j.questions["remedy applied"]++
		if remedy.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_COMBINED {
			j.questions["remedy of two kinds applied"]++
		}
		if remedy.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION {
			var victims []uint32
			for _, victim := range j.plans[len(j.plans)-1].GetVictims() {
				victims = append(victims, victim.GetTask())
			}
			if !slices.Equal(victims, remedy.GetVictims()) {
				j.contradicts("EVICTION is not the plan", "%v, not %v", remedy.GetVictims(), victims)
			}
			continue
		}
		v := &variation.Variation{}
		cluster := lookup.Of(j.snapshot)
		names := cluster.Names(&apportionv1.Basis{Dimensions: cluster.GetDimensions()})
		names.Job, names.Node = cluster.JobName, cluster.NodeName
		arguments := editing.Arguments(names, remedy)
		parse(j, v, arguments)
		made, err := v.Of(cluster, nil)
		if err != nil {
			j.contradicts("a printed remedy is refused", "%s: %v", arguments, err)
			continue
		}
		var steps []*apportionv1.Step
		if victims := remedy.GetVictims(); len(victims) > 0 {
			steps = append(steps, evict(victims))
		}
		in := made.After(client.Input{Snapshot: j.snapshot, Policy: j.policy})
		answers := j.about(in, append(steps, explain(uids(j.explained.GetUid())))...)
		after := answers[len(answers)-1].GetExplain().GetJobs()[0]
		if now, by := stands(after); now != runsNow {
			j.contradicts(fmt.Sprintf("after %s %s: %s, %s", remedy.GetMeans(), text.EditsOf(remedy), now, by.GetCheck()), "%s | %s", arguments, after.GetText())
		}
	}
}

// parse reads arguments of whatif.
func parse(t require.TestingT, v *variation.Variation, arguments []string) {
	flags := pflag.NewFlagSet("whatif", pflag.ContinueOnError)
	v.Flags(flags)
	require.NoError(t, flags.Parse(arguments))
}

// count compares counts in an explanation with counts of the snapshot.
func (j *job) count() {
	snapshot := lookup.Of(j.snapshot)
	index, _ := j.position()
	pending, gated := 0, 0
	for _, task := range snapshot.TasksOf(index) {
		switch {
		case !task.Pending():
		case task.GetDetail().GetGate() == apportionv1.TaskGate_TASK_GATE_OTHER:
			gated++
		default:
			pending++
		}
	}
	for _, group := range j.snapshot.GetJobs()[index].GetGroups() {
		for _, count := range group.GetCounts() {
			pending += int(count.GetCount())
		}
	}
	if int(j.explained.GetWaitingTasks()) != pending || int(j.explained.GetGatedTasks()) != gated {
		j.contradicts("waiting or gated tasks are miscounted", "%d, %d: %s", pending, gated, j.explained.GetText())
	}
	protected := map[apportionv1.CauseCode]int{}
	closed := map[string]bool{}
	for _, queue := range j.snapshot.GetQueues() {
		closed[queue.GetName()] = queue.Reclaimable != nil && !queue.GetReclaimable()
	}
	own := j.snapshot.GetJobs()[index].GetQueue()
	for at, other := range j.snapshot.GetJobs() {
		for _, task := range snapshot.TasksOf(uint32(at)) {
			if task.GetStatus() != apportionv1.TaskStatus_TASK_STATUS_RUNNING {
				continue
			}
			if other.GetQueue() != own && closed[other.GetQueue()] {
				protected[apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_RECLAIMABLE]++
			}
			if task.GetDetail().Preemptable != nil && !task.GetDetail().GetPreemptable() {
				protected[apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE]++
			}
		}
	}
	unschedulable := 0
	for _, node := range j.snapshot.GetNodes() {
		if node.GetUnschedulable() != nil {
			unschedulable++
		}
	}
	for _, f := range j.explained.GetFindings() {
		nodes := 0
		for i, cause := range f.GetCauses() {
			code, count := cause.GetCode(), cause.GetCount()
			most, known := protected[code]
			switch {
			case f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES && code == apportionv1.CauseCode_CAUSE_CODE_NODE_UNSCHEDULABLE:
				// Nodes that a plugin refuses are counted with its reason.
				byPlugin := slices.ContainsFunc(f.GetCauses(), func(r *apportionv1.Cause) bool { return r.GetPlugin() != "" })
				if int(count) > unschedulable || int(count) < unschedulable && !byPlugin {
					j.contradicts("unschedulable nodes are miscounted", "%d: %s", unschedulable, f.GetText())
				}
			case known && int(count) > most:
				j.contradicts("protected tasks are miscounted", "%d: %s", most, f.GetText())
			}
			if f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES && i == 0 {
				nodes = int(count)
			}
		}
		if nodes > len(j.snapshot.GetNodes()) {
			j.contradicts("nodes are miscounted", "%s", f.GetText())
		}
	}
}
