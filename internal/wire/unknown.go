package wire

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// A field that this version does not know may change what a request means, so that an answer without it would be wrong. Whoever adds a
// field that changes no decision gives it a number from informative on.

// informative is the first number of fields that a version may leave out of account.
const informative = 100

// shape says which fields of a type of messages are known, and how they may be written.
type shape struct {
	of protoreflect.MessageDescriptor
	// written has a bit for each way in which a field may be written, by number.
	written [informative]uint8
	// inner are the shapes of the messages in fields, by number.
	inner [informative]*shape
	// chosen: the message is a choice of one of its fields. One that is not known leaves it empty, which is refused where it is read.
	chosen bool
}

// shapes are those of all messages that a request may hold, by name.
var shapes = func() map[protoreflect.FullName]*shape {
	all := map[protoreflect.FullName]*shape{}
	services := apportionv1.File_apportion_v1_service_proto.Services()
	for i := range services.Len() {
		for k := range services.Get(i).Methods().Len() {
			addShape(all, services.Get(i).Methods().Get(k).Input())
		}
	}
	return all
}()

// addShape adds the shape of a type of messages, and of those in it.
func addShape(all map[protoreflect.FullName]*shape, of protoreflect.MessageDescriptor) *shape {
	if s := all[of.FullName()]; s != nil {
		return s
	}
	s := &shape{of: of, chosen: of.FullName() == (*apportionv1.Step)(nil).ProtoReflect().Descriptor().FullName()}
	all[of.FullName()] = s
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if f.Number() >= informative {
			continue
		}
		s.written[f.Number()] = ways(f)
		if f.Message() != nil {
			s.inner[f.Number()] = addShape(all, f.Message())
		}
	}
	return s
}

// ways returns the bits of the ways in which a field may be written: a list of numbers may be packed or not.
func ways(f protoreflect.FieldDescriptor) uint8 {
	way := field.Delimited
	switch f.Kind() { // The contract has no other numbers.
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		way = field.Fixed64
	default:
		way = field.Varint
	}
	if f.IsList() {
		return 1<<way | 1<<field.Delimited
	}
	return 1 << way
}

// shapeOf returns the shape of a type of messages that a request may hold, nil for another.
func shapeOf(m proto.Message) *shape { return shapes[m.ProtoReflect().Descriptor().FullName()] }

// has reports whether a field with a tag is known, or informative.
func (s *shape) has(tag uint32) bool {
	return tag>>3 >= informative || s.written[tag>>3]>>(tag&7)&1 != 0
}

// knows reports whether all fields of an encoded message are known, those of the messages in it included. What is malformed is left to its
// reader.
func (s *shape) knows(data []byte) bool {
	strange, usual := false, false
	for i := 0; i < len(data); {
		tag, _, from, to := field.At(data, i)
		switch number := tag >> 3; {
		case to < 0:
			return true
		case !s.has(tag):
			strange = true
		case number < informative:
			usual = true
			if inner := s.inner[number]; inner != nil && !inner.knows(data[from:to]) {
				return false
			}
		}
		i = to
	}
	return !strange || s.chosen && !usual
}

// mostStrangers bounds the fields that are named in one fault.
const mostStrangers = 100

// strangers adds the fields of an encoded message that are not known to the violations. path leads to the message.
func (s *shape) strangers(data []byte, path string, to *model.Error) {
	if s.knows(data) {
		return
	}
	var seen [informative]int
	for i := 0; i < len(data) && to.Total < mostStrangers; {
		tag, _, from, end := field.At(data, i)
		number := tag >> 3
		switch {
		case end < 0:
			return
		case !s.has(tag):
			to.Add(path+strconv.Itoa(int(number)), "%s", s.why(number))
		case number < informative && s.inner[number] != nil:
			f := s.of.Fields().ByNumber(protoreflect.FieldNumber(number))
			at := path + string(f.Name())
			if f.IsList() {
				at += "[" + strconv.Itoa(seen[number]) + "]"
				seen[number]++
			}
			s.inner[number].strangers(data[from:end], at+".", to)
		}
		i = end
	}
}

// why says what is wrong with a field that is not known.
func (s *shape) why(number uint32) string {
	if s.written[number] != 0 {
		return "field " + strconv.Itoa(int(number)) + " is written in a way that this version does not know"
	}
	return "this version has no field " + strconv.Itoa(int(number)) + " in " + string(s.of.Name())
}

// Known returns a *Fault that names every field of an encoded request that this version does not know, by path and number; nil: all are
// known, or are informative.
func Known(request proto.Message, data []byte) error {
	s := shapeOf(request)
	if s == nil || s.knows(data) {
		return nil
	}
	return s.fault(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, data, "")
}

// fault returns the fault of an encoded message that has fields that are not known; nil: it has none.
func (s *shape) fault(reason apportionv1.ErrorReason, data []byte, path string) error {
	violations := &model.Error{}
	s.strangers(data, path, violations)
	if violations.Total == 0 {
		return nil
	}
	return Invalid(reason, violations)
}

var (
	snapshotShape = shapeOf((*apportionv1.Snapshot)(nil))
	changeShape   = shapeOf((*apportionv1.Change)(nil))
	jobShape      = shapeOf((*apportionv1.Job)(nil))
	groupShape    = shapeOf((*apportionv1.TaskGroup)(nil))
	detailShape   = shapeOf((*apportionv1.TaskDetail)(nil))
	updateShape   = shapeOf((*apportionv1.TaskUpdate)(nil))
	kueueShape    = shapeOf((*apportionv1.KueueSnapshot)(nil))
	podsShape     = shapeOf((*apportionv1.PodRules)(nil))
)
