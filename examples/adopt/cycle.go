package adopt

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Cycle starts the jobs that may start, and returns why the others wait. Every question refers to the state after the previous answers.
func Cycle(ctx context.Context, decide *client.Client, c *Cluster) (waits map[string]string, err error) {
	snapshot, err := c.Describe()
	if err != nil {
		return nil, err
	}
	session, err := decide.OpenSession(ctx, client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault(), Texts: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, session.Close()) }()
	d := desk{session: session}

	answers, err := d.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION,
	}}})
	if err != nil {
		return nil, err
	}
	waits = map[string]string{}
	for _, admission := range answers[0].GetEnqueue().GetJobs() {
		job := c.Jobs[admission.GetJob()]
		why := because(admission.GetVerdict())
		if admission.GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT {
			if why, err = d.start(ctx, job); err != nil {
				return nil, err
			}
		}
		if why != "" {
			waits[job.Name] = why
		}
	}
	return waits, nil
}

// desk asks on a session.
type desk struct {
	session *client.Session
}

// ask returns the answers, or the error of the first step that has one.
func (d *desk) ask(ctx context.Context, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := d.session.Do(ctx, steps...)
	for _, answer := range answers {
		if fault := answer.GetError(); fault != nil {
			return nil, status.FromProto(fault).Err()
		}
	}
	return answers, err
}

// start places as many pods of a job as the queue may use, or none if these are fewer than the job needs: it then rolls back to a mark.
func (d *desk) start(ctx context.Context, job *Job) (why string, err error) {
	answers, err := d.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
	if err != nil {
		return "", err
	}
	for pod := range job.Pods {
		var node int
		if node, why, err = d.place(ctx, podOf(job, pod)); err != nil || why != "" {
			break
		}
		job.Nodes = append(job.Nodes, node)
	}
	if err == nil && len(job.Nodes) >= job.Least {
		return "", nil
	}
	job.Nodes = nil
	_, undone := d.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{
		Mark: answers[0].GetMark().GetMark(),
	}}})
	return why, firstOf(err, undone)
}

// place asks whether the queue of a pod may use that much more, and where the pod fits best; then it reports the placement.
func (d *desk) place(ctx context.Context, pod string) (node int, why string, err error) {
	task := &apportionv1.Selector{Names: []string{pod}}
	answers, err := d.ask(ctx,
		&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: task}}},
		&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: task, Top: 1}}},
	)
	if err != nil {
		return 0, "", err
	}
	verdict := answers[0].GetAllocatable().GetTasks()[0].GetVerdict()
	if verdict.GetVote() != apportionv1.Vote_VOTE_PERMIT {
		return 0, because(verdict), nil
	}
	nodes := answers[1].GetNodes().GetTasks()[0].GetNodes()
	if len(nodes) == 0 {
		return 0, "no node has room", nil
	}
	_, err = d.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Event{Event: &apportionv1.Event{Event: &apportionv1.Event_Place{
		Place: &apportionv1.Placement{Tasks: task, Nodes: &apportionv1.Selector{Indices: nodes[:1]}},
	}}}})
	return int(nodes[0]), "", err
}

// Evict asks which pods of other queues a waiting pod may evict, in order, and why the others are spared.
func Evict(ctx context.Context, decide client.Decider, c *Cluster, pod string) (victims []string, spared map[string]string, err error) {
	snapshot, err := c.Describe()
	if err != nil {
		return nil, nil, err
	}
	in := client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault()}
	answer, err := decide.Victims(ctx, in, client.VictimsQuestion{Claimant: pod})
	if err != nil {
		return nil, nil, err
	}
	spared = map[string]string{}
	for _, s := range answer.Spared {
		spared[s.Task] = s.Why
	}
	return answer.Tasks, spared, nil
}

// because joins the sentences of a verdict's reasons.
func because(verdict *apportionv1.Verdict) string {
	var sentences []string
	for _, reason := range verdict.GetCauses() {
		sentences = append(sentences, reason.GetText())
	}
	return strings.Join(sentences, "; ")
}

func firstOf(errs ...error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}
