// Package filled draws messages of the contract for properties.
package filled

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"
)

// Message sets fields of a message, each perhaps, whatever they are: a field that is new in the contract is filled too. more are numbers
// to draw beside the usual ones; -0 is none of these, because generated code writes no field for it and the library does.
func Message(t *rapid.T, m protoreflect.Message, depth int, more ...float64) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if rapid.IntRange(0, 3).Draw(t, "set") == 0 || depth == 0 && f.Message() != nil {
			continue
		}
		if f.IsList() {
			list := m.Mutable(f).List()
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				if f.Message() == nil {
					list.Append(scalar(t, f, more))
				} else {
					Message(t, list.AppendMutable().Message(), depth-1, more...)
				}
			}
			continue
		}
		if f.Message() == nil {
			m.Set(f, scalar(t, f, more))
		} else {
			Message(t, m.Mutable(f).Message(), depth-1, more...)
		}
	}
}

func scalar(t *rapid.T, f protoreflect.FieldDescriptor, more []float64) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 70).Draw(t, "enum")))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "int32"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, "uint32"))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "uint64"))
	case protoreflect.DoubleKind:
		some := append([]float64{0, 1, -2.5, math.Inf(1), 1e300}, more...)
		return protoreflect.ValueOfFloat64(rapid.SampledFrom(some).Draw(t, "double"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(rapid.String().Draw(t, "bytes")))
	default:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	}
}
