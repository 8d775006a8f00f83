package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// The rules about the configuration of Volcano's scheduler. Tiers are combined in pkg/scheduler/framework/session_plugins.go, Reclaimable
// and Preemptable; what enqueue holds back is skipped in pkg/scheduler/actions/reclaim/reclaim.go and preempt/preempt.go.
var (
	cannotEvict = Rule{
		"no-action-evicts", Warning, "A queue uses more than it deserves while another waits for its share, and no action takes it back.",
		"Add reclaim to actions, or leave it if queues are to give back only what ends.",
	}
	sharesOpen = Rule{
		"shares-not-protected", Warning,
		"A tier before the plugin that divides decides about reclaim alone, so that queues lose what they deserve.",
		"Put the plugin that divides (capacity, proportion) into the first tier that has a vote on reclaim.",
	}
	gangsOpen = Rule{
		"gangs-not-protected", Warning,
		"A tier without the vote of gang may decide who is evicted, so that gangs are left below their minimum.",
		"Put gang into each tier that has a vote on victims, or all plugins into one tier, and leave the switches of gang on.",
	}
	drfAgainstPriority = Rule{
		"low-priority-evicts-high", Warning,
		"Where priority names no victim, drf in a later tier evicts by shares alone: jobs of lower priority evict those of higher " +
			"priority, which evict them again.",
		"Set enablePreemptable: false for drf.",
	}
	twoDividers = Rule{
		"two-dividers", Warning, "Both proportion and capacity divide: each may refuse, and they deserve different amounts.",
		"Keep one of proportion and capacity.",
	}
	enqueueBlocks = Rule{
		"enqueue-blocks-eviction", Note,
		"A job that enqueue keeps outside of its queue evicts no task: preempt and reclaim do not help new jobs on a full cluster.",
		"Remove enqueue from actions, or raise overcommit-factor.",
	}
	emptyPromise = Rule{
		"promise-that-cannot-be-kept", Error,
		"A job that can never run was let in, and what it was promised keeps others out of their queues.",
		"Delete the job, or make it smaller.",
	}
	nothingPlaced = Rule{
		"nothing-is-placed", Error, "The switch enablePredicate of the plugin predicates is off, so that every placing is taken back.",
		"Remove enablePredicate: false from predicates.",
	}
	withoutEffect = Rule{
		"setting-without-effect", Note, "Queues have settings that no plugin of the configuration reads.",
		"Remove the setting, or use the plugin that reads it.",
	}
)

var policyRules = []Rule{
	cannotEvict, sharesOpen, gangsOpen, drfAgainstPriority, twoDividers, enqueueBlocks, emptyPromise, nothingPlaced, withoutEffect,
}

// configuration is a policy as the rules look at it.
type configuration struct{ *apportionv1.Policy }

// acts reports whether a session has one of some actions; false if the policy does not say.
func (p configuration) acts(actions ...string) bool {
	return slices.ContainsFunc(p.GetVolcano().GetActions(), func(a string) bool { return slices.Contains(actions, a) })
}

// has reports whether a plugin is configured.
func (p configuration) has(name string) bool {
	return slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool { return slices.Contains(namesIn(t, 0), name) })
}

// weighs reports whether weights of queues have an effect: capacity reads none.
func (p configuration) weighs() bool {
	return !p.has("capacity") || p.has("proportion") || p.hierarchical()
}

// hierarchical reports whether drf reads the hierarchy annotations of queues.
func (p configuration) hierarchical() bool {
	return slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool {
		return slices.ContainsFunc(t.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetHierarchicalDrf() != nil })
	})
}

// namesIn returns the plugins of a tier that take part in a decision; 0: all of them.
func namesIn(t *apportionv1.Tier, d engine.Decision) (names []string) {
	for _, plugin := range t.GetPlugins() {
		row, ok := catalogue.Of(plugin)
		off := slices.Contains(plugin.GetDisabledDecisions(), apportionv1.Decision(d))
		if ok && (d == 0 || row.Decisions.Has(d) && !off) {
			names = append(names, row.Name)
		}
	}
	return names
}

// configured checks the configuration, as far as the policy is that of a session of Volcano.
func (c *checker) configured(policy *apportionv1.Policy) {
	p := configuration{policy}
	if c.effects(p); len(p.GetVolcano().GetActions()) == 0 {
		return
	}
	if p.has("proportion") && p.has("capacity") {
		c.say(twoDividers, Finding{}, "proportion and capacity are both configured")
	}
	if p.acts(engine.ActionReclaim) {
		c.protects(p, engine.Reclaimable, "reclaim")
	} else if !p.acts(engine.ActionGangReclaim) {
		c.overShare()
	}
	if p.acts(engine.ActionPreempt) {
		c.protects(p, engine.Preemptable, "preempt")
	}
	if p.acts(engine.ActionEnqueue) {
		c.promises(p)
	}
	for _, t := range p.GetTiers() {
		for _, plugin := range t.GetPlugins() {
			if plugin.GetUndecided().GetName() == "predicates" &&
				slices.Contains(plugin.GetDisabledDecisions(), apportionv1.Decision_DECISION_PREDICATE) {
				c.say(nothingPlaced, Finding{}, "predicates has enablePredicate: false")
			}
		}
	}
}

