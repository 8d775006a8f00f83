package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Desk is a conversation with Apportion about one moment: all decisions that this scheduler leaves to the service. Things are named by
// their positions, which are those of the snapshot.
type Desk struct {
	ctx     context.Context //nolint:containedctx // A desk is open for one cycle.
	session *client.Session
	jobs    []*Job
	// number of each job's first task.
	first []uint32
	// index of each job.
	index map[*Job]uint32
}

func openDesk(ctx context.Context, decider *client.Client, policy *apportionv1.Policy, state *State) (*Desk, error) {
	snapshot, err := state.snapshot()
	if err != nil {
		return nil, err
	}
	session, err := decider.OpenSession(ctx, client.Input{Snapshot: snapshot, Policy: policy})
	if err != nil {
		return nil, err
	}
	desk := &Desk{ctx: ctx, session: session, jobs: state.jobs, index: make(map[*Job]uint32, len(state.jobs))}
	next := uint32(0)
	for i, job := range state.jobs {
		desk.index[job] = uint32(i)
		desk.first = append(desk.first, next)
		next += uint32(len(job.Tasks))
	}
	return desk, nil
}

func (d *Desk) close() error { return d.session.Close() }

// ask has steps answered; the error of a step is an error of the conversation, for this scheduler asks nothing impossible.
func (d *Desk) ask(steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := d.session.Do(d.ctx, steps...)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		if fault := answers[i].GetError(); fault != nil {
			return nil, fmt.Errorf("%v: %w", step, status.FromProto(fault).Err())
		}
	}
	return answers, nil
}

func (d *Desk) task(job *Job, task int) *apportionv1.Tasks {
	return &apportionv1.Tasks{Index: []uint32{d.first[d.index[job]] + uint32(task)}}
}

// owner is the job and the position within it of a task by number.
func (d *Desk) owner(number uint32) (job *Job, task int) {
	for i, first := range slices.Backward(d.first) {
		if first <= number {
			return d.jobs[i], int(number - first)
		}
	}
	return nil, 0
}

// admit asks which of the jobs that wait outside may enter their queues.
func (d *Desk) admit() ([]*Job, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION, OmitNames: true,
	}}})
	if err != nil {
		return nil, err
	}
	var admitted []*Job
	for _, verdict := range answers[0].GetEnqueue().GetJobs() {
		if verdict.GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT {
			admitted = append(admitted, d.jobs[verdict.GetJob()])
		}
	}
	return admitted, nil
}

// queues are the queues that may be served, in order; all: the others too.
func (d *Desk) queues(all bool) ([]int, error) {
	answers, err := d.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
			Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Queues{}},
		}}},
		&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
			Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_SHARE}, OmitNames: true,
		}}},
	)
	if err != nil {
		return nil, err
	}
	overused := make(map[uint32]bool)
	for _, standing := range answers[1].GetShares().GetStandings() {
		overused[standing.GetQueue()] = standing.GetOverused()
	}
	var queues []int
	for _, queue := range answers[0].GetOrder().GetSorted() {
		if all || !overused[queue] {
			queues = append(queues, int(queue))
		}
	}
	return queues, nil
}

// inOrder sorts jobs: who is served first comes first.
func (d *Desk) inOrder(jobs []*Job) ([]*Job, error) {
	if len(jobs) < 2 {
		return jobs, nil
	}
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
		Subject: &apportionv1.OrderStep_Jobs{Jobs: d.named(jobs)},
	}}})
	if err != nil {
		return nil, err
	}
	sorted := make([]*Job, 0, len(jobs))
	for _, index := range answers[0].GetOrder().GetSorted() {
		sorted = append(sorted, d.jobs[index])
	}
	return sorted, nil
}

func (d *Desk) named(jobs []*Job) *apportionv1.Jobs {
	selected := &apportionv1.Jobs{}
	for _, job := range jobs {
		selected.Index = append(selected.Index, d.index[job])
	}
	return selected
}

// ready asks whether a job has what it needs to run.
func (d *Desk) ready(job *Job) (bool, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{
		Jobs: d.named([]*Job{job}), OmitNames: true,
	}}})
	if err != nil {
		return false, err
	}
	return answers[0].GetJobs().GetJobs()[0].GetReady().GetVote() == apportionv1.Vote_VOTE_PERMIT, nil
}

// allowed asks whether the queue of a task may use that much more.
func (d *Desk) allowed(job *Job, task int) (bool, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{
		Allocatable: &apportionv1.AllocatableStep{Tasks: d.task(job, task)},
	}})
	if err != nil {
		return false, err
	}
	return answers[0].GetAllocatable().GetTasks()[0].GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT, nil
}

// node asks for the best node that has room for a task; idle if none has.
func (d *Desk) node(job *Job, task int) (int, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: d.task(job, task), Top: 1}}})
	if err != nil {
		return idle, err
	}
	row := answers[0].GetNodes().GetTasks()[0]
	if len(row.GetNode()) == 0 {
		return idle, nil
	}
	return int(row.GetNode()[0]), nil
}

// placed and evicted tell what the scheduler has done, so that the next question is about the state after it.
func (d *Desk) placed(job *Job, task, node int) error {
	_, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Allocate{Allocate: &apportionv1.AllocateStep{
		Tasks: d.task(job, task), Node: []uint32{uint32(node)},
	}}})
	return err
}

func (d *Desk) evicted(job *Job, task int) error {
	_, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Deallocate{Deallocate: &apportionv1.DeallocateStep{
		Tasks: d.task(job, task), Status: apportionv1.TaskStatus_TASK_STATUS_PENDING,
	}}})
	return err
}

// mark remembers the state.
func (d *Desk) mark() (uint32, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
	if err != nil {
		return 0, err
	}
	return answers[0].GetMark().GetMark(), nil
}

// rollback undoes all changes since the mark.
func (d *Desk) rollback(mark uint32) error {
	_, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}})
	return err
}
