package service

import (
	"context"
	"errors"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/field"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire"
)

// A snapshot within a request is the bulk of its bytes, and as messages it would be a million small pieces of garbage. So the bytes of an
// inline snapshot are taken out of a request before the rest is decoded, and are compiled as they are (decode.Decoder).

// snapshot is the encoded snapshot of a request, or the change of one, in memory that was received and is lent until the call ends.
type snapshot struct {
	data   []byte
	change bool
	buffer mem.Buffer
	size   *decode.Size
}

// measure returns what the snapshot holds, counted once.
func (s *snapshot) measure() *decode.Size {
	if s.size == nil {
		size := decode.Measure(s.data)
		s.size = &size
	}
	return s.size
}

func (s *snapshot) free() {
	if s.buffer != nil {
		s.buffer.Free()
		s.buffer, s.data, s.size, s.change = nil, nil, nil, false
	}
}

// decode decodes a request from a message. If into is not nil, the bytes of an inline snapshot are left there instead.
func (in *receiver) decode(ctx context.Context, m *message, request any, into *snapshot) error {
	decoded, ok := request.(proto.Message)
	if !ok {
		return errNoMessage
	}
	of, ok := shapeOf(request)
	if !ok {
		if err := decode.Known(decoded, m.data()); err != nil {
			return err
		}
		// A piece of a snapshot is copied, nothing more.
		if err := m.decoding(ctx, in, m.buffer.Len()); err != nil {
			return err
		}
		return readable(proto.Unmarshal(m.data(), decoded))
	}
	taken, rest, apart := taken{}, m.data(), false
	if into != nil {
		taken, rest, apart = takeOut(rest, decoded)
	}
	question := len(rest)
	if int64(len(rest)) > in.small {
		question -= of.chunk(rest)
		if err := checkQuestion(in.limits, rest, question, of); err != nil {
			return err
		}
	}
	if err := m.decoding(ctx, in, decodedBytes*question+len(rest)-question); err != nil {
		return err
	}
	if session, ok := request.(*apportionv1.RunSessionRequest); ok && !apart && wire.DecodeBatch(rest, session) {
		return nil
	}
	if err := decode.Known(decoded, rest); err != nil {
		return err
	}
	if apart {
		m.buffer.Ref()
		into.data, into.change, into.buffer = taken.data, taken.change, m.buffer
	}
	return readable(in.unmarshal(rest, decoded))
}

var errNoMessage = errors.New("the request is not a message")

// readable returns the contract's INVALID_ARGUMENT for bytes that are not a message: gRPC would return INTERNAL, which alerts operators.
func readable(err error) error {
	if err != nil {
		return invalidRequest("", "the message cannot be read")
	}
	return nil
}

// inline is implemented by the requests that may hold a snapshot: field 1 is their Input.
type inline interface {
	proto.Message
	GetInput() *apportionv1.Input
}

// shape holds the paths of field numbers at which a request has its Input and lists steps.
type shape struct {
	input []protowire.Number
	steps []protowire.Number
}

var (
	unaryShape   = shape{input: []protowire.Number{1}}
	simulate     = shape{input: []protowire.Number{1}, steps: []protowire.Number{2}}
	sessionShape = shape{input: []protowire.Number{1, 1}, steps: []protowire.Number{3, 2}}
)

// shapeOf returns the sizes of a request that are compared with limits before decoding; false: it holds next to nothing.
func shapeOf(request any) (shape, bool) {
	switch request.(type) {
	case *apportionv1.SimulateRequest:
		return simulate, true
	case *apportionv1.RunSessionRequest:
		return sessionShape, true
	case inline:
		return unaryShape, true
	}
	return shape{}, false
}

// chunk is the number of bytes of a message that are part of a snapshot, which stay as they are.
func (z shape) chunk(data []byte) int {
	chunk := 0
	if len(z.steps) > 1 {
		eachAt(data, []protowire.Number{chunkField}, func(one []byte) { chunk += len(one) })
	}
	return chunk
}

// chunkField is the field of a session's message that holds a piece of its snapshot.
const chunkField protowire.Number = 2

// checkQuestion holds the bytes of a message, snapshot left out, against the limits before they become messages, which take up to a hundred
// times as much memory.
func checkQuestion(l *setting.Limit, data []byte, left int, of shape) error {
	const beside = "the message has too many bytes beside its snapshot"
	if err := exceeded("question_bytes", int64(left), int64(l.QuestionBytes), beside); err != nil {
		return err
	}
	var policy, steps int64
	var added decode.Size
	count := func(n int64, size decode.Size) {
		steps += n
		added.Add(&size, 0)
	}
	eachAt(data, of.input, func(input []byte) {
		eachAt(input, []protowire.Number{inputPolicy}, func(one []byte) { policy += int64(len(one)) })
		count(wire.MeasureEvents(input, int32(inputEvents)))
	})
	if err := exceeded("policy_bytes", policy, int64(l.PolicyBytes), "the policy has too many bytes"); err != nil {
		return err
	}
	if last := len(of.steps) - 1; last >= 0 {
		eachAt(data, of.steps[:last], func(list []byte) { count(wire.MeasureSteps(list, int32(of.steps[last]))) })
	}
	if err := exceeded("steps", steps, l.Steps, "too many steps at a time"); err != nil {
		return err
	}
	return added.Within(decode.LimitsOf(l))
}

