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
	for _, field := range []string{
		"outcome", "least", "cut_short", "enters", "ready", "placements", "victims", "fall", "rise", "miss", "looked", "text",
	} {
		if m := got.ProtoReflect(); m.Has(m.Descriptor().Fields().ByTextName(field)) {
			c.omit(path+"."+field, planOnly)
		}
	}
	room := copyRooms(c.future)
	// What tasks of jobs outside the tree release is not part of the room that is known here.
	outside := slices.ContainsFunc(c.jobs, func(j *job) bool { return j.leaf == aside })
	slack := map[int]int64{}
	freed := make([]int64, len(c.dims))
	seen := map[uint32]bool{}
	for i, v := range got.GetVictims() {
		at := fmt.Sprintf("%s.victims[%d]", path, i)
		t := c.running(at, v, step.GetOmitNames())
		if t == nil || seen[v.GetTask()] {
			c.wrong("%s is task %d, which does not run, or which is named before", at, v.GetTask())
			continue
		}
		seen[v.GetTask()] = true
		add(freed, t.request, 1)
		if t.node != nil {
			add(room[int(*t.node)], t.request, 1)
			slack[int(*t.node)]++
		}
	}
	if len(got.GetVictims()) > 0 {
		c.frees(path+".freed", got.GetFreed(), freed)
	}
	for i, p := range got.GetPlacements() {
		at := fmt.Sprintf("%s.placements[%d]", path, i)
		n := int(p.GetNode())
		if int(p.GetTask()) >= len(c.tasks) || n >= len(c.GetNodes()) || seen[p.GetTask()] {
			c.wrong("%s places task %d on node %d, one of which does not exist, or which is named before", at, p.GetTask(), n)
			continue
		}
		t := c.tasks[p.GetTask()]
		seen[p.GetTask()] = true
		name := c.GetNodes()[n].GetName()
		if step.GetOmitNames() {
			name = ""
		}
		expect(c, at+".uid", p.GetUid(), c.uid(t, step.GetOmitNames()))
		expect(c, at+".node_name", p.GetNodeName(), name)
		if t.job != int(got.GetJob()) || t.status > apportionv1.TaskStatus_TASK_STATUS_PENDING || !c.takes(n, t.set) {
			c.wrong("%s: task %d does not wait in the job, or may not use node %d", at, p.GetTask(), n)
		}
		add(room[n], t.request, -1)
		slack[n]++
		for d, x := range t.request {
			if x > 0 && room[n][d] < -slack[n] && !outside {
				c.wrong("%s: node %d lacks %d of dimension %d for it", at, n, -room[n][d], d)
			}
		}
	}
	return true
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
