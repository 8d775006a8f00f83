// Package question asks about a cluster: the flags that name where its objects and the policy are, reading them, asking a server or this
// process, repeatedly with --watch, and what an input lacks for an answer. Commands differ in what they ask and in what they show.
package question

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/visible"
)

// Asking is a command that asks about a cluster.
type Asking struct {
	cli.Answering
	Watch WatchFlags
	// From names the cluster and the policy, and Server who decides.
	From   InputFlags
	Server ServerFlags
	// Amounts is true if the answer shows amounts of resources, which --resource selects.
	Amounts bool
	command *cobra.Command
}

// WatchFlags are the flags of repeated questions.
type WatchFlags struct {
	On       bool
	Interval time.Duration
}

// Register adds the flags.
func (f *WatchFlags) Register(command *cobra.Command) {
	command.Flags().BoolVar(&f.On, "watch", false,
		"repeat every --interval until interrupted, and print what changed: + new, - gone, ~ changed; "+
			"with -o json or yaml each answer that differs")
	cli.DurationVar(command.Flags(), &f.Interval, "interval", 5*time.Second, "`TIME` between two runs with --watch")
}

// Check returns an error if the input cannot be watched.
func (f *WatchFlags) Check(input *InputFlags) error {
	switch {
	case !f.On:
		return nil
	case f.Interval <= 0:
		return errors.New("--interval must be above 0")
	case input.Snapshot == cli.Stdin || slices.Contains(input.Files, cli.Stdin):
		return errors.New("--watch reads the input again, but standard input can be read only once")
	}
	return nil
}

// Question is the work of a command after its input is read.
type Question struct {
	*Asking
	*Loaded
	Decider *client.Client
}

// Register adds the flags of a command that asks.
func (a *Asking) Register(command *cobra.Command, formats ...string) {
	a.RegisterInput(command)
	a.Answering.Register(command, formats...)
	a.Watch.Register(command)
	if a.Amounts {
		command.Flags().StringSliceVar(&a.Resources, "resource", nil,
			"show only this `RESOURCE`, such as cpu or gpu (repeatable); all shows every resource")
		a.Complete(command, "resource", ResourceNames)
	}
}

// RegisterInput adds the flags that name the input and the server. Other commands have the same flags.
func (a *Asking) RegisterInput(command *cobra.Command) {
	a.command = command
	a.From.Register(command)
	a.Server.Register(command.Flags())
	command.Flags().StringVar(&a.From.SnapshotName, "snapshot-name", "",
		"ask about the cluster that the server follows under this `NAME`, in place of manifests (needs --server)")
	a.From.server = &a.Server
	command.Flags().VisitAll(func(flag *pflag.Flag) { cli.Must(command, command.Flags().SetAnnotation(flag.Name, sharedFlag, nil)) })
}

// sharedFlag marks the flags that all these commands have.
const sharedFlag = "shared"

// Again returns the name of the program and the given flags that name the input and the server, for the text of another command.
func (a *Asking) Again() (program string, flags []string) {
	a.command.Flags().Visit(func(flag *pflag.Flag) {
		if _, shared := flag.Annotations[sharedFlag]; !shared {
			return
		}
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand
		}
		switch value := flag.Value.(type) {
		case pflag.SliceValue:
			for _, one := range value.GetSlice() {
				flags = append(flags, name, one)
			}
		default:
			if flag.NoOptDefVal != "" {
				flags = append(flags, name+"="+value.String())
			} else {
				flags = append(flags, name, value.String())
			}
		}
	})
	return a.command.Root().DisplayName(), flags
}

// Command completes a command that asks: it adds its flags, and lets it read the input and call do, repeatedly with --watch.
func (a *Asking) Command(command *cobra.Command, do func(context.Context, *Question, []string) error, formats ...string) *cobra.Command {
	a.Register(command, formats...)
	command.RunE = func(command *cobra.Command, args []string) error {
		return a.Ask(command.Context(), func(ctx context.Context, q *Question) error { return do(ctx, q, args) })
	}
	return command
}

