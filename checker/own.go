package checker

import (
	"fmt"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// own checks what of an answer follows from its own numbers, whatever the plugins decide: tasks and jobs are those that were asked about, a
// vote goes with its reasons, and the numbers of a reason are those of its code. False if there is nothing of that kind to check.
func (c *check) own(path string, step *apportionv1.Step, answer *apportionv1.Answer) bool {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Allocatable:
		return c.ownTasks(path, q.Allocatable, answer.GetAllocatable().GetTasks())
	case *apportionv1.Step_Preemptive:
		return c.ownTasks(path, q.Preemptive, answer.GetPreemptive().GetTasks())
	case *apportionv1.Step_Enqueue:
		return c.ownJobs(path, q.Enqueue, answer.GetEnqueue())
	case *apportionv1.Step_Reclaim:
		return c.ownVictims(path, q.Reclaim, answer.GetReclaim())
	case *apportionv1.Step_Preempt:
		return c.ownVictims(path, q.Preempt, answer.GetPreempt())
	case *apportionv1.Step_Plan:
		return c.ownPlan(path, q.Plan, answer.GetPlan())
	default:
		return false
	}
}

const ownOnly = "whether the plugins decide so is not checked; votes and reasons are compared with their own numbers"

func (c *check) ownTasks(path string, step aboutTasks, got []*apportionv1.TaskVerdict) bool {
	tasks, ok := c.tasksOf(step.GetTasks())
	want := len(tasks)
	if step.GetJointly() {
		want = 1
	}
	if !ok || len(got) != want {
		c.wrong("%s.tasks has %d entries, not %d", path, len(got), want)
		return true
	}
	for i, v := range got {
		at := fmt.Sprintf("%s.tasks[%d]", path, i)
		out := &apportionv1.TaskVerdict{Verdict: v.GetVerdict(), Checks: v.GetChecks()}
		if !step.GetJointly() {
			out.Task = new(uint32(tasks[i].number))
		}
		c.compare(at, v, out, nil)
		c.vote(at+".verdict", orEmpty(v.GetVerdict()))
		c.omit(at+".checks", ownOnly)
		if len(v.GetChecks()) > 0 && !step.GetExplain() {
			c.wrong("%s.checks were not asked for", at)
		}
		for k, check := range v.GetChecks() {
			entry := fmt.Sprintf("%s.checks[%d]", at, k)
			// What is borrowed exceeds, and is permitted.
			borrowed := check.GetReason().GetCode() == apportionv1.ReasonCode_REASON_CODE_BORROWED
			exceeds, known := c.exceeds(entry+".reason", orEmpty(check.GetReason()))
			if known && exceeds != (borrowed || !check.GetPassed()) || borrowed && !check.GetPassed() {
				c.wrong("%s.passed is %v, but its numbers say otherwise", entry, check.GetPassed())
			}
		}
	}
	return true
}

func (c *check) ownJobs(path string, step *apportionv1.EnqueueStep, got *apportionv1.EnqueueAnswer) bool {
	jobs, ok := c.chosenJobs(step.GetJobs())
	ordered := step.GetJobs() != nil || step.GetMode() != apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION
	if !ok || ordered && len(got.GetJobs()) != len(jobs) {
		c.wrong("%s.jobs has %d entries, not %d", path, len(got.GetJobs()), len(jobs))
		return true
	}
	if !ordered {
		c.omit(path+".jobs", "only the engine can order jobs")
	}
	for i, v := range got.GetJobs() {
		at := fmt.Sprintf("%s.jobs[%d]", path, i)
		j := int(v.GetJob())
		if ordered {
			j = jobs[i]
		}
		if j >= len(c.jobs) {
			c.wrong("%s.job is %d, and the snapshot has %d", at, j, len(c.jobs))
			continue
		}
		out := &apportionv1.EnqueueVerdict{Job: uint32(j), Verdict: v.GetVerdict()}
		if !step.GetOmitNames() {
			out.Uid = nameOf(c.jobs[j].message)
		}
		c.compare(at, v, out, nil)
		c.vote(at+".verdict", orEmpty(v.GetVerdict()))
	}
	return true
}

