package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// NewVerify is `apportion verify`.
func NewVerify(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	var keep string
	command := a.Command(&cobra.Command{
		Use:   "verify [REQUEST RESPONSE]",
		Short: "Check what plugin fair promises of an answer",
		Long: `Check what plugin fair promises of an answer, with code that is independent of the engine.

With -f or --snapshot: request the shares of all queues with their derivation, and plans for waiting
jobs, from a server with --server, and check them. With two files: check a SimulateRequest and its
SimulateResponse, in JSON or YAML; a step must request the shares of all queues with explain. --keep
DIRECTORY writes both files, for client/check/check_fair.py.

Shares must be what the division makes of the snapshot: what queues hold and ask for, their bounds,
each division with its certificate, and with memory the weights that follow from usage. The plans of
reclaim and plan must keep their promises: victims may be evicted and are needed, the claimant is ready
after it and has room within its limits and its line, and what queues lack of their lines falls.

The output names the answers that were checked, and each field that was not, with the reason. Verdicts,
orders, causes and what other plugins decide are not checked. The exit code is 2 if a number is wrong or
an answer is an error, and 1 if nothing of the answers is checked.`,
		Example: `  apportion verify -f cluster.yaml --policy fair
  apportion verify -f cluster.yaml --server apportion:7171 --policy-name prod
  apportion verify request.json response.json`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) != 0 && len(files) != 2 {
				return errors.New("name a request and its response, or neither")
			}
			return nil
		},
	}, func(ctx context.Context, q *question.Question, _ []string) error {
		policy, err := policyOf(ctx, q)
		if err != nil {
			return err
		}
		if check.Settings(policy) == nil {
			return errNothing("only what plugin fair promises is, and the policy does not have it")
		}
		steps := questions(q.Snapshot)
		answer, err := q.Simulate(ctx, steps...)
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
		return verify(&a.Answering, request, response)
	})
	ask := command.RunE
	command.RunE = func(command *cobra.Command, files []string) error {
		if len(files) == 0 {
			return ask(command, files)
		}
		request, response := &apportionv1.SimulateRequest{}, &apportionv1.SimulateResponse{}
		err := errors.Join(question.ReadMessage(files[0], "request", request), question.ReadMessage(files[1], "response", response))
		if err != nil {
			return err
		}
		return verify(&a.Answering, request, response)
	}
	command.Flags().StringVar(&keep, "keep", "", "write request.json and response.json to `DIRECTORY`")
	cli.Must(command, command.MarkFlagDirname("keep"))
	return command
}

// policyOf returns the policy of a question; or, if the request names a snapshot, as the server read it.
func policyOf(ctx context.Context, q *question.Question) (*apportionv1.Policy, error) {
	if q.Policy != nil {
		return q.Policy, nil
	}
	answer, err := q.Simulate(ctx, &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}})
	if err != nil {
		return nil, err
	}
	return answer.Answers[0].GetInspect().GetPolicy(), nil
}

// mostPlans bounds the jobs for which verify asks for plans.
const mostPlans = 20

// questions are those whose answers verify checks: shares with their derivation, and plans for the first jobs that wait.
func questions(snapshot *apportionv1.Snapshot) []*apportionv1.Step {
	steps := []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}}
	for j, job := range snapshot.GetJobs() {
		if waits := slices.ContainsFunc(job.GetGroups(), func(g *apportionv1.TaskGroup) bool {
			return slices.ContainsFunc(g.GetTasks(), func(t *apportionv1.Task) bool {
				return t.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING
			})
		}); waits && len(steps) <= mostPlans {
			steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
				Job: &apportionv1.Selector{Indices: []uint32{uint32(j)}},
			}}})
		}
	}
	return steps
}

// errNothing says that nothing of an answer was checked, so that this is not taken for a pass.
func errNothing(why string) error { return fmt.Errorf("nothing of this answer is checked: %s", why) }

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
	// Checked lists the answers that were checked.
	Checked []check.Checked `json:"checked"`
	// Errors counts the answers that are errors, which say nothing that could be checked.
	Errors int      `json:"errors"`
	Faults []string `json:"faults"`
	// NotChecked lists the fields that were not.
	NotChecked []check.Unchecked `json:"notChecked"`
}