// protects looks at the tiers that decide about the victims of an action: the first that names somebody decides alone.
func (c *checker) protects(p configuration, d engine.Decision, action string) {
	var before []string
	for i, t := range p.GetTiers() {
		names := namesIn(t, d)
		if len(names) == 0 {
			continue
		}
		tier := fmt.Sprintf("tier %d (%s)", i+1, strings.Join(names, ", "))
		divides := slices.ContainsFunc(names, func(n string) bool { return n == "capacity" || n == "proportion" })
		if divides && len(before) > 0 {
			c.say(sharesOpen, Finding{}, "%s decides about %s whenever it names a victim, and %s is not asked",
				strings.Join(before, ", "), action, tier)
		}
		if !slices.Contains(names, "gang") {
			c.say(gangsOpen, Finding{}, "%s has a vote on %s without gang", tier, action)
		}
		if action == "preempt" && slices.Contains(names, "drf") && !slices.Contains(names, "priority") {
			c.say(drfAgainstPriority, Finding{}, "drf in %s decides about preempt where no tier before names anybody", tier)
		}
		before = append(before, tier)
	}
}

// overShare finds a queue that keeps what another one waits for, under actions that do not take it back.
func (c *checker) overShare() {
	short := ""
	for _, q := range c.snapshot.GetQueues() {
		share := c.accounts[q.GetName()]
		if share == nil || len(share.GetChildren()) > 0 {
			continue
		}
		allocated, deserved, request := c.row(share.GetAllocated()), c.row(share.GetDeserved()), c.row(share.GetRequest())
		for d, name := range c.names.Dimensions {
			if name != pods && short == "" && allocated[d] < min(deserved[d], request[d]) {
				short = q.GetName()
			}
		}
	}
	for _, q := range c.snapshot.GetQueues() {
		share := c.accounts[q.GetName()]
		if short == "" || share == nil || len(share.GetChildren()) > 0 || q.Reclaimable != nil && !q.GetReclaimable() {
			continue
		}
		allocated, deserved := c.row(share.GetAllocated()), c.row(share.GetDeserved())
		for d, name := range c.names.Dimensions {
			if name != pods && allocated[d] > deserved[d] && q.GetName() != short {
				c.say(cannotEvict, Finding{Queue: q.GetName(), Resource: name},
					"queue %s uses %s of %s and deserves %s, queue %s waits for its share, and the configuration has no action reclaim",
					q.GetName(), c.short(d, allocated[d]), name, c.short(d, deserved[d]), short)
				break
			}
		}
	}
}

// promises looks at what enqueue lets in and keeps outside.
func (c *checker) promises(p configuration) {
	counted := slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool { return len(namesIn(t, engine.JobEnqueued)) > 0 })
	if !counted {
		return
	}
	outside := ""
	for _, job := range c.snapshot.GetJobs() {
		name := lookup.JobName(job)
		switch {
		case job.GetMinResources() == nil:
		case job.GetPhase() == apportionv1.JobPhase_JOB_PHASE_INQUEUE && c.never(name):
			c.say(emptyPromise, Finding{Queue: job.GetQueue(), Job: name},
				"job %s can never run, was let into queue %s, and holds what it was promised",
				name, job.GetQueue())
		case job.GetPhase() <= apportionv1.JobPhase_JOB_PHASE_PENDING && outside == "" && !c.never(name) && c.crowded(job):
			outside = name
		}
	}
	if outside != "" && p.acts(engine.ActionPreempt, engine.ActionReclaim) {
		c.say(enqueueBlocks, Finding{Job: outside}, "job %s waits outside of its queue, and what it asks for is not idle", outside)
	}
}

// never reports whether a finding says that a job can never run.
func (c *checker) never(job string) bool {
	return c.noNode[job] || slices.ContainsFunc(c.found, func(f Finding) bool {
		return f.Job == job && (f.Rule == gangTooLarge.ID || f.Rule == neverFitsQueue.ID)
	})
}

// crowded reports whether the cluster has not enough left for what a job asks.
func (c *checker) crowded(job *apportionv1.Job) bool {
	asked := c.row(job.GetMinResources())
	used := make([]float64, len(asked))
	for _, share := range c.accounts {
		if len(share.GetChildren()) > 0 {
			continue
		}
		for d, x := range c.row(share.GetAllocated()) {
			used[d] += x
		}
	}
	for d := range asked {
		if len(c.accounts) > 0 && asked[d] > 0 && asked[d]+used[d] > c.total[d] {
			return true
		}
	}
	return false
}

// effects finds settings of queues that no plugin reads.
func (c *checker) effects(p configuration) {
	if p.GetTierWalk() != apportionv1.TierWalk_TIER_WALK_VOLCANO {
		return
	}
	proportion, capacity, hierarchical := p.has("proportion"), p.has("capacity"), p.hierarchical()
	for _, setting := range []struct {
		name, why string
		unread    bool
		set       func(*apportionv1.Queue) bool
	}{
		{
			"deserved", "proportion divides by weight", proportion && !capacity,
			func(q *apportionv1.Queue) bool { return q.GetDeserved() != nil },
		},
		{
			"parent", "proportion knows no tree", proportion && !capacity,
			func(q *apportionv1.Queue) bool { return parentOf(q) != rootQueue },
		},
		{
			"weight", "capacity reads no weight", capacity && !proportion && !hierarchical,
			func(q *apportionv1.Queue) bool { return q.GetWeight() > 1 },
		},
		{
			"hierarchy annotations", "drf without enableHierarchy reads none", !hierarchical && (proportion || capacity),
			func(q *apportionv1.Queue) bool { return q.GetFairShareHierarchy() != nil },
		},
	} {
		var queues []string
		for _, q := range c.snapshot.GetQueues() {
			if setting.unread && setting.set(q) {
				queues = append(queues, q.GetName())
			}
		}
		if len(queues) > 0 {
			c.say(withoutEffect, Finding{Queue: queues[0]}, "%s of %s without effect, such as that of queue %s: %s",
				setting.name, text.Count(len(queues), "queue"), queues[0], setting.why)
		}
	}
}
