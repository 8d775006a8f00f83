package decisionlog

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// masked stands for a text that is not written down.
const masked = "masked"

// Maskable lists the names that Options.Mask may hold: every field of a step or an answer that has a text, identity and policy_name.
func Maskable() map[string]bool {
	names := map[string]bool{"identity": true, "policy_name": true}
	seen := map[protoreflect.FullName]bool{}
	var walk func(protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] || m.ParentFile().Package() != "apportion.v1" {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			switch f := m.Fields().Get(i); f.Kind() {
			case protoreflect.StringKind:
				names[string(f.Name())] = true
			case protoreflect.MessageKind:
				walk(f.Message())
			default:
			}
		}
	}
	walk((&apportionv1.Step{}).ProtoReflect().Descriptor())
	walk((&apportionv1.Answer{}).ProtoReflect().Descriptor())
	return names
}

// maskEntry masks what stands in the entry itself.
func (l *Log) maskEntry(e *Entry) {
	if l.mask["identity"] && e.Identity != "" {
		e.Identity = masked
	}
	if l.mask["policy_name"] && e.PolicyName != "" {
		e.PolicyName = masked
	}
}

// maskAll returns copies of messages whose texts in fields of these names are masked.
func maskAll[M proto.Message](messages []M, names map[string]bool) []M {
	out := make([]M, len(messages))
	for i, m := range messages {
		out[i] = proto.CloneOf(m)
		maskMessage(out[i].ProtoReflect(), names)
	}
	return out
}

func maskMessage(m protoreflect.Message, names map[string]bool) {
	if st, ok := m.Interface().(*rpcstatus.Status); ok {
		maskStatus(st)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				maskMessage(v.List().Get(i).Message(), names)
			}
		case f.Kind() == protoreflect.MessageKind:
			maskMessage(v.Message(), names)
		case f.Kind() != protoreflect.StringKind || !names[string(f.Name())]:
		case f.IsList():
			for i := range v.List().Len() {
				v.List().Set(i, protoreflect.ValueOfString(masked))
			}
		default:
			m.Set(f, protoreflect.ValueOfString(masked))
		}
		return true
	})
}

// maskStatus leaves nothing of an error but its code and reason: texts and paths quote the input.
func maskStatus(st *rpcstatus.Status) {
	st.Message = masked
	kept := st.Details[:0]
	for _, detail := range st.GetDetails() {
		var info errdetails.ErrorInfo
		if !detail.MessageIs(&info) || detail.UnmarshalTo(&info) != nil {
			continue
		}
		if bare, err := anypb.New(&errdetails.ErrorInfo{Reason: info.GetReason(), Domain: info.GetDomain()}); err == nil {
			kept = append(kept, bare)
		}
	}
	st.Details = kept
}

// digestOf returns the digest of steps, each with its length before it.
func digestOf(steps []*apportionv1.Step) (string, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&apportionv1.StepBatch{Steps: steps})
	return decode.Digest(data), err
}
