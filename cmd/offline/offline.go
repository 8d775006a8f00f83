// Package offline answers the calls of the page where there is no server: in the browser itself, compiled to WebAssembly. It holds the
// snapshots that it is given, and answers the unary calls that ask questions as a service does: the same answers, the same errors.
//
//	e := offline.NewEngine(nil)
//	digest, err := e.Hold(snapshot)
//	answer, err := e.Answer("Simulate", request, offline.JSON)
package offline

import (
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
)

// Engine holds snapshots and answers calls about them, one at a time.
type Engine struct {
	held     map[string]*model.Model
	policies map[string]*apportionv1.Policy
	limits   decode.Limits
}

// NewEngine returns an Engine that knows policies by name.
func NewEngine(policies map[string]*apportionv1.Policy) *Engine {
	limit := setting.Default[setting.Limit]()
	return &Engine{held: map[string]*model.Model{}, policies: policies, limits: decode.LimitsOf(&limit)}
}

// Hold compiles an encoded Snapshot, forgets the others, and returns the digest by which calls name it. It fails with a *decode.Fault.
func (e *Engine) Hold(data []byte) (digest string, err error) {
	compiled, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Limits: e.limits})
	if err != nil {
		return "", err
	}
	digest = decode.Digest(data)
	e.held = map[string]*model.Model{digest: compiled}
	return digest, nil
}

// Codec is how messages are written.
type Codec struct {
	unmarshal func([]byte, proto.Message) error
	marshal   func(proto.Message) ([]byte, error)
}

// The codecs: protobuf's JSON, and its binary form in the order of field numbers.
var (
	JSON   = Codec{protojson.Unmarshal, protojson.Marshal}
	Binary = Codec{proto.Unmarshal, proto.MarshalOptions{Deterministic: true}.Marshal}
)

// answers are the calls by their names in the contract.
var answers = map[string]func(*Engine, []byte, Codec) ([]byte, error){
	method.EvaluateShares.Name: of(&method.EvaluateShares),
	method.CheckEnqueue.Name:   of(&method.CheckEnqueue),
	method.Explain.Name:        of(&method.Explain),
	method.Plan.Name:           of(&method.Plan),
	method.Remedies.Name:       of(&method.Remedies),
	method.Forecast.Name:       of(&method.Forecast),
	method.Simulate.Name:       of(&method.Simulate),
}

// Answer answers the call of a name: an encoded request in, an encoded response out. It fails with a *decode.Fault.
func (e *Engine) Answer(name string, request []byte, codec Codec) ([]byte, error) {
	answer := answers[name]
	if answer == nil {
		return nil, decode.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, "", "the call %s needs a server", name)
	}
	return answer(e, request, codec)
}

// of returns the function that answers a method.
func of[Q interface {
	method.Request
	proto.Message
}, A proto.Message](m *method.Method[Q, A]) func(*Engine, []byte, Codec) ([]byte, error) {
	return func(e *Engine, data []byte, codec Codec) ([]byte, error) {
		var none Q
		request, ok := none.ProtoReflect().New().Interface().(Q)
		if !ok {
			return nil, unreadable("the message has another type")
		}
		if err := codec.unmarshal(data, request); err != nil {
			return nil, unreadable(strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0"))
		}
		steps, err := m.Steps(request)
		if err != nil {
			return nil, err
		}
		session, basis, err := e.open(request.GetInput())
		if err != nil {
			return nil, decode.InInput(err, "input.")
		}
		said, err := method.Ask(session, m.Name, steps)
		if err != nil {
			return nil, err
		}
		return codec.marshal(m.Response(basis, said))
	}
}

// unreadable is the fault of a request that is no message.
func unreadable(text string) error {
	const longest = 512
	text = strings.ToValidUTF8(text[:min(len(text), longest)], "\uFFFD")
	return decode.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, "", "the message cannot be read: %s", text)
}

// open returns a session on an input, and its basis before the first step.
func (e *Engine) open(in *apportionv1.Input) (*wire.Session, *apportionv1.Basis, error) {
	policy, err := e.policy(in)
	if err != nil {
		return nil, nil, err
	}
	compiled, digest, err := e.model(in)
	if err != nil {
		return nil, nil, err
	}
	session, err := wire.Open(compiled, policy, wire.Options{Limits: e.limits})
	if err != nil {
		return nil, nil, err
	}
	_, from := method.Changed(in)
	if err := session.Continue(in.GetEvents(), from, in.GetEdits(), "input."); err != nil {
		return nil, nil, err
	}
	session.Show(in.GetTexts(), in.GetOmitNames())
	basis := session.Basis()
	basis.SnapshotDigest = digest
	return session, basis, nil
}

func (e *Engine) policy(in *apportionv1.Input) (*apportionv1.Policy, error) {
	name := in.GetPolicyName()
	switch policy := in.GetPolicy(); {
	case policy != nil:
		return policy, nil
	case name == "":
		return nil, method.NoPolicy("input.")
	}
	if policy := e.policies[name]; policy != nil {
		return policy, nil
	}
	return nil, method.UnknownPolicy("input.", name)
}

// model returns the model of an input, and its digest if the input names it by one.
func (e *Engine) model(in *apportionv1.Input) (compiled *model.Model, digest string, err error) {
	guard := decode.Guard{Limits: e.limits}
	if snapshot := in.GetSnapshot(); snapshot != nil {
		data, err := proto.Marshal(snapshot)
		if err != nil {
			const invalid = apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST
			return nil, "", decode.InvalidField(invalid, "input.snapshot", "a text is not UTF-8")
		}
		compiled, err = new(decode.Decoder).CompileWithin(data, guard)
		return compiled, "", err
	}
	if name := in.GetSnapshotName(); name != "" {
		return nil, "", notKept(name)
	}
	if digest = in.GetSnapshotDigest(); digest == "" {
		return nil, "", method.NoSnapshot()
	}
	held := e.held[digest]
	if held == nil {
		return nil, "", notHeld()
	}
	change, _ := method.Changed(in)
	if change == nil {
		return held, digest, nil
	}
	data, err := proto.Marshal(change)
	if err != nil {
		const invalid = apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST
		return nil, "", decode.InvalidField(invalid, "input.events[0].change", "a text is not UTF-8")
	}
	if compiled, err = new(decode.Decoder).CompileChange(held, data, guard); err != nil {
		return nil, "", method.NotChanged(err, "input.")
	}
	return compiled, decode.ChangeDigest(digest, data), nil
}
