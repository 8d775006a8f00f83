// Package rehearsal runs a history of jobs on a cluster under a policy, in simulated time, and measures how it went.
//
// It is a scheduler that makes no decisions. Which jobs enter, which queue and job come next, whether a queue may use more, which node is
// best, and which tasks are evicted for which job is decided by a cycle of package engine/cycle; this package keeps time and books the
// decisions. The rules of the simulation are:
//
//   - The work of a job is the time that its tasks need if all of them run. It works while at least its minimum runs, at the rate of its
//     running tasks, and ends when all its work is done.
//   - An evicted task loses the work that it has done since it started, or since its last checkpoint, and waits again. If fewer than the
//     minimum of its job run then, the whole job stops: its other tasks leave their nodes and lose their work in the same way.
//   - Decisions are taken when a job has arrived or ended, but at most once in Options.Every. A round in which tasks were evicted is
//     followed by another one.
//
// Equal inputs have equal results, to the last bit.
package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/timeline"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
)

// Variant is one of the ways to run a cluster that are compared.
type Variant struct {
	Name string
	// Snapshot has the nodes and the queues. Its jobs are not looked at: the trace brings the jobs.
	Snapshot *apportionv1.Snapshot
	Policy   *apportionv1.Policy
	// Actions are carried out in this order in each round of decisions. nil: all of them.
	Actions cycle.Actions
	// Memory is nil for none. The policy `fair` heeds it.
	Memory *Memory
	// LocalHalfLife is the time after which the usage of local queues counts half under a policy kueue with usage sharing; 0: it does not
	// count.
	LocalHalfLife time.Duration
	// Seed, if it is not 0, puts the days of the trace into another order: trace.Trace.Dealt.
	Seed uint
}

// Options are common to all variants.
type Options struct {
	// Every is the least time between two rounds of decisions, in seconds.
	Every int64
	// Checkpoint is the interval at which tasks save their work, in seconds; 0: never.
	Checkpoint int64
	// Resource is the resource in which fairness, classes and losses are measured.
	Resource string
	// Entitlement is the policy whose deserved shares define the entitlement of queues.
	Entitlement *apportionv1.Policy
	// Progress, if not nil, is called periodically with the part of the trace that has passed, from 0 to 1.
	Progress func(part float64)
	// Observe, if not nil, is called after each round of decisions. It must leave the session as it is.
	Observe func(*Moment)

	// plain switches off what saves time: sessions that follow changes, and answers that are remembered.
	plain bool
	// timed lets sessions state when jobs end under every policy.
	timed bool
}

// Moment is the state of a run after a round of decisions.
type Moment struct {
	Session *engine.Session
	// Now is in seconds of the trace.
	Now int64
	// Jobs have arrived and are not done, in order of arrival.
	Jobs []Seen
}

// Seen is a job at a moment.
type Seen struct {
	*trace.Job

	ID model.JobID
	// Since is when it began to work without a break, Began when it first did; Never if it does not work, or never did.
	Since, Began int64
}

// Never is a time that does not come.
const Never = never

// run is a variant under way.
type run struct {
	options *Options
	variant *Variant
	stop    func() bool
	// base is a model of the cluster without jobs.
	base    *model.Model
	session *engine.Session
	// memory is nil for none; renewed says that the base states the usage of a new epoch, which the session does not know about yet.
	memory  *memory
	renewed bool
	// turns says that gangs may hold reservations, timed that answers depend on when jobs end: then sessions state that, exactly.
	turns, timed bool
	// kueue is nil but under the policy kueue, which decides without the session.
	kueue *admitting
	// cycle takes the decisions of a round.
	cycle       cycle.Cycle
	tree        tree
	policy      engine.Policy
	entitlement engine.Policy
	// width is the number of dimensions, measured the dimension that is measured.
	width, measured int

	now  int64
	jobs []*job
	// coming counts the jobs that have not arrived yet.
	coming int
	// live are the jobs that have arrived and are not done, in order of arrival.
	live []*job
	// byID finds a live job by its number in the session.
	byID map[model.JobID]*job
	ends ends
	// arrived, left and rephased are jobs that the session does not know about yet.
	arrived, left, rephased []*job
	// eventful says that a job has arrived or ended since the latest round, which was at latest, and again that another round must follow.
	eventful, again bool
	latest          int64
	meter           *meter
	rounds          int
	// watch, if not nil, is called after each round.
	watch func()
}

