package service_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/servicetest"
)

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
	streams := apportionv1.ApportionService_ServiceDesc.Streams
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
		s := &streams[int(method)%len(streams)]
		stream, err := r.Conn.NewStream(ctx, s, "/"+apportionv1.ApportionService_ServiceDesc.ServiceName+"/"+s.StreamName,
			grpc.ForceCodecV2(raw{}))
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
