// Package compare has the commands that say what another policy, other queues or a change of the cluster would do: diff and whatif.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// differing contains the flags of `apportion diff`.
type differing struct {
	question.Asking
	failOn  []string
	noAudit bool
}

// NewDiff is `apportion diff`.
func NewDiff(s cli.Streams) *cobra.Command {
	d := &differing{Asking: question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}}
	command := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what another policy, other queues or another dump change for queues and jobs",
		Long: `Show what differs between A and B: what queues deserve, their guarantees and limits, their order, which jobs
are admitted and allocated, and which tasks may be evicted. A and B are

  two policies for the cluster of -f: a preset, a volcano-scheduler.conf, or a file written by convert;
  two files of queues, which replace the queues of the cluster of -f;
  two dumps of a cluster.

Of two policies, also list what is unfair about each: the properties of docs/fair.md that its answers
violate, with the numbers; with -o markdown or --no-audit, not.

The exit code is 2 if something differs; with --fail-on only if one of these effects occurs:

  ` + cli.InLines(comparison.Kinds),
		Example: `  apportion diff proportion capacity -f cluster.yaml
  apportion diff old.conf new.conf -f cluster.yaml -o json
  apportion diff old/queues.yaml new/queues.yaml -f cluster.yaml -o markdown --fail-on less-deserved,more-evictions
  apportion diff monday.yaml tuesday.yaml`,
		Args: func(command *cobra.Command, names []string) error {
			err := cli.Arguments(2, 2, "two policies or two files")(command, names)
			if err != nil && len(d.From.Files)+len(names) == 2 {
				return fmt.Errorf("%w; two dumps are named without -f", err)
			}
			return err
		},
		RunE: func(command *cobra.Command, names []string) error {
			if err := cli.CheckAll("fail-on", "effect", d.failOn, comparison.Kinds); err != nil {
				return err
			}
			return d.Repeat(command.Context(), func(ctx context.Context) error { return d.diff(ctx, names[0], names[1]) })
		},
	}
	d.Register(command, cli.FormatMarkdown)
	command.Flags().StringSliceVar(&d.failOn, "fail-on", nil, "exit with code 2 only for these `EFFECTS`")
	command.Flags().BoolVar(&d.noAudit, "no-audit", false, "do not look for what is unfair about two policies")
	kinds := make([]string, len(comparison.Kinds))
	for i, kind := range comparison.Kinds {
		kinds[i] = string(kind)
	}
	cli.MustComplete(command, "fail-on", kinds...)
	return command
}

// differences is the result of diff, in its JSON form.
type differences struct {
	A       string              `json:"a"`
	B       string              `json:"b"`
	Effects []comparison.Effect `json:"effects"`
	Omitted int                 `json:"omittedJobs,omitempty"`
	// Was and Is are the shares by two policies; WasAudit and IsAudit are the violations of fairness by each.
	Was      cli.Message   `json:"was,omitzero"`
	Is       cli.Message   `json:"is,omitzero"`
	WasAudit *audit.Report `json:"wasAudit,omitempty"`
	IsAudit  *audit.Report `json:"isAudit,omitempty"`
	// between says that one of the policies is kueue and the other is not.
	between bool
}

// side is A or B with its outcome.
type side struct {
	*question.Question

	// between says that one side decides by kueue and the other does not: then jobs are compared, each judged alone.
	between bool
	basis   *apportionv1.Basis
	shares  *apportionv1.SharesAnswer
	plan    *comparison.Plan
	outcome *comparison.Outcome
	// left are the jobs about whose evictions too much would have to be asked, omitted counts plans that were not asked for.
	left    []string
	omitted int
}

func (d *differing) diff(ctx context.Context, a, b string) error {
	policies := policy.Is(a)
	if policies != policy.Is(b) {
		if !policies {
			a, b = b, a
		}
		if err := policy.Missing(b); err != nil {
			return err
		}
		return fmt.Errorf("%s is a policy and %s is not: name two policies, or two files of a cluster", a, b)
	}
	read := d.readFiles
	if policies {
		read = d.readPolicies
	}
	inputs, err := read(ctx, a, b)
	if err != nil {
		return err
	}
	decider, ctx, done, err := d.Server.Decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	sides, found, err := d.compare(ctx, decider, inputs, policies, a, b)
	if err != nil {
		return err
	}
	return d.show(sides[0], sides[1], found)
}

