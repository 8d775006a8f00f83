package wire

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/field"
)

// A batch of a session mostly holds small steps of a few kinds. What the protobuf library makes in nine pieces of memory for each of them
// is made here in one or two.

var (
	batchShape, stepShape = decode.ShapeOf((*apportionv1.StepBatch)(nil)), decode.ShapeOf((*apportionv1.Step)(nil))
	eventShape            = decode.ShapeOf((*apportionv1.Event)(nil))
)

// DecodeBatch decodes an encoded batch of steps into an empty request, with the same result as the protobuf library, but drops informative
// fields. For other requests, unusual encodings, fields that are not known, and invalid bytes it returns false and leaves the request
// unchanged; use Known and the library for them.
func DecodeBatch(data []byte, request *apportionv1.RunSessionRequest) bool {
	tag, _, from, to := uint32(0), uint64(0), 0, -1
	if len(data) > 0 {
		tag, _, from, to = field.At(data, 0)
	}
	if tag != tagRequestBatch || to != len(data) {
		return false
	}
	made := &struct {
		member apportionv1.RunSessionRequest_Batch
		batch  apportionv1.StepBatch
		// one is room for the only step.
		one [1]*apportionv1.Step
	}{}
	made.member.Batch = &made.batch
	if !readBatch(data[from:], &made.batch, made.one[:0]) {
		return false
	}
	request.Message = &made.member
	return true
}

// readBatch reads a batch whose list of steps lies in the given memory if it fits.
func readBatch(data []byte, batch *apportionv1.StepBatch, list []*apportionv1.Step) bool {
	steps := 0
	if !field.Each(data, tagBatchStep, func([]byte) bool { steps++; return true }) {
		return false
	}
	if steps > 0 {
		batch.Steps = slices.Grow(list, steps)
	}
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		switch tag {
		case tagBatchID:
			batch.Id = value
		case tagBatchStep:
			step := readStep(data[from:to])
			if step == nil {
				return false
			}
			batch.Steps = append(batch.Steps, step)
		default:
			if !batchShape.Has(tag) {
				return false
			}
		}
		i = to
	}
	return true
}

// readStep returns nil for what is left to the library.
func readStep(data []byte) *apportionv1.Step {
	if len(data) == 0 {
		return nil
	}
	tag, _, from, to := field.At(data, 0)
	if tag&7 != field.Delimited || to != len(data) {
		return nil
	}
	if q := numbered(int32(tag >> 3)); q != nil && q.read != nil {
		return q.read(data[from:])
	}
	step := &apportionv1.Step{}
	if !stepShape.Knows(data) || (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, step) != nil {
		return nil
	}
	return step
}

// made is a step and its parts in one allocation.
type made[M, B any] struct {
	step   apportionv1.Step
	member M
	body   B
	tasks  apportionv1.Selector
	// one is memory for the index of a selection of one task.
	one [1]uint32
}

// stepFields are the fields of steps and events about tasks or jobs: the selection in field 1, one of nodes in field 2 if it is a message,
// and numbers in the others.
type stepFields struct {
	of      *decode.Shape
	chosen  [3]selection
	numbers [5]uint64
}

// selection holds the fields of a Selector.
type selection struct {
	given bool
	index []uint32
	names []string
}

// The fields of a request of a session, of a batch, of a Selector, and of an event.
const (
	tagRequestBatch   = 3<<3 | field.Delimited
	tagBatchID        = 1<<3 | field.Varint
	tagBatchStep      = 2<<3 | field.Delimited
	tagSelectionIndex = 1 << 3
	tagSelectionName  = 2<<3 | field.Delimited
	tagPlacement      = 2<<3 | field.Delimited
	tagEviction       = 3<<3 | field.Delimited
	tagStatus         = 4<<3 | field.Delimited
	tagChange         = 5<<3 | field.Delimited
)

// reader returns a function that reads the message of a step; set sets it, and makes it the step.
func reader[M, B any](set func(*made[M, B], stepFields)) func([]byte) *apportionv1.Step {
	of := shapeOf[B]()
	return func(data []byte) *apportionv1.Step {
		m := &made[M, B]{}
		r := stepFields{of: of}
		r.chosen[1].index = m.one[:0]
		if !r.read(data) {
			return nil
		}
		set(m, r)
		return &m.step
	}
}

