package catalogue

import (
	"math"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Fault records an invalid setting. The path is the setting's, below its message.
type Fault func(path, format string, args ...any)

// Settings converts between a message of the contract and a plugin; see SettingsOf.
type Settings struct {
	// field is the member of the oneof Plugin.plugin; nil if no member has that message.
	field protoreflect.FieldDescriptor
	// member is the type that holds the message in the oneof; nil without a field.
	member    reflect.Type
	read      func(proto.Message, Fault) policy.Plugin
	canonical func(proto.Message) proto.Message
}

// SettingsOf returns the conversion between the message M, which is a member of the contract's Plugin, and the plugin P. read applies the
// defaults of settings that are absent, write sets every field. If P has a method Normal, it returns the effective settings.
func SettingsOf[M proto.Message, P policy.Plugin](read func(M, Fault) P, write func(P) M) Settings {
	var none M
	s := Settings{
		read: func(m proto.Message, fault Fault) policy.Plugin { return read(as[M](m), fault) },
		canonical: func(m proto.Message) proto.Message {
			p := read(as[M](m), func(string, string, ...any) {})
			if normal, ok := any(p).(interface{ Normal() P }); ok {
				p = normal.Normal()
			}
			return write(p)
		},
	}
	for i := range members.Fields().Len() {
		if f := members.Fields().Get(i); f.Message().FullName() == none.ProtoReflect().Descriptor().FullName() {
			s.field = f
			s.member = reflect.TypeOf(s.plugin(nil).GetPlugin())
		}
	}
	return s
}

// as returns a message by its type: settings are read from the member that has the type M.
func as[M proto.Message](m proto.Message) M {
	typed, _ := m.(M)
	return typed
}

// withoutSettings returns the conversion of a plugin that has none.
func withoutSettings[M proto.Message, P policy.Plugin](plugin P) Settings {
	return SettingsOf(func(M, Fault) P { return plugin }, func(P) M {
		var none M
		return as[M](none.ProtoReflect().New().Interface())
	})
}

// members is the oneof of the contract's Plugin.
var members = (*apportionv1.Plugin)(nil).ProtoReflect().Descriptor().Oneofs().ByName("plugin")

// message returns the settings in p; they are not nil.
func (s *Settings) message(p *apportionv1.Plugin) proto.Message {
	m := p.ProtoReflect().Get(s.field).Message()
	if !m.IsValid() {
		m = m.Type().New()
	}
	return m.Interface()
}

// plugin returns a Plugin with a copy of settings; nil settings are those without any field set.
func (s *Settings) plugin(settings proto.Message) *apportionv1.Plugin {
	p := &apportionv1.Plugin{}
	set := p.ProtoReflect().Mutable(s.field).Message()
	if settings != nil {
		proto.Merge(set.Interface(), settings)
	}
	return p
}

// number sets a setting that was given to x, unless x is not finite, which is a fault.
func number(given *float64, setting *float64, path string, fault Fault) {
	switch {
	case given == nil:
	case math.IsNaN(*given) || math.IsInf(*given, 0):
		fault(path, "%g is not a finite number", *given)
	default:
		*setting = *given
	}
}

// given sets a setting that was given.
func given[T any](value, setting *T) {
	if value != nil {
		*setting = *value
	}
}
