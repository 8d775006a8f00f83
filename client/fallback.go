package client

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// down reports whether an error means that the service did not answer, as opposed to an error in its answer.
func down(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown:
		return true
	default:
		return busy(err)
	}
}

// fallback returns the fallback for a service that failed; "": none.
func (c *Client) fallback(ctx context.Context, kind Kind, err error) Fallback {
	if c.remote == nil || !down(err) || errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	return c.fallbacks[kind]
}

// fellBack logs and counts the answer of a fallback.
func (c *Client) fellBack(ctx context.Context, kind Kind, by Fallback, err error) {
	c.logger.LogAttrs(ctx, slog.LevelWarn, "the service did not answer; a fallback did",
		slog.String("kind", string(kind)), slog.String("fallback", string(by)), slog.Any("error", err))
	count(ctx, c.counters.fallbacks, attribute.String("kind", string(kind)), attribute.String("fallback", string(by)))
}

// plainEnqueue gives all jobs the same answer: the requested ones, or all of the snapshot, of which the action considers only the pending
// ones. It has no answer about a job that the snapshot does not have.
func plainEnqueue(in Input, q EnqueueQuestion, vote apportionv1.Vote) (*apportionv1.CheckEnqueueResponse, bool) {
	answer := &apportionv1.EnqueueAnswer{}
	add := func(index int, job *apportionv1.Job) {
		answer.Jobs = append(answer.Jobs, &apportionv1.EnqueueVerdict{
			Job: uint32(index), Uid: uidOf(job), Verdict: &apportionv1.Verdict{Vote: vote},
		})
	}
	jobs := in.snapshot().GetJobs()
	if q.Jobs == nil {
		for i, job := range jobs {
			pending := job.GetPhase() <= apportionv1.JobPhase_JOB_PHASE_PENDING
			if pending || !q.AsAction {
				add(i, job)
			}
		}
	}
	index := make(map[string]int, len(jobs))
	for i := 0; i < len(jobs) && len(q.Jobs) > 0; i++ {
		index[uidOf(jobs[i])] = i
	}
	for _, uid := range q.Jobs {
		i, found := index[uid]
		if !found {
			return nil, false
		}
		add(i, jobs[i])
	}
	return &apportionv1.CheckEnqueueResponse{Enqueue: answer}, true
}

// plainAllocatable gives all tasks the same answer, and never permits them to take from others.
func plainAllocatable(q AllocatableQuestion, vote apportionv1.Vote) (*apportionv1.CheckAllocatableResponse, bool) {
	verdicts := func(vote apportionv1.Vote) []*apportionv1.TaskVerdict {
		if q.Jointly {
			return []*apportionv1.TaskVerdict{{Verdict: &apportionv1.Verdict{Vote: vote}}}
		}
		list := make([]*apportionv1.TaskVerdict, len(q.Tasks))
		for i := range list {
			list[i] = &apportionv1.TaskVerdict{Verdict: &apportionv1.Verdict{Vote: vote}}
		}
		return list
	}
	response := &apportionv1.CheckAllocatableResponse{Allocatable: &apportionv1.AllocatableAnswer{Tasks: verdicts(vote)}}
	if q.Preemptive {
		response.Preemptive = &apportionv1.PreemptiveAnswer{Tasks: verdicts(apportionv1.Vote_VOTE_REJECT)}
	}
	return response, true
}

// plainNodes answers that no node fits.
func plainNodes(in Input, q NodesQuestion) (*apportionv1.ScoreNodesResponse, bool) {
	answer := &apportionv1.NodesAnswer{}
	for range q.Tasks {
		row := &apportionv1.TaskNodes{}
		for i, node := range in.snapshot().GetNodes() {
			if q.Top == 0 && (q.Nodes == nil || slices.Contains(q.Nodes, node.GetName())) {
				row.Nodes, row.Fits, row.Scores = append(row.Nodes, uint32(i)), append(row.Fits, false), append(row.Scores, 0)
			}
		}
		answer.Tasks = append(answer.Tasks, row)
	}
	return &apportionv1.ScoreNodesResponse{Nodes: answer}, true
}
