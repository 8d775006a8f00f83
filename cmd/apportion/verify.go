package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/checker"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newVerify is `apportion verify`.
func newVerify(s streams) *cobra.Command {
	a := &asking{streams: s}
	var keep string
	command := &cobra.Command{
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
		RunE: func(command *cobra.Command, files []string) error {
			if len(files) == 2 {
				request, response := &apportionv1.SimulateRequest{}, &apportionv1.SimulateResponse{}
				if err := errors.Join(readMessage(files[0], request), readMessage(files[1], response)); err != nil {
					return err
				}
				return verify(s.out, request, response)
			}
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				step := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}
				answer, err := q.decider.Simulate(ctx, q.Input, step)
				if err == nil {
					err = answer.Err(0)
				}
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
				return verify(s.out, request, response)
			})
		},
	}
	a.register(command, false)
	command.Flags().StringVar(&keep, "keep", "", "write request.json and response.json to `DIRECTORY`")
	if err := command.MarkFlagDirname("keep"); err != nil {
		command.PrintErrln(err)
	}
	return command
}

// readMessage reads a message from a file.
func readMessage(file string, message proto.Message) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return document.Unmarshal(file, data, message)
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

// verify prints what is wrong with an answer, or what was found right.
func verify(out io.Writer, request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) error {
	faults, checked := checker.CheckVolcano(response.GetAnswers()[0].GetShares())
	what := "each of %d numbers follows from those beside it\n"
	if checked == 0 {
		var err error
		if faults, err = checker.Check(request, response); err != nil {
			return err
		}
		what = "every number is what the rules of fair make of the snapshot\n"
	}
	for _, fault := range faults {
		fmt.Fprintln(out, fault)
	}
	if len(faults) > 0 {
		return errDecidedNo
	}
	if checked == 0 {
		fmt.Fprint(out, "true: "+what)
	} else {
		fmt.Fprintf(out, "true: "+what, checked)
	}
	return nil
}
