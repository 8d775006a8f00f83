package checker

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	planOnly   = "that the policy permits the plan, and that no plan is better, is not checked; its tasks, nodes, room and means are"
	planBeside = planOnly + ", but rules on other pods are not"
)

// ownPlan checks what a plan of any policy promises by itself: it places waiting tasks of the job on nodes that take them and have room
// once the victims and what is being released are gone, also beside what is kept for others, and each victim is a running task with its
// own queue, node and request.
func (c *check) ownPlan(path string, step *apportionv1.PlanStep, got *apportionv1.PlanAnswer) bool {
	made := got.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_MADE
	if made != (len(got.GetPlacements()) > 0) || !made && len(got.GetVictims()) > 0 || made == (got.GetMiss() != nil) {
		c.wrong("%s: outcome %v does not go with %d placements, %d victims and a miss", path, got.GetOutcome(),
			len(got.GetPlacements()), len(got.GetVictims()))
	}
	if int(got.GetJob()) >= len(c.jobs) {
		c.wrong("%s is about job %d, which the snapshot does not have", path, got.GetJob())
		return true
	}
	name := nameOf(c.jobs[got.GetJob()].message)
	if step.GetOmitNames() {
		name = ""
	}
	expect(c, path+".uid", got.GetUid(), name)
	expect(c, path+".kueue is present", got.GetKueue() != nil, false)
	c.asWasAsked(path, step, got)
	why := planOnly
	if c.GetPods() != nil {
		why = planBeside
	}
	for _, field := range []string{
		"outcome", "least", "cut_short", "enters", "placements", "victims", "miss", "looked", "text",
	} {
		c.omit(path+"."+field, why)
	}
	for _, field := range []string{"freed", "fall", "rise"} {
		c.omit(path+"."+field, "it is what the placements and victims come to, and whether these are all is not checked")
	}
	p := &planned{
		check: c, job: int(got.GetJob()), means: step.GetMeans(), unnamed: step.GetOmitNames(), room: copyRooms(c.future),
		slack: map[int]int64{}, seen: map[uint32]bool{},
		outside: slices.ContainsFunc(c.jobs, func(j *job) bool { return j.leaf == aside }),
	}
	for n, node := range c.GetNodes() {
		p.slack[n] = min(1, int64(len(node.GetUsedByOthers().GetDimension())))
	}
	for _, t := range c.tasks {
		if t.node != nil {
			p.slack[int(*t.node)]++
		}
	}
	freed := amounts{}
	for i, v := range got.GetVictims() {
		p.evict(fmt.Sprintf("%s.victims[%d]", path, i), v, freed)
	}
	expect(c, path+".freed is present", got.GetFreed() != nil, len(got.GetVictims()) > 0)
	c.resource(path+".freed", orEmpty(got.GetFreed()), freed.resource())
	for i, placement := range got.GetPlacements() {
		p.put(fmt.Sprintf("%s.placements[%d]", path, i), placement)
	}
	p.leavesReserved(path, got)
	if tasks, ok := c.tasksOf(step.GetTasks()); ok {
		expect(c, path+".unjudged", fmt.Sprint(got.GetUnjudged()), fmt.Sprint(unjudged(c.jobs[got.GetJob()], tasks)))
	}
	c.omit(path+".ready", why)
	// A plan for the tasks that a gang needs is not made without its minimum.
	if _, gangs := c.plugins("gang"); step.GetTasks() == nil || gangs == nil {
		expect(c, path+".ready", got.GetReady(), made)
	}
	p.potential(path, got)
	return true
}

// potential checks by how much a plan of fair lowers and raises what queues lack of each line. A plan that evicts no task of another queue
// has neither.
func (p *planned) potential(path string, got *apportionv1.PlanAnswer) {
	queue, need, gone := p.jobs[p.job].queue, make([]int64, len(p.dims)), map[int][]int64{}
	for _, placement := range got.GetPlacements() {
		if int(placement.GetTask()) < len(p.tasks) {
			add(need, p.tasks[placement.GetTask()].request, 1)
		}
	}
	for _, v := range got.GetVictims() {
		if int(v.GetTask()) < len(p.tasks) {
			t := p.tasks[v.GetTask()]
			q := p.jobs[t.job].queue
			if gone[q] == nil {
				gone[q] = make([]int64, len(p.dims))
			}
			add(gone[q], t.request, 1)
		}
	}
	own := gone[queue] != nil
	delete(gone, queue)
	switch {
	case len(gone) == 0:
		expect(p.check, path+": entries of fall and rise", len(got.GetFall())+len(got.GetRise()), 0)
		return
	case !p.alone() || own || p.lines[queue] == nil:
		p.omit(path+".fall", planOnly)
		p.omit(path+".rise", planOnly)
		return
	}
	after := func(q int, row []int64, times int64) []int64 {
		out := slices.Clone(p.held[q])
		add(out, row, times)
		return out
	}
	want := &apportionv1.PlanAnswer{}
	var rises, falls [3]*big.Rat
	for line := range 3 {
		rise := new(big.Rat)
		for q, row := range gone {
			if p.lines[q] != nil {
				rise.Add(rise, new(big.Rat).Sub(p.lack(q, after(q, row, -1), line), p.lack(q, p.held[q], line)))
			}
		}
		want.Rise = append(want.GetRise(), fraction(rise))
		fall := new(big.Rat).Sub(p.lack(queue, p.held[queue], line), p.lack(queue, after(queue, need, 1), line))
		want.Fall = append(want.GetFall(), fraction(fall))
		rises[line], falls[line] = rise, fall
	}
	if lexical(rises, falls) >= 0 {
		p.wrong("%s: the plan does not lower what queues lack", path)
	}
	p.compare(path, &apportionv1.PlanAnswer{Fall: got.GetFall(), Rise: got.GetRise()}, want, nil)
}