// small returns the size up to which messages are within all limits whatever their contents: all that question counts takes a byte at
// least.
func small(l *setting.Limit) int64 {
	small := min(int64(l.QuestionBytes), int64(l.PolicyBytes), l.Steps)
	for _, most := range []int64{l.Dimensions, l.Nodes, l.NodeSets, l.Queues, l.Jobs, l.Groups, l.Tasks} {
		if most > 0 {
			small = min(small, most)
		}
	}
	return small
}

// eachAt yields every occurrence of a length-delimited field that is nested along a path, up to a fault in the data.
func eachAt(data []byte, path []protowire.Number, do func([]byte)) {
	if len(path) == 0 {
		do(data)
		return
	}
	field.Each(data, tagOf(path[0]), func(within []byte) bool {
		eachAt(within, path[1:], do)
		return true
	})
}

// tagOf returns the tag of a length-delimited field.
func tagOf(number protowire.Number) uint32 { return uint32(number)<<3 | field.Delimited }

// taken is the part that was cut out of a request: a snapshot, or the change of one.
type taken struct {
	data   []byte
	change bool
}

// takeOut takes the snapshot, or the change of one, out of a request, or out of the first message of a session, and returns it and the
// rest. The decoded rest equals the decoded whole, but for a snapshot or a change that is empty. If the input or the snapshot is written in
// several parts, or in none, the rest is the whole: ok is false.
func takeOut(data []byte, request proto.Message) (out taken, rest []byte, ok bool) {
	if _, session := request.(*apportionv1.RunSessionRequest); !session {
		return takeOutOf(data, takeOutInput)
	}
	out, rest, ok = takeOutOf(data, func(open []byte) (taken, []byte, bool) { return takeOutOf(open, takeOutInput) })
	// Of the members of a oneof the last one counts.
	if !ok || hasField(data, 2) || hasField(data, 3) {
		return taken{}, data, false
	}
	return out, rest, true
}

// The fields of Input that hold a snapshot, its digest or name, and events; eventChange is that of an event that holds a change.
const (
	inputSnapshot protowire.Number = 1
	inputDigest   protowire.Number = 2
	inputEvents   protowire.Number = 5
	inputName     protowire.Number = 7
	eventChange   protowire.Number = 5
)

// takeOutInput takes the snapshot out of an Input, or the change if that is the only event since a snapshot that is named.
func takeOutInput(input []byte) (out taken, rest []byte, ok bool) {
	if data, at, ok := onlyField(input, inputSnapshot); ok {
		if hasField(input, inputDigest) || hasField(input, inputName) {
			return taken{}, input, false
		}
		return taken{data, false}, replaced(input, inputSnapshot, at, nil), true
	}
	event, at, ok := onlyField(input, inputEvents)
	if !ok || hasField(input, inputSnapshot) {
		return taken{}, input, false
	}
	data, within, ok := onlyField(event, eventChange)
	if !ok || within != (span{0, len(event)}) {
		return taken{}, input, false
	}
	return taken{data, true}, replaced(input, inputEvents, at, replaced(event, eventChange, within, nil)), true
}

// takeOutOf takes the snapshot out of field 1 of a message, as take does with the field's bytes.
func takeOutOf(data []byte, take func([]byte) (out taken, rest []byte, ok bool)) (out taken, rest []byte, ok bool) {
	within, at, ok := onlyField(data, 1)
	if !ok {
		return taken{}, data, false
	}
	out, left, ok := take(within)
	if !ok {
		return taken{}, data, false
	}
	return out, replaced(data, 1, at, left), true
}

// replaced returns a message with other bytes in a field, which lies at the given place.
func replaced(data []byte, number protowire.Number, at span, field []byte) []byte {
	out := make([]byte, 0, len(data)-(at.to-at.from)+len(field)+2*protowire.SizeVarint(uint64(len(data))))
	out = append(out, data[:at.from]...)
	out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), field)
	return append(out, data[at.to:]...)
}

// span is the position of a field, its tag included.
type span struct{ from, to int }

// onlyField returns the bytes of a length-delimited field that occurs exactly once.
func onlyField(data []byte, number protowire.Number) (value []byte, at span, ok bool) {
	for i := 0; i < len(data); {
		tag, _, from, to := field.At(data, i)
		if to < 0 {
			return nil, span{}, false
		}
		if tag>>3 == uint32(number) {
			if ok || tag != tagOf(number) {
				return nil, span{}, false
			}
			value, at, ok = data[from:to], span{i, to}, true
		}
		i = to
	}
	return value, at, ok
}

// hasField reports whether a field occurs in data that onlyField has found to be well formed.
func hasField(data []byte, number protowire.Number) bool {
	for i := 0; i < len(data); {
		tag, _, _, to := field.At(data, i)
		if tag>>3 == uint32(number) {
			return true
		}
		i = to
	}
	return false
}
