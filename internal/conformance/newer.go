package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	edge "github.com/apportion/apportion/service"
)

// serveNewer serves as a later version of the contract might, until ctx ends: every message of an answer has a field that this version does
// not know, and every session is asked to go elsewhere before each of its answers. A client that
// is written well takes no notice. The address is written to out.
func serveNewer(ctx context.Context, out io.Writer, address, folder string) error {
	policies, err := readPolicies(folder)
	if err != nil {
		return err
	}
	answering, err := edge.New(edge.Options{Policies: policies})
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
	return edge.NewServer(answering, edge.ServerOptions{
		Unary:  []grpc.UnaryServerInterceptor{answerNewer},
		Stream: []grpc.StreamServerInterceptor{converseNewer},
	}).Serve(ctx, listener)
}

func answerNewer(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	if m, ok := answer.(proto.Message); ok && err == nil {
		extend(m.ProtoReflect())
	}
	return answer, err
}

func converseNewer(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(server, newerStream{stream})
}

// newerStream is a stream on which a later version answers.
type newerStream struct{ grpc.ServerStream }

// SendMsg sends a message as a later version might, and a GoingAway before the answers of a session.
func (s newerStream) SendMsg(message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return s.ServerStream.SendMsg(message)
	}
	if response, ok := m.(*apportionv1.RunSessionResponse); ok && response.GetAnswers() != nil {
		const deadline = 60_000
		away := &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
			GoingAway: &apportionv1.GoingAway{DeadlineMs: deadline},
		}}
		if err := s.ServerStream.SendMsg(away); err != nil {
			return err
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

// extend gives a message, and every message in it, the field that this version does not know.
func extend(m protoreflect.Message) {
	added := protowire.AppendTag(nil, unknownField, protowire.BytesType)
	m.SetUnknown(protowire.AppendString(added, unknownText))
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
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
