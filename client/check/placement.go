package check

import (
	"fmt"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const ofPods = "rules on other pods, which may need further victims"

// ofPlans are the fields of a plan that are not checked.
var ofPlans = omitted{
	"PlanAnswer.least": notSearched, "PlanAnswer.cut_short": notSearched, "PlanAnswer.looked": notSearched,
	"PlanAnswer.enters": notSearched, "PlanAnswer.unjudged_constraints": notSearched, "PlanAnswer.text": fromOthers,
	"PlannedEviction.claimant": fromOthers, "PlannedEviction.own_queue": fromOthers, "PlannedEviction.for_limit": fromOthers,
	"PlannedEviction.tier": notSearched, "PlannedEviction.plugins": notSearched, "PlannedEviction.returns": notSearched,
	"PlannedPlacement.after_release": fromOthers,
}

// planned checks what a plan for a job promises: it places tasks of the job that wait on nodes that take them and have room once the
// victims are gone, the victims run and may be evicted by the means of the question, and the job has its minimum.
func (c *check) planned(path string, step *apportionv1.PlanStep, got *apportionv1.PlanAnswer) {
	why := c.unclaimed()
	if why == "" && got.GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE {
		why = notSearched
		if len(got.GetPlacements())+len(got.GetVictims()) > 0 {
			c.wrong("%s has placements or victims without a plan", path)
		}
	}
	if why != "" {
		c.omit(path, why)
		return
	}
	tasks := c.placedTasks(path, step, got)
	if tasks == nil {
		return
	}
	before, p, j := c.numbers, c.newPlan(tasks), c.jobs[tasks[0].job]
	sum := []*apportionv1.Resource{}
	want := &apportionv1.PlanAnswer{
		Job: uint32(tasks[0].job), Uid: c.named(nameOf(j.message)), Outcome: got.GetOutcome(), Ready: got.GetReady(),
	}
	p.rounded()
	for i, v := range got.GetVictims() {
		if t := p.evictFor(fmt.Sprintf("%s.victims[%d]", path, i), step, v.GetTask(), j); t != nil {
			want.Victims, sum = append(want.Victims, c.eviction(t)), append(sum, t.stated)
		}
	}
	if len(sum) > 0 {
		want.Freed = c.freed(sum...)
	}
	for i, placement := range got.GetPlacements() {
		at := fmt.Sprintf("%s.placements[%d]", path, i)
		want.Placements = append(want.Placements, p.put(at, tasks[i], int(placement.GetNode())))
	}
	p.promises(path, got)
	if len(p.others) > 0 {
		fall, rise := p.change()
		p.lowers(path, fall, rise)
		want.Falls, want.Rises = fractions(fall), fractions(rise)
	}
	p.ready(path, j, step.GetTasks() != nil, got, tasks)
	c.compare(path, got, want, ofPlans)
	c.omitAll(path, notTheFirst, "victims", "placements")
	c.did(path, ofAPlan, before)
}

// placedTasks are the tasks that a plan places: of the job of the question, or those that it names, each once. It returns nil, and says so,
// if they are others.
func (c *check) placedTasks(path string, step *apportionv1.PlanStep, got *apportionv1.PlanAnswer) (tasks []*task) {
	asked, ok := c.tasksOf(step.GetTasks())
	for _, placement := range got.GetPlacements() {
		t := int(placement.GetTask())
		if ok = ok && t < len(c.tasks) && !slices.Contains(tasks, c.tasks[t]); !ok {
			break
		}
		task := c.tasks[t]
		tasks = append(tasks, task)
		ok = task.leaf != aside && task.job == tasks[0].job && task.status <= apportionv1.TaskStatus_TASK_STATUS_PENDING
		if step.GetTasks() == nil {
			ok = ok && c.isJob(step.GetJob(), task.job)
		} else {
			ok = ok && slices.Contains(asked, task)
		}
	}
	if !ok || len(tasks) == 0 || step.GetTasks() != nil && len(tasks) != len(asked) {
		c.wrong("%s.placements are not those of tasks that wait and that the question is about, each once", path)
		return nil
	}
	return tasks
}

// isJob reports whether a selection names one job alone.
func (c *cluster) isJob(jobs *apportionv1.Selector, j int) bool {
	return slices.Equal(jobs.GetIndices(), []uint32{uint32(j)}) || slices.Equal(jobs.GetNames(), []string{nameOf(c.jobs[j].message)})
}

// rounded says how often amounts were rounded in what is left of each node: a plan has room in floating-point numbers, which differ from
// whole amounts by less than one for each task.
func (p *plan) rounded() {
	for n, node := range p.GetNodes() {
		p.slack[n] = min(1, int64(len(node.GetUsedByOthers().GetDimensions())))
	}
	for _, t := range p.tasks {
		if t.node != nil {
			p.slack[int(*t.node)] += 2
		}
	}
}

// evictFor evicts a victim of a plan for a job and returns it; nil, and says so, if the means of the question and the settings of its queue
// do not permit it, or it is named before. In the queue of the job, victims are of other jobs of lower priority.
func (p *plan) evictFor(path string, step *apportionv1.PlanStep, number uint32, j *job) *task {
	if int(number) >= len(p.tasks) {
		p.wrong("%s is task %d, which does not exist", path, number)
		return nil
	}
	t, may, into := p.tasks[number], false, &p.others
	most, means := int(step.GetMaxVictims()), step.GetMeans()
	switch {
	case means == apportionv1.PlanMeans_PLAN_MEANS_PLACE || most > 0 && len(p.own)+len(p.others) >= most:
	case t.leaf != p.queue:
		may = means != apportionv1.PlanMeans_PLAN_MEANS_PREEMPT && p.mayGo(t)
	default:
		into = &p.own
		may = means != apportionv1.PlanMeans_PLAN_MEANS_RECLAIM && t.runs() && p.jobs[t.job].message.GetPriority() < j.message.GetPriority()
	}
	if !may || slices.Contains(*into, t) {
		p.wrong("%s is task %d, which may not be evicted for this job, or is named before", path, number)
		return nil
	}
	*into = append(*into, t)
	p.evict(t, 1)
	return t
}

// eviction is a victim as a plan describes it.
func (c *check) eviction(t *task) *apportionv1.PlannedEviction {
	out := &apportionv1.PlannedEviction{
		Task: uint32(t.number), Uid: c.named(t.name), Queue: uint32(c.jobs[t.job].queue), Node: t.node, Freed: c.freed(t.stated),
	}
	if t.node != nil {
		out.NodeName = c.named(c.GetNodes()[*t.node].GetName())
	}
	return out
}

// freed is a sum of requests.
func (c *check) freed(requests ...*apportionv1.Resource) *apportionv1.Resource {
	out := &apportionv1.Resource{}
	for d, x := range c.sumOf(requests...) {
		out.Dimensions, out.Amounts = append(out.Dimensions, uint32(d)), append(out.Amounts, x)
	}
	return out
}

// put places a task on a node, which must take it, and returns the placement as the plan describes it.
func (p *plan) put(path string, t *task, n int) *apportionv1.PlannedPlacement {
	out := &apportionv1.PlannedPlacement{Task: uint32(t.number), Uid: p.named(t.name), Node: uint32(n)}
	if n >= len(p.GetNodes()) || !p.takes(n, t.set) {
		p.wrong("%s: node %d does not take task %d", path, n, t.number)
		return out
	}
	out.NodeName = p.named(p.GetNodes()[n].GetName())
	p.slack[n]++
	p.place(n, t.request)
	return out
}

// promises checks that a plan has room, keeps to the limits and a line, and needs each victim.
func (p *plan) promises(path string, got *apportionv1.PlanAnswer) {
	// What tasks outside the tree release is not part of the room that is known here.
	outside := slices.ContainsFunc(p.jobs, func(j *job) bool { return j.leaf == aside })
	for _, placement := range got.GetPlacements() {
		if n := int(placement.GetNode()); !outside && p.placed[n] != nil && p.lacks(n, 1) >= 0 {
			p.wrong("%s: node %d lacks room for the tasks that are placed there", path, n)
		}
	}
	if p.limited() {
		p.wrong("%s: a limit does not permit the job", path)
	}
	if len(p.others) > 0 && !p.entitled(entitlement) && !p.entitled(1) && !p.entitled(0) {
		p.wrong("%s: victims are taken from queues that are within their lines, or for one that is not", path)
	}
	if p.GetPods() != nil {
		p.omitAll(path, ofPods, "placements", "victims")
		return
	}
	for _, v := range slices.Concat(p.own, p.others) {
		if !p.needed(v) {
			p.wrong("%s: the plan does without its victim %d", path, v.number)
		}
	}
}

// ready checks that a job has its minimum after a plan that places tasks. Only one for named tasks may leave it short.
func (p *plan) ready(path string, j *job, named bool, got *apportionv1.PlanAnswer, placed []*task) {
	least, ready := int64(j.message.GetMinAvailable()), max(j.held, j.ready)+int64(len(placed))
	// A gang counts tasks that ask for nothing although they wait.
	for _, t := range j.tasks {
		if t.status <= apportionv1.TaskStatus_TASK_STATUS_PENDING && !slices.Contains(placed, t) && p.asksNothing(t) {
			ready++
		}
	}
	if !got.GetReady() && !named || got.GetReady() && p.gangs() && ready < least {
		p.wrong("%s.ready is %v, with %d tasks placed and a minimum of %d", path, got.GetReady(), len(placed), least)
	}
}

// asksNothing reports whether a task asks for no amount of at least a tenth but `pods`.
func (c *check) asksNothing(t *task) bool {
	for i, d := range t.stated.GetDimensions() {
		if c.GetDimensions()[d] != "pods" && t.stated.GetAmounts()[i] >= 0.1 {
			return false
		}
	}
	return true
}

// gangs reports whether the policy keeps jobs together.
func (c *check) gangs() bool {
	return slices.ContainsFunc(c.policy.GetTiers(), func(t *apportionv1.Tier) bool {
		return slices.ContainsFunc(t.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetGang() != nil })
	})
}
