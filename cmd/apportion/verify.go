package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

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
		Short: "Check an answer without the engine",
		Long: `Check an answer with code that is independent of the engine.

With -f or --snapshot: request the shares of all queues with their derivation and, under fair, the order
of queues and the verdicts about waiting tasks, from a server with --server, and check them. With two
files: check a SimulateRequest and its SimulateResponse, in JSON or YAML. --keep DIRECTORY writes both
files, for checker/check_answer.py.

For plugin fair, the answers to shares, order (of queues), allocatable, preemptive, enqueue and reclaim
must be what the rules make of the snapshot; a step must request the shares of all queues with explain.
For proportion and capacity, the accounts of queues must be: what tasks hold and request, limits, rounds,
deserved, share and overused. The output lists each field that was not checked, with the reason;
[*] stands for each entry of a list.

The exit code is 2 if a field is wrong, or if an answer is an error, which says nothing to check.`,
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
		policy, err := q.policy(ctx)
		if err != nil {
			return err
		}
		steps := questions(policy, q.Snapshot)
		answer, err := q.simulate(ctx, steps...)
		if err != nil {
			return err
		}
		request := &apportionv1.SimulateRequest{
			Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: q.Snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
			},
			Steps: steps,
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

// policy is the policy of a question; or, if the request names a snapshot, as the server read it.
func (q *question) policy(ctx context.Context) (*apportionv1.Policy, error) {
	if q.Policy != nil {
		return q.Policy, nil
	}
	answer, err := q.simulate(ctx, &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}})
	if err != nil {
		return nil, err
	}
	return answer.Answers[0].GetInspect().GetPolicy(), nil
}

// mostTasks bounds the tasks about which verify asks for verdicts.
const mostTasks = 1000

// questions are those whose answers verify checks: shares with their derivation and, under fair, the order of queues and the verdicts about
// the first waiting tasks.
func questions(policy *apportionv1.Policy, snapshot *apportionv1.Snapshot) []*apportionv1.Step {
	steps := []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}}
	if checker.Settings(policy) == nil {
		return steps
	}
	waiting, number := &apportionv1.Tasks{}, uint32(0)
	for _, job := range snapshot.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING && len(waiting.GetIndex()) < mostTasks {
					waiting.Index = append(waiting.GetIndex(), number)
				}
				number++
			}
		}
	}
	return append(steps,
		&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
			Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Queues{}},
		}}},
		&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: waiting}}},
		&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: waiting}}})
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
	// Checked counts the fields that were checked.
	Checked int `json:"checked"`
	// Errors counts the answers that are errors, which say nothing that could be checked.
	Errors int      `json:"errors"`
	Faults []string `json:"faults"`
	// NotChecked lists the fields that were not.
	NotChecked []checker.Unchecked `json:"notChecked"`
}

// verify says what is wrong with a response, what was found right, and what was not checked.
func (a *asking) verify(request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) error {
	report, err := checker.Check(request, response)
	if err != nil {
		return err
	}
	found := verified{
		Valid: len(report.Faults) == 0, Checked: report.Checked, Errors: report.Errors, Faults: append([]string{}, report.Faults...),
		NotChecked: append([]checker.Unchecked{}, report.Unchecked...),
	}
	err = a.write(found, func(p *render.Printer) {
		for _, fault := range found.Faults {
			p.Line("%s", fault)
		}
		answers := len(response.GetAnswers())
		if found.Valid && (found.Errors < answers || answers == 0) {
			p.Line("true: %d fields were checked and follow from the request", found.Checked)
		}
		if found.Errors > 0 {
			p.Line("not checked: %d of %s are errors", found.Errors, plural(answers, "answer"))
		}
		if len(found.NotChecked) == 0 {
			return
		}
		p.Line("")
		p.Line("not checked:")
		table := p.NewTable("FIELD", "WHY")
		for _, row := range rowsOf(found.NotChecked) {
			table.Row(row[0], row[1])
		}
		table.Write(p.Out)
	})
	return cmp.Or(err, verdict(found.Valid && found.Errors == 0))
}

// ofAnswer is the position of an answer at the beginning of a path.
var ofAnswer = regexp.MustCompile(`^answers\[(\d+)\]`)

// rowsOf puts fields of one message, and the same fields of several answers, in one row if the reason is the same.
func rowsOf(list []checker.Unchecked) [][2]string {
	type fields struct{ below, names, why string }
	var messages, rows []fields
	names, answers := map[fields][]string{}, map[fields][]string{}
	for _, u := range list {
		at := strings.LastIndex(u.Field, ".")
		key := fields{below: u.Field[:max(at, 0)], why: u.Why}
		if names[key] == nil {
			messages = append(messages, key)
		}
		names[key] = append(names[key], u.Field[at+1:])
	}
	for _, key := range messages {
		answer := ofAnswer.FindStringSubmatch(key.below)
		row := fields{below: ofAnswer.ReplaceAllString(key.below, "answers[]"), names: strings.Join(names[key], ", "), why: key.why}
		if len(names[key]) > 1 && key.below != "" {
			row.names = "{" + row.names + "}"
		}
		if answers[row] == nil {
			rows = append(rows, row)
		}
		answers[row] = append(answers[row], slices.Concat(answer, []string{"", ""})[1])
	}
	out := make([][2]string, len(rows))
	for i, row := range rows {
		below := strings.Replace(row.below, "answers[]", "answers["+strings.Join(answers[row], ",")+"]", 1)
		out[i] = [2]string{strings.TrimPrefix(below+"."+row.names, "."), row.why}
	}
	return out
}