func shapeOf[B any]() *decode.Shape {
	var body any = new(B)
	message, _ := body.(proto.Message)
	return decode.ShapeOf(message)
}

// happening is the step of an event and its parts in one allocation.
type happening[M, B any] struct {
	step   apportionv1.Step
	member apportionv1.Step_Event
	event  apportionv1.Event
	choice M
	body   B
	tasks  apportionv1.Selector
	nodes  apportionv1.Selector
	// one and at are memory for the indices of one task and one node.
	one, at [1]uint32
}

// eventReader returns a function that reads the message in an event; set sets it, and makes it the event's choice.
func eventReader[M, B any](set func(*happening[M, B], stepFields)) func([]byte) *apportionv1.Step {
	of := shapeOf[B]()
	return func(data []byte) *apportionv1.Step {
		m := &happening[M, B]{}
		r := stepFields{of: of}
		r.chosen[1].index, r.chosen[2].index = m.one[:0], m.at[:0]
		if !r.read(data) {
			return nil
		}
		set(m, r)
		m.step.Step, m.member.Event = &m.member, &m.event
		return &m.step
	}
}

var (
	readPlacement = eventReader(func(m *happening[apportionv1.Event_Place, apportionv1.Placement], r stepFields) {
		m.body.Tasks, m.body.Nodes = r.chosen[1].into(&m.tasks), r.chosen[2].into(&m.nodes)
		m.event.Event, m.choice.Place = &m.choice, &m.body
	})
	readEviction = eventReader(func(m *happening[apportionv1.Event_Evict, apportionv1.Eviction], r stepFields) {
		m.body.Tasks, m.body.Status = r.chosen[1].into(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
		m.event.Event, m.choice.Evict = &m.choice, &m.body
	})
	readStatus = eventReader(func(m *happening[apportionv1.Event_Status, apportionv1.StatusChange], r stepFields) {
		m.body.Tasks, m.body.Status = r.chosen[1].into(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
		m.event.Event, m.choice.Status = &m.choice, &m.body
	})
)

// readEvent reads the message of an event. It returns nil for what is left to the library.
func readEvent(data []byte) *apportionv1.Step {
	if len(data) == 0 {
		return nil
	}
	tag, _, from, to := field.At(data, 0)
	if to != len(data) {
		return nil
	}
	switch tag {
	case tagPlacement:
		return readPlacement(data[from:])
	case tagEviction:
		return readEviction(data[from:])
	case tagStatus:
		return readStatus(data[from:])
	}
	e := &apportionv1.Event{}
	if !eventShape.Knows(data) || (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, e) != nil {
		return nil
	}
	return event.Step(e)
}

// read reports whether all was read as usual.
func (r *stepFields) read(data []byte) bool {
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return false
		}
		ok := true
		switch number := tag >> 3; {
		case !r.of.Has(tag):
			ok = false
		case number < uint32(len(r.chosen)) && tag&7 == field.Delimited:
			// A second one would have to be merged.
			ok = !r.chosen[number].given && r.chosen[number].read(data[from:to])
		case number < uint32(len(r.numbers)) && tag&7 == field.Varint:
			r.numbers[number] = value
		}
		if !ok {
			return false
		}
		i = to
	}
	return true
}

// read reads a Selector, and reports whether all was read as usual.
func (r *selection) read(data []byte) bool {
	r.given = true
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return false
		}
		var ok bool
		switch tag {
		case tagSelectionIndex | field.Varint, tagSelectionIndex | field.Delimited:
			r.index, ok = decode.Numbers(r.index, tag, value, data[from:to])
		case tagSelectionName:
			ok = utf8.Valid(data[from:to])
			r.names = append(r.names, string(data[from:to]))
		default:
			ok = tag>>3 >= decode.Informative
		}
		if !ok {
			return false
		}
		i = to
	}
	if len(r.index) == 0 {
		r.index = nil
	}
	return true
}

// into fills in a Selector; nil if there is none.
func (r *selection) into(m *apportionv1.Selector) *apportionv1.Selector {
	if !r.given {
		return nil
	}
	m.Indices, m.Names = r.index, r.names
	return m
}