// compare finds the differences, and shows meanwhile that it works.
func (d *differing) compare(
	ctx context.Context, decider *client.Client, inputs []*question.Loaded, policies bool, a, b string,
) (sides [2]*side, found *differences, err error) {
	end, bounded := cli.ShowWaiting(d.Err, "comparing"), cli.Frugal(len(inputs[0].Lookup.Tasks))
	defer end()
	defer bounded()
	for i, loaded := range inputs {
		if err := d.CheckResources(loaded.Lookup); err != nil {
			return sides, nil, err
		}
		sides[i] = &side{
			Question: &question.Question{Asking: &d.Asking, Loaded: loaded, Decider: decider},
			between:  policy.ByKueue(inputs[0].Policy) != policy.ByKueue(inputs[1].Policy),
		}
	}
	if err := d.Server.CompileOnce(ctx, decider, inputs[0]); err != nil {
		return sides, nil, err
	}
	if inputs[1].Upload = inputs[0].Upload; inputs[1].Snapshot != inputs[0].Snapshot {
		err = d.Server.CompileOnce(ctx, decider, inputs[1])
	}
	if err != nil {
		return sides, nil, err
	}
	omitted, err := decideBoth(ctx, sides, a, b)
	if err != nil {
		return sides, nil, err
	}
	was, is := sides[0], sides[1]
	if err := was.Undivided(); err != nil && is.Undivided() != nil {
		return sides, nil, err
	}
	found = &differences{A: a, B: b, Effects: comparison.Effects(was.outcome, is.outcome, render.Shown(d.Resources)), Omitted: omitted}
	if policies {
		found.Was, found.Is, found.between = cli.Within(was.shares), cli.Within(is.shares), was.between
	}
	if policies && !sides[0].between && !d.noAudit && d.Format != cli.FormatMarkdown {
		reports := []**audit.Report{&found.WasAudit, &found.IsAudit}
		err = both(func(i int) (err error) {
			*reports[i], err = audit.Find(ctx, decider, sides[i].Input, audit.Limits{})
			return err
		})
	}
	return sides, found, err
}

// decideBoth has both sides decide, about the evictions for the same jobs. It returns for how many jobs they were not asked about.
func decideBoth(ctx context.Context, sides [2]*side, names ...string) (omitted int, err error) {
	each := func(do func(*side) error) error {
		return both(func(i int) error {
			if err := do(sides[i]); err != nil {
				return fmt.Errorf("%s: %w", names[i], sides[i].Named(err))
			}
			return nil
		})
	}
	if err := each(func(s *side) error { return s.decide(ctx) }); err != nil {
		return 0, err
	}
	left := map[string]bool{}
	for _, job := range slices.Concat(sides[0].left, sides[1].left) {
		left[job] = true
	}
	err = each(func(s *side) error {
		if len(s.left) == len(left) {
			return nil
		}
		return s.evictions(ctx, left)
	})
	return max(len(left), sides[0].omitted, sides[1].omitted), err
}

// both does the same for either side at the same time, and returns the error of the first side that has one.
func both(do func(side int) error) error {
	second := make(chan error)
	go func() { second <- do(1) }()
	first := do(0)
	return cmp.Or(first, <-second)
}

// readPolicies reads the cluster once, so that both policies decide about the same state.
func (d *differing) readPolicies(ctx context.Context, names ...string) ([]*question.Loaded, error) {
	if d.From.Policy+d.From.PolicyName != "" {
		return nil, errors.New("the arguments name the policies: --policy and --policy-name are not allowed")
	}
	if !d.From.Given() && !d.From.Live.On {
		return nil, fmt.Errorf("%s and %s are policies: name the cluster to compare them on with -f FILE, --snapshot, --snapshot-name "+
			"or --cluster", names[0], names[1])
	}
	first, second := d.From.By(names[0]), d.From.By(names[1])
	own, err := first.Rules(nil)
	if err != nil {
		return nil, err
	}
	rules, err := second.Rules(nil)
	if err != nil {
		return nil, err
	}
	first.Joined = policy.ByKueue(own.Message) != policy.ByKueue(rules.Message)
	if _, given, err := second.Moment(rules.Message); err != nil {
		return nil, err
	} else if given && first.AsOf == "" {
		first.AsOf = time.Now().UTC().Format(time.RFC3339)
	}
	was, err := first.Load(ctx, d.Streams)
	if err != nil {
		return nil, err
	}
	is := *was
	is.Policy, is.Warnings = rules.Message, append(slices.Clone(was.Warnings), question.Unsaid(rules.Warnings, was.Warnings)...)
	return []*question.Loaded{was, &is}, nil
}

