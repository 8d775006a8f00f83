package audit

import (
	"cmp"
	"context"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Severity is the severity of a finding.
type Severity string

// The severities, the worst first.
const (
	// Error is a violated promise: a guarantee, a job that can never run, queues that evict each other without end.
	Error Severity = "error"
	// Warning is a setting that causes unexpected answers.
	Warning Severity = "warning"
	// Note is informative.
	Note Severity = "note"
)

// Severities are all severities, the worst first.
var Severities = []Severity{Error, Warning, Note}

// Rule is a check of the audit.
type Rule struct {
	// ID is a machine-readable name, such as guarantee-above-capability.
	ID       string
	Severity Severity
	// Text describes the problem, Help the remedy.
	Text, Help string
}

// Finding is one violation of a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Queue and Job are the location; empty if there is no single one. Job is namespace/name.
	Queue string `json:"queue,omitempty"`
	Job   string `json:"job,omitempty"`
	// Resource of the numbers; empty if there are none.
	Resource string `json:"resource,omitempty"`
	// Witness describes it with numbers.
	Witness string `json:"witness"`
	// Help describes the remedy.
	Help string `json:"help"`
}

// Check returns the findings for a cluster and its policy: probably unintended settings, jobs that can never run, and the violations of
// fairness that Find returns. The most severe come first; equal input has equal findings.
func Check(ctx context.Context, decider Decider, in client.Input, limits Limits) ([]Finding, *Report, error) {
	a, err := begin(ctx, decider, in, limits)
	if err != nil {
		return nil, nil, err
	}
	c := &checker{auditor: a, accounts: map[string]*apportionv1.QueueShare{}, noNode: map[string]bool{}, policy: configuration{in.Policy}}
	if c.byKueue() {
		if err := c.kueue(ctx, decider, in); err != nil {
			return nil, nil, err
		}
		return c.sorted(), a.report, nil
	}
	for _, plugin := range a.answer.GetPlugins() {
		c.tree(plugin)
		for _, q := range plugin.GetQueues() {
			if !a.report.Unjudged {
				c.accounts[c.names.Queue(q.GetQueue())] = q
			}
		}
	}
	if c.settings(); a.lacks != "" {
		return c.sorted(), a.report, a.breaches(ctx, decider, in)
	}
	c.memory()
	c.jobs()
	if err := c.gangs(ctx, decider, in, c.crowding(in)); err != nil {
		return nil, nil, err
	}
	if err := c.infeasible(ctx, decider, in); err != nil {
		return nil, nil, err
	}
	c.configured(in.Policy)
	if err := a.breaches(ctx, decider, in); err != nil {
		return nil, nil, err
	}
	for _, b := range a.report.Breaches {
		rule := breachRules[b.Property]
		c.found = append(c.found, Finding{
			Rule: rule.ID, Severity: rule.Severity, Queue: b.Queue, Job: b.Job, Resource: b.Dimension, Witness: b.Witness, Help: rule.Help,
		})
	}
	return c.sorted(), a.report, nil
}

// sorted returns the findings, the worst first.
func (c *checker) sorted() []Finding {
	// Under a refused tree nothing is admitted, so that it comes first.
	last := func(f Finding) int {
		if f.Rule == treeRefused.ID {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(last(a), last(b)),
			cmp.Compare(slices.Index(Severities, a.Severity), slices.Index(Severities, b.Severity)), cmp.Compare(a.Rule, b.Rule))
	})
	return c.found
}

// breachRules are the rules of the properties of fairness.
var breachRules = map[Property]Rule{
	NoMoreThanThereIs: {
		"more-deserved-than-there-is", Warning, "Queues deserve more together than the cluster has.",
		"Lower the guarantees, or decide by the policy fair, which never gives more than there is.",
	},
	GuaranteesHold: {
		"guarantee-not-kept", Error, "A queue that asks for its guarantee does not get it.",
		"Lower what others deserve or are guaranteed, or decide by the policy fair.",
	},
	WeightsDecide: {
		"weight-not-respected", Warning, "A queue gets less than a like queue of no greater weight.",
		"Show the derivation with `apportion shares --explain`.",
	},
	NothingWantedIsIdle: {
		"idle-but-wanted", Warning, "Resources stay idle that a waiting job could use.",
		"Raise what the queue deserves or its limit, or decide by the policy fair, which lends what is idle.",
	},
	NoCircles: {
		"eviction-circle", Error, "Queues evict each other's tasks again and again.",
		"Raise what one of the queues deserves, so that it is not over its share when the other is under; or decide by the policy fair.",
	},
}

// Rules returns all rules, sorted by ID.
func Rules() []Rule {
	rules := slices.Concat(settingRules, policyRules, memoryRules, kueueRules)
	for _, rule := range breachRules {
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	return rules
}
