package client

import (
	"maps"
	"math"
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/text"
)

// Input is the input of a question: a snapshot, inline or uploaded, or the state of a mirror, and a policy.
type Input struct {
	Snapshot *apportionv1.Snapshot
	// Upload replaces Snapshot.
	Upload *Upload
	// State replaces both. Its mirror must belong to the same client.
	State *State
	// Policy to decide by; nil: PolicyName.
	Policy *apportionv1.Policy
	// PolicyName is the name of a policy configured in the service, or, in process, of a policy of WithPolicy.
	PolicyName string
	// Events happened since the snapshot, in order: questions are about the result.
	Events []*apportionv1.Event
	// Edits of the state after these events: the question is about the result.
	Edits []*apportionv1.Edit
	// Texts adds a text to every reason in the answers.
	Texts bool
	// OmitNames omits names from the answers where they have positions.
	OmitNames bool
}

// sends reports whether the input is an upload that can be sent to a replica that does not hold it.
func (in Input) sends() bool { return in.Upload != nil && in.Upload.data != nil }

// partial reports whether the input has only what the caller may see of a snapshot, so that only the service can answer.
func (in Input) partial() bool {
	return in.Upload != nil && in.Upload.data == nil && in.Upload.digest != ""
}

// snapshot returns the snapshot of the input. The snapshot of a State is assembled for the call.
func (in Input) snapshot() *apportionv1.Snapshot {
	switch {
	case in.State != nil:
		return in.State.Snapshot()
	case in.Upload != nil:
		return in.Upload.snapshot
	}
	return in.Snapshot
}

// names returns the names of positions in an answer. at describes the State of the input as the answering replica holds it, nil for other
// inputs.
func (in Input) names(basis *apportionv1.Basis, at *held) text.Names {
	if at != nil {
		return text.Names{Dimensions: basis.GetDimensions(), Queues: at.queues}
	}
	return text.NamesOf(basis, in.snapshot())
}

// nodes returns the names of nodes by position, with at as in names.
func (in Input) nodes(at *held) []string {
	if at != nil {
		return at.nodes
	}
	all := in.snapshot().GetNodes()
	nodes := make([]string, len(all))
	for i, node := range all {
		nodes[i] = node.GetName()
	}
	return nodes
}

// message returns the input as it is sent.
func (in Input) message() *apportionv1.Input {
	message := &apportionv1.Input{Events: in.Events, Edits: in.Edits, Texts: in.Texts, OmitNames: in.OmitNames}
	switch {
	case in.State != nil:
		// The digest follows when the State is held.
	case in.Upload != nil && in.Upload.digest == "":
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Upload.snapshot}
	case in.Upload != nil:
		message.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: in.Upload.digest}
	case in.Snapshot != nil:
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Snapshot}
	}
	switch {
	case in.Policy != nil:
		message.Rule = &apportionv1.Input_Policy{Policy: in.Policy}
	case in.PolicyName != "":
		message.Rule = &apportionv1.Input_PolicyName{PolicyName: in.PolicyName}
	}
	return message
}

// SharesQuestion requests the shares of queues.
type SharesQuestion struct {
	// Queues by name. Nil: all.
	Queues []string
	// Fields to return. Nil: all.
	Fields []apportionv1.ShareField
	// JobShares adds every job's share in DRF.
	JobShares bool
	// Tree adds the tree of hierarchical DRF.
	Tree bool
	// Explain adds the whole derivation.
	Explain bool
}

// EnqueueQuestion asks which jobs may enter their queues; each permit affects the next decision.
type EnqueueQuestion struct {
	// Jobs by uid, or namespace/name, in this order. Nil: all.
	Jobs []string
	// AsAction decides as Volcano's enqueue action does: pending jobs only, queue by queue in queue order.
	AsAction bool
}

// AllocatableQuestion asks whether the queues of tasks may use that much more.
type AllocatableQuestion struct {
	// Tasks by uid, or namespace/name.
	Tasks []string
	// Jointly checks all tasks together; they must belong to one queue.
	Jointly bool
	// Simulation uses only the numbers, regardless of the queue's state.
	Simulation bool
	// Preemptive also asks whether the queues may take the resources from others.
	Preemptive bool
	// Explain adds every comparison.
	Explain bool
}

// VictimsQuestion asks which tasks a task may evict.
type VictimsQuestion struct {
	// Claimant by uid, or namespace/name.
	Claimant string
	// With are further tasks of the claimant's job, by uid or namespace/name, that claim together with it. Only policies that reclaim by
	// plans support them.
	With []string
	// Room is where the claimants are to be placed. Only policies that reclaim by plans use it.
	Room apportionv1.ClaimRoom
	// Candidates by uid, or namespace/name, in this order. Nil: every task that Volcano's action would consider.
	Candidates []string
	// Preempt selects victims within the claimant's queue instead of other queues.
	Preempt bool
	// EligibleOnly first excludes the tasks that Volcano's action excludes.
	EligibleOnly bool
	// Explain adds every check.
	Explain bool
}

