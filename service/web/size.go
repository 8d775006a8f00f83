package web

import (
	"encoding/base64"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// The most characters of values in protobuf's JSON: of a number, in quotation marks if it has 64 bits, and of a truth value.
const (
	numberLength = 26
	boolLength   = 5
	escapeLength = len(`\u0000`)
)

// jsonLength returns a bound of the length of a message in protobuf's JSON. It is exceeded by no text, and is longer than one only by what
// numbers have fewer digits than they may have.
func jsonLength(m proto.Message) int { return lengthOf(m.ProtoReflect()) }

// marshalJSON encodes a message in memory that is allocated once.
func marshalJSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{}.MarshalAppend(make([]byte, 0, jsonLength(m)), m)
}

// lengthOf is jsonLength of a message: its fields in braces, each with its name, a colon, and a comma with the space that the library adds
// at random. What an Any holds is written as its fields; it is a detail of an error, which is short.
func lengthOf(m protoreflect.Message) int {
	if held, ok := m.Interface().(*anypb.Any); ok {
		return len(`{"@type":"", }`) + stringLength(held.GetTypeUrl()) + sentJSONMost*len(held.GetValue())
	}
	n := len("{}")
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		n += len(`"":, `) + len(f.JSONName())
		switch {
		case f.IsList():
			n += len("[]")
			for i := range v.List().Len() {
				n += len(", ") + valueLength(f, v.List().Get(i))
			}
		case f.IsMap():
			n += len("{}")
			v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				n += len(`"":, `) + stringLength(key.String()) + valueLength(f.MapValue(), value)
				return true
			})
		default:
			n += valueLength(f, v)
		}
		return true
	})
	return n
}

func valueLength(f protoreflect.FieldDescriptor, v protoreflect.Value) int {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return lengthOf(v.Message())
	case protoreflect.StringKind:
		return stringLength(v.String())
	case protoreflect.BytesKind:
		return len(`""`) + base64.StdEncoding.EncodedLen(len(v.Bytes()))
	case protoreflect.BoolKind:
		return boolLength
	case protoreflect.EnumKind:
		if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
			return len(`""`) + len(value.Name())
		}
		return numberLength
	default:
		return numberLength
	}
}

// stringLength counts what JSON escapes: quotation marks, backslashes and control characters.
func stringLength(s string) int {
	n := len(`""`) + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			n++
		case c < ' ', c == 0x7f:
			n += escapeLength - 1
		}
	}
	return n
}
