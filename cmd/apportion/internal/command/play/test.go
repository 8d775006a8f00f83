package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/suite"
	"github.com/apportion/apportion/internal/tree"
	"github.com/apportion/apportion/internal/visible"
	"github.com/apportion/apportion/internal/watch"
)

// checking are the flags of `apportion test`.
type checking struct {
	cli.Answering
	server  question.ServerFlags
	run     string
	verbose bool
	update  bool
	watch   bool
}

// NewTest is `apportion test`.
func NewTest(s cli.Streams) *cobra.Command {
	t := &checking{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:   "test [FILE|DIRECTORY]...",
		Short: "Test queues and policies: run scenarios and compare the answers with expectations",
		Long: `Run tests of queues and policies. A file of tests ends in .test.yaml and contains a cluster, a policy, and
scenarios with expectations:

  cluster: [queues.yaml, nodes.yaml]
  policy: volcano-scheduler.conf
  tests:
  - name: the language team keeps its guarantee
    steps:
    - shares: {queues: [language]}
      expect: {deserved.gpu: 26.67, overused: false}
    - enqueue: language/pretrain-7b
      expect: {permitted: false, reason: contains overcommitment}

Steps are those of simulate. An expectation selects a part of the answer by keys in the order of nesting; keys
in between may be omitted. Amounts have the units of Kubernetes. A number with decimals matches every value that
rounds to it. docs/testing.md describes the format. A directory stands for its files of tests; the default is the
current one.`,
		Example: `  apportion test
  apportion test examples/tests --run guarantee
  apportion test -o junit > report.xml`,
		RunE: func(command *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			return t.start(command.Context(), paths)
		},
	}
	flags := command.Flags()
	t.Register(command, cli.FormatJUnit, cli.FormatTAP)
	flags.StringVar(&t.run, "run", "", "run only the tests whose `NAME` matches this regular expression")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "list passing tests, too")
	flags.BoolVar(&t.update, "update", false, "replace the expected values in the files by the answers")
	flags.BoolVar(&t.watch, "watch", false, "run again whenever a file changes")
	t.server.Register(flags)
	return command
}

func (t *checking) start(ctx context.Context, paths []string) error {
	pattern, err := regexp.Compile(t.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if !t.watch {
		_, err := t.once(ctx, paths, pattern)
		return err
	}
	files, err := t.once(ctx, paths, pattern)
	t.say(err)
	list := func() []string { return files }
	watch.Files(ctx, watch.Options{Interval: time.Second, Seen: watch.Look(files), Logger: slog.New(slog.DiscardHandler)}, list, func() {
		fmt.Fprintln(t.Out)
		var err error
		files, err = t.once(ctx, paths, pattern)
		t.say(err)
	})
	return nil
}

// say writes the error of a run that is followed by another run.
func (t *checking) say(err error) {
	if err != nil && !errors.Is(err, cli.ErrDecidedNo) {
		fmt.Fprintln(t.Err, "apportion: "+visible.Lines(cli.Describe(err)))
	}
}

// once runs every test once, and again after an update. It returns the files that the tests read.
func (t *checking) once(ctx context.Context, paths []string, pattern *regexp.Regexp) ([]string, error) {
	names, err := suite.Find(paths)
	if err != nil {
		return paths, err
	}
	decider, ctx, done, err := t.server.Decider(ctx)
	if err != nil {
		return names, err
	}
	defer done()
	r := &runner{decider: decider, inputs: map[string]*question.Loaded{}, files: slices.Clone(names)}
	results, err := r.all(ctx, names, pattern)
	if err == nil && len(results) == 0 {
		err = fmt.Errorf("no test matches %q", t.run)
	}
	if err == nil && t.update {
		if err = t.rewrite(names, results); err == nil {
			results, err = r.all(ctx, names, pattern)
		}
	}
	if err != nil {
		return r.files, err
	}
	return r.files, t.report(results)
}

// rewrite writes the answers into the files.
func (t *checking) rewrite(names []string, results []*suite.Result) error {
	replaced, left := 0, 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		own := slices.DeleteFunc(slices.Clone(results), func(r *suite.Result) bool { return r.File != name })
		updated, here, stay := suite.Update(data, own)
		replaced, left = replaced+here, left+stay
		if here == 0 {
			continue
		}
		// The mode of an existing file does not change.
		if err := os.WriteFile(name, updated, 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.Err, "%d expectations replaced, %d left as they are\n", replaced, left)
	return nil
}

// report writes the results.
func (t *checking) report(results []*suite.Result) error {
	var err error
	switch t.Format {
	case cli.FormatJUnit:
		err = suite.WriteJUnit(t.Out, results)
	case cli.FormatTAP:
		err = suite.WriteTAP(t.Out, results)
	default:
		err = t.Write(suite.Report(results), func(p *render.Printer) { t.table(p, results) })
	}
	failed := slices.ContainsFunc(results, func(r *suite.Result) bool { return !r.Passed() })
	return cmp.Or(err, cli.Verdict(!failed))
}

// table writes the tests that failed, with -v all of them, and how many passed.
func (t *checking) table(p *render.Printer, results []*suite.Result) {
	file, passed := "", 0
	for _, r := range results {
		if r.Passed() {
			passed++
			if !t.verbose {
				continue
			}
		}
		if r.File != file {
			file = r.File
			p.Line("%s", p.Paint(render.Strong, file))
		}
		if r.Passed() {
			p.Line("  %s  %s", p.Paint(render.Good, "pass"), r.Test.Name)
			continue
		}
		p.Line("  %s  %s", p.Paint(render.Bad, "FAIL"), r.Test.Name)
		for _, line := range r.Lines() {
			p.Line("        %s", line)
		}
	}
	if passed == len(results) {
		p.Line("%s: %d passed", p.Paint(render.Good, "ok"), passed)
		return
	}
	p.Line("%s: %d of %d passed", p.Paint(render.Bad, "FAILED"), passed, len(results))
}

// runner runs tests. It reads each cluster once.
type runner struct {
	decider *client.Client
	inputs  map[string]*question.Loaded
	files   []string
}

// all runs the tests of files whose names match the pattern.
func (r *runner) all(ctx context.Context, names []string, pattern *regexp.Regexp) ([]*suite.Result, error) {
	var results []*suite.Result
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		read, err := suite.Read(name, data)
		if err != nil {
			return nil, err
		}
		for _, test := range read.Tests {
			if pattern.MatchString(test.Name) {
				results = append(results, r.test(ctx, name, test))
			}
		}
	}
	return results, nil
}

