package service_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	contract "github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/servicetest"
)

// raw sends bytes as they are, and drops answers.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	data, _ := v.([]byte)
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "proto" }

// limited has low limits, so that no input takes long.
func limited(tb testing.TB) *servicetest.Replica {
	tb.Helper()
	return servicetest.Start(tb, service.Options{
		Policies: map[string]*apportionv1.Policy{"proportion": servicetest.Proportion(), "capacity": servicetest.Capacity()},
		Deadline: setting.Deadline{Call: 2 * time.Second}, Limit: setting.Limit{AnswerBytes: 1 << 20, MessageBytes: 1 << 20},
		Overload: admission.Options{Memory: 64 << 20, Receiving: 16 << 20},
	})
}

// requireTheirs requires that an error is the caller's fault, not the server's.
func requireTheirs(t *testing.T, err error) {
	t.Helper()
	switch code := status.Code(err); code {
	case codes.Internal, codes.Unknown, codes.Unavailable, codes.DataLoss:
		require.Fail(t, "the server failed", "%v: %v", code, err)
	}
}

func FuzzEachCallTakesAnyMessage(f *testing.F) {
	calls := slices.DeleteFunc(contract.Calls(), func(call protoreflect.MethodDescriptor) bool { return !contract.IsUnary(call) })
	for i := range calls {
		request := &apportionv1.EvaluateSharesRequest{Input: servicetest.Inline(servicetest.Snapshot(uint64(i)), servicetest.Proportion())}
		data, err := proto.Marshal(request)
		require.NoError(f, err)
		f.Add(byte(i), data)
	}
	r := limited(f)
	f.Fuzz(func(t *testing.T, call byte, data []byte) {
		requireTheirs(t, r.Conn.Invoke(t.Context(), contract.PathOf(calls[int(call)%len(calls)]), data, nil, grpc.ForceCodecV2(raw{})))
	})
}

func FuzzEveryStepIsAnsweredOrRefused(f *testing.F) {
	var all []byte
	for i, step := range append(servicetest.Steps(), servicetest.Changes()...) {
		data, err := proto.Marshal(&apportionv1.SimulateRequest{Steps: []*apportionv1.Step{step}})
		require.NoError(f, err)
		f.Add(byte(i), data)
		all = append(all, data...)
	}
	f.Add(byte(0), all)
	var inputs [][]byte
	for _, policy := range []*apportionv1.Policy{servicetest.Proportion(), servicetest.Capacity(), servicetest.Nested()} {
		data, err := proto.Marshal(&apportionv1.SimulateRequest{Input: servicetest.Inline(servicetest.Snapshot(1), policy)})
		require.NoError(f, err)
		inputs = append(inputs, data)
	}
	r := limited(f)
	for _, input := range inputs {
		require.NoError(f, r.Conn.Invoke(f.Context(), apportionv1.DecisionService_Simulate_FullMethodName, input, nil, grpc.ForceCodecV2(raw{})))
	}
	f.Fuzz(func(t *testing.T, policy byte, steps []byte) {
		message := append(append([]byte(nil), inputs[int(policy)%len(inputs)]...), steps...)
		requireTheirs(t, r.Conn.Invoke(t.Context(), apportionv1.DecisionService_Simulate_FullMethodName, message, nil, grpc.ForceCodecV2(raw{})))
	})
}

// FuzzAConnectionTakesAnyBytes writes anything after the greeting of HTTP/2, hangs up, and asks whether the server still answers.
func FuzzAConnectionTakesAnyBytes(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00"))
	server, err := service.New(service.Options{Drain: setting.Drain{Time: time.Second}})
	require.NoError(f, err)
	listener, err := (&net.ListenConfig{}).Listen(f.Context(), "tcp", "127.0.0.1:0")
	require.NoError(f, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	good, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, good.Close())
		end()
		require.NoError(f, <-served)
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		// The server may have closed the connection before all is written.
		_, _ = conn.Write(append([]byte(http2.ClientPreface), data...))
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, _ = io.Copy(io.Discard, conn)
		require.NoError(t, conn.Close())
		_, err = apportionv1.NewDecisionServiceClient(good).Simulate(t.Context(), emptyRequest())
		require.NoError(t, err)
	})
}

// joined puts messages in a row, each with its length before it.
func joined(tb testing.TB, messages ...proto.Message) []byte {
	tb.Helper()
	var out []byte
	for _, m := range messages {
		data, err := proto.Marshal(m)
		require.NoError(tb, err)
		out = protowire.AppendBytes(out, data)
	}
	return out
}

// parted takes such a row apart; data without a length is one message.
func parted(data []byte) (messages [][]byte) {
	for len(data) > 0 {
		message, size := protowire.ConsumeBytes(data)
		if size < 0 {
			return append(messages, data)
		}
		messages, data = append(messages, message), data[size:]
	}
	return messages
}

// FuzzAStreamTakesAnyMessages sends any messages in any order to a session or an upload, and then no more: each ends, and by no fault of the
// server's.
func FuzzAStreamTakesAnyMessages(f *testing.F) {
	streams := slices.DeleteFunc(contract.Calls(), contract.IsUnary)
	input := servicetest.Inline(servicetest.Snapshot(1), servicetest.Proportion())
	open := opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: input.GetSnapshot()}, Rule: &apportionv1.Input_Policy{Policy: input.GetPolicy()},
	}})
	batch := &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
		Batch: &apportionv1.StepBatch{Id: 1, Steps: append(servicetest.Steps(), servicetest.Changes()...)},
	}}
	data, err := proto.Marshal(input.GetSnapshot())
	require.NoError(f, err)
	whole, half := string(data), len(data)/2
	for i := range streams {
		f.Add(byte(i), joined(f, open, batch, batch))
		f.Add(byte(i), joined(f, batch, open))
		f.Add(byte(i), joined(f, header("", len(whole)), chunk(whole[:half], false), chunk(whole[half:], true)))
		f.Add(byte(i), joined(f, header("sha256:00", 1<<40), chunk("", true), chunk("", true)))
		f.Add(byte(i), []byte{})
	}
	r := limited(f)
	f.Fuzz(func(t *testing.T, method byte, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
		stream, err := r.Conn.NewStream(ctx, both, contract.PathOf(streams[int(method)%len(streams)]), grpc.ForceCodecV2(raw{}))
		require.NoError(t, err)
		for _, message := range parted(data) {
			if stream.SendMsg(message) != nil {
				break
			}
		}
		require.NoError(t, stream.CloseSend())
		for err == nil {
			err = stream.RecvMsg(nil)
		}
		require.NoError(t, ctx.Err(), "the stream does not end")
		if !errors.Is(err, io.EOF) {
			requireTheirs(t, err)
		}
	})
}