// readFiles reads two files or directories of manifests, with the rest of the cluster behind each.
func (d *differing) readFiles(ctx context.Context, names ...string) ([]*question.Loaded, error) {
	if d.From.SnapshotName != "" {
		return nil, errors.New("--snapshot-name: only policies can be compared, not files")
	}
	var inputs []*question.Loaded
	alone, things := len(d.From.Files) == 0 && !d.From.Live.Named(), 0
	for _, name := range names {
		loaded, err := d.From.Instead(ctx, d.Streams, name, alone)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, loaded)
		things += len(loaded.Lookup.GetNodes()) + len(loaded.Lookup.GetJobs())
	}
	if alone && things == 0 {
		return nil, fmt.Errorf("%s hold no nodes and no jobs: name the cluster to compare them on with -f FILE or --cluster; "+
			"two dumps of a whole cluster need none", strings.Join(names, " and "))
	}
	return inputs, nil
}

// decide requests everything that is compared.
func (s *side) decide(ctx context.Context) error {
	s.plan = comparison.New(s.Lookup)
	session, err := s.Decider.OpenSession(ctx, s.Input)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // Every answer has come.
	if s.between {
		return s.decideAlone(ctx, session)
	}
	answers, err := question.AnswersOf(ctx, session, comparison.Steps()...)
	if err != nil {
		return err
	}
	s.basis, s.shares = session.Basis(), answers[0].GetShares()
	s.outcome = s.plan.OutcomeOf(answers, s.Lookup.Names(s.basis))
	s.left, err = s.plan.Evictable(s.outcome, nil, asker(ctx, session))
	return err
}

// evictions requests anew which tasks may be evicted, but for none of the jobs in except.
func (s *side) evictions(ctx context.Context, except map[string]bool) error {
	session, err := s.Decider.OpenSession(ctx, s.Input)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // Every answer has come.
	_, err = s.plan.Evictable(s.outcome, except, asker(ctx, session))
	return err
}

// asker returns a function that has a session answer one step.
func asker(ctx context.Context, session *client.Session) func(*apportionv1.Step) (*apportionv1.Answer, error) {
	return func(step *apportionv1.Step) (*apportionv1.Answer, error) {
		answers, err := question.AnswersOf(ctx, session, step)
		if err != nil {
			return nil, err
		}
		return answers[0], nil
	}
}

// show writes the differences.
func (d *differing) show(a, b *side, found *differences) error {
	render.Warnings(d.Err, a.Warnings)
	render.Warnings(d.Err, question.Unprinted(b.Warnings, a.Warnings))
	var err error
	if d.Format == cli.FormatMarkdown {
		_, err = io.WriteString(d.Out, visible.Lines(found.markdown()))
	} else {
		err = d.Write(found, func(p *render.Printer) {
			p.Snapshot, p.Names = b.Lookup, b.Lookup.Names(b.basis)
			found.print(p, a.shares, b.shares)
		})
	}
	return cmp.Or(err, cli.Verdict(!slices.ContainsFunc(found.Effects, func(e comparison.Effect) bool {
		return len(d.failOn) == 0 || slices.Contains(d.failOn, string(e.Kind))
	})))
}

// decideAlone asks about each job that waits, as if it were the only one: kueue decides about whole workloads and fair about tasks, and
// this question has the same meaning for both.
func (s *side) decideAlone(ctx context.Context, session *client.Session) error {
	answers, err := question.AnswersOf(ctx, session, comparison.Steps()...)
	if err != nil {
		return err
	}
	s.basis, s.shares = session.Basis(), answers[0].GetShares()
	s.outcome = comparison.Alone(s.Lookup, answers[1].GetExplain())
	var steps []*apportionv1.Step
	for _, e := range answers[1].GetExplain().GetJobs() {
		if e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED && e.GetKueue() == nil {
			steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
				Job: &apportionv1.Selector{Indices: []uint32{e.GetJob()}},
			}}})
		}
	}
	// A plan of each job is dear: of many, the first are compared.
	const most = 200
	if len(steps) > most {
		steps, s.omitted = steps[:most], len(steps)-most
	}
	plans, err := session.Do(ctx, steps...)
	if err != nil {
		return err
	}
	for _, a := range plans {
		s.outcome.AddPlan(s.Lookup, a.GetPlan())
	}
	return nil
}
