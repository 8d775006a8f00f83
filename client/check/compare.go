package check

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// omitted are fields that are not checked, by the names of message and field, with the reason.
type omitted map[string]string

// known notes fields of a message that the contract does not have.
func (f *findings) known(path string, m proto.Message) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		f.wrong("%s has fields that the contract does not have", path)
	}
}

// compare notes each field of a message that is not as in another; those that are omitted it lists as not checked. So each field of a
// message that is compared is checked or listed, also one that the contract gets later.
func (f *findings) compare(path string, got, want proto.Message, but omitted) {
	f.message(path, got.ProtoReflect(), want.ProtoReflect(), but)
}

func (f *findings) message(path string, got, want protoreflect.Message, but omitted) {
	if resource, ok := got.Interface().(*apportionv1.Resource); ok {
		expected, _ := want.Interface().(*apportionv1.Resource)
		f.resource(path, resource, expected)
		return
	}
	f.known(path, got.Interface())
	fields := got.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		at := path + "." + string(field.Name())
		if why, omitted := but[strings.TrimPrefix(string(field.FullName()), contractPackage)]; omitted {
			f.omit(at, why)
			continue
		}
		f.field(at, field, got, want, but)
	}
}

// contractPackage is what full names of the contract's fields begin with.
const contractPackage = "apportion.v1."

func (f *findings) field(at string, field protoreflect.FieldDescriptor, got, want protoreflect.Message, but omitted) {
	switch {
	case field.IsList():
		f.list(at, field, got.Get(field).List(), want.Get(field).List(), but)
	case got.Has(field) != want.Has(field):
		f.wrong("%s is %s, not %s", at, written(field, got), written(field, want))
	case field.Message() == nil:
		f.value(at, got.Get(field), want.Get(field))
	case got.Has(field):
		f.message(at, got.Get(field).Message(), want.Get(field).Message(), but)
	}
}

func (f *findings) list(at string, field protoreflect.FieldDescriptor, got, want protoreflect.List, but omitted) {
	if got.Len() != want.Len() {
		f.wrong("%s has %d entries, not %d", at, got.Len(), want.Len())
	}
	for i := range min(got.Len(), want.Len()) {
		entry := fmt.Sprintf("%s[%d]", at, i)
		if field.Message() != nil {
			f.message(entry, got.Get(i).Message(), want.Get(i).Message(), but)
		} else {
			f.value(entry, got.Get(i), want.Get(i))
		}
	}
}

func (f *findings) value(at string, got, want protoreflect.Value) {
	f.numbers++
	if !got.Equal(want) {
		f.wrong("%s is %v, not %v", at, got, want)
	}
}

// written returns a field as faults write it.
func written(field protoreflect.FieldDescriptor, m protoreflect.Message) string {
	switch {
	case !m.Has(field):
		return "absent"
	case field.Message() != nil:
		return "present"
	}
	return m.Get(field).String()
}