// permitting are the reasons of a permit.
var permitting = []apportionv1.ReasonCode{
	apportionv1.ReasonCode_REASON_CODE_ENTITLED, apportionv1.ReasonCode_REASON_CODE_BORROWED,
	apportionv1.ReasonCode_REASON_CODE_NO_MIN_RESOURCES,
}

// vote checks that a verdict is a permit without a reason against it, or a refusal with one, and the numbers of its reasons.
func (c *check) vote(path string, v *apportionv1.Verdict) {
	c.checked++
	c.omit(path+".vote", ownOnly)
	c.omit(path+".reasons", ownOnly)
	against := slices.ContainsFunc(v.GetReasons(), func(r *apportionv1.Reason) bool { return !slices.Contains(permitting, r.GetCode()) })
	if v.GetVote() == apportionv1.Vote_VOTE_PERMIT && against ||
		v.GetVote() == apportionv1.Vote_VOTE_REJECT && (!against || len(v.GetReasons()) == 0) ||
		v.GetVote() != apportionv1.Vote_VOTE_PERMIT && v.GetVote() != apportionv1.Vote_VOTE_REJECT {
		c.wrong("%s.vote is %v, but its reasons say otherwise", path, v.GetVote())
	}
	for i, r := range v.GetReasons() {
		at := fmt.Sprintf("%s.reasons[%d]", path, i)
		if exceeds, known := c.exceeds(at, orEmpty(r)); known && !exceeds {
			c.wrong("%s is %v, but %v and %v more are within %v", at, r.GetCode(), r.GetHave(), r.GetNeed(), r.GetLimit())
		}
	}
}

// exceeds reports whether what a reason has and needs exceeds its limit, if its code compares these and rounding does not decide; it also
// checks that the queue and the dimension exist.
func (c *check) exceeds(path string, r *apportionv1.Reason) (exceeds, certain bool) {
	if r.Queue != nil && int(r.GetQueue()) >= len(c.GetQueues()) || r.Dimension != nil && int(r.GetDimension()) >= len(c.dims) {
		c.wrong("%s names a queue or a dimension that does not exist", path)
	}
	switch r.GetCode() {
	case apportionv1.ReasonCode_REASON_CODE_ABOVE_DESERVED:
		if r.GetPlugin() == ofCapacity {
			// Capacity compares with what a queue deserves with Volcano's tolerance; proportion does not.
			return beyond(r, threshold)
		}
		return beyond(r, 0)
	case apportionv1.ReasonCode_REASON_CODE_ABOVE_REAL_CAPABILITY:
		// In enqueue, what a queue has is a sum and a difference that is rounded otherwise than the comparison.
		above, certain := beyond(r, 0)
		return above, certain && c.isExact(int(r.GetDimension()))
	case apportionv1.ReasonCode_REASON_CODE_ABOVE_OVERCOMMIT, apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT,
		apportionv1.ReasonCode_REASON_CODE_BORROWED, apportionv1.ReasonCode_REASON_CODE_NOT_ENTITLED:
		return beyond(r, 0)
	default:
		return false, false
	}
}

// beyond reports whether what a reason has and needs is above its limit, by a tolerance or more if that is not 0. It is certain if the
// numbers are whole and below 2^53, or farther apart than the errors of the few additions and conversions that made them.
func beyond(r *apportionv1.Reason, tolerance float64) (above, certain bool) {
	whole, most := true, 0.0
	for _, x := range []float64{r.GetHave(), r.GetNeed(), r.GetLimit()} {
		whole, most = whole && x == math.Trunc(x), max(most, math.Abs(x))
	}
	excess := r.GetHave() + r.GetNeed() - r.GetLimit()
	certain = whole && most < 1<<53 || math.IsInf(excess, 0) || math.Abs(excess-tolerance) > 8*0x1p-53*most
	return excess > 0 && excess >= tolerance, certain
}