// Ask reads the input and calls do, repeatedly with --watch.
func (a *Asking) Ask(ctx context.Context, do func(context.Context, *Question) error) error {
	return a.Repeat(ctx, func(ctx context.Context) error {
		loaded, err := a.From.Load(ctx, a.Streams)
		if err != nil {
			return err
		}
		return a.About(ctx, loaded, do)
	})
}

// About calls do with the input.
func (a *Asking) About(ctx context.Context, loaded *Loaded, do func(context.Context, *Question) error) error {
	decider, ctx, done, err := a.Server.Decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := cmp.Or(a.CheckResources(loaded.Lookup), a.Server.CompileOnce(ctx, decider, loaded)); err != nil {
		return err
	}
	q := &Question{Asking: a, Loaded: loaded, Decider: decider}
	return loaded.Named(q.lacking(do(ctx, q)))
}

// Repeat asks once, or with --watch until the context ends. With --watch it prints the first answer, and of each later one what differs
// from the one before: of a table the changes, in another format all of it. It reports and repeats a question that fails.
func (a *Asking) Repeat(ctx context.Context, ask func(context.Context) error) error {
	if err := a.Watch.Check(&a.From); err != nil {
		return err
	}
	if !a.Watch.On {
		return ask(ctx)
	}
	out, errOut := a.Out, a.Err
	defer func() { a.Out, a.Err, a.Record, a.Fixed = out, errOut, nil, nil }()
	var last, lastError string
	style, before := a.Style(), (*render.Record)(nil)
	a.Fixed = &style
	tick := time.NewTicker(a.Watch.Interval)
	defer tick.Stop()
	for {
		var answer, told bytes.Buffer
		a.Out, a.Err = &answer, &told
		a.Record = &render.Record{}
		if err := ask(ctx); err != nil && !errors.Is(err, cli.ErrDecidedNo) && ctx.Err() == nil {
			fmt.Fprintln(&told, "apportion: "+visible.Lines(cli.Describe(err)))
		}
		if text := told.String(); text != lastError {
			lastError = text
			fmt.Fprint(errOut, text)
		}
		if text := answer.String(); text != "" && text != last {
			a.tell(out, style, text, last == "", before)
			last, before = text, a.Record
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tell writes an answer that differs from the one before: the first one whole, of a later table what changed, and of other formats an
// object each.
func (a *Asking) tell(out io.Writer, style render.Style, text string, first bool, before *render.Record) {
	if first || a.Format != cli.FormatTable && a.Format != cli.FormatWide {
		if !first && a.Format == cli.FormatYAML {
			fmt.Fprintln(out, "---")
		}
		fmt.Fprint(out, text)
		return
	}
	var changes bytes.Buffer
	if a.Record.Changes(before, style, &changes) {
		fmt.Fprintf(out, "\n%s\n%s", time.Now().Format(time.TimeOnly), changes.String())
	}
}

// Answer writes the warnings of the input and of the answer, and the answer. A table is preceded by the names of the policy and the
// snapshot.
func (q *Question) Answer(basis *apportionv1.Basis, answer any, table func(*render.Printer)) error {
	q.Warn(basis)
	return q.Write(answer, func(p *render.Printer) {
		p.Snapshot, p.Names = q.Lookup, q.Lookup.Names(basis)
		p.Program, p.Input = q.Again()
		p.ByOwners = render.ByOwners(q.Policy)
		table(p)
	})
}

// Warn writes the warnings of the input and of the answer.
func (q *Question) Warn(basis *apportionv1.Basis) {
	render.Warnings(q.Err, q.Warnings)
	warnings := Unsaid(basis.GetWarnings(), q.Warnings)
	if len(q.Lookup.GetNodes()) == 0 { // A warning of the input states the lack of nodes.
		warnings = Without(warnings, apportionv1.WarningCode_WARNING_CODE_DIMENSION_NOT_OFFERED,
			apportionv1.WarningCode_WARNING_CODE_GUARANTEES_EXCEED_TOTAL)
	}
	render.Warnings(q.Err, q.Placed(warnings))
}

// dropped returns a warning that something of the input is left out, or has no effect.
func dropped(format string, args ...any) *apportionv1.Warning {
	return &apportionv1.Warning{Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Message: fmt.Sprintf(format, args...)}
}

// Noted returns notes as warnings.
func Noted(notes []string) []*apportionv1.Warning {
	var warnings []*apportionv1.Warning
	for _, note := range notes {
		warnings = append(warnings, &apportionv1.Warning{Message: note})
	}
	return warnings
}

// Without returns the warnings that have none of the codes.
func Without(warnings []*apportionv1.Warning, codes ...apportionv1.WarningCode) []*apportionv1.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return slices.Contains(codes, w.GetCode()) })
}

