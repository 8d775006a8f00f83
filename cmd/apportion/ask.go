package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// asking is a command that asks about a cluster.
type asking struct {
	answering
	watch  watchFlags
	input  inputFlags
	server serverFlags
	// amounts says that the answer shows amounts of resources, which --resource selects.
	amounts bool
	running *cobra.Command
}

// watchFlags say whether a command asks again and again.
type watchFlags struct {
	on       bool
	interval time.Duration
}

func (f *watchFlags) register(command *cobra.Command) {
	command.Flags().BoolVar(&f.on, "watch", false, "repeat every --interval and print answers that differ, until interrupted")
	command.Flags().DurationVar(&f.interval, "interval", 5*time.Second, "`TIME` between two runs with --watch")
}

// check refuses what cannot be watched.
func (f *watchFlags) check(input *inputFlags) error {
	switch {
	case !f.on:
		return nil
	case f.interval <= 0:
		return errors.New("--interval: a time above 0 is needed")
	case input.snapshot == stdin || slices.Contains(input.files, stdin):
		return errors.New("--watch reads the input again: standard input can be read once only")
	}
	return nil
}

// question is a command's work once its input is read.
type question struct {
	*asking
	*input
	decider *client.Client
}

// register adds the flags of a command that asks.
func (a *asking) register(command *cobra.Command, formats ...string) {
	a.running = command
	a.input.register(command)
	a.server.register(command.Flags())
	command.Flags().StringVar(&a.input.snapshotName, "snapshot-name", "",
		"ask about the cluster that the server follows under this `NAME`, in place of manifests (needs --server)")
	a.input.server = &a.server
	// Flags so far say what is asked about and who decides: other commands have the same.
	command.Flags().VisitAll(func(flag *pflag.Flag) { must(command, command.Flags().SetAnnotation(flag.Name, sharedFlag, nil)) })
	a.answering.register(command, formats...)
	a.watch.register(command)
	if a.amounts {
		command.Flags().StringSliceVar(&a.resources, "resource", nil,
			"show only this `RESOURCE`, such as cpu or gpu (repeatable); all shows every resource")
		a.complete(command, "resource", resourceNames)
	}
}

// sharedFlag marks the flags that all commands that ask have.
const sharedFlag = "shared"

// again returns how the program is run, and the flags given that name the input and who decides, for another command to be shown.
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

// command completes a command that asks: it gets its flags, and running it reads the input and calls do, with --watch again and again.
func (a *asking) command(command *cobra.Command, do func(context.Context, *question, []string) error, formats ...string) *cobra.Command {
	a.register(command, formats...)
	command.RunE = func(command *cobra.Command, args []string) error {
		return a.ask(command.Context(), func(ctx context.Context, q *question) error { return do(ctx, q, args) })
	}
	return command
}

// ask reads the input and calls do, with --watch again and again.
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

// about calls do with an input that was read.
func (a *asking) about(ctx context.Context, loaded *input, do func(context.Context, *question) error) error {
	decider, ctx, done, err := a.server.decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := a.checkResources(loaded.snapshot); err != nil {
		return err
	}
	return loaded.named(do(ctx, &question{asking: a, input: loaded, decider: decider}))
}

// repeat asks once, or with --watch until the context ends. Then it prints an answer whenever it differs from the one before; a question
// that fails is reported, and asked again.
func (a *asking) repeat(ctx context.Context, ask func(context.Context) error) error {
	if !a.watch.on {
		return ask(ctx)
	}
	out, errOut := a.out, a.err
	defer func() { a.out, a.err = out, errOut }()
	var last, lastError string
	tick := time.NewTicker(a.watch.interval)
	defer tick.Stop()
	for {
		var answer, told bytes.Buffer
		a.out, a.err = &answer, &told
		if err := ask(ctx); err != nil && !errors.Is(err, errDecidedNo) && ctx.Err() == nil {
			fmt.Fprintln(&told, "apportion: "+describe(err))
		}
		if text := told.String(); text != lastError {
			lastError = text
			fmt.Fprint(errOut, text)
		}
		if text := answer.String(); text != "" && text != last {
			if last != "" {
				fmt.Fprintf(out, "\n%s\n", time.Now().Format(time.TimeOnly))
			}
			last = text
			fmt.Fprint(out, text)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// answer writes the warnings of the input and of the answer, and the answer. A table names what the answer's numbers refer to.
func (q *question) answer(basis *apportionv1.Basis, answer any, table func(*render.Printer)) error {
	q.warn(basis)
	return q.write(answer, func(p *render.Printer) {
		p.Snapshot, p.Names = q.snapshot, q.snapshot.Names(basis)
		p.Program, p.Input = q.again()
		table(p)
	})
}

// warn writes the warnings of the input and of the answer.
func (q *question) warn(basis *apportionv1.Basis) {
	render.Warnings(q.err, q.warnings)
	render.Warnings(q.err, q.placed(unsaid(basis.GetWarnings(), q.warnings)))
}

// unsaid leaves out plugins that a warning about the configuration has named already, by file and line.
func unsaid(warnings, said []*apportionv1.Warning) []*apportionv1.Warning {
	const undecided = apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED
	if !slices.ContainsFunc(said, func(w *apportionv1.Warning) bool { return w.GetCode() == undecided }) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return w.GetCode() == undecided })
}

// simulate asks steps, each of which must be answered.
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

// jobNamed returns a job by its name or that of one of its pods, and how the contract refers to it.
func (q *question) jobNamed(name string) (index uint32, job *apportionv1.Job, id string, err error) {
	if index, err = q.snapshot.JobOrTask(name); err != nil {
		return 0, nil, "", err
	}
	job = q.snapshot.GetJobs()[index]
	return index, job, idOf(job), nil
}

// idOf is how the contract refers to a job.
func idOf(job *apportionv1.Job) string { return cmp.Or(job.GetUid(), lookup.JobName(job)) }

// taskIDs are how the contract refers to tasks.
func taskIDs(snapshot *lookup.Snapshot, names []string) ([]string, error) {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		number, err := snapshot.Task(name)
		if err != nil {
			return nil, err
		}
		task := snapshot.Tasks[number]
		if task.GetUid() == "" && task.GetName() == "" {
			return nil, fmt.Errorf("task %q has neither uid nor name: ask about it with simulate", name)
		}
		id := task.GetUid()
		if id == "" {
			id = task.Name()
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// sharesStep asks for the shares of queues, without names of all.
func sharesStep(queues ...string) *apportionv1.Step {
	ask := &apportionv1.SharesStep{}
	if len(queues) > 0 {
		ask.Queues = &apportionv1.Queues{Name: queues}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: ask}}
}

// explainStep asks why jobs wait; nil: all that wait.
func explainStep(jobs *apportionv1.Jobs) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: jobs}}}
}