// verify says what is wrong with a response, what was checked and found right, and what was not checked. It fails if nothing was checked.
func verify(a *cli.Answering, request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) error {
	report, err := check.Response(request, response)
	if err != nil {
		return err
	}
	if len(report.Faults) == 0 && len(report.Checked) == 0 {
		return errNothing(whyNothing(report, len(response.GetAnswers())))
	}
	found := verified{
		Valid: len(report.Faults) == 0, Checked: append([]check.Checked{}, report.Checked...), Errors: report.Errors,
		Faults: append([]string{}, report.Faults...), NotChecked: append([]check.Unchecked{}, report.Unchecked...),
	}
	err = a.Write(found, func(p *render.Printer) { found.print(p, len(response.GetAnswers())) })
	return cmp.Or(err, cli.Verdict(found.Valid && found.Errors == 0))
}

// whyNothing is the reason why no answer of a response was checked.
func whyNothing(report *check.Report, answers int) string {
	if report.Errors > 0 && report.Errors == answers {
		return fmt.Sprintf("%d of %s are errors", report.Errors, text.Count(answers, "answer"))
	}
	var whys []string
	for _, u := range report.Unchecked {
		if strings.HasPrefix(u.Field, "answers[") && !slices.Contains(whys, u.Why) {
			whys = append(whys, u.Why)
		}
	}
	return cmp.Or(strings.Join(whys, "; "), "it has no answers")
}

// print writes what was found as text.
func (v *verified) print(p *render.Printer, answers int) {
	for _, fault := range v.Faults {
		p.Line("%s", fault)
	}
	if v.Valid {
		numbers := 0
		var list []check.Unchecked
		for _, c := range v.Checked {
			numbers += c.Numbers
			list = append(list, check.Unchecked{Field: c.Answer, Why: c.What})
		}
		p.Line("true: %d numbers were checked and follow from the request", numbers)
		printFields(p, "checked", list)
	}
	if v.Errors > 0 {
		p.Line("not checked: %d of %s are errors", v.Errors, text.Count(answers, "answer"))
	}
	printFields(p, "not checked", v.NotChecked)
}

// printFields writes each reason of a list once, and below it the fields that it is said of.
func printFields(p *render.Printer, heading string, list []check.Unchecked) {
	reasons, fields := grouped(list, func(u check.Unchecked) (why, field string) { return u.Why, u.Field })
	for _, why := range reasons {
		p.Line("\n%s: %s", heading, why)
		for _, line := range together(fields[why]) {
			p.Line("  %s", line)
		}
	}
}

// ofAnswer is the position of an answer at the beginning of a path.
var ofAnswer = regexp.MustCompile(`^answers\[(\d+)\]`)

// together puts fields of one message, and then the same fields of several answers, into one line.
func together(paths []string) (lines []string) {
	messages, names := grouped(paths, func(path string) (message, field string) {
		at := strings.LastIndex(path, ".") + 1
		return path[:at], path[at:]
	})
	for i, message := range messages {
		if list := names[message]; len(list) > 1 && message != "" {
			messages[i] += "{" + strings.Join(list, ", ") + "}"
		} else {
			messages[i] += strings.Join(list, ", ")
		}
	}
	rows, answers := grouped(messages, func(fields string) (row, answer string) {
		if at := ofAnswer.FindStringSubmatch(fields); at != nil {
			answer = at[1]
		}
		return ofAnswer.ReplaceAllString(fields, "answers[]"), answer
	})
	for _, row := range rows {
		lines = append(lines, strings.Replace(row, "answers[]", "answers["+strings.Join(answers[row], ",")+"]", 1))
	}
	return lines
}

// grouped parts each entry into a key and the rest, and returns the keys in the order of the list with the rests of each.
func grouped[T any](list []T, part func(T) (key, rest string)) (keys []string, rests map[string][]string) {
	rests = map[string][]string{}
	for _, entry := range list {
		key, rest := part(entry)
		if rests[key] == nil {
			keys = append(keys, key)
		}
		rests[key] = append(rests[key], rest)
	}
	return keys, rests
}
