// Package play has the commands that run what a file says: the steps of a scenario (simulate), tests with expectations (test), and a log of
// decisions (replay).
package play

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	"github.com/apportion/apportion/cmd/apportion/internal/suite"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/tree"
	"github.com/apportion/apportion/internal/visible"
)

// NewSimulate is `apportion simulate`.
func NewSimulate(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}
	command := &cobra.Command{
		Use:   "simulate SCENARIO",
		Short: "Run the steps of a scenario, or of standard input line by line",
		Long: `Run the steps of a scenario, a YAML file that names a cluster (or uses that of -f) and lists steps:

  cluster: [cluster.yaml]
  policy: volcano-scheduler.conf
  steps:
  - shares: {queues: [research]}
  - mark: before
  - evict: ml/train-worker-0
  - reclaim: {claimant: ml/other-worker-0, explain: true}
  - rollback: before

Steps are questions (shares, jobs, enqueue, allocatable, preemptive, reclaim, preempt, order, nodes,
inspect) or events (admit, place, evict, status, addJob, removeJob), or they set a mark and roll
back to it. A step that fails changes nothing, and the next one runs. docs/cli.md lists the keys of each.

With - in place of a file, answer each line of standard input immediately: a step in one line, about the
cluster of -f. With a server, all lines share one session. If standard input begins as a scenario
does, with one of its keys or a list of steps, it is read as one.

  shares
  reclaim: ml/other-worker-0
  enqueue: {jobs: [ml/train, ml/evaluate]}

The exit code is 1 if a step fails.`,
		Example: `  apportion simulate scenario.yaml
  apportion simulate scenario.yaml -f cluster.yaml --policy capacity -o json
  echo 'reclaim: ml/train-worker-0' | apportion simulate - -f cluster.yaml`,
		Args: cli.Arguments(1, 1, "a scenario, or -"),
		RunE: func(command *cobra.Command, names []string) error { return simulate(command.Context(), a, names[0]) },
	}
	a.Register(command)
	return command
}

func simulate(ctx context.Context, a *question.Asking, name string) error {
	var data []byte
	var err error
	if name == cli.Stdin {
		if a.Watch.On || slices.Contains(a.From.Files, cli.Stdin) {
			return errors.New("standard input contains the steps: name the manifests with -f FILE, and omit --watch")
		}
		lines := bufio.NewReader(a.In)
		head, isScenario := peek(lines)
		rest := io.MultiReader(bytes.NewReader(head), lines)
		if !isScenario {
			return a.Ask(ctx, func(ctx context.Context, q *question.Question) error { return converse(ctx, q, rest) })
		}
		name = "stdin"
		data, err = io.ReadAll(rest)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return err
	}
	read, err := scenario.Read(name, data)
	if err != nil {
		return err
	}
	complete(&a.From, read)
	return a.Ask(ctx, func(ctx context.Context, q *question.Question) error { return runScenario(ctx, q, read) })
}

// scenarioBegin matches the first line of a scenario: one of its keys, which differ from the names of steps, or a list of steps.
var scenarioBegin = regexp.MustCompile(`^-\s|^\s*\{\s*$|^\s*\{?\s*"?(cluster|snapshot|policy|steps)"?\s*:`)

// peek reads up to the first line that is neither empty nor a comment, and reports whether a scenario begins there.
func peek(lines *bufio.Reader) (head []byte, isScenario bool) {
	for {
		line, err := lines.ReadBytes('\n')
		head = append(head, line...)
		if text := bytes.TrimSpace(line); err != nil || len(text) > 0 && text[0] != '#' && !bytes.Equal(text, []byte("---")) {
			return head, scenarioBegin.Match(line)
		}
	}
}

// complete takes the settings from the scenario that the flags do not set.
func complete(f *question.InputFlags, read *scenario.Scenario) {
	if len(f.Files) == 0 && f.Snapshot == "" {
		f.Files, f.Snapshot = read.Cluster, read.Snapshot
	}
	if f.Policy == "" && f.PolicyName == "" {
		f.Policy = read.Policy
	}
}

// runScenario runs the steps of a scenario.
func runScenario(ctx context.Context, q *question.Question, read *scenario.Scenario) error {
	asks := make([]tree.Node, len(read.Steps))
	for i, node := range read.Steps {
		// Only `apportion test` compares expectations.
		asks[i], _ = suite.Split(node)
	}
	steps, messages, err := translate(q.Lookup, asks)
	if err != nil {
		return err
	}
	simulation, err := q.Decider.Simulate(ctx, q.Input, messages...)
	if err != nil {
		return err
	}
	failed := 0
	for i := range simulation.Answers {
		if simulation.Err(i) != nil {
			failed++
		}
	}
	response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: simulation.Answers}
	err = q.Answer(simulation.Basis, response, func(p *render.Printer) {
		for i, answer := range simulation.Answers {
			if i > 0 {
				p.Line("")
			}
			p.Line("%s", p.Paint(render.Strong, fmt.Sprintf("%d. %s", i+1, steps[i].Text)))
			p.Snapshot = steps[i].Snapshot
			p.Answer(messages[i], answer)
		}
	})
	if err == nil && failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, text.Count(len(steps), "step"))
	}
	return err
}

// translate converts the steps of a file to those of the contract. Names in a step refer to the cluster that the previous steps leave.
func translate(snapshot *lookup.Snapshot, asks []tree.Node) ([]*scenario.Step, []*apportionv1.Step, error) {
	translator := scenario.NewTranslator(snapshot)
	steps, messages := make([]*scenario.Step, len(asks)), make([]*apportionv1.Step, len(asks))
	for i, ask := range asks {
		step, err := translator.Step(ask)
		if err != nil {
			return nil, nil, err
		}
		step.Done()
		steps[i], messages[i] = step, step.Step
	}
	return steps, messages, nil
}

// maxLine is the maximum length of a line of a session.
const maxLine = 1 << 20

// converse answers each line of standard input immediately.
func converse(ctx context.Context, q *question.Question, in io.Reader) error {
	session, err := q.Decider.OpenSession(ctx, q.Input)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // Every answer has come.
	q.Warn(session.Basis())
	translator := scenario.NewTranslator(q.Lookup)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	failed := 0
	for number := 1; lines.Scan(); number++ {
		node, err := scenario.Line("stdin", number, lines.Text())
		if err == nil && node.IsNull() {
			continue
		}
		var step *scenario.Step
		if err == nil {
			step, err = translator.Step(node)
		}
		if err != nil {
			fmt.Fprintln(q.Err, visible.Lines(cli.Describe(err)))
			failed++
			continue
		}
		answers, err := session.Do(ctx, step.Step)
		if err != nil {
			return err
		}
		if answers[0].GetError() == nil {
			step.Done()
		} else {
			failed++
		}
		if err := reply(q, session, step, answers[0]); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("%s failed", text.Count(failed, "step"))
	}
	return nil
}

// reply writes the answer to one line: a table, or one line of JSON, or a YAML document.
func reply(q *question.Question, session *client.Session, step *scenario.Step, answer *apportionv1.Answer) error {
	switch q.Format {
	case cli.FormatJSON:
		line, err := document.Line(answer)
		if err != nil {
			return err
		}
		_, err = q.Out.Write(line)
		return err
	case cli.FormatYAML:
		fmt.Fprintln(q.Out, "---")
	}
	return q.Write(answer, func(p *render.Printer) {
		p.Snapshot, p.Names = step.Snapshot, q.Lookup.Names(session.Basis())
		p.Line("%s", p.Paint(render.Strong, "> "+step.Text))
		p.Answer(step.Step, answer)
		p.Line("")
	})
}
