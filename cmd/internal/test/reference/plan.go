package reference

import (
	"fmt"
	"slices"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// plan holds the questions of a case as steps, and for each the function that converts its answer.
type plan struct {
	*subject
	steps []*apportionv1.Step
	reads []func(f *form, a *apportionv1.Answer)
	// blank returns the contents of a form before any answer is read.
	blank []func(f *form)
	// status is the status of each task after the steps so far.
	status []apportionv1.TaskStatus
}

// What the recording says of a question about something that is not in the session.
const (
	noTask = "no such task in session"
	noJob  = "no such job in session"
)

// plan makes the steps of a case, in the order in which Volcano was asked: the answers depend on it.
func (s *subject) plan(script *Script) *plan {
	p := &plan{subject: s, status: slices.Clone(s.status)}
	p.inspect()
	p.shares(everything)
	p.verdicts()
	p.orders()
	p.reclaims(script.Reclaims)
	p.preempts(script.Preempts)
	p.victimQueues(script.VictimQueues)
	p.simulate(script.Simulate)
	p.nodes(script.NodeTasks)
	p.enqueue(script.EnqueueOrder)
	p.events(script.Events)
	if len(script.Events) > 0 {
		p.shares(everything, afterEvents)
		p.verdicts(afterEvents)
		p.orders(afterEvents)
	}
	return p
}

const afterEvents = "afterEvents"

// ask adds a step. Its answer is brought into the recorded form by read and put where it belongs; a failure is put there as text, which is
// missing if the step names something that is not there.
func (p *plan) ask(step *apportionv1.Step, where place, missing string, read func(f *form, a *apportionv1.Answer) any) {
	p.steps = append(p.steps, step)
	p.reads = append(p.reads, func(f *form, a *apportionv1.Answer) {
		if failure := a.GetError(); failure != nil {
			where(f, failureText(failure, missing))
			return
		}
		where(f, read(f, a))
	})
}

// prepare adds to the contents of a form before any answer is read.
func (p *plan) prepare(blank func(f *form)) { p.blank = append(p.blank, blank) }

// failureText is a failed step in the recorded form.
func failureText(failure *spb.Status, missing string) string {
	if missing != "" && decode.ReasonOf(failure) == apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP {
		return missing
	}
	return fmt.Sprintf("error: code %d: %s", failure.Code, failure.Message)
}

// unanswered takes the place of an answer of an unexpected kind.
const unanswered = "(no answer of this kind)"

// done reads the answer of a step without a result.
func done(_ *form, a *apportionv1.Answer) any {
	if a.GetEvent() == nil && a.GetMark() == nil {
		return unanswered
	}
	return "ok"
}

// form brings the answers into the recorded form.
func (p *plan) form(answers []*apportionv1.Answer, basis *apportionv1.Basis) (object, error) {
	if len(answers) != len(p.steps) {
		return nil, fmt.Errorf("%d answers came to %d steps", len(answers), len(p.steps))
	}
	f := &form{subject: p.subject, dimensions: basis.GetDimensions(), root: object{}}
	for _, prepare := range p.blank {
		prepare(f)
	}
	for i, read := range p.reads {
		read(f, answers[i])
	}
	return f.root, nil
}

// taskRefs refers to tasks by number, and to those that are not in the snapshot by name.
func (p *plan) taskRefs(names ...string) *apportionv1.Selector {
	refs := &apportionv1.Selector{}
	for _, name := range names {
		if t, ok := p.tasks[name]; ok {
			refs.Indices = append(refs.Indices, t)
		} else {
			refs.Names = append(refs.Names, name)
		}
	}
	return refs
}

// known drops the tasks that are not in the snapshot, as the recording did with candidates and with tasks to place on nodes.
func (p *plan) known(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := p.tasks[name]; return !ok })
}

// pending lists the tasks that are pending now.
func (p *plan) pending() []uint32 {
	var list []uint32
	for t, status := range p.status {
		if status == apportionv1.TaskStatus_TASK_STATUS_PENDING {
			list = append(list, uint32(t))
		}
	}
	return list
}

// busy reports for each queue whether it has jobs.
func (p *plan) busy() []bool {
	has := make([]bool, len(p.queueNames))
	for _, q := range p.ofJob {
		has[q] = true
	}
	return has
}
