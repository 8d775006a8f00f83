package compare

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/submission"
	"github.com/apportion/apportion/cmd/apportion/internal/variation"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/lookup"
)

// supposing contains the flags of `apportion whatif`.
type supposing struct {
	question.Asking
	file      string
	variation variation.Variation
	// half is another half-life of usage; 0: that of 7 days.
	half time.Duration
}

// NewWhatIf is `apportion whatif`.
func NewWhatIf(s cli.Streams) *cobra.Command {
	w := &supposing{Asking: question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}}
	command := &cobra.Command{
		Use:   "whatif [--job FILE] [--set KIND/NAME.FIELD=VALUE]...",
		Short: "Show what would happen if a job were submitted, or the cluster were different",
		Long: `Show what would happen if something were different: a queue's weight or limit, a job's priority,
more or fewer nodes, a finished job, a submitted job. All flags together define one change; the answer
shows the shares of queues, the waiting jobs and the possible evictions, before and after.

With --job alone: would the job enter its queue, may it be allocated, which tasks could be evicted for
it, and what would each queue then deserve. The file contains one of these kinds:

  Job of batch.volcano.sh    with the PodGroup that Volcano's job controller creates
  PodGroup with its Pods     as they are
  PyTorchJob                 as Kubeflow's training operator does with --gang-scheduler-name=volcano:
                             the queue is spec.runPolicy.schedulingPolicy.queue
  RayJob, RayCluster         as KubeRay does with --batch-scheduler=volcano: the queue is the label
                             volcano.sh/queue-name
  Job of batch, JobSet,      as Volcano's podgroup controller does for plain pods: the queue is the
  Deployment, ReplicaSet,    annotation scheduling.volcano.sh/queue-name of the pod template, the
  StatefulSet                minimum is 1 or the owner's scheduling.volcano.sh/group-min-member

or a job in short form:

  name: train
  namespace: ml
  queue: research
  minAvailable: 4
  minResources: {cpu: "32", memory: 256Gi, nvidia.com/gpu: "32"}
  groups:
  - {role: worker, replicas: 4, request: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "8"}}

Fields for --set:

` + editing.Help() + `
The value none removes an amount, a limit, a parent, a cohort or a downtime. RESOURCE@FLAVOR in place of
RESOURCE names one of several flavors of Kueue. The word role may be left out.

A name may be in quotation marks, such as queue/"a.weight=b".weight=5. Without them, the longest name
that exists is meant.

The exit code is 2 if the submitted job would have to wait.`,
		Example: `  apportion whatif --job train.yaml -f cluster.yaml
  apportion whatif --set queue/vision.weight=5 --set queue/vision.capability.gpu=64 -f cluster.yaml
  apportion whatif --half-life 24h --ledger usage.ledger --policy fair -f cluster.yaml
  apportion whatif --set node/n7.maintenance=2026-03-02T15:00:00Z/2026-03-02T17:00:00Z -f cluster.yaml --as-of 2026-03-02T14:00:00Z
  apportion whatif --add-nodes 8 --like node-3 --remove-node n7 --finish ml/train --job train.yaml -f cluster.yaml`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if w.file == "" && w.half == 0 && w.variation.Empty() {
				return errNothingToTry
			}
			return w.Repeat(command.Context(), w.suppose)
		},
	}
	w.Register(command)
	command.Flags().StringVar(&w.file, "job", "", "`FILE` of the job; - is standard input")
	registerVariation(&w.Asking, command, &w.variation)
	cli.DurationVar(command.Flags(), &w.half, "half-life", 0,
		"time after which the usage in --ledger counts half, instead of --ledger-half-life")
	command.Flags().BoolVar(&w.variation.Forget, "no-memory", false, "ignore usage, budgets and owners")
	command.MarkFlagsMutuallyExclusive("half-life", "no-memory")
	cli.Must(command, command.MarkFlagFilename("job", "yaml", "yml", "json"))
	return command
}

// suppose asks about a submitted job, a changed cluster, or both.
func (w *supposing) suppose(ctx context.Context) error {
	if w.file == "" {
		loaded, err := w.From.Load(ctx, w.Streams)
		if err == nil {
			err = w.remember(loaded)
		}
		if err != nil {
			return err
		}
		return w.About(ctx, loaded, func(ctx context.Context, q *question.Question) error { return vary(ctx, q, &w.variation, nil) })
	}
	loaded, submitted, err := w.submit(ctx)
	if err == nil {
		err = w.remember(loaded)
	}
	if err != nil {
		return err
	}
	return w.About(ctx, loaded, func(ctx context.Context, q *question.Question) error {
		if w.variation.Empty() {
			return submit(ctx, q, submitted)
		}
		return vary(ctx, q, &w.variation, submitted.Jobs)
	})
}