// unjudged lists, in order and each once, the constraints that the snapshot does not express of some tasks of a job; without tasks, of all
// that wait and are not held back by a gate.
func unjudged(j *job, tasks []*task) (list []apportionv1.PlacementConstraint) {
	waits := func(status apportionv1.TaskStatus, gate apportionv1.TaskGate) bool {
		return status == apportionv1.TaskStatus_TASK_STATUS_PENDING && gate != apportionv1.TaskGate_TASK_GATE_OTHER
	}
	at := 0
	for _, g := range j.message.GetGroups() {
		for _, m := range g.GetTasks() {
			if tasks == nil && waits(m.GetStatus(), m.GetDetail().GetGate()) || slices.Contains(tasks, j.tasks[at]) {
				list = append(append(list, g.GetUnjudged()...), m.GetDetail().GetUnjudged()...)
			}
			at++
		}
		if tasks == nil && slices.ContainsFunc(g.GetCounts(), func(m *apportionv1.TaskCount) bool {
			return m.GetCount() > 0 && waits(m.GetStatus(), m.GetGate())
		}) {
			list = append(list, g.GetUnjudged()...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
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

	job     int
	means   apportionv1.PlanMeans
	unnamed bool
	// room is what is free of each node, slack how many requests were added and rounded up there.
	room  map[int][]int64
	slack map[int]int64
	seen  map[uint32]bool
	// outside: what tasks of jobs outside the tree release is not part of the room that is known here.
	outside bool
}

// evict takes a victim from its node.
func (p *planned) evict(at string, v *apportionv1.PlannedEviction, freed amounts) {
	t := p.running(at, v, p.unnamed)
	if t == nil || p.seen[v.GetTask()] {
		p.wrong("%s is task %d, which does not run, or which is named before", at, v.GetTask())
		return
	}
	p.permitted(at, t)
	p.seen[v.GetTask()] = true
	freed.add(p.amounts(t.stated), 1)
	if t.node != nil {
		add(p.room[int(*t.node)], t.request, 1)
		p.slack[int(*t.node)]++
	}
}

// permitted checks that the means of the question and the frame allow a victim, whatever the plugins decide: it may be evicted, and belongs
// to a queue that gives tasks back or, in the job's own queue, to another job, which under fair is of lower priority.
func (p *planned) permitted(at string, t *task) {
	mine, its := p.jobs[p.job], p.jobs[t.job]
	own, nothing := mine.queue == its.queue, within(t.request, make([]int64, len(t.request)))
	switch {
	case own && p.means == apportionv1.PlanMeans_PLAN_MEANS_RECLAIM, !own && p.means == apportionv1.PlanMeans_PLAN_MEANS_PREEMPT:
		p.wrong("%s is not a victim by the means of the question", at)
	case !t.preemptable, nothing && !own, !own && !p.reclaimable(its.queue), own && t.job == p.job:
		p.wrong("%s is task %d, which may not be evicted for this job", at, t.number)
	case own && p.alone() && its.message.GetPriority() >= mine.message.GetPriority():
		p.wrong("%s is task %d, whose job is not of lower priority", at, t.number)
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
	if p.unnamed {
		name = ""
	}
	expect(p.check, at+".uid", placement.GetUid(), p.uid(t, p.unnamed))
	expect(p.check, at+".node_name", placement.GetNodeName(), name)
	if t.job != p.job || t.status > apportionv1.TaskStatus_TASK_STATUS_PENDING || !p.takes(n, t.set) || p.kept(n, t, true) {
		p.wrong("%s: task %d does not wait in the job, or may not use node %d", at, placement.GetTask(), n)
	}
	add(p.room[n], t.request, -1)
	p.slack[n]++
	for d, x := range t.request {
		// Every addition of amounts that are not whole, or above 2^53, errs by at most 2^-53 of what the node offers.
		bound := float64(p.slack[n]) * (1 + p.amounts(p.GetNodes()[n].GetAllocatable())[uint32(d)]*0x1p-53)
		if x > 0 && -float64(p.room[n][d]) > bound && !p.outside {
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
	if t.status != apportionv1.TaskStatus_TASK_STATUS_RUNNING {
		return nil
	}
	name := ""
	if t.node != nil && !omit {
		name = c.GetNodes()[*t.node].GetName()
	}
	expect(c, at+".uid", v.GetUid(), c.uid(t, omit))
	expect(c, at+".queue", int(v.GetQueue()), c.jobs[t.job].queue)
	expect(c, at+".node", queueOf(v.Node), queueOf(t.node))
	expect(c, at+".node_name", v.GetNodeName(), name)
	c.resource(at+".freed", orEmpty(v.GetFreed()), c.amounts(t.stated).resource())
	return t
}