// isExact reports whether no sum of amounts of a dimension is rounded: all are whole, and together below 2^53.
func (c *check) isExact(dimension int) bool {
	if c.exact == nil {
		all := make([]float64, len(c.dims))
		count := func(r *apportionv1.Resource, times float64) {
			for d, x := range c.amounts(r) {
				switch {
				case math.IsInf(x, 0):
				case x != math.Trunc(x):
					all[d] = math.Inf(1)
				default:
					all[d] += math.Abs(x) * times
				}
			}
		}
		count(c.GetTotal(), 1)
		for _, n := range c.GetNodes() {
			count(n.GetAllocatable(), 1)
			count(n.GetUsedByOthers(), 1)
		}
		for _, q := range c.GetQueues() {
			for _, r := range []*apportionv1.Resource{q.GetGuarantee(), q.GetDeserved(), q.GetCapability()} {
				count(r, 1)
			}
		}
		for _, j := range c.GetJobs() {
			count(j.GetMinResources(), 2)
			for _, g := range j.GetGroups() {
				count(g.GetRequest(), float64(len(g.GetTasks())))
				for _, t := range g.GetCounts() {
					count(g.GetRequest(), float64(t.GetCount()))
				}
				for _, t := range g.GetTasks() {
					count(t.GetDetail().GetRequest(), 1)
				}
			}
		}
		for _, x := range all {
			c.exact = append(c.exact, x < 1<<53)
		}
	}
	return dimension < len(c.exact) && c.exact[dimension]
}

// aboutVictims is a question about the tasks that a claimant may evict.
type aboutVictims interface {
	GetClaimant() *apportionv1.Tasks
	GetCandidates() *apportionv1.Tasks
	GetOmitNames() bool
}

// ownVictims checks that each victim is a candidate that some plugin named, that the eviction order has each victim once, and that no
// victim is spared.
func (c *check) ownVictims(path string, step aboutVictims, got *apportionv1.VictimsAnswer) bool {
	candidates, ok := c.tasksOf(step.GetCandidates())
	if step.GetCandidates() == nil {
		candidates = c.tasks
	}
	if !ok {
		c.wrong("%s answers a question about tasks that the snapshot does not have", path)
		return true
	}
	victims := []uint32{}
	for i, v := range got.GetVictims() {
		c.candidate(fmt.Sprintf("%s.victims[%d]", path, i), candidates, v.GetTask(), v.GetUid(), step.GetOmitNames())
		named := slices.ContainsFunc(got.GetByPlugin(), func(p *apportionv1.PluginVictims) bool {
			return p.GetTier() == got.GetTier() && slices.Contains(p.GetVictims(), v.GetTask())
		})
		if !named || slices.Contains(victims, v.GetTask()) {
			c.wrong("%s.victims[%d] is task %d, which no plugin of the tier names, or which is named before", path, i, v.GetTask())
		}
		victims = append(victims, v.GetTask())
	}
	for i, s := range got.GetSpared() {
		c.candidate(fmt.Sprintf("%s.spared[%d]", path, i), candidates, s.GetTask(), s.GetUid(), step.GetOmitNames())
		if slices.Contains(victims, s.GetTask()) && step.GetCandidates() == nil {
			c.wrong("%s.spared[%d] is task %d, which is a victim", path, i, s.GetTask())
		}
	}
	c.sameTasks(path+".eviction_order", got.GetEvictionOrder(), victims)
	c.checked += len(victims)
	for _, field := range []string{"decided", "victims", "tier", "by_plugin", "spared", "checks", "eviction_order", "plan", "by_chance"} {
		c.omit(path+"."+field, "whether the plugins decide so is not checked; victims are candidates that a plugin of the tier named")
	}
	return true
}

// candidate checks that a task is among the candidates and named as the snapshot names it.
func (c *check) candidate(path string, candidates []*task, number uint32, name string, omit bool) {
	i := slices.IndexFunc(candidates, func(t *task) bool { return t.number == int(number) })
	if i < 0 || c.uid(candidates[i], omit) != name {
		c.wrong("%s is task %d %q, which is no candidate of this name", path, number, name)
	}
}