// Run simulates the jobs of a trace with the policy and queues of a variant. It returns an error if the snapshot, the policy or the trace
// is invalid, or if the context ends.
func Run(ctx context.Context, v *Variant, t *trace.Trace, o *Options) (*Result, error) {
	r, err := start(ctx, v, t, o)
	if err != nil {
		return nil, err
	}
	return r.toEnd(ctx)
}

// start prepares a run.
func start(ctx context.Context, v *Variant, t *trace.Trace, o *Options) (*run, error) {
	r := &run{options: o, variant: v, byID: map[model.JobID]*job{}, latest: never, stop: func() bool { return ctx.Err() != nil }}
	if err := r.open(t.Dealt(v.Seed)); err != nil {
		return nil, err
	}
	return r, nil
}

// toEnd goes from event to event until none is left.
func (r *run) toEnd(ctx context.Context) (*Result, error) {
	err := timeline.Simulate(r, r.jobs)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r.result(), nil
}

// open compiles the cluster and opens a session on it.
func (r *run) open(t *trace.Trace) error {
	snapshot := emptied(r.variant.Snapshot, t)
	r.tree = treeOf(snapshot)
	var err error
	r.turns, r.timed = catalogue.HasTurns(r.variant.Policy), r.options.timed || catalogue.HasEnds(r.variant.Policy)
	if r.variant.Memory != nil {
		if r.memory, err = r.variant.Memory.remember(snapshot, t, r.turns); err != nil {
			return err
		}
	}
	if r.base, err = decode.Compile(snapshot); err != nil {
		return err
	}
	if r.policy, err = decode.Policy(r.variant.Policy); err != nil {
		return err
	}
	if r.entitlement, err = decode.Policy(r.options.Entitlement); err != nil {
		return err
	}
	if r.cycle = r.variant.Actions; r.variant.Actions == nil {
		r.cycle = cycle.All()
	}
	if err := r.admitting(); err != nil {
		return err
	}
	r.width = r.base.Dims.Len()
	var ok bool
	if r.measured, ok = r.base.Dims.Index(r.options.Resource); !ok {
		return fmt.Errorf("the cluster has no %s, and no job requests it", r.options.Resource)
	}
	if err := r.admitTrace(t, snapshot.GetDimensions()); err != nil {
		return err
	}
	if r.session, err = engine.Open(r.base, r.policy, r.stop); err != nil {
		return err
	}
	r.meter = newMeter(r, t)
	return nil
}

// emptied is a snapshot without jobs that names the resources that a trace asks for.
func emptied(s *apportionv1.Snapshot, t *trace.Trace) *apportionv1.Snapshot {
	empty := &apportionv1.Snapshot{
		AsOf: s.GetAsOf(), Cluster: s.GetCluster(), Dimensions: slices.Clone(s.GetDimensions()), Nodes: s.GetNodes(), Queues: s.GetQueues(),
		Total: s.GetTotal(), NodeSets: s.GetNodeSets(), Pods: s.GetPods(),
	}
	known := map[string]bool{}
	for _, name := range empty.GetDimensions() {
		known[name] = true
	}
	for _, name := range t.Resources() {
		if !known[name] {
			empty.Dimensions = append(empty.Dimensions, name)
		}
	}
	return empty
}

// QueueError names the queues of a trace that a cluster does not have.
type QueueError struct {
	Missing, Known []string
}

// Error names the first few.
func (e *QueueError) Error() string {
	const most = 10
	few := func(names []string) string {
		if len(names) > most {
			return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
		}
		return strings.Join(names, ", ")
	}
	known := "it has none"
	if len(e.Known) > 0 {
		known = "there are " + few(e.Known)
	}
	return fmt.Sprintf("the trace has jobs of queues that the cluster does not have: %s; %s", few(e.Missing), known)
}

