package audit

import (
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

var (
	usageIgnored = Rule{
		"usage-ignored", Warning, "Queues state usage, budgets or owners that nothing reads.",
		"State Snapshot.memory with a half-life, as a ledger does, and decide by the policy fair.",
	}
	usageOfNothing = Rule{
		"usage-of-no-resource", Warning, "Queues state usage or a budget of a resource that no node has.",
		"Correct the name of the resource in the budget, or in the history that was imported.",
	}
	budgetUsedUp = Rule{
		"budget-used-up", Warning, "Nothing is left of a queue's budget.",
		"Wait for the next period, raise the amount, or make a hard budget soft.",
	}
	budgetOfNothing = Rule{
		"budget-of-nothing", Warning, "A queue's budget grants nothing in the whole period: earlier periods overspent it, or it is 0.",
		"Raise the amount, or set carry: false so that a period does not pay for the one before.",
	}
	halfLifeTooShort = Rule{
		"half-life-shorter-than-tasks", Warning, "Usage is forgotten faster than tasks run: what a queue holds now outweighs what it used.",
		"Choose a half-life of several times the time that tasks run, such as a week.",
	}
	ownerMissing = Rule{
		"jobs-without-owner", Note, "Some jobs of a queue name an owner, others none: those count as the jobs of one owner.",
		"Set the annotation apportion.dev/owner of PodGroups from the authenticated user.",
	}
)

var memoryRules = []Rule{usageIgnored, usageOfNothing, budgetUsedUp, budgetOfNothing, halfLifeTooShort, ownerMissing}

// memory looks at what is stated of past usage.
func (c *checker) memory() {
	stated := 0
	for _, q := range c.snapshot.GetQueues() {
		if q.GetUsage() != nil || q.GetBudget() != nil || len(q.GetOwners()) > 0 {
			stated++
		}
	}
	divides := slices.ContainsFunc(c.answer.GetPlugins(), func(p *apportionv1.PluginShares) bool { return p.GetPlugin() == "fair" })
	switch {
	case stated == 0:
	case c.snapshot.GetMemory() == nil:
		c.say(usageIgnored, Finding{}, "%s usage, a budget or owners, and the snapshot has no memory", states(stated))
	case !divides:
		c.say(usageIgnored, Finding{}, "%s usage, a budget or owners, and the policy fair does not decide", states(stated))
	default:
		for _, q := range c.snapshot.GetQueues() {
			c.budget(q)
		}
		c.halfLife()
		c.owners()
	}
	c.nowhere()
}

func states(queues int) string {
	return text.Count(queues, "queue") + " " + text.Verb(queues, "states", "state")
}

// budget finds a budget that leaves a queue nothing.
func (c *checker) budget(q *apportionv1.Queue) {
	for d, name := range c.names.Dimensions {
		left, limited := lookup.Left(q.GetBudget(), uint32(d))
		if !limited || left > 0 {
			continue
		}
		at := Finding{Queue: q.GetName(), Resource: name}
		amount, _ := lookup.Used(q.GetBudget().GetAmount(), uint32(d))
		spent, _ := lookup.Used(q.GetBudget().GetSpent(), uint32(d))
		effect := "its weight with memory is next to nothing"
		if q.GetBudget().GetKind() == apportionv1.BudgetKind_BUDGET_KIND_HARD {
			effect = "it is entitled to nothing"
		}
		if amount == 0 {
			c.say(budgetOfNothing, at, "queue %s may use 0 of %s in this period: %s", q.GetName(), name, effect)
		} else {
			c.say(budgetUsedUp, at, "queue %s has spent %d of %d quantum-seconds of %s: %s", q.GetName(), spent, amount, name, effect)
		}
	}
}

// halfLife compares the half-life with how long the tasks have run that run now.
func (c *checker) halfLife() {
	var ran []time.Duration
	for _, task := range c.snapshot.Tasks {
		if detail := task.GetDetail(); task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RUNNING && detail.GetScheduleTime() > 0 {
			ran = append(ran, time.Duration(c.snapshot.GetAsOf()-detail.GetScheduleTime()))
		}
	}
	if len(ran) == 0 {
		return
	}
	slices.Sort(ran)
	m := c.snapshot.GetMemory()
	half := time.Duration(m.GetEpochSeconds()) * time.Duration(m.GetHalfLifeEpochs()) * time.Second
	if typical := ran[len(ran)/2]; half > 0 && typical > half {
		c.say(halfLifeTooShort, Finding{}, "half of the running tasks have run for %s or longer, and usage counts half after %s",
			duration.Rough(typical), duration.Format(half))
	}
}

// owners finds queues in which some jobs name an owner and others do not.
func (c *checker) owners() {
	named, unnamed := map[string]int{}, map[string]int{}
	for _, job := range c.snapshot.GetJobs() {
		if job.GetOwner() != "" {
			named[job.GetQueue()]++
		} else {
			unnamed[job.GetQueue()]++
		}
	}
	for _, q := range c.snapshot.GetQueues() {
		if name := q.GetName(); named[name] > 0 && unnamed[name] > 0 {
			c.say(ownerMissing, Finding{Queue: name}, "%s of queue %s %s no owner, %d %s one", text.Count(unnamed[name], "job"), name,
				text.Verb(unnamed[name], "names", "name"), named[name], text.Verb(named[name], "names", "name"))
		}
	}
}

// nowhere finds usage of resources that the cluster does not have.
func (c *checker) nowhere() {
	if c.report.Unjudged {
		return
	}
	for d, name := range c.names.Dimensions {
		if c.total[d] > 0 || name == pods {
			continue
		}
		for _, q := range c.snapshot.GetQueues() {
			used, _ := lookup.Used(q.GetUsage(), uint32(d))
			granted, _ := lookup.Used(q.GetBudget().GetAmount(), uint32(d))
			if used > 0 || granted > 0 {
				c.say(usageOfNothing, Finding{Queue: q.GetName(), Resource: name},
					"queue %s states usage or a budget of %s, and no node has it", q.GetName(), name)
				break
			}
		}
	}
}