// Unsaid removes the plugins that a warning about the configuration has already named, by file and line.
func Unsaid(warnings, said []*apportionv1.Warning) []*apportionv1.Warning {
	const undecided = apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED
	if !slices.ContainsFunc(said, func(w *apportionv1.Warning) bool { return w.GetCode() == undecided }) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return w.GetCode() == undecided })
}

// Unprinted returns the warnings whose messages are not among those that were printed.
func Unprinted(warnings, printed []*apportionv1.Warning) []*apportionv1.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool {
		return slices.ContainsFunc(printed, func(o *apportionv1.Warning) bool { return o.GetMessage() == w.GetMessage() })
	})
}

// Simulate sends steps. An error of any step is an error.
func (q *Question) Simulate(ctx context.Context, steps ...*apportionv1.Step) (*client.Simulation, error) {
	simulation, err := q.Decider.Simulate(ctx, q.Input, steps...)
	if err != nil {
		return nil, err
	}
	for i := range simulation.Answers {
		if err := simulation.Err(i); err != nil {
			return nil, err
		}
	}
	return simulation, nil
}

// AnswersOf has a session answer steps. An error of any step is an error.
func AnswersOf(ctx context.Context, session *client.Session, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := session.Do(ctx, steps...)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a.GetError() != nil {
			return nil, status.FromProto(a.GetError()).Err()
		}
	}
	return answers, nil
}

// JobNamed returns a job by its name or by the name of one of its pods, and its identifier in the contract.
func (q *Question) JobNamed(name string) (index uint32, job *apportionv1.Job, id string, err error) {
	if index, err = q.Lookup.JobOrTask(name); err != nil {
		return 0, nil, "", err
	}
	job = q.Lookup.GetJobs()[index]
	return index, job, JobID(job), nil
}

// JobID returns the identifier of a job in the contract.
func JobID(job *apportionv1.Job) string { return cmp.Or(job.GetUid(), lookup.JobName(job)) }

// TaskIDs returns the identifiers of tasks in the contract.
func TaskIDs(snapshot *lookup.Snapshot, names []string) ([]string, error) {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		number, err := snapshot.Task(name)
		if err != nil {
			return nil, err
		}
		task := snapshot.Tasks[number]
		if task.GetUid() == "" && task.GetName() == "" {
			return nil, fmt.Errorf("task %q has neither uid nor name: use simulate, which accepts numbers of tasks", name)
		}
		id := task.GetUid()
		if id == "" {
			id = task.Name()
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// SharesStep requests the shares of queues; without names, of all queues.
func SharesStep(queues ...string) *apportionv1.Step {
	ask := &apportionv1.SharesStep{}
	if len(queues) > 0 {
		ask.Queues = &apportionv1.Selector{Names: queues}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: ask}}
}

// WithShares adds the question about the shares of a queue to another one, if what there is to divide is known.
func (q *Question) WithShares(step *apportionv1.Step, queue string) []*apportionv1.Step {
	if q.whyUnknown() != "" {
		return []*apportionv1.Step{step}
	}
	return []*apportionv1.Step{step, SharesStep(queue)}
}

// ExplainStep asks why jobs wait; nil: all that wait.
func ExplainStep(jobs *apportionv1.Selector) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: jobs}}}
}

// List writes names, one a line.
func (q *Question) List(names []string) error {
	for _, name := range names {
		fmt.Fprintln(q.Out, visible.Text(name))
	}
	return nil
}

// GoesOn reports whether nothing is known to hold a job back.
func GoesOn(e *apportionv1.Explanation) bool {
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return true
	default:
		return false
	}
}
