package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// held is a snapshot that the service holds, and things in it to ask about.
type held struct {
	digest string
	// pending are a thousand pending tasks, and jobs a thousand jobs, by index.
	pending, jobs []uint32
}

// hold uploads the snapshot of a shape.
func (o *other) hold(ctx context.Context, shape generate.Shape) (held, error) {
	snapshot := generate.Snapshot(shape)
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return held{}, err
	}
	h := choose(snapshot)
	h.digest, err = peer.Upload(ctx, o.ClientConn, data)
	return h, err
}

// choose picks from everywhere in a snapshot.
func choose(snapshot *apportionv1.Snapshot) held {
	const wanted = 1000
	var h held
	var pending []uint32
	number := uint32(0)
	for j, job := range snapshot.GetJobs() {
		if len(h.jobs) < wanted && j%max(len(snapshot.GetJobs())/wanted, 1) == 0 {
			h.jobs = append(h.jobs, uint32(j))
		}
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_PENDING {
					pending = append(pending, number)
				}
				number++
			}
		}
	}
	for i := range wanted {
		h.pending = append(h.pending, pending[i*len(pending)/wanted])
	}
	return h
}

// allocatable asks about tasks in one step.
func allocatable(tasks ...uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{
		Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Selector{Indices: tasks}},
	}}
}

// enqueue asks about jobs in one step.
func enqueue(jobs ...uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{
		Enqueue: &apportionv1.EnqueueStep{Jobs: &apportionv1.Selector{Indices: jobs}},
	}}
}

// talk is one side of an open stream that says the same thing again and again.
type talk struct {
	send, receive func() error
	up, down      int
}

// echoes opens a stream to the floor.
func (o *other) echoes(ctx context.Context, message floor.Bytes) (talk, error) {
	stream, err := o.NewStream(ctx, &floor.StreamDesc, floor.Stream, grpc.ForceCodecV2(floor.Codec{}))
	if err != nil {
		return talk{}, err
	}
	return bytesTalk(stream, message), nil
}

func bytesTalk(stream grpc.ClientStream, message floor.Bytes) talk {
	return talk{
		send: func() error { return stream.SendMsg(&message) },
		receive: func() error {
			var answer floor.Bytes
			return stream.RecvMsg(&answer)
		},
		up: len(message), down: len(message),
	}
}

// opening is the first message of a session.
func (h *held) opening(policy string) (*apportionv1.RunSessionRequest, error) {
	p, err := fixture.Policy(policy)
	open := &apportionv1.OpenSession{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: h.digest},
		Rule:   &apportionv1.Input_Policy{Policy: p},
	}}
	return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}}, err
}

func batch(steps []*apportionv1.Step) *apportionv1.RunSessionRequest {
	return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{Id: 1, Steps: steps}}}
}

// session opens a session that is asked the same batch of steps again and again, by messages. The first step of all is a mark.
func (o *other) session(ctx context.Context, h held, policy string, steps ...*apportionv1.Step) (talk, error) {
	stream, err := apportionv1.NewDecisionServiceClient(o.ClientConn).RunSession(ctx)
	if err != nil {
		return talk{}, err
	}
	opening, err := h.opening(policy)
	if err != nil {
		return talk{}, err
	}
	mark := &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}
	question := batch(steps)
	var answer *apportionv1.RunSessionResponse
	for _, message := range []*apportionv1.RunSessionRequest{opening, batch([]*apportionv1.Step{mark}), question} {
		if err := stream.Send(message); err != nil {
			return talk{}, err
		}
		if answer, err = stream.Recv(); err != nil {
			return talk{}, err
		}
	}
	for i, a := range answer.GetAnswers().GetAnswers() {
		if a.GetError() != nil {
			return talk{}, fmt.Errorf("step %d: %s", i, a.GetError().GetMessage())
		}
	}
	return talk{
		send: func() error { return stream.Send(question) },
		receive: func() error {
			_, err := stream.Recv()
			return err
		},
		up: proto.Size(question), down: proto.Size(answer),
	}, nil
}

// sessionBytes is session with messages that were encoded beforehand, and answers that are not decoded.
func (o *other) sessionBytes(ctx context.Context, h held, policy string, steps ...*apportionv1.Step) (talk, error) {
	method := apportionv1.DecisionService_RunSession_FullMethodName
	stream, err := o.NewStream(ctx, &floor.StreamDesc, method, grpc.ForceCodecV2(floor.Codec{}))
	if err != nil {
		return talk{}, err
	}
	opening, err := h.opening(policy)
	if err != nil {
		return talk{}, err
	}
	mark := &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}
	var question, answer floor.Bytes
	for _, message := range []*apportionv1.RunSessionRequest{opening, batch([]*apportionv1.Step{mark}), batch(steps)} {
		if question, err = proto.Marshal(message); err != nil {
			return talk{}, err
		}
		if err := stream.SendMsg(&question); err != nil {
			return talk{}, err
		}
		if err := stream.RecvMsg(&answer); err != nil {
			return talk{}, err
		}
	}
	t := bytesTalk(stream, bytes.Clone(question))
	t.down = len(answer)
	return t, nil
}

// pingPong waits for each answer before it sends the next question.
func pingPong(t talk) func(context.Context, time.Duration) (block, error) {
	return sequential(func(context.Context) error {
		if err := t.send(); err != nil {
			return err
		}
		return t.receive()
	})
}

// pipelined asks while up to window answers are outstanding. per is how many operations a message is.
func pipelined(t talk, window, per int) func(context.Context, time.Duration) (block, error) {
	return func(_ context.Context, limit time.Duration) (block, error) {
		outstanding, failed := make(chan struct{}, window), make(chan error, 1)
		begin := time.Now()
		go func() {
			defer close(outstanding)
			for time.Since(begin) < limit {
				outstanding <- struct{}{}
				if err := t.send(); err != nil {
					failed <- err
					return
				}
			}
		}()
		var b block
		for range outstanding {
			if err := t.receive(); err != nil {
				return b, err
			}
			b.operations += per
		}
		b.elapsed = time.Since(begin)
		select {
		case err := <-failed:
			return b, err
		default:
			return b, nil
		}
	}
}
