package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	"github.com/apportion/apportion/cmd/apportion/internal/suite"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const stepsHelp = `
Steps are questions (shares, jobs, enqueue, allocatable, preemptive, reclaim, preempt, order, nodes, inspect) or changes (allocate,
deallocate, setStatus, addJob, removeJob), or they set a mark and roll back to it. A step that fails changes nothing, and the next one
runs. docs/cli.md lists the keys of each.`

// newSimulate is `apportion simulate`.
func newSimulate(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "simulate SCENARIO",
		Short: "Run the steps of a scenario file",
		Long: `Run the steps of a scenario, a YAML file that names a cluster (or uses that of -f) and lists steps:

  cluster: [cluster.yaml]
  config: volcano-scheduler.conf
  steps:
  - shares: {queues: [research]}
  - mark: before
  - deallocate: ml/train-worker-0
  - reclaim: {claimant: ml/other-worker-0, explain: true}
  - rollback: before
` + stepsHelp,
		Example: `  apportion simulate scenario.yaml
  apportion simulate scenario.yaml -f cluster.yaml --policy capacity -o json`,
		Args: exactly(1, "a scenario"),
		RunE: func(command *cobra.Command, names []string) error {
			if err := a.output.check(); err != nil {
				return err
			}
			read, err := readScenario(s, names[0])
			if err != nil {
				return err
			}
			a.input.complete(read)
			return a.ask(command.Context(), func(ctx context.Context, q *question) error { return simulate(ctx, q, names[0], read) })
		},
	}
	a.register(command, true)
	return command
}

func readScenario(s streams, name string) (*scenario.Scenario, error) {
	if name == "-" {
		data, err := io.ReadAll(s.in)
		if err != nil {
			return nil, err
		}
		return scenario.Read("stdin", data)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return scenario.Read(name, data)
}

// complete takes from the scenario what the flags do not say.
func (f *inputFlags) complete(read *scenario.Scenario) {
	if len(f.files) == 0 && f.snapshot == "" {
		f.files, f.snapshot = read.Cluster, read.Snapshot
	}
	if f.config == "" && f.policy == "" && f.policyName == "" {
		f.config, f.policy = read.Config, read.Policy
	}
}

func simulate(ctx context.Context, q *question, file string, read *scenario.Scenario) error {
	translator := scenario.NewTranslator(file, q.snapshot)
	var steps []*scenario.Step
	var messages []*apportionv1.Step
	for _, node := range read.Steps {
		// What a step expects is for `apportion test`.
		ask, _ := suite.Split(node)
		step, err := translator.Step(ask)
		if err != nil {
			return err
		}
		step.Done()
		steps, messages = append(steps, step), append(messages, step.Step)
	}
	simulation, err := q.decider.Simulate(ctx, q.Input, messages...)
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
	err = q.write(simulation.Basis, response, func(p *render.Printer) {
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
		return fmt.Errorf("%d of %d steps failed", failed, len(steps))
	}
	return err
}

// newSession is `apportion session`.
func newSession(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "session",
		Short: "Answer steps from standard input, line by line",
		Long: `Answer each line of standard input immediately: a step as in a scenario file, in one line.

  shares
  reclaim: ml/other-worker-0
  enqueue: {jobs: [ml/train, ml/evaluate]}

With a server, all lines share one session.` + stepsHelp,
		Example: `  echo 'reclaim: ml/train-worker-0' | apportion session -f cluster.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if slices.Contains(a.input.files, "-") {
				return errors.New("standard input holds the steps: name the manifests' file with -f")
			}
			return a.ask(command.Context(), converse)
		},
	}
	a.register(command, true)
	return command
}

// maxLine bounds a line of a session.
const maxLine = 1 << 20

func converse(ctx context.Context, q *question) error {
	session, err := q.decider.OpenSession(ctx, q.Input)
	if err != nil {
		return err
	}
	defer func() {
		if err := session.Close(); err != nil {
			return
		}
	}()
	q.warn(session.Basis())
	translator := scenario.NewTranslator("stdin", q.snapshot)
	lines := bufio.NewScanner(q.in)
	lines.Buffer(nil, maxLine)
	failed := 0
	for number := 1; lines.Scan(); number++ {
		node, err := scenario.Line("stdin", number, lines.Text())
		if err == nil && node == nil {
			continue
		}
		var step *scenario.Step
		if err == nil {
			step, err = translator.Step(node)
		}
		if err != nil {
			fmt.Fprintln(q.err, describe(err))
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
		if err := q.reply(session, step, answers[0]); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("%d steps failed", failed)
	}
	return nil
}

// reply writes the answer to one line: a table, or one line of JSON, or a YAML document.
func (q *question) reply(session *client.Session, step *scenario.Step, answer *apportionv1.Answer) error {
	switch q.output.format {
	case formatTable:
		p := q.printer(session.Basis())
		p.Snapshot = step.Snapshot
		p.Line("%s", p.Paint(render.Strong, "> "+step.Text))
		p.Answer(step.Step, answer)
		p.Line("")
		return nil
	case formatYAML:
		raw, err := document.JSON(answer)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(q.out, "---\n"); err != nil {
			return err
		}
		return q.output.raw(q.streams, raw)
	}
	line, err := document.Line(answer)
	if err != nil {
		return err
	}
	_, err = q.out.Write(line)
	return err
}
