package checker

import (
	"fmt"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const planOnly = "that the policy permits the plan, and that no plan is better, is not checked; its tasks, nodes and room are"

// ownPlan checks what a plan of any policy promises by itself: it places waiting tasks of the job on nodes that take them and have room
// once the victims and what is being released are gone, and each victim is a running task with its own queue, node and request.
func (c *check) ownPlan(path string, step *apportionv1.PlanStep, got *apportionv1.PlanAnswer) bool {
	made := got.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_MADE
	if made != (len(got.GetPlacements()) > 0) || !made && len(got.GetVictims()) > 0 || made == (got.GetMiss() != nil) {
		c.wrong("%s: outcome %v does not go with %d placements, %d victims and a miss", path, got.GetOutcome(),
			len(got.GetPlacements()), len(got.GetVictims()))
	}
	if int(got.GetJob()) >= len(c.jobs) || !step.GetOmitNames() && got.GetUid() != nameOf(c.jobs[got.GetJob()].message) {
		c.wrong("%s is about job %d %q, which the snapshot does not have", path, got.GetJob(), got.GetUid())
		return true
	}
	c.asWasAsked(path, step, got)
	for _, field := range []string{
		"outcome", "least", "cut_short", "enters", "ready", "placements", "victims", "fall", "rise", "miss", "looked", "text",
	} {
		c.omit(path+"."+field, planOnly)
	}
	p := &planned{
		check: c, job: int(got.GetJob()), omit: step.GetOmitNames(), room: copyRooms(c.future),
		slack: map[int]int64{}, seen: map[uint32]bool{},
		outside: slices.ContainsFunc(c.jobs, func(j *job) bool { return j.leaf == aside }),
	}
	freed := make([]int64, len(c.dims))
	for i, v := range got.GetVictims() {
		p.evict(fmt.Sprintf("%s.victims[%d]", path, i), v, freed)
	}
	if len(got.GetVictims()) > 0 {
		c.frees(path+".freed", got.GetFreed(), freed)
	}
	for i, placement := range got.GetPlacements() {
		p.put(fmt.Sprintf("%s.placements[%d]", path, i), placement)
	}
	return true
}

// asWasAsked checks that a plan is about the job and within the means of the question.
func (c *check) asWasAsked(path string, step *apportionv1.PlanStep, got *apportionv1.PlanAnswer) {
	c.checked++
	if jobs, ok := c.chosenJobs(step.GetJob()); step.GetJob() != nil && (!ok || len(jobs) != 1 || jobs[0] != int(got.GetJob())) {
		c.wrong("%s.job is %d, which is not the job of the question", path, got.GetJob())
	}
	tasks, ok := c.tasksOf(step.GetTasks())
	if !ok || slices.ContainsFunc(tasks, func(t *task) bool { return t.job != int(got.GetJob()) }) {
		c.wrong("%s.job is %d, which is not the job of the tasks of the question", path, got.GetJob())
	}
	most := int(step.GetMaxVictims())
	if step.GetMeans() == apportionv1.PlanMeans_PLAN_MEANS_PLACE {
		most = 0
	} else if most == 0 {
		return
	}
	if len(got.GetVictims()) > most {
		c.wrong("%s.victims are %d, but the question permits %d", path, len(got.GetVictims()), most)
	}
}

// planned is a plan while it is checked.
type planned struct {
	*check

	job  int
	omit bool
	// room is what is free of each node, slack how many requests were rounded up there.
	room  map[int][]int64
	slack map[int]int64
	seen  map[uint32]bool
	// outside: what tasks of jobs outside the tree release is not part of the room that is known here.
	outside bool
}

// evict takes a victim from its node.
func (p *planned) evict(at string, v *apportionv1.PlannedEviction, freed []int64) {
	t := p.running(at, v, p.omit)
	if t == nil || p.seen[v.GetTask()] {
		p.wrong("%s is task %d, which does not run, or which is named before", at, v.GetTask())
		return
	}
	p.seen[v.GetTask()] = true
	add(freed, t.request, 1)
	if t.node != nil {
		add(p.room[int(*t.node)], t.request, 1)
		p.slack[int(*t.node)]++
	}
}

// put places a task.
func (p *planned) put(at string, placement *apportionv1.PlannedPlacement) {
	n := int(placement.GetNode())
	if int(placement.GetTask()) >= len(p.tasks) || n >= len(p.GetNodes()) || p.seen[placement.GetTask()] {
		p.wrong("%s places task %d on node %d, one of which does not exist, or which is named before", at, placement.GetTask(), n)
		return
	}
	t, name := p.tasks[placement.GetTask()], p.GetNodes()[n].GetName()
	p.seen[placement.GetTask()] = true
	if p.omit {
		name = ""
	}
	expect(p.check, at+".uid", placement.GetUid(), p.uid(t, p.omit))
	expect(p.check, at+".node_name", placement.GetNodeName(), name)
	if t.job != p.job || t.status > apportionv1.TaskStatus_TASK_STATUS_PENDING || !p.takes(n, t.set) {
		p.wrong("%s: task %d does not wait in the job, or may not use node %d", at, placement.GetTask(), n)
	}
	add(p.room[n], t.request, -1)
	p.slack[n]++
	for d, x := range t.request {
		if x > 0 && p.room[n][d] < -p.slack[n] && !p.outside {
			p.wrong("%s: node %d lacks %d of dimension %d for it", at, n, -p.room[n][d], d)
		}
	}
}

// running is the task of a victim if it runs and is described as it is; else nil.
func (c *check) running(at string, v *apportionv1.PlannedEviction, omit bool) *task {
	if int(v.GetTask()) >= len(c.tasks) {
		return nil
	}
	t := c.tasks[v.GetTask()]
	if !slices.Contains([]apportionv1.TaskStatus{
		apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.TaskStatus_TASK_STATUS_ALLOCATED,
		apportionv1.TaskStatus_TASK_STATUS_BINDING, apportionv1.TaskStatus_TASK_STATUS_BOUND,
	}, t.status) {
		return nil
	}
	name := ""
	if t.node != nil && !omit {
		name = c.GetNodes()[*t.node].GetName()
	}
	expect(c, at+".uid", v.GetUid(), c.uid(t, omit))
	expect(c, at+".queue", int(v.GetQueue()), c.jobs[t.job].queue)
	expect(c, at+".node_name", v.GetNodeName(), name)
	c.frees(at+".freed", v.GetFreed(), t.request)
	return t
}

// frees checks what victims free. Requests are rounded up here, so that parts of a unit may be less.
func (c *check) frees(path string, got *apportionv1.Resource, want []int64) {
	out := amountsOf(c.resourceOf(want))
	for d, x := range amountsOf(got) {
		if x != math.Trunc(x) && x < out[d] {
			out[d] = x
		}
	}
	c.resource(path, got, out.resource())
}