// remember takes the usage with another half-life into the change.
func (w *supposing) remember(loaded *question.Loaded) error {
	if w.half == 0 {
		return nil
	}
	var err error
	w.variation.Remembered, err = w.From.Refill(loaded, w.half)
	return err
}

// submit reads the cluster and the job.
func (w *supposing) submit(ctx context.Context) (*question.Loaded, *submission.Submission, error) {
	f := &w.From
	if f.Snapshot != "" {
		return nil, nil, errors.New("--job requires manifests: use -f instead of --snapshot")
	}
	sources, err := f.Sources(ctx, w.In)
	if err != nil {
		return nil, nil, err
	}
	job, err := question.ReadInput(w.file, w.In)
	if err != nil {
		return nil, nil, err
	}
	rules, err := f.Rules(sources)
	if err != nil {
		return nil, nil, err
	}
	question.TellOrigin(w.Err, rules)
	moment, given, err := f.Moment(rules.Message)
	if err != nil {
		return nil, nil, err
	}
	submitted, err := submission.Read(job.Name, job.Data, sources, f.Options(moment, given)...)
	if err != nil {
		return nil, nil, err
	}
	loaded := &question.Loaded{Lookup: submitted.Snapshot, Cluster: submitted.Cluster}
	loaded.Warnings = slices.Concat(submitted.Cluster.Warnings, rules.Warnings, submitted.Warnings)
	loaded.Snapshot, loaded.Policy, loaded.PolicyName = submitted.Snapshot.Snapshot, rules.Message, f.PolicyName
	return loaded, submitted, f.Remember(loaded, moment, given)
}

// submit asks what would happen to jobs if they were submitted now.
func submit(ctx context.Context, q *question.Question, s *submission.Submission) error {
	if err := q.Undivided(); err != nil {
		return err
	}
	larger, indices := q.Lookup, &apportionv1.Selector{}
	steps := []*apportionv1.Step{question.SharesStep()}
	for _, job := range s.Jobs {
		var index uint32
		larger, index = larger.With(job)
		indices.Indices = append(indices.Indices, index)
		steps = append(steps, event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{job}}))
	}
	end := cli.ShowWaiting(q.Err, "trying the job")
	simulation, err := q.Simulate(ctx, append(steps, question.SharesStep(), question.ExplainStep(indices))...)
	end()
	if err != nil {
		return err
	}
	answers := simulation.Answers
	explained := answers[len(answers)-1].GetExplain().GetJobs()
	response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: answers}
	err = q.Answer(simulation.Basis, response, func(p *render.Printer) {
		p.Snapshot = larger
		p.Submitted(s.Jobs, explained, answers[0].GetShares(), answers[len(answers)-2].GetShares())
	})
	waits := slices.ContainsFunc(explained, func(e *apportionv1.Explanation) bool { return !question.GoesOn(e) })
	return cmp.Or(err, cli.Verdict(!waits))
}

// registerVariation adds the flags that change the cluster.
func registerVariation(a *question.Asking, command *cobra.Command, v *variation.Variation) {
	v.Flags(command.Flags())
	a.Complete(command, "like", question.NodeNames)
	a.Complete(command, "remove-node", question.NodeNames)
	a.Complete(command, "cordon", question.NodeNames)
	a.Complete(command, "uncordon", question.NodeNames)
	a.Complete(command, "finish", question.JobNames)
	cli.Must(command, command.RegisterFlagCompletionFunc("set",
		func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.Names(editing.Completions, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}))
}

// trial is a cluster before and after a change: the events and edits of an input.
type trial struct {
	Basis  cli.Message `json:"basis"`
	Change cli.Message `json:"change"`
	Before trialSide   `json:"before"`
	After  trialSide   `json:"after"`
}

type trialSide struct {
	Shares  cli.Message `json:"shares"`
	Waiting cli.Message `json:"waiting"`
	// Held contains the first blocked jobs, with the tasks that could be evicted for them.
	Held cli.Message `json:"held"`
}

// mostHeld is the maximum number of jobs for which the evictable tasks are requested.
const mostHeld = 20

