// Package audit finds unfair answers of a policy: violations of the properties in docs/fair.md, each with numbers. It queries the policy
// and checks the answers against the snapshot; it works for every policy.
package audit

import (
	"context"
	"fmt"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Property is a property of fairness by its number in docs/fair.md.
type Property int

// The properties that are looked at.
const (
	// NoMoreThanThereIs: queues together deserve no more than the total.
	NoMoreThanThereIs Property = 1
	// GuaranteesHold: a queue that asks for its guarantee can get it.
	GuaranteesHold Property = 2
	// WeightsDecide: no queue gets less than an equal queue of no greater weight while it wants more.
	WeightsDecide Property = 7
	// NothingWantedIsIdle: at rest no waiting task fits that is open and within its limits.
	NothingWantedIsIdle Property = 13
	// NoCircles: reclaim ends, and no state repeats.
	NoCircles Property = 14
)

var titles = map[Property]string{
	NoMoreThanThereIs:   "no more than there is",
	GuaranteesHold:      "guarantees hold",
	WeightsDecide:       "weights decide",
	NothingWantedIsIdle: "nothing wanted is idle",
	NoCircles:           "no circles",
}

func (p Property) String() string { return titles[p] }

// Breach is an answer that violates a property.
type Breach struct {
	// Property by its number in docs/fair.md, and its Title.
	Property Property `json:"property"`
	Title    string   `json:"title"`
	// Queue and Job are the affected ones; empty if there is no single one. Job is namespace/name.
	Queue string `json:"queue,omitempty"`
	Job   string `json:"job,omitempty"`
	// Dimension is the resource of the numbers; empty if it is not about amounts. Given is the amount that the policy gives, Due the amount
	// that the property requires, in units of the dimension.
	Dimension string  `json:"dimension,omitempty"`
	Given     float64 `json:"given,omitempty"`
	Due       float64 `json:"due,omitempty"`
	// Witness describes the violation, with numbers.
	Witness string `json:"witness"`
}

// Report is the result of Find.
type Report struct {
	Breaches []Breach `json:"breaches,omitempty"`
	// Held is the amount that each queue holds in the end, by queue and dimension, in units of the dimension: when nothing may start or
	// evict any more, or a state repeats. Nil if this was not simulated.
	Held map[string]map[string]float64 `json:"held,omitempty"`
	// Evictions counts the evicted tasks.
	Evictions int `json:"evictions,omitempty"`
	// Partial describes the checks that were not made; empty if all were.
	Partial string `json:"partial,omitempty"`
	// Unjudged says that what there is to divide is not known, because the snapshot has neither nodes nor a total. Rules that depend on it
	// were not checked.
	Unjudged bool `json:"unjudged,omitempty"`
}

// pods is the resource of which every pod takes one.
const pods = "pods"

// Limits limit the work. Zero fields have the values of the constants below.
type Limits struct {
	// Blocks limits the gangs and single tasks to place or evict for, Moves the allocations and plans, Nodes the nodes visited for one
	// claimant, and Candidates the tasks that are considered as victims, each as often as it is.
	Blocks, Moves, Nodes, Candidates int
}

// The default limits.
const (
	defaultBlocks     = 100_000
	defaultMoves      = 10_000
	defaultNodes      = 64
	defaultCandidates = 2_500_000
)

func (l Limits) orDefault() Limits {
	if l.Blocks == 0 {
		l.Blocks = defaultBlocks
	}
	if l.Moves == 0 {
		l.Moves = defaultMoves
	}
	if l.Nodes == 0 {
		l.Nodes = defaultNodes
	}
	if l.Candidates == 0 {
		l.Candidates = defaultCandidates
	}
	return l
}

// Decider answers the questions of an audit.
type Decider interface {
	Simulate(ctx context.Context, in client.Input, steps ...*apportionv1.Step) (*client.Simulation, error)
	OpenSession(ctx context.Context, in client.Input) (*client.Session, error)
}

// Find audits the decisions of a policy about a snapshot. It first checks the shares. Then it applies all allocations that the policy
// permits, and then its evictions, until the state no longer changes or repeats. The second part needs nodes and listed tasks.
func Find(ctx context.Context, decider Decider, in client.Input, limits Limits) (*Report, error) {
	a, err := begin(ctx, decider, in, limits)
	if err != nil {
		return nil, err
	}
	return a.report, a.breaches(ctx, decider, in)
}

// begin asks for the shares and the nodes, on which every finding rests. Where kinds of objects were not read, only settings are known.
func begin(ctx context.Context, decider Decider, in client.Input, limits Limits) (*auditor, error) {
	kinds, _ := lookup.Unread(in.Snapshot)
	if why := text.Unread(kinds); why != "" {
		snapshot := lookup.Of(in.Snapshot)
		return &auditor{
			snapshot: snapshot, names: snapshot.Names(nil), limits: limits.orDefault(), lacks: why, report: &Report{Unjudged: true},
		}, nil
	}
	simulation, err := decider.Simulate(ctx, in,
		&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		&apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true}}})
	if err != nil {
		return nil, err
	}
	for i := range simulation.Answers {
		if err := simulation.Err(i); err != nil {
			return nil, err
		}
	}
	snapshot := lookup.Of(in.Snapshot)
	a := &auditor{snapshot: snapshot, names: snapshot.Names(simulation.Basis), limits: limits.orDefault(), report: &Report{}}
	a.answer, a.nodes = simulation.Answers[0].GetShares(), simulation.Answers[1].GetInspect().GetNodes()
	a.total = a.row(simulation.Answers[1].GetInspect().GetTotal())
	a.report.Unjudged = len(a.nodes) == 0 && in.Snapshot.GetTotal() == nil
	return a, nil
}

// breaches looks for breaches of the properties.
func (a *auditor) breaches(ctx context.Context, decider Decider, in client.Input) error {
	if a.lacks != "" {
		a.report.Partial = a.lacks + "; only settings were checked"
		return nil
	}
	if a.report.Unjudged {
		a.report.Partial = "the snapshot has neither nodes nor a total: what there is to divide is not known, " +
			"so neither what queues deserve and may use nor what may start was checked"
		return nil
	}
	a.shares(a.answer)
	if len(a.nodes) == 0 {
		a.report.Partial = "the snapshot has no nodes: what may start and which tasks it evicts was not tried"
		return nil
	}
	return a.rest(ctx, decider, in, a.nodes)
}

// auditor gathers breaches.
type auditor struct {
	snapshot *lookup.Snapshot
	names    text.Names
	limits   Limits
	// answer and nodes are the answers at the beginning, total is the cluster's total.
	answer *apportionv1.SharesAnswer
	nodes  []*apportionv1.InspectedNode
	total  []float64
	// divider is the plugin that divides, "" if none does; queues are its accounts.
	divider string
	queues  map[string]*apportionv1.QueueShare
	// lacks says which kinds of objects were not read; "" if all were.
	lacks  string
	report *Report
}

func (a *auditor) add(b Breach, format string, args ...any) {
	b.Title, b.Witness = b.Property.String(), text.Sentence(fmt.Sprintf(format, args...))
	a.report.Breaches = append(a.report.Breaches, b)
}

// row returns the amounts of a resource by dimension of the answers.
func (a *auditor) row(r *apportionv1.Resource) []float64 {
	row := make([]float64, len(a.names.Dimensions))
	for i, d := range r.GetDimensions() {
		if i < len(r.GetAmounts()) && int(d) < len(row) {
			row[d] = r.GetAmounts()[i]
		}
	}
	return row
}
