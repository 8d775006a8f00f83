// Package rehearse has the command of that name: what policies, queues, half-lives and seeds combine to, and runs that several processes
// share.
package rehearse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/report"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// rehearsing are the flags of `apportion rehearse`.
type rehearsing struct {
	cli.Answering
	input             question.InputFlags
	history           question.HistoryFlags
	memory            memoryFlags
	sweep             sweepFlags
	seeds             []uint
	policies, queues  []string
	actions           []string
	every, checkpoint time.Duration
	resource          string
	entitledBy        string
	report, plot      string
}

// New is `apportion rehearse`.
func New(s cli.Streams) *cobra.Command {
	r := &rehearsing{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:   "rehearse --trace FILE",
		Short: "Run a history of jobs under several policies or queues, and compare waits, use and fairness",
		Long: `Run the jobs of a trace on a cluster in simulated time, once under each policy and each file of queues, and
compare how long jobs wait, how much is used, what is evicted and lost, and whether queues get what they
are entitled to. The cluster gives the nodes and the queues; its jobs are left out.

A trace is a CSV with a line for each job, a file in Standard Workload Format (.swf) as the Parallel Workloads
Archive publishes them, or a decision log (.jsonl) of this service; any of them may be compressed by gzip.
With --half-life the policy fair remembers what queues used in the course of the rehearsal: several half-lives,
and none, are compared. With --seed the days of the trace come in other orders. Every combination is run;
with --shard several processes share the runs, and merge prints the report.
docs/rehearse.md describes the formats, the rules of the simulation and the JSON.`,
		Example: `  apportion rehearse -f cluster.yaml --trace week.csv --policy proportion --policy fair --report report.html
  apportion rehearse -f cluster.yaml --trace week.csv --queues queues.yaml --queues new-queues.yaml
  apportion rehearse -f cluster.yaml --trace KTH-SP2.swf.gz --queue-of group --map 1=physics --map '*=others' --policy fair
  apportion rehearse -f cluster.yaml --trace week.csv --repeat 26 --policy fair --half-life none --half-life 7d --plot shares.svg
  apportion rehearse -f cluster.yaml --trace week.csv --policy proportion --policy fair --seed 1,2,3,4 --results results --shard 3/8`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			return r.run(command.Context())
		},
	}
	flags := command.Flags()
	r.input.RegisterCluster(command)
	r.history.Register(command, "trace")
	r.history.RegisterRepeat(command)
	r.memory.register(command)
	flags.StringArrayVar(&r.policies, "policy", nil, "rehearse under this `POLICY`: "+question.PolicyForms()+
		" (repeatable); default: "+question.DefaultPolicy)
	flags.StringArrayVar(&r.queues, "queues", nil, "`FILE` of queues that take the place of the cluster's (repeatable)")
	flags.StringSliceVar(&r.actions, "actions", nil,
		"`ACTIONS` of each round of decisions, among enqueue, allocate, preempt and reclaim; default: those of the "+
			"volcano-scheduler.conf, else all")
	cli.DurationVar(flags, &r.every, "every", 5*time.Minute, "minimum `TIME` between two rounds of decisions")
	cli.DurationVar(flags, &r.checkpoint, "checkpoint", 0,
		"`TIME` between two checkpoints of a task, from which it goes on after an eviction; 0: none")
	flags.StringVar(&r.resource, "resource", "",
		"`RESOURCE` that entitlement, fairness and sizes are measured in; default: the GPUs if the cluster has any, else cpu")
	flags.StringVar(&r.entitledBy, "entitled-by", "",
		"`POLICY` whose deserved shares queues are entitled to; default: capacity if queues say what they deserve, else proportion")
	flags.UintSliceVar(&r.seeds, "seed", nil,
		"run the days of the trace in another order, which this `NUMBER` determines; 0: as they were (repeatable); default: 0")
	r.sweep.register(command)
	r.registerReport(command)
	for _, flag := range []string{"policy", "entitled-by"} {
		cli.MustComplete(command, flag, client.Presets()...)
	}
	var actions []string
	for _, action := range cycle.All() {
		actions = append(actions, string(action))
	}
	cli.MustComplete(command, "actions", actions...)
	command.AddCommand(newRehearseMerge(s))
	return command
}

// registerReport adds the flags that say how the report is printed.
func (r *rehearsing) registerReport(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.report, "report", "", "also write a page of HTML with plots into this `FILE`")
	flags.StringVar(&r.plot, "plot", "", "also write a drawing (SVG) of the queues' shares over time into this `FILE`")
	r.Register(command)
}

