package web

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

var errNoMessage = errors.New("not a protobuf message")

// jsonMemory is how many bytes decoding JSON takes for each of its bytes at most: an empty message in a list, {}, costs the message's fixed
// size, its place in the list, and what the list leaves behind as it grows.
const jsonMemory = 112

// unmarshalJSON decodes protobuf's JSON. A name that the contract does not have is a fault, so that a slip in a name is noticed.
func unmarshalJSON(data []byte, into proto.Message) error {
	err := protojson.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	const longest = 512
	text := plain(err)
	if len(text) > longest {
		text = text[:longest]
	}
	return invalid(strings.ToValidUTF8("the message cannot be read: "+text, "\uFFFD"))
}

// plain returns the error text of protobuf's JSON for a text that it cannot read, without the spaces that the library varies on purpose.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "proto:")
	text = strings.TrimLeft(text, " \u00a0")
	if !utf8.ValidString(text) {
		return "not UTF-8"
	}
	return text
}

// codec encodes answers. Requests are decoded within the call: Connect is shown empty ones.
type codec struct {
	name    string
	marshal func(proto.Message) ([]byte, error)
}

var (
	jsonCodec = codec{"json", marshalJSON}
	// charsetCodec is for clients that name the charset, as many do by default. Connect takes it for another codec.
	charsetCodec = codec{"json; charset=utf-8", marshalJSON}
	binaryCodec  = codec{"proto", proto.Marshal}
)

// Name is the subtype of the media type: application/json or application/proto.
func (c codec) Name() string { return c.name }

// Marshal encodes an answer.
func (c codec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T: %w", message, errNoMessage)
	}
	return c.marshal(m)
}

// Unmarshal leaves the request as it is.
func (codec) Unmarshal([]byte, any) error { return nil }
