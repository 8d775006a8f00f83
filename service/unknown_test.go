package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// strange adds a field that the contract does not have to a message.
func strange[M proto.Message](m M, number protowire.Number) M {
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 7))
	return m
}

// TestAFieldThatIsNotKnownIsRefusedOnEveryWay sends a field with number 77 by every way in, which is refused with its path, and one with
// number 100, which is not.
func TestAFieldThatIsNotKnownIsRefusedOnEveryWay(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	plain := servicetest.Snapshot(1)
	base := r.Upload(t, plain)
	odd := func(number protowire.Number) *apportionv1.Snapshot {
		s := servicetest.Snapshot(1)
		strange(s.GetJobs()[3].GetGroups()[0].GetTasks()[0], number)
		return s
	}
	inline := func(s *apportionv1.Snapshot) *apportionv1.Input {
		return servicetest.Inline(s, servicetest.Proportion())
	}
	changed := func(number protowire.Number) *apportionv1.Change {
		return &apportionv1.Change{Queues: []*apportionv1.Queue{strange(&apportionv1.Queue{Name: "new"}, number)}}
	}
	upload := func(header *apportionv1.UploadHeader, m proto.Message) error {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		stream, err := r.UploadSnapshot(t.Context())
		require.NoError(t, err)
		_ = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{Header: header}})
		_ = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{
			Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true},
		}})
		_, err = stream.CloseAndRecv()
		return err
	}
	session := func(open *apportionv1.OpenSession, then ...*apportionv1.RunSessionRequest) error {
		stream, err := r.RunSession(t.Context())
		require.NoError(t, err)
		_ = stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}})
		for _, message := range then {
			_ = stream.Send(message)
		}
		_ = stream.CloseSend()
		for err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	batch := func(step *apportionv1.Step) *apportionv1.RunSessionRequest {
		return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{Steps: []*apportionv1.Step{step}}}}
	}
	chunk := func(m proto.Message) *apportionv1.RunSessionRequest {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true}}}
	}
	byDigest := func() *apportionv1.Input {
		return &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: base},
			Rule:   &apportionv1.Input_Policy{Policy: servicetest.Proportion()},
		}
	}
	allocatable := func(number protowire.Number) *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{
			Tasks: strange(&apportionv1.Selector{Indices: []uint32{0}}, number),
		}}}
	}
	for name, way := range map[string]struct {
		path string
		ask  func(number protowire.Number) error
	}{
		"a policy": {"input.policy.tiers[1].plugins[0].proportion.77", func(n protowire.Number) error {
			in := inline(plain)
			strange(in.GetPolicy().GetTiers()[1].GetPlugins()[0].GetProportion(), n)
			_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
			return err
		}},
		"a snapshot": {"input.snapshot.jobs[3].groups[0].tasks[0].77", func(n protowire.Number) error {
			_, err := r.Explain(t.Context(), &apportionv1.ExplainRequest{Input: inline(odd(n))})
			return err
		}},
		"a snapshot for sums": {"input.snapshot.jobs[3].groups[0].tasks[0].77", func(n protowire.Number) error {
			_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inline(odd(n))})
			return err
		}},
		"the change of an input": {"input.events[0].change.queues[0].77", func(n protowire.Number) error {
			in := byDigest()
			in.Events = []*apportionv1.Event{event.Change(changed(n)).GetEvent()}
			_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
			return err
		}},
		"a step": {"steps[0].allocatable.tasks.77", func(n protowire.Number) error {
			_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: inline(plain), Steps: []*apportionv1.Step{allocatable(n)}})
			return err
		}},
		"an upload": {"snapshot.jobs[3].groups[0].tasks[0].77", func(n protowire.Number) error {
			return upload(&apportionv1.UploadHeader{}, odd(n))
		}},
		"the header of an upload": {"header.77", func(n protowire.Number) error {
			return upload(strange(&apportionv1.UploadHeader{}, n), plain)
		}},
		"an upload of a change": {"change.queues[0].77", func(n protowire.Number) error {
			return upload(&apportionv1.UploadHeader{BaseDigest: base}, changed(n))
		}},
		"a session": {"open.input.snapshot.jobs[3].groups[0].tasks[0].77", func(n protowire.Number) error {
			return session(&apportionv1.OpenSession{Input: inline(odd(n))})
		}},
		"the chunks of a session": {"snapshot.jobs[3].groups[0].tasks[0].77", func(n protowire.Number) error {
			in := byDigest()
			in.Source = nil
			return session(&apportionv1.OpenSession{Input: in, Chunked: &apportionv1.UploadHeader{}}, chunk(odd(n)))
		}},
		"a batch": {"batch.steps[0].allocatable.tasks.77", func(n protowire.Number) error {
			return session(&apportionv1.OpenSession{Input: byDigest()}, batch(allocatable(n)))
		}},
		"a change in a batch": {"batch.steps[0].event.change.queues[0].77", func(n protowire.Number) error {
			return session(&apportionv1.OpenSession{Input: byDigest()}, batch(event.Change(changed(n))))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			st := status.Convert(way.ask(77))
			require.Equal(t, codes.InvalidArgument, st.Code(), st.Message())
			var paths []string
			for _, detail := range st.Details() {
				if bad, ok := detail.(*errdetails.BadRequest); ok {
					for _, v := range bad.GetFieldViolations() {
						paths = append(paths, v.GetField())
					}
				}
			}
			require.Equal(t, []string{way.path}, paths)
			require.NotEqual(t, codes.InvalidArgument, status.Code(way.ask(100)))
		})
	}
}
