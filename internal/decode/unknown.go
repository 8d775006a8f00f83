package decode

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/field"
)

// A field that this version does not know may change what a request means, so that an answer without it would be wrong. Whoever adds a
// field that changes no decision gives it a number from informative on.

// Informative is the first number of fields that a version may leave out of account.
const Informative = 100

// Shape says which fields of a type of messages are known, and how they may be written.
type Shape struct {
	of protoreflect.MessageDescriptor
	// written has a bit for each way in which a field may be written, by number.
	written [Informative]uint8
	// inner are the shapes of the messages in fields, by number.
	inner [Informative]*Shape
	// chosen: the message is a choice of one of its fields. One that is not known leaves it empty, which is refused where it is read.
	chosen bool
}

var (
	stepType  = (*apportionv1.Step)(nil).ProtoReflect().Descriptor()
	eventType = (*apportionv1.Event)(nil).ProtoReflect().Descriptor()
)

// shapes are those of all messages that a request may hold, by name.
var shapes = func() map[protoreflect.FullName]*Shape {
	all := map[protoreflect.FullName]*Shape{}
	for _, file := range []protoreflect.FileDescriptor{
		apportionv1.File_apportion_v1_service_proto, apportionv1alpha1.File_apportion_v1alpha1_service_proto,
	} {
		for i := range file.Services().Len() {
			for k := range file.Services().Get(i).Methods().Len() {
				addShape(all, file.Services().Get(i).Methods().Get(k).Input())
			}
		}
	}
	return all
}()

// addShape adds the shape of a type of messages, and of those in it.
func addShape(all map[protoreflect.FullName]*Shape, of protoreflect.MessageDescriptor) *Shape {
	if s := all[of.FullName()]; s != nil {
		return s
	}
	s := &Shape{of: of, chosen: of == stepType || of == eventType}
	all[of.FullName()] = s
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if f.Number() >= Informative {
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

// ShapeOf returns the shape of a type of messages that a request may hold, nil for another.
func ShapeOf(m proto.Message) *Shape { return shapes[m.ProtoReflect().Descriptor().FullName()] }

// Has reports whether a field with a tag is known, or informative.
func (s *Shape) Has(tag uint32) bool {
	return tag>>3 >= Informative || s.written[tag>>3]>>(tag&7)&1 != 0
}

// Knows reports whether all fields of an encoded message are known, those of the messages in it included. What is malformed is left to its
// reader.
func (s *Shape) Knows(data []byte) bool {
	strange, usual := false, false
	for i := 0; i < len(data); {
		tag, _, from, to := field.At(data, i)
		switch number := tag >> 3; {
		case to < 0:
			return true
		case !s.Has(tag):
			strange = true
		case number < Informative:
			usual = true
			if inner := s.inner[number]; inner != nil && !inner.Knows(data[from:to]) {
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
func (s *Shape) strangers(data []byte, path string, to *model.Error) {
	if s.Knows(data) {
		return
	}
	var seen [Informative]int
	for i := 0; i < len(data) && to.Total < mostStrangers; {
		tag, _, from, end := field.At(data, i)
		number := tag >> 3
		switch {
		case end < 0:
			return
		case !s.Has(tag):
			to.Add(path+strconv.Itoa(int(number)), "%s", s.why(number))
		case number < Informative && s.inner[number] != nil:
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
func (s *Shape) why(number uint32) string {
	if s.written[number] != 0 {
		return "field " + strconv.Itoa(int(number)) + " is written in a way that this version does not know"
	}
	return "this version has no field " + strconv.Itoa(int(number)) + " in " + string(s.of.Name())
}

// Known returns a *Fault that names every field of an encoded request that this version does not know, by path and number; nil: all are
// known, or are informative.
func Known(request proto.Message, data []byte) error {
	s := ShapeOf(request)
	if s == nil || s.Knows(data) {
		return nil
	}
	return s.fault(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, data, "")
}

// fault returns the fault of an encoded message that has fields that are not known; nil: it has none.
func (s *Shape) fault(reason apportionv1.ErrorReason, data []byte, path string) error {
	violations := &model.Error{}
	s.strangers(data, path, violations)
	if violations.Total == 0 {
		return nil
	}
	return Invalid(reason, violations)
}

var (
	snapshotShape = ShapeOf((*apportionv1.Snapshot)(nil))
	changeShape   = ShapeOf((*apportionv1.Change)(nil))
	jobShape      = ShapeOf((*apportionv1.Job)(nil))
	groupShape    = ShapeOf((*apportionv1.TaskGroup)(nil))
	detailShape   = ShapeOf((*apportionv1.TaskDetail)(nil))
	updateShape   = ShapeOf((*apportionv1.TaskUpdate)(nil))
	quotaShape    = ShapeOf((*apportionv1.NamespaceQuota)(nil))
	podsShape     = ShapeOf((*apportionv1.PodRules)(nil))

	budgetNamesShape = ShapeOf((*apportionv1.DisruptionBudgetNames)(nil))
)
