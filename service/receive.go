package service

import (
	"context"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// A snapshot within a request is the bulk of its bytes, and as messages it would be a million small pieces of garbage. So the bytes of an
// inline snapshot are taken out of a unary request before the rest is decoded, and are compiled as they are (wire.Decoder).

// snapshotBytes is the encoded snapshot of a request, in memory that was received and is lent until the call ends.
type snapshotBytes struct {
	data   []byte
	buffer mem.Buffer
	size   *wire.Size
}

// measure returns what the snapshot holds, counted once.
func (s *snapshotBytes) measure() *wire.Size {
	if s.size == nil {
		size := wire.Measure(s.data)
		s.size = &size
	}
	return s.size
}

func (s *snapshotBytes) free() {
	if s.buffer != nil {
		s.buffer.Free()
		s.buffer, s.data, s.size = nil, nil, nil
	}
}

type snapshotKey struct{}

// withSnapshot returns a context that carries the snapshot of a request to its handler.
func withSnapshot(ctx context.Context, s *snapshotBytes) context.Context {
	return context.WithValue(ctx, snapshotKey{}, s)
}

// heldSnapshot returns the snapshot that was taken out of the request, if one was.
func heldSnapshot(ctx context.Context) (*snapshotBytes, bool) {
	s, ok := ctx.Value(snapshotKey{}).(*snapshotBytes)
	return s, ok && s.data != nil
}

// decoders are reused with their memory: a model that answers one call is built where the last one was.
var decoders idle[*wire.Decoder]

// compileHeld returns the model of an encoded snapshot and a function that takes its memory back; no answer may refer to the model then
// but by strings.
func compileHeld(data []byte, g wire.Guard) (*model.Model, func(), error) {
	d, ok := decoders.get()
	if !ok {
		d = new(wire.Decoder)
	}
	m, err := d.CompileWithin(data, g)
	if err != nil {
		decoders.put(d)
		return nil, nil, err
	}
	return m, func() { decoders.put(d) }, nil
}

// inline is implemented by the requests that may hold a snapshot: field 1 is their Input.
type inline interface {
	proto.Message
	GetInput() *apportionv1.Input
}

// takeOut takes the snapshot out of a request, or out of the first message of a session, and returns it and the rest: decoded, that is
// what decoding the whole would have made, but for a snapshot that is empty. If the input or the snapshot is written in several parts, or
// in none, the rest is the whole: ok is false.
func takeOut(data []byte, request proto.Message) (snapshot, rest []byte, ok bool) {
	input, at, ok := onlyField(data, 1)
	if !ok {
		return nil, data, false
	}
	snapshot, within, ok := onlyField(input, 1)
	_, session := request.(*apportionv1.RunSessionRequest)
	// Of the members of a oneof the last one counts.
	if !ok || hasField(input, 2) || session && (hasField(input, 3) || hasField(data, 2) || hasField(data, 3)) {
		return nil, data, false
	}
	rest = make([]byte, 0, len(data)-len(snapshot)+2*protowire.SizeVarint(uint64(len(data))))
	rest = append(rest, data[:at.from]...)
	left := len(input) - (within.to - within.from)
	empty := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil)
	rest = protowire.AppendTag(rest, 1, protowire.BytesType)
	rest = protowire.AppendVarint(rest, uint64(left+len(empty)))
	rest = append(rest, input[:within.from]...)
	rest = append(rest, empty...)
	rest = append(rest, input[within.to:]...)
	rest = append(rest, data[at.to:]...)
	return snapshot, rest, true
}

// span is where a field lies, its tag included.
type span struct{ from, to int }

// onlyField returns the bytes of a length-delimited field that occurs exactly once.
func onlyField(data []byte, number protowire.Number) (value []byte, at span, ok bool) {
	for from := 0; from < len(data); {
		n, kind, tag := protowire.ConsumeTag(data[from:])
		if tag < 0 {
			return nil, span{}, false
		}
		size := protowire.ConsumeFieldValue(n, kind, data[from+tag:])
		if size < 0 {
			return nil, span{}, false
		}
		to := from + tag + size
		if n == number {
			if ok || kind != protowire.BytesType {
				return nil, span{}, false
			}
			value, _ = protowire.ConsumeBytes(data[from+tag : to])
			at, ok = span{from, to}, true
		}
		from = to
	}
	return value, at, ok
}

// hasField reports whether a field occurs in data that onlyField has found to be well formed.
func hasField(data []byte, number protowire.Number) bool {
	for len(data) > 0 {
		n, kind, tag := protowire.ConsumeTag(data)
		if n == number {
			return true
		}
		data = data[tag+protowire.ConsumeFieldValue(n, kind, data[tag:]):]
	}
	return false
}