func (r *rehearsing) check() error {
	if r.every < time.Second || r.every%time.Second != 0 {
		return fmt.Errorf("--every: %s is not a whole number of seconds, 1s or more", duration.Format(r.every))
	}
	if r.checkpoint < 0 || r.checkpoint%time.Second != 0 {
		return fmt.Errorf("--checkpoint: %s is not a whole number of seconds", duration.Format(r.checkpoint))
	}
	return cmp.Or(cli.CheckAll("actions", "action", r.actions, cycle.All()), r.history.Check(), r.memory.check(), r.sweep.check(),
		r.checkSweep())
}

func (r *rehearsing) run(ctx context.Context) error {
	variants, err := r.variants(ctx)
	if err != nil {
		return err
	}
	history, err := r.history.Read(r.In)
	if err != nil {
		return err
	}
	history.Distinct()
	if len(history.Jobs) == 0 {
		return errors.New("--trace: the trace contains no usable job" + strings.Join(append([]string{""}, history.Notes...), "\n"))
	}
	history.Notes = append(history.Notes, uncovered(variants, history)...)
	if err := r.memory.start(variants, history); err != nil {
		return err
	}
	warnOfNarrows(r.Err, variants, history)
	options, entitledBy, err := r.options(variants[0].Snapshot)
	if err != nil {
		return err
	}
	about := &report.Report{
		Trace: traceOf(history), Resource: options.Resource, Every: options.Every, Checkpoint: options.Checkpoint, EntitledBy: entitledBy,
	}
	if r.sweep.results != "" {
		return r.takeSweep(ctx, about, variants, history, options)
	}
	about.Runs = make([]*rehearsal.Result, len(variants))
	err = r.runAll(ctx, variants, history, options, func(i int, found *rehearsal.Result) error {
		about.Runs[i] = found
		return nil
	})
	if err != nil {
		return err
	}
	return r.writeReport(about)
}

// uncovered notes which resources need no quota because no queue of Kueue has any.
func uncovered(variants []*rehearsal.Variant, t *trace.Trace) []string {
	i := slices.IndexFunc(variants, func(v *rehearsal.Variant) bool { return policy.ByKueue(v.Policy) })
	if i < 0 {
		return nil
	}
	covered := rehearsal.Covered(variants[i].Snapshot)
	names := slices.DeleteFunc(t.Resources(), func(name string) bool { return covered[name] })
	if len(names) == 0 {
		return nil
	}
	return []string{"under the policy kueue jobs need no quota of " + strings.Join(names, ", ") + ": no queue and no cohort has any"}
}

func traceOf(t *trace.Trace) report.Trace {
	about := report.Trace{
		Jobs: len(t.Jobs), First: t.Jobs[0].Arrival, Last: t.Jobs[len(t.Jobs)-1].Arrival, Notes: append([]string{}, t.Notes...),
	}
	if !t.Start.IsZero() {
		about.Start = &t.Start
	}
	return about
}

// variants returns the combinations of queues, policies, half-lives and seeds.
func (r *rehearsing) variants(ctx context.Context) ([]*rehearsal.Variant, error) {
	policies, queues := r.policies, r.queues
	if len(policies) == 0 {
		policies = []string{""}
	}
	if len(queues) == 0 {
		queues = []string{""}
	}
	var list []*rehearsal.Variant
	var said []*apportionv1.Warning
	for _, file := range queues {
		for _, policy := range policies {
			flags := r.input
			if policy != "" {
				flags = r.input.By(policy)
			}
			flags.Joined = true
			loaded, err := withQueues(ctx, r.Streams, &flags, file)
			if err != nil {
				return nil, err
			}
			render.Warnings(r.Err, question.Unprinted(loaded.Warnings, said))
			said = append(said, loaded.Warnings...)
			actions := r.actionsOf(loaded.Policy)
			memories, err := r.memory.choices(loaded.Snapshot, loaded.Policy)
			if err != nil {
				return nil, err
			}
			for _, m := range memories {
				v := rehearsal.Variant{
					Name: variantName(policy, file, m.name, policies, queues, r.memory.halfLives), Snapshot: loaded.Snapshot,
					Policy: loaded.Policy, Actions: actions, Memory: m.memory, LocalHalfLife: m.local,
				}
				list = append(list, seeded(&v, r.seeds)...)
			}
		}
	}
	if err := r.memory.requireHeeded(list); err != nil {
		return nil, err
	}
	for i, v := range list {
		for _, o := range list[:i] {
			if v.Name == o.Name {
				return nil, fmt.Errorf("%s is named twice", v.Name)
			}
		}
	}
	return list, nil
}

