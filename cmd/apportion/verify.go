package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/checker"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newVerify is `apportion verify`.
func newVerify(s streams) *cobra.Command {
	a := &asking{answering: answering{streams: s}}
	var keep string
	command := a.command(&cobra.Command{
		Use:   "verify [REQUEST RESPONSE]",
		Short: "Check the numbers of an answer without the engine",
		Long: `Check the numbers of an answer with code that is independent of the engine.

With -f or --snapshot: request the shares of all queues with their derivation, from a server with
--server, and check them. With two files: check a SimulateRequest, whose first step requests shares
with explain, and its SimulateResponse, in JSON or YAML; reclaim plans in the next steps are checked
too. --keep DIRECTORY writes both files, for checker/check_fair.py and checker/check_plan.py.

For plugin fair, every number is checked against the snapshot. For proportion and capacity, each number
must follow from the others in the answer: every step of every round, the sums, the bounds.

The exit code is 2 if a number is wrong.`,
		Example: `  apportion verify -f cluster.yaml --policy fair
  apportion verify -f cluster.yaml --server apportion:7171 --policy-name prod
  apportion verify request.json response.json`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) != 0 && len(files) != 2 {
				return errors.New("name a request and its response, or neither")
			}
			return nil
		},
	}, func(ctx context.Context, q *question, _ []string) error {
		step := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}
		answer, err := q.simulate(ctx, step)
		if err != nil {
			return err
		}
		request := &apportionv1.SimulateRequest{
			Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: q.Snapshot}, Rule: &apportionv1.Input_Policy{Policy: q.Policy},
			},
			Steps: []*apportionv1.Step{step},
		}
		response := &apportionv1.SimulateResponse{Basis: answer.Basis, Answers: answer.Answers}
		if keep != "" {
			if err := keepFiles(keep, request, response); err != nil {
				return err
			}
		}
		return a.verify(request, response)
	})
	ask := command.RunE
	command.RunE = func(command *cobra.Command, files []string) error {
		if len(files) == 0 {
			return ask(command, files)
		}
		request, response := &apportionv1.SimulateRequest{}, &apportionv1.SimulateResponse{}
		if err := errors.Join(readMessage(files[0], "request", request), readMessage(files[1], "response", response)); err != nil {
			return err
		}
		return a.verify(request, response)
	}
	command.Flags().StringVar(&keep, "keep", "", "write request.json and response.json to `DIRECTORY`")
	must(command, command.MarkFlagDirname("keep"))
	return command
}

// keepFiles writes what was asked and answered.
func keepFiles(directory string, request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // Nothing is written by it.
	for name, message := range map[string]proto.Message{"request.json": request, "response.json": response} {
		data, err := document.JSON(message)
		if err == nil {
			err = root.WriteFile(name, data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verified is the answer of verify; its JSON form.
type verified struct {
	Valid bool `json:"valid"`
	// Checked counts the numbers that were compared with those beside them; 0: all were computed anew.
	Checked int      `json:"checked,omitempty"`
	Faults  []string `json:"faults"`
}

// verify says what is wrong with an answer, or what was found right.
func (a *asking) verify(request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) error {
	if len(response.GetAnswers()) == 0 {
		return errors.New("the response holds no answer")
	}
	faults, numbers := checker.CheckVolcano(response.GetAnswers()[0].GetShares())
	if numbers == 0 {
		var err error
		if faults, err = checker.Check(request, response); err != nil {
			return err
		}
	}
	found := verified{Valid: len(faults) == 0, Checked: numbers, Faults: append([]string{}, faults...)}
	err := a.write(found, func(p *render.Printer) {
		for _, fault := range faults {
			p.Line("%s", fault)
		}
		switch {
		case len(faults) > 0:
		case numbers == 0:
			p.Line("true: every number follows from the snapshot by the rules of fair")
		default:
			p.Line("true: each of %d numbers follows from the others", numbers)
		}
	})
	return cmp.Or(err, verdict(found.Valid))
}