// NodesQuestion asks where tasks fit.
type NodesQuestion struct {
	// Tasks by uid, or namespace/name.
	Tasks []string
	// Nodes by name. Nil: all.
	Nodes []string
	// Top limits the answer to this number of best nodes for each task, best first. 0: all nodes in the order of the question.
	Top uint32
	// ByPlugin adds each plugin's score, Explain a reason for each node that does not fit.
	ByPlugin, Explain bool
	// Jointly adds whether all tasks have room at the same time.
	Jointly bool
}

// ExplainQuestion asks why jobs wait.
type ExplainQuestion struct {
	// Jobs by uid, or namespace/name. Nil: all waiting jobs, grouped by cause.
	Jobs []string
	// Filter selects among all waiting jobs. Nil: all. Not together with Jobs.
	Filter *apportionv1.PendingFilter
}

// ForecastQuestion asks when a job starts, by chance.
type ForecastQuestion struct {
	// Job by uid, or namespace/name.
	Job string
	// Runs is how many times the cluster is run forward, at most 1000. 0: 100.
	Runs uint32
	// Seed determines what is drawn.
	Seed uint64
	// Past are finished jobs, from which runtimes are drawn. Nil: the answer has bounds and no odds.
	Past *apportionv1.PastJobs
	// Remembered names a snapshot whose past jobs the server knows from its ledger; Past is nil then.
	Remembered string
	// Arrivals lets jobs like the past ones arrive.
	Arrivals bool
	// Started says since when running jobs run, in Unix nanoseconds, by their index in the snapshot.
	Started map[uint32]int64
	// Horizon is how far runs look ahead, in whole seconds, at most 366 days. 0: 30 days.
	Horizon time.Duration
}

func (q *ForecastQuestion) step() *apportionv1.ForecastStep {
	horizon := uint32(math.MaxUint32)
	if seconds := q.Horizon / time.Second; seconds >= 0 && seconds < math.MaxUint32 {
		horizon = uint32(seconds)
	}
	step := &apportionv1.ForecastStep{
		Job: &apportionv1.Selector{Names: []string{q.Job}}, Runs: q.Runs, Seed: q.Seed, Past: q.Past, Arrivals: q.Arrivals,
		Remembered: q.Remembered, Horizon: horizon,
	}
	for _, job := range slices.Sorted(maps.Keys(q.Started)) {
		step.RunningJobs, step.StartedUnixNanos = append(step.RunningJobs, job), append(step.StartedUnixNanos, q.Started[job])
	}
	return step
}

// RemediesQuestion asks for the smallest changes that would make a job run.
type RemediesQuestion struct {
	// Job by uid, or namespace/name.
	Job string
	// Kinds of edits and Means to try. Both nil: all.
	Kinds []apportionv1.EditKind
	Means []apportionv1.RemedyMeans
}

func (q *RemediesQuestion) step() *apportionv1.RemediesStep {
	return &apportionv1.RemediesStep{Job: &apportionv1.Selector{Names: []string{q.Job}}, Kinds: q.Kinds, Means: q.Means}
}

// PlanQuestion asks where a job can be placed, and which tasks must be evicted for it.
type PlanQuestion struct {
	// Job by uid, or namespace/name. Empty if Tasks are given.
	Job string
	// Tasks of one job by uid, or namespace/name, all to be placed. Nil: those that the gang of the job needs.
	Tasks []string
	// Means selects how the plan may make room. Unspecified: by any means.
	Means apportionv1.PlanMeans
	// MaxVictims limits the number of victims. 0: no limit.
	MaxVictims uint32
}

func (q *PlanQuestion) step() *apportionv1.PlanStep {
	step := &apportionv1.PlanStep{Means: q.Means, MaxVictims: q.MaxVictims}
	if q.Job != "" {
		step.Job = &apportionv1.Selector{Names: []string{q.Job}}
	}
	if q.Tasks != nil {
		step.Tasks = &apportionv1.Selector{Names: q.Tasks}
	}
	return step
}

// Tier returns a tier of plugins with their default settings, by the names that Plugins returns.
type Tier []string

// Plugins returns the names of plugins, in no particular order: Volcano's name if Volcano has the plugin, with a suffix for some forms,
// such as capacity/hierarchical.
func Plugins() []string { return catalogue.Forms() }

// Policy returns a policy of the given tiers, combined as in Volcano.
func Policy(tiers ...Tier) (*apportionv1.Policy, error) {
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO}
	for _, names := range tiers {
		tier, err := catalogue.Tier(names)
		if err != nil {
			return nil, err
		}
		policy.Tiers = append(policy.Tiers, tier)
	}
	return policy, nil
}

// VolcanoDefault returns the configuration that is compiled into Volcano, without the plugins that decide about nodes (predicates,
// nodeorder): priority, gang and conformance; overcommit, drf and proportion.
func VolcanoDefault() *apportionv1.Policy {
	policy, _ := Preset("proportion")
	return policy
}

// Presets returns the valid names for Preset.
func Presets() []string {
	var names []string
	for name := range catalogue.Presets() {
		names = append(names, name)
	}
	return names
}

// Preset returns a policy by name, and whether it exists: Volcano's default configuration with the division of that name, such as
// proportion (the default itself) or capacity-hierarchical; fair, kueue; or volcano, the configuration that Volcano's installers ship.
// Every server has these as names of policies.
func Preset(name string) (*apportionv1.Policy, bool) { return catalogue.Preset(name) }
