package checker

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// guards are the plugins that protect candidates by rules of docs/semantics.md which are repeated here. Each permits all others.
var guards = []string{"gang", "conformance", "cooldown"}

// ballots are the votes of the other plugins on the candidates of a claimant.
type ballots struct {
	votes []*apportionv1.PluginVictims
	// released are the candidates that all plugins of the tier of fair permit.
	released []*task
	// why has the reasons of the first plugin of that tier that protects a candidate; nil if they are taken as they are given.
	why map[*task][]*apportionv1.Reason
	// given: the vote of a plugin of that tier is taken as it is given.
	given bool
}

// votes returns the votes that the answer must list. Those of plugins whose rules are not repeated here are taken as they are given.
// Without an order of the candidates, it is that in which a plugin lists its victims, before the others: what gang permits of a job depends
// on the order, how much of it does not.
func (c *check) votes(path string, h *hunt, names []string, tiers []int, tier int, got []*apportionv1.PluginVictims) *ballots {
	b := &ballots{released: slices.Clone(h.candidates), why: map[*task][]*apportionv1.Reason{}}
	for i, name := range names {
		vote := &apportionv1.PluginVictims{Plugin: pluginName(name), Tier: uint32(tiers[i]), Vote: apportionv1.Vote_VOTE_ABSTAIN}
		b.votes = append(b.votes, vote)
		if name == ofFair || i >= len(got) {
			continue
		}
		at, because := fmt.Sprintf("%s.by_plugin[%d]", path, i), map[*task]*apportionv1.Reason{}
		repeated := slices.Contains(guards, name)
		switch {
		case repeated:
			vote.Vote, vote.Victims = apportionv1.Vote_VOTE_PERMIT, c.permits(name, h.inOrder(got[i].GetVictims()), because)
			if !h.ordered {
				c.omit(at+".victims", notOrdered)
			}
		default:
			c.asGiven(at, h, vote, got[i])
		}
		if tiers[i] != tier || vote.GetVote() == apportionv1.Vote_VOTE_ABSTAIN {
			continue
		}
		b.given = b.given || !repeated
		b.released = slices.DeleteFunc(b.released, func(t *task) bool {
			protected := !slices.Contains(vote.GetVictims(), uint32(t.number))
			if _, known := b.why[t]; protected && !known {
				b.why[t] = nil
				if because[t] != nil {
					b.why[t] = []*apportionv1.Reason{because[t]}
				}
			}
			return protected
		})
	}
	return b
}

// asGiven takes a vote as it is given, if it is one.
func (c *check) asGiven(at string, h *hunt, vote, got *apportionv1.PluginVictims) {
	c.omit(at, "the votes of other plugins are taken as they are given")
	vote.Victims, vote.Vote = got.GetVictims(), got.GetVote()
	if vote.GetVote() == apportionv1.Vote_VOTE_UNSPECIFIED || vote.GetVote() > apportionv1.Vote_VOTE_REJECT {
		c.wrong("%s.vote is %v", at, vote.GetVote())
	}
	for _, n := range vote.GetVictims() {
		if !slices.ContainsFunc(h.candidates, func(t *task) bool { return t.number == int(n) }) {
			c.wrong("%s.victims names task %d, which is no candidate", at, n)
		}
	}
}

// inOrder are the candidates in their order or, if it is not known, first those that are named.
func (h *hunt) inOrder(first []uint32) []*task {
	if h.ordered {
		return h.candidates
	}
	var list []*task
	for _, n := range first {
		i := slices.IndexFunc(h.candidates, func(t *task) bool { return t.number == int(n) })
		if i >= 0 && !slices.Contains(list, h.candidates[i]) {
			list = append(list, h.candidates[i])
		}
	}
	for _, t := range h.candidates {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// permits returns the candidates that a plugin does not protect, and notes why it protects the others.
func (c *check) permits(name string, candidates []*task, why map[*task]*apportionv1.Reason) (permitted []uint32) {
	ready := map[int]int64{}
	for _, t := range candidates {
		if _, known := ready[t.job]; !known {
			ready[t.job] = c.ready(c.jobs[t.job].message)
		}
		if reason := c.protects(name, t, ready[t.job]); reason != nil {
			why[t] = reason
			continue
		}
		ready[t.job]--
		permitted = append(permitted, uint32(t.number))
	}
	return permitted
}

// protects returns the reason why a plugin protects a candidate; nil if it does not. ready counts those of its job's tasks that are ready,
// without those permitted before.
func (c *check) protects(name string, t *task, ready int64) *apportionv1.Reason {
	job, detail := c.jobs[t.job].message, orEmpty(t.message.GetDetail())
	reason := &apportionv1.Reason{Plugin: pluginName(name)}
	switch {
	case name == "gang" && ready <= int64(job.GetMinAvailable()):
		reason.Code = apportionv1.ReasonCode_REASON_CODE_GANG_MINIMUM
		reason.Have, reason.Limit = float64(ready), float64(job.GetMinAvailable())
	case name == "conformance" && slices.Contains([]string{"system-cluster-critical", "system-node-critical"}, detail.GetPriorityClass()):
		reason.Code = apportionv1.ReasonCode_REASON_CODE_SYSTEM_CRITICAL
	case name == "conformance" && job.GetNamespace() == "kube-system":
		reason.Code = apportionv1.ReasonCode_REASON_CODE_SYSTEM_NAMESPACE
	case name == "cooldown" && cools(t.status, detail):
		since, over := elapsed(detail.GetScheduleTime(), c.GetAsOf(), detail.GetCooldown())
		if over {
			return nil
		}
		reason.Code = apportionv1.ReasonCode_REASON_CODE_COOLDOWN
		reason.Have, reason.Limit = since, float64(detail.GetCooldown())
	default:
		return nil
	}
	return reason
}

// cools reports whether a task runs, or is being released, and has a time of cooling.
func cools(status apportionv1.TaskStatus, detail *apportionv1.TaskDetail) bool {
	runs := status == apportionv1.TaskStatus_TASK_STATUS_RUNNING || status == apportionv1.TaskStatus_TASK_STATUS_RELEASING
	return runs && detail.ScheduleTime != nil && detail.Cooldown != nil
}

// elapsed returns the time between two moments, and whether it is at least some time.
func elapsed(then, now, least int64) (float64, bool) {
	exact := new(big.Int).Sub(big.NewInt(now), big.NewInt(then))
	since := float64(exact.Int64())
	if !exact.IsInt64() {
		since = float64(now) - float64(then)
	}
	return since, exact.Cmp(big.NewInt(least)) >= 0
}

// ready counts the tasks of a job that hold resources or have succeeded.
func (c *check) ready(j *apportionv1.Job) (n int64) {
	count := func(status apportionv1.TaskStatus, times uint32) {
		switch status { //nolint:exhaustive // The others are not ready.
		case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_BINDING,
			apportionv1.TaskStatus_TASK_STATUS_BOUND, apportionv1.TaskStatus_TASK_STATUS_RUNNING,
			apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED:
			n += int64(times)
		}
	}
	for _, g := range j.GetGroups() {
		for _, t := range g.GetTasks() {
			count(t.GetStatus(), 1)
		}
		for _, t := range g.GetCounts() {
			count(t.GetStatus(), t.GetCount())
		}
	}
	return n
}
