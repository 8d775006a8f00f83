package main

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
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/visible"
)

// asking is a command that asks about a cluster.
type asking struct {
	answering
	watch  watchFlags
	input  inputFlags
	server serverFlags
	// amounts is true if the answer shows amounts of resources, which --resource selects.
	amounts bool
	running *cobra.Command
}

// watchFlags are the flags of repeated questions.
type watchFlags struct {
	on       bool
	interval time.Duration
}

func (f *watchFlags) register(command *cobra.Command) {
	command.Flags().BoolVar(&f.on, "watch", false,
		"repeat every --interval until interrupted, and print what changed: + new, - gone, ~ changed; "+
			"with -o json or yaml each answer that differs")
	durationVar(command.Flags(), &f.interval, "interval", 5*time.Second, "`TIME` between two runs with --watch")
}

// check returns an error if the input cannot be watched.
func (f *watchFlags) check(input *inputFlags) error {
	switch {
	case !f.on:
		return nil
	case f.interval <= 0:
		return errors.New("--interval must be above 0")
	case input.snapshot == stdin || slices.Contains(input.files, stdin):
		return errors.New("--watch reads the input again, but standard input can be read only once")
	}
	return nil
}

// question is the work of a command after its input is read.
type question struct {
	*asking
	*input
	decider *client.Client
}

// register adds the flags of a command that asks.
func (a *asking) register(command *cobra.Command, formats ...string) {
	a.running = command
	a.registerInput(command)
	a.answering.register(command, formats...)
	a.watch.register(command)
	if a.amounts {
		command.Flags().StringSliceVar(&a.resources, "resource", nil,
			"show only this `RESOURCE`, such as cpu or gpu (repeatable); all shows every resource")
		a.complete(command, "resource", resourceNames)
	}
}

// registerInput adds the flags that name the input and the server. Other commands have the same flags.
func (a *asking) registerInput(command *cobra.Command) {
	a.input.register(command)
	a.server.register(command.Flags())
	command.Flags().StringVar(&a.input.snapshotName, "snapshot-name", "",
		"ask about the cluster that the server follows under this `NAME`, in place of manifests (needs --server)")
	a.input.server = &a.server
	command.Flags().VisitAll(func(flag *pflag.Flag) { must(command, command.Flags().SetAnnotation(flag.Name, sharedFlag, nil)) })
}

// sharedFlag marks the flags that all these commands have.
const sharedFlag = "shared"

// again returns the name of the program and the given flags that name the input and the server, for the text of another command.
func (a *asking) again() (program string, flags []string) {
	a.running.Flags().Visit(func(flag *pflag.Flag) {
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
	return a.running.Root().DisplayName(), flags
}

// command completes a command that asks: it adds its flags, and lets it read the input and call do, repeatedly with --watch.
func (a *asking) command(command *cobra.Command, do func(context.Context, *question, []string) error, formats ...string) *cobra.Command {
	a.register(command, formats...)
	command.RunE = func(command *cobra.Command, args []string) error {
		return a.ask(command.Context(), func(ctx context.Context, q *question) error { return do(ctx, q, args) })
	}
	return command
}

// ask reads the input and calls do, repeatedly with --watch.
func (a *asking) ask(ctx context.Context, do func(context.Context, *question) error) error {
	if err := a.watch.check(&a.input); err != nil {
		return err
	}
	return a.repeat(ctx, func(ctx context.Context) error {
		loaded, err := a.input.load(ctx, a.streams)
		if err != nil {
			return err
		}
		return a.about(ctx, loaded, do)
	})
}

// about calls do with the input.
func (a *asking) about(ctx context.Context, loaded *input, do func(context.Context, *question) error) error {
	decider, ctx, done, err := a.server.decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := cmp.Or(a.checkResources(loaded.snapshot), a.server.compileOnce(ctx, decider, loaded)); err != nil {
		return err
	}
	q := &question{asking: a, input: loaded, decider: decider}
	return loaded.named(q.lacking(do(ctx, q)))
}

// repeat asks once, or with --watch until the context ends. With --watch it prints the first answer, and of each later one what differs
// from the one before: of a table the changes, in another format all of it. It reports and repeats a question that fails.
func (a *asking) repeat(ctx context.Context, ask func(context.Context) error) error {
	if !a.watch.on {
		return ask(ctx)
	}
	out, errOut := a.out, a.err
	defer func() { a.out, a.err, a.record, a.fixed = out, errOut, nil, nil }()
	var last, lastError string
	style, before := a.style(), (*render.Record)(nil)
	a.fixed = &style
	tick := time.NewTicker(a.watch.interval)
	defer tick.Stop()
	for {
		var answer, told bytes.Buffer
		a.out, a.err = &answer, &told
		a.record = &render.Record{}
		if err := ask(ctx); err != nil && !errors.Is(err, errDecidedNo) && ctx.Err() == nil {
			fmt.Fprintln(&told, "apportion: "+visible.Lines(describe(err)))
		}
		if text := told.String(); text != lastError {
			lastError = text
			fmt.Fprint(errOut, text)
		}
		if text := answer.String(); text != "" && text != last {
			a.tell(out, style, text, last == "", before)
			last, before = text, a.record
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
func (a *asking) tell(out io.Writer, style render.Style, text string, first bool, before *render.Record) {
	if first || a.format != formatTable && a.format != formatWide {
		if !first && a.format == formatYAML {
			fmt.Fprintln(out, "---")
		}
		fmt.Fprint(out, text)
		return
	}
	var changes bytes.Buffer
	if a.record.Changes(before, style, &changes) {
		fmt.Fprintf(out, "\n%s\n%s", time.Now().Format(time.TimeOnly), changes.String())
	}
}

// answer writes the warnings of the input and of the answer, and the answer. A table is preceded by the names of the policy and the
// snapshot.
func (q *question) answer(basis *apportionv1.Basis, answer any, table func(*render.Printer)) error {
	q.warn(basis)
	return q.write(answer, func(p *render.Printer) {
		p.Snapshot, p.Names = q.snapshot, q.snapshot.Names(basis)
		p.Program, p.Input = q.again()
		p.ByOwners = render.ByOwners(q.Policy)
		table(p)
	})
}

// warn writes the warnings of the input and of the answer.
func (q *question) warn(basis *apportionv1.Basis) {
	render.Warnings(q.err, q.warnings)
	warnings := unsaid(basis.GetWarnings(), q.warnings)
	if len(q.snapshot.GetNodes()) == 0 { // A warning of the input states the lack of nodes.
		warnings = without(warnings, apportionv1.WarningCode_WARNING_CODE_DIMENSION_NOT_OFFERED,
			apportionv1.WarningCode_WARNING_CODE_GUARANTEES_EXCEED_TOTAL)
	}
	render.Warnings(q.err, q.placed(warnings))
}

// without returns the warnings that have none of the codes.
func without(warnings []*apportionv1.Warning, codes ...apportionv1.WarningCode) []*apportionv1.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return slices.Contains(codes, w.GetCode()) })
}

// unsaid removes the plugins that a warning about the configuration has already named, by file and line.
func unsaid(warnings, said []*apportionv1.Warning) []*apportionv1.Warning {
	const undecided = apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED
	if !slices.ContainsFunc(said, func(w *apportionv1.Warning) bool { return w.GetCode() == undecided }) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return w.GetCode() == undecided })
}

