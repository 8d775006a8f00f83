package web

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// A message that cannot be read would be answered by the library, with no word of the contract. So a codec leaves its fault in the message,
// as an unknown field, and the call that is about to be made of it answers with the fault.

// faultField is the number of the unknown field: the last one that there is.
const faultField protowire.Number = 1<<29 - 1

var errNoMessage = errors.New("not a protobuf message")

func leaveFault(m proto.Message, text string) {
	field := protowire.AppendTag(nil, faultField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(field, text))
}

// faultOf returns the fault that a codec left in a message.
func faultOf(request any) *wire.Fault {
	m, ok := request.(proto.Message)
	if !ok {
		return nil
	}
	unknown := m.ProtoReflect().GetUnknown()
	number, kind, size := protowire.ConsumeTag(unknown)
	if size < 0 || number != faultField || kind != protowire.BytesType {
		return nil
	}
	text, _ := protowire.ConsumeString(unknown[size:])
	const longest = 512
	if len(text) > longest {
		text = text[:longest]
	}
	return &wire.Fault{
		Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST,
		Text: strings.ToValidUTF8("the message cannot be read"+text, "\uFFFD"),
	}
}

// jsonCodec is protobuf's JSON. A name that the contract does not have is a fault: whoever writes JSON by hand wants to know.
type jsonCodec struct{}

// Name is that of the media type application/json.
func (jsonCodec) Name() string { return "json" }

// Marshal encodes an answer.
func (jsonCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T: %w", message, errNoMessage)
	}
	return protojson.Marshal(m)
}

// Unmarshal decodes a request.
func (jsonCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T: %w", message, errNoMessage)
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		proto.Reset(m)
		leaveFault(m, ": "+plain(err))
	}
	return nil
}

// plain is what protobuf's JSON says of a text that it cannot read, without the spaces that it varies so that nobody relies on them.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "proto:")
	text = strings.TrimLeft(text, " \u00a0")
	if !utf8.ValidString(text) {
		return "not UTF-8"
	}
	return text
}

// binaryCodec is protobuf's own encoding.
type binaryCodec struct{}

// Name is that of the media type application/proto.
func (binaryCodec) Name() string { return "proto" }

// Marshal encodes an answer.
func (binaryCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T: %w", message, errNoMessage)
	}
	return proto.Marshal(m)
}

// Unmarshal decodes a request.
func (binaryCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T: %w", message, errNoMessage)
	}
	if err := proto.Unmarshal(data, m); err != nil {
		proto.Reset(m)
		leaveFault(m, "")
	}
	return nil
}