// vary shows the cluster before and after a change, to which submitted jobs belong.
func vary(ctx context.Context, q *question.Question, v *variation.Variation, jobs []*apportionv1.Job) error {
	if err := q.Undivided(); err != nil {
		return err
	}
	v.Now = time.Now().UnixNano()
	made, err := v.Of(q.Lookup, jobs)
	if err != nil {
		return err
	}
	basis, before, after, err := compared(ctx, q, made, jobs)
	if err != nil {
		return made.Flagged(err)
	}
	err = q.Answer(basis, trial{
		Basis: cli.Within(basis), Change: cli.Within(&apportionv1.Input{Events: made.Events, Edits: made.Edits}),
		Before: trialSide{cli.Within(before.Shares), cli.Within(before.Waiting), cli.Within(before.Held)},
		After:  trialSide{cli.Within(after.Shares), cli.Within(after.Waiting), cli.Within(after.Held)},
	}, func(p *render.Printer) {
		p.Line("%s", p.Paint(render.Strong, "what if:"))
		for _, line := range made.Lines {
			p.Line("  %s", line)
		}
		p.Difference(before, after)
	})
	waits := slices.ContainsFunc(after.Waiting.GetJobs(), func(e *apportionv1.Explanation) bool {
		return submitted(jobs, e.GetUid()) && !question.GoesOn(e)
	})
	return cmp.Or(err, cli.Verdict(!waits))
}

// compared asks about the cluster before and after a change.
func compared(
	ctx context.Context, q *question.Question, made *variation.Made, jobs []*apportionv1.Job,
) (basis *apportionv1.Basis, before, after render.Side, err error) {
	end := cli.ShowWaiting(q.Err, "trying the change")
	defer end()
	shares, waiting := question.SharesStep(), question.ExplainStep(nil)
	if q.Lookup.GetMemory() != nil {
		shares.GetShares().Explain = &apportionv1.Explain{} // The weights that follow from usage are part of the derivation.
	}
	inputs := [2]client.Input{q.Input, made.After(q.Input)}
	sides := [2]*render.Side{&before, &after}
	var sessions [2]*client.Session
	defer func() {
		for _, session := range sessions {
			if session != nil {
				session.Close() //nolint:errcheck // Every answer has come.
			}
		}
	}()
	err = both(func(i int) (err error) {
		if sessions[i], err = q.Decider.OpenSession(ctx, inputs[i]); err != nil {
			return err
		}
		answers, err := question.AnswersOf(ctx, sessions[i], shares, waiting)
		if err != nil {
			return err
		}
		sides[i].Shares, sides[i].Waiting = answers[0].GetShares(), answers[1].GetExplain()
		return nil
	})
	if err != nil {
		return nil, before, after, err
	}
	asked := [2][]string{held(before.Waiting, after.Waiting, jobs), held(after.Waiting, before.Waiting, jobs)}
	err = both(func(i int) error {
		answers, err := question.AnswersOf(ctx, sessions[i], question.ExplainStep(&apportionv1.Selector{Names: asked[i]}))
		if err == nil {
			sides[i].Held = answers[0].GetExplain()
		}
		return err
	})
	basis = proto.CloneOf(sessions[0].Basis())
	basis.Dimensions = sessions[1].Basis().GetDimensions() // Those before it, and then those that only the change has.
	return basis, before, after, err
}

// submitted reports whether an answer that names a job means one of these.
func submitted(jobs []*apportionv1.Job, uid string) bool {
	return slices.ContainsFunc(jobs, func(job *apportionv1.Job) bool {
		return uid == job.GetUid() || job.GetUid() == "" && uid == lookup.JobName(job)
	})
}

// held returns the uids of jobs that wait on one side and are blocked on either side, submitted jobs first.
func held(side, other *apportionv1.ExplainAnswer, jobs []*apportionv1.Job) []string {
	blocked := map[string]bool{}
	for _, e := range slices.Concat(side.GetJobs(), other.GetJobs()) {
		blocked[e.GetUid()] = blocked[e.GetUid()] || !question.GoesOn(e)
	}
	// Only jobs that exist on this side are requested.
	uids := []string{}
	for _, e := range side.GetJobs() {
		if blocked[e.GetUid()] {
			uids = append(uids, e.GetUid())
		}
	}
	slices.SortStableFunc(uids, func(a, b string) int { return last(!submitted(jobs, a)) - last(!submitted(jobs, b)) })
	return uids[:min(len(uids), mostHeld)]
}

func last(is bool) int {
	if is {
		return 1
	}
	return 0
}

var errNothingToTry = errors.New("no change is given: use --job FILE, --set, --add-nodes, --remove-node, --cordon, --uncordon, " +
	"--finish, --half-life or --no-memory")
