package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire/method"
	edge "github.com/apportion/apportion/service"
)

// serveNewer serves as a later version of the contract might, on a bad day, until ctx ends:
//
//   - every message of an answer has a field that this version does not know, and every refusal is a vote that it does not know,
//   - every other call is refused with the time to retry, as a busy server does,
//   - every session is sent away with its third answer, or after a change if an answer came before, and ends with the next batch.
//
// A client that is written well comes to the same decisions. The address is written to out.
func serveNewer(ctx context.Context, out io.Writer, address, folder string) error {
	policies, err := readPolicies(folder)
	if err != nil {
		return err
	}
	var n newer
	answering, err := edge.New(edge.Options{
		Policies: policies,
		Unary:    []grpc.UnaryServerInterceptor{n.answer},
		Stream:   []grpc.StreamServerInterceptor{n.converse},
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "a later version serves address=%s\n", listener.Addr()); err != nil {
		return err
	}
	return answering.Serve(ctx, listener)
}

// newer is that server: how many calls it got.
type newer struct{ calls atomic.Int64 }

// comeAgain is the delay after which a busy server asks for a retry.
const comeAgain = 20 * time.Millisecond

// busy is the refusal of every other call of the contract, beginning with the first one.
func (n *newer) busy(path string) error {
	if method.At(path) == nil || n.calls.Add(1)%2 == 0 {
		return nil
	}
	return status.FromProto(decode.Status(&decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Text: "too many calls", Retry: comeAgain,
	})).Err()
}

func (n *newer) answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := n.busy(info.FullMethod); err != nil {
		return nil, err
	}
	answer, err := handle(ctx, request)
	if m, ok := answer.(proto.Message); ok && err == nil {
		extend(m.ProtoReflect())
	}
	return answer, err
}

func (n *newer) converse(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := n.busy(info.FullMethod); err != nil {
		return err
	}
	s := &newerStream{ServerStream: stream}
	err := handle(server, s)
	if s.overstayed.Load() {
		return errOverstayed
	}
	return err
}

// lastAnswer is the answer with which a session is sent away.
const lastAnswer = 3

// errOverstayed ends the session of a client that was sent away, and stays.
var errOverstayed = status.Error(codes.Unavailable, "the session was to go elsewhere")

// newerStream is a stream on which a later version answers.
type newerStream struct {
	grpc.ServerStream

	answers    atomic.Int32
	sent       atomic.Bool
	overstayed atomic.Bool
}

// SendMsg sends a message as a later version might, and a GoingAway before the last answer of a session. There is no answer after that. The
// first answer may be that to the repeated steps of a session that was sent here.
func (s *newerStream) SendMsg(message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return s.ServerStream.SendMsg(message)
	}
	if response, ok := m.(*apportionv1.RunSessionResponse); ok && response.GetAnswers() != nil {
		changed := slices.ContainsFunc(response.GetAnswers().GetAnswers(), func(a *apportionv1.Answer) bool {
			return len(a.GetEvent().GetQueues()) > 0
		})
		switch n := s.answers.Add(1); {
		case s.sent.Load():
			s.overstayed.Store(true)
			return errOverstayed
		case n == lastAnswer || changed && n > 1:
			s.sent.Store(true)
			away := &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
				GoingAway: &apportionv1.GoingAway{DeadlineMs: 1},
			}}
			if err := s.ServerStream.SendMsg(away); err != nil {
				return err
			}
		}
	}
	extend(m.ProtoReflect())
	return s.ServerStream.SendMsg(message)
}

// A field with a number that no message of this version has, and its value.
const (
	unknownField = 1000
	unknownText  = "of a later version"
)

// unknownVote is a vote that this version does not know.
const unknownVote = 100

// extend gives a message, and every message in it, the field that this version does not know, and refusals the vote.
func extend(m protoreflect.Message) {
	added := protowire.AppendTag(nil, unknownField, protowire.BytesType)
	m.SetUnknown(protowire.AppendString(added, unknownText))
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Enum() != nil && field.Enum().FullName() == apportionv1.Vote_VOTE_REJECT.Descriptor().FullName():
			if value.Enum() == apportionv1.Vote_VOTE_REJECT.Number() {
				m.Set(field, protoreflect.ValueOfEnum(unknownVote))
			}
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				extend(value.List().Get(i).Message())
			}
		default:
			extend(value.Message())
		}
		return true
	})
}