func (r *runner) test(ctx context.Context, file string, test *suite.Test) *suite.Result {
	began := time.Now()
	result := &suite.Result{File: file, Test: test}
	result.Failed, result.Fault = r.ask(ctx, test)
	result.Took = time.Since(began)
	return result
}

// input reads the cluster and the policy of a test.
func (r *runner) input(ctx context.Context, test *suite.Test) (*question.Loaded, error) {
	key := strings.Join(slices.Concat(test.Cluster, []string{test.Snapshot, test.Policy}), "\x00")
	if loaded, ok := r.inputs[key]; ok {
		return loaded, nil
	}
	flags := question.InputFlags{Files: test.Cluster, Snapshot: test.Snapshot, Policy: test.Policy}
	sources, err := flags.Sources(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		r.files = append(r.files, s.Name)
	}
	for _, name := range []string{test.Snapshot, test.Policy} {
		if _, preset := policy.Preset(name); name != "" && !preset {
			r.files = append(r.files, name)
		}
	}
	loaded, err := flags.Read(cli.Streams{Err: io.Discard}, sources)
	if err == nil {
		r.inputs[key] = loaded
	}
	return loaded, err
}

// ask asks the steps of a test and compares the answers.
func (r *runner) ask(ctx context.Context, test *suite.Test) ([]suite.FailedStep, error) {
	loaded, err := r.input(ctx, test)
	if err != nil {
		return nil, err
	}
	asks := make([]tree.Node, len(test.Steps))
	for i, step := range test.Steps {
		asks[i] = step.Ask
	}
	steps, messages, err := translate(loaded.Lookup, asks)
	if err != nil {
		return nil, err
	}
	simulation, err := r.decider.Simulate(ctx, loaded.Input, messages...)
	if err != nil {
		return nil, err
	}
	var failed []suite.FailedStep
	for i, answer := range simulation.Answers {
		facts := suite.Facts(messages[i], steps[i].Snapshot, simulation.Basis, answer)
		if differences := suite.Compare(test.Steps[i].Expect, test.Steps[i].Ask.Node, facts); len(differences) > 0 {
			failed = append(failed, suite.FailedStep{Number: i + 1, Text: steps[i].Text, Differences: differences})
		}
	}
	return failed, nil
}
