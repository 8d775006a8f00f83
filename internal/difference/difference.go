// Package difference compares two messages of one type field by field.
package difference

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Difference is a field with two different values.
type Difference struct {
	// Path of the field, such as shares.plugins[0].queues[3].deserved.amount[1].
	Path string `json:"path"`
	// Was and Is are the two values; "" where there is none.
	Was string `json:"was"`
	Is  string `json:"is"`
}

// String gives the difference on one line.
func (d Difference) String() string {
	return d.Path + ": " + orNone(d.Was) + " -> " + orNone(d.Is)
}

func orNone(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}

// Between lists the differences from one message to another, at most so many. Numbers are the same if they are to the last bit, or if
// neither is one.
func Between(was, is proto.Message, most int) []Difference {
	if proto.Equal(was, is) {
		return nil
	}
	f := finder{most: most}
	f.messages("", was.ProtoReflect(), is.ProtoReflect())
	return f.found
}

type finder struct {
	found []Difference
	most  int
}

func (f *finder) full() bool { return len(f.found) >= f.most }

func (f *finder) add(path, was, is string) {
	if !f.full() {
		f.found = append(f.found, Difference{Path: path, Was: was, Is: is})
	}
}

func (f *finder) messages(path string, was, is protoreflect.Message) {
	if packed, ok := was.Interface().(*anypb.Any); ok {
		// The same message may be packed as other bytes: its maps have no order.
		left, errLeft := packed.UnmarshalNew()
		right, errRight := is.Interface().(*anypb.Any).UnmarshalNew() //nolint:forcetypeassert,errcheck // The two are of one type.
		if errLeft == nil && errRight == nil && left.ProtoReflect().Descriptor() == right.ProtoReflect().Descriptor() {
			f.messages(path, left.ProtoReflect(), right.ProtoReflect())
			return
		}
	}
	fields := was.Descriptor().Fields()
	for i := 0; i < fields.Len() && !f.full(); i++ {
		field := fields.Get(i)
		at := string(field.Name())
		if path != "" {
			at = path + "." + at
		}
		switch had, has := was.Has(field), is.Has(field); {
		case !had && !has:
		case field.IsList():
			f.lists(at, field, was.Get(field).List(), is.Get(field).List())
		case had != has:
			f.add(at, shown(field, was.Get(field), had), shown(field, is.Get(field), has))
		default:
			f.values(at, field, was.Get(field), is.Get(field))
		}
	}
}

func (f *finder) lists(path string, field protoreflect.FieldDescriptor, was, is protoreflect.List) {
	for i := 0; i < max(was.Len(), is.Len()) && !f.full(); i++ {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= is.Len():
			f.add(at, shown(field, was.Get(i), true), "")
		case i >= was.Len():
			f.add(at, "", shown(field, is.Get(i), true))
		default:
			f.values(at, field, was.Get(i), is.Get(i))
		}
	}
}

func (f *finder) values(path string, field protoreflect.FieldDescriptor, was, is protoreflect.Value) {
	switch {
	case field.IsMap():
		if !was.Equal(is) {
			f.add(path, "a map", "another")
		}
	case field.Message() != nil:
		f.messages(path, was.Message(), is.Message())
	case !was.Equal(is) && !(isNaN(was) && isNaN(is)):
		f.add(path, shown(field, was, true), shown(field, is, true))
	}
}

func isNaN(v protoreflect.Value) bool {
	number, ok := v.Interface().(float64)
	return ok && math.IsNaN(number)
}

// shown is a value in short: for a message, only that it is present.
func shown(field protoreflect.FieldDescriptor, v protoreflect.Value, present bool) string {
	const longest = 200
	switch {
	case !present:
		return ""
	case field.Enum() != nil:
		if value := field.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
	case field.Message() != nil:
		text := fmt.Sprint(v.Message().Interface())
		if len(text) > longest {
			text = text[:longest] + "…"
		}
		return "{" + text + "}"
	case field.Kind() == protoreflect.StringKind:
		return strconv.Quote(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// Bare returns an answer without its reasons: decisions only, without reasons and plugins. Of a cause it keeps the task, the node and the
// numbers of nodes that it is about, and all of one among `nodes`, which says how many nodes do not take a task.
func Bare(answer *apportionv1.Answer) *apportionv1.Answer {
	out := proto.CloneOf(answer)
	strip(out.ProtoReflect())
	return out
}

// reasons are the messages that say why, besides causes.
var reasons = map[protoreflect.Name]bool{
	"PluginVictims": true, "PluginScores": true, "ProportionDerivation": true,
	"CapacityDerivation": true, "Policy": true,
}

func strip(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() != nil && f.Message().Name() == "Cause":
			stripCauses(m, f)
		case f.Name() == "plugin" || f.Name() == "tier" || f.Message() != nil && reasons[f.Message().Name()]:
			m.Clear(f)
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				strip(v.List().Get(i).Message())
			}
		default:
			strip(v.Message())
		}
		return true
	})
}

// stripCauses leaves of the causes in a field what is decided about tasks and nodes.
func stripCauses(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.Name() == "nodes":
		return
	case !f.IsList() || f.Name() == "checks":
		m.Clear(f)
		return
	}
	old, kept := m.Get(f).List(), m.NewField(f)
	for i := range old.Len() {
		c, _ := old.Get(i).Message().Interface().(*apportionv1.Cause)
		if about := (&apportionv1.Cause{Task: c.Task, Node: c.Node, Count: c.GetCount()}); proto.Size(about) > 0 {
			kept.List().Append(protoreflect.ValueOfMessage(about.ProtoReflect()))
		}
	}
	if m.Clear(f); kept.List().Len() > 0 {
		m.Set(f, kept)
	}
}