// variantName returns the parts of a variant's name that differ between variants.
func variantName(policy, queues, memory string, policies, files, halfLives []string) string {
	if policy == "" {
		policy = "proportion"
	}
	policy, queues = brief(policy, policies), brief(queues, files)
	var parts []string
	for _, part := range []struct {
		name    string
		differs bool
	}{{policy, len(policies) > 1}, {queues, len(files) > 1}, {memory, len(halfLives) > 1}} {
		if part.differs && part.name != "" {
			parts = append(parts, part.name)
		}
	}
	if len(parts) == 0 {
		return policy
	}
	return strings.Join(parts, ", ")
}

// brief returns the name of a file without its directory, unless another file of the list has the same name.
func brief(name string, list []string) string {
	base := filepath.Base(name)
	for _, other := range list {
		if other != name && filepath.Base(other) == base {
			return name
		}
	}
	return base
}

// withQueues reads the cluster with the queues of a file instead of its own.
func withQueues(ctx context.Context, s cli.Streams, f *question.InputFlags, file string) (*question.Loaded, error) {
	switch {
	case file == "":
		return f.Load(ctx, s)
	case f.Snapshot != "":
		return nil, errors.New("--queues replaces the queues of manifests, and cannot be used with --snapshot")
	}
	return f.Instead(ctx, s, file, false)
}

// actionsOf returns the actions to simulate: those of the flag, which then are the policy's, or those of the policy that have a part in the
// simulation; nil for all of them. Where allocate lets jobs in, it does so before it places them.
func (r *rehearsing) actionsOf(rules *apportionv1.Policy) []cycle.Action {
	own := rules.GetVolcano()
	if own != nil && len(r.actions) > 0 {
		own.Actions = r.actions
	}
	names := own.GetActions()
	if len(r.actions) > 0 {
		names = r.actions
	}
	if len(names) == 0 {
		return nil
	}
	actions := []cycle.Action{}
	for _, name := range names {
		action := cycle.Action(name)
		if own != nil && action == cycle.Allocate && !slices.Contains(names, string(cycle.Enqueue)) {
			actions = append(actions, cycle.Enqueue)
		}
		if slices.Contains(cycle.All(), action) {
			actions = append(actions, action)
		}
	}
	return actions
}

// options returns the options of all variants, and the name of the policy that determines entitlements.
func (r *rehearsing) options(snapshot *apportionv1.Snapshot) (*rehearsal.Options, string, error) {
	o := &rehearsal.Options{
		Every: int64(r.every / time.Second), Checkpoint: int64(r.checkpoint / time.Second),
		Resource: rehearsal.ResourceOf(snapshot, r.resource),
	}
	name := r.entitledBy
	if name == "" {
		name = rehearsal.EntitledBy(snapshot)
	}
	flags := (&question.InputFlags{}).By(name)
	rules, err := flags.Rules(nil)
	if err != nil {
		return nil, "", fmt.Errorf("--entitled-by: %w", err)
	}
	o.Entitlement = rules.Message
	return o, name, nil
}

// warnOfNarrows names the limits of queues under which gangs run one at a time and have little time to spare.
func warnOfNarrows(out io.Writer, variants []*rehearsal.Variant, history *trace.Trace) {
	var warnings []*apportionv1.Warning
	for _, v := range variants {
		for _, n := range rehearsal.Narrows(v.Snapshot, history) {
			message := text.Sentence(fmt.Sprintf("the limit of queue %s, %s %s, lets one gang of up to %s run at a time, and %d such "+
				"gangs need %.0f %% of the time: they wait long under every policy", n.Queue, text.Figure(n.Resource, n.Limit), n.Resource,
				text.Figure(n.Resource, n.Most), n.Jobs, 100*n.Load))
			said := slices.ContainsFunc(warnings, func(w *apportionv1.Warning) bool { return w.GetMessage() == message })
			if !said {
				warnings = append(warnings, &apportionv1.Warning{Message: message})
			}
		}
	}
	render.Warnings(out, warnings)
}

func (r *rehearsing) writeReport(found *report.Report) error {
	for _, note := range found.Trace.Notes {
		fmt.Fprintln(r.Err, "note: "+visible.Text(note))
	}
	if r.report != "" {
		if err := writeFile(r.report, found.WriteHTML); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if r.plot != "" {
		if err := writeFile(r.plot, found.WriteShares); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	return r.Write(found, found.Print)
}

// writeFile writes a file that all users may read.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