// admitTrace makes jobs of the trace.
func (r *run) admitTrace(t *trace.Trace, dimensions []string) error {
	missing := &QueueError{}
	r.coming = len(t.Jobs)
	for _, name := range t.Queues() {
		if _, ok := r.base.Queue(name); !ok {
			missing.Missing = append(missing.Missing, name)
		}
	}
	if len(missing.Missing) > 0 {
		for _, q := range r.base.QueueOrder {
			missing.Known = append(missing.Known, r.base.Queues[q].Name)
		}
		return missing
	}
	position := make(map[string]uint32, len(dimensions))
	for i, name := range dimensions {
		position[name] = uint32(i)
	}
	kinds := map[string]int32{}
	all := make([]job, len(t.Jobs))
	r.jobs = make([]*job, len(t.Jobs))
	for i := range t.Jobs {
		j := &all[i]
		j.Job, j.id, j.phase = &t.Jobs[i], model.None, model.PhasePending
		j.queue, _ = r.base.Queue(j.Queue)
		j.shape(r, position)
		signature := j.signature(r.timed)
		kind, known := kinds[signature]
		if !known {
			kind = int32(len(kinds))
			kinds[signature] = kind
		}
		j.kind = kind
		r.jobs[i] = j
	}
	return nil
}

// Arrival returns when a job arrives.
func (*run) Arrival(j *job) int64 { return j.Arrival }

// Next returns when the next job ends, the next round is due, or an epoch begins that may let a waiting job start.
func (r *run) Next() int64 {
	next := min(r.ends.next(), r.due())
	if r.memory == nil || len(r.live) == 0 {
		return next
	}
	// Where nothing runs and nothing comes, only a new period of a budget changes anything.
	turn := r.memory.next()
	if turn <= r.now || next == never && r.coming == 0 && (r.memory.last == never || r.memory.last < r.now) {
		return next
	}
	return min(next, turn)
}

// due returns the time of the next round of decisions, never if there is no reason for one.
func (r *run) due() int64 {
	switch {
	case !r.eventful && !r.again:
		return never
	case r.latest == never:
		return r.now
	}
	return max(r.now, r.latest+r.options.Every)
}

// Pass lets time go on to a moment, at which jobs that are done leave.
func (r *run) Pass(to int64) {
	r.meter.pass(to)
	r.now = to
	for j := r.ends.pop(to); j != nil; j = r.ends.pop(to) {
		j.finish(to)
		r.meter.finish(j)
		r.left = append(r.left, j)
		r.eventful = true
		r.kueue.freed(j, r.nanoseconds(to))
	}
	// The round after it states what was used.
	r.eventful = r.eventful || r.memory != nil && len(r.live) > 0 && to >= r.memory.next()
}

// Arrive adds a job.
func (r *run) Arrive(j *job) {
	j.arrive(r.now)
	r.coming--
	r.meter.arrive(j)
	r.arrived = append(r.arrived, j)
	r.live = append(r.live, j)
	r.eventful = true
}

// Decide holds a round if one is due.
func (r *run) Decide() error {
	if r.stop() {
		return policy.ErrStopped
	}
	if r.due() > r.now {
		return nil
	}
	if err := r.round(); err != nil {
		return err
	}
	if r.watch != nil {
		r.watch()
	}
	if r.options.Observe != nil {
		r.options.Observe(r.moment())
	}
	r.progress()
	return nil
}

// moment is the present state.
func (r *run) moment() *Moment {
	m := &Moment{Session: r.session, Now: r.now}
	for _, j := range r.live {
		since := never
		for _, start := range j.started {
			if j.working && start != idle {
				since = min(since, start)
			}
		}
		m.Jobs = append(m.Jobs, Seen{j.Job, j.id, since, j.began})
	}
	return m
}

func (r *run) progress() {
	if r.options.Progress == nil || len(r.jobs) == 0 {
		return
	}
	const often = 64
	if r.rounds%often == 0 {
		r.options.Progress(float64(r.meter.finished) / float64(len(r.jobs)))
	}
}