// unprinted returns the warnings whose messages are not among those that were printed.
func unprinted(warnings, printed []*apportionv1.Warning) []*apportionv1.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool {
		return slices.ContainsFunc(printed, func(o *apportionv1.Warning) bool { return o.GetMessage() == w.GetMessage() })
	})
}

// simulate sends steps. An error of any step is an error.
func (q *question) simulate(ctx context.Context, steps ...*apportionv1.Step) (*client.Simulation, error) {
	simulation, err := q.decider.Simulate(ctx, q.Input, steps...)
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

// answersOf has a session answer steps. An error of any step is an error.
func answersOf(ctx context.Context, session *client.Session, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
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

// jobNamed returns a job by its name or by the name of one of its pods, and its identifier in the contract.
func (q *question) jobNamed(name string) (index uint32, job *apportionv1.Job, id string, err error) {
	if index, err = q.snapshot.JobOrTask(name); err != nil {
		return 0, nil, "", err
	}
	job = q.snapshot.GetJobs()[index]
	return index, job, idOf(job), nil
}

// idOf returns the identifier of a job in the contract.
func idOf(job *apportionv1.Job) string { return cmp.Or(job.GetUid(), lookup.JobName(job)) }

// taskIDs returns the identifiers of tasks in the contract.
func taskIDs(snapshot *lookup.Snapshot, names []string) ([]string, error) {
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

// sharesStep requests the shares of queues; without names, of all queues.
func sharesStep(queues ...string) *apportionv1.Step {
	ask := &apportionv1.SharesStep{}
	if len(queues) > 0 {
		ask.Queues = &apportionv1.Queues{Name: queues}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: ask}}
}

// withShares adds the question about the shares of a queue to another one, if what there is to divide is known.
func (q *question) withShares(step *apportionv1.Step, queue string) []*apportionv1.Step {
	if q.whyUnknown() != "" {
		return []*apportionv1.Step{step}
	}
	return []*apportionv1.Step{step, sharesStep(queue)}
}

// explainStep asks why jobs wait; nil: all that wait.
func explainStep(jobs *apportionv1.Jobs) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: jobs}}}
}

// list writes names, one a line.
func (q *question) list(names []string) error {
	for _, name := range names {
		fmt.Fprintln(q.out, visible.Text(name))
	}
	return nil
}

// goesOn reports whether nothing is known to hold a job back.
func goesOn(e *apportionv1.Explanation) bool {
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return true
	default:
		return false
	}
}
