package compare

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/variation"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

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
			return a.Names(variation.Completions, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}))
}

// trial is a cluster before and after a change.
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
	if made.Base.Snapshot != q.Snapshot {
		q.Lookup, q.Snapshot = made.Base, made.Base.Snapshot
		q.Upload = nil // The base has more dimensions than what the server holds.
		if err := q.Server.CompileOnce(ctx, q.Decider, q.Loaded); err != nil {
			return err
		}
	}
	basis, before, after, err := compared(ctx, q, made, jobs)
	if err != nil {
		return err
	}
	err = q.Answer(basis, trial{
		Basis: cli.Within(basis), Change: cli.Within(made.Change),
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
	if made.Base.GetMemory() != nil || made.Change.GetMemory() != nil {
		shares.GetShares().Explain = &apportionv1.Explain{} // The weights that follow from usage are part of the derivation.
	}
	change := &apportionv1.Step{Step: &apportionv1.Step_Change{Change: &apportionv1.ChangeStep{Change: made.Change}}}
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
		if sessions[i], err = q.Decider.OpenSession(ctx, q.Input); err != nil {
			return err
		}
		steps := [][]*apportionv1.Step{{shares, waiting}, {change, shares, waiting}}[i]
		answers, err := question.AnswersOf(ctx, sessions[i], steps...)
		if err != nil {
			return err
		}
		answers = answers[len(answers)-2:]
		sides[i].Shares, sides[i].Waiting = answers[0].GetShares(), answers[1].GetExplain()
		return nil
	})
	if err != nil {
		return nil, before, after, err
	}
	asked := [2][]string{held(before.Waiting, after.Waiting, jobs), held(after.Waiting, before.Waiting, jobs)}
	err = both(func(i int) error {
		answers, err := question.AnswersOf(ctx, sessions[i], question.ExplainStep(&apportionv1.Jobs{Uids: asked[i]}))
		if err == nil {
			sides[i].Held = answers[0].GetExplain()
		}
		return err
	})
	return sessions[0].Basis(), before, after, err
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
