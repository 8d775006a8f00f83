package service

import (
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/field"
)

// A small question consists mostly of its Input: a digest and a policy. Callers send few different policies, so the same message is used
// for all calls whose policy has the same bytes, and the rest of the Input is read here. For a question by digest that is less than half of
// what the protobuf library takes.

// Of a policy of up to longestShared bytes the message is remembered, and of one of up to longestPolicy the digest.
const longestShared, longestPolicy = 512, 4 << 10

// recent remembers what was made of some bytes, for the last few that callers sent. The zero value is empty.
type recent[V any] struct {
	mutex sync.Mutex
	known map[string]V
}

// mostRecent is how many are remembered.
const mostRecent = 128

// of returns what is remembered of some bytes, or what is computed of them; false: nothing can be, and nothing is remembered.
func (r *recent[V]) of(data []byte, compute func() (V, bool)) (V, bool) {
	r.mutex.Lock()
	value, ok := r.known[string(data)]
	r.mutex.Unlock()
	if ok {
		return value, true
	}
	if value, ok = compute(); !ok {
		return value, false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.known == nil || len(r.known) >= mostRecent {
		r.known = map[string]V{}
	}
	r.known[string(data)] = value
	return value, true
}

// policies remembers policies that were sent, by their bytes as sent.
type policies struct{ recent[rule] }

// read returns the policy of some bytes and its digest, which others may have too; false: it is left to the library.
func (p *policies) read(data []byte) (rule, bool) {
	if len(data) > longestShared {
		return rule{}, false
	}
	return p.of(data, func() (rule, bool) {
		policy := &apportionv1.Policy{}
		if proto.Unmarshal(data, policy) != nil {
			return rule{}, false
		}
		return rule{policy: policy, digest: decode.PolicyDigest(policy)}, true
	})
}

// policyDigests remembers the digests of policies that were sent, by their bytes: to put a policy in its canonical form takes as long as to
// answer a small question.
type policyDigests struct{ recent[string] }

// digest returns the digest of a policy.
func (d *policyDigests) digest(p *apportionv1.Policy) string {
	data, err := proto.Marshal(p)
	if err != nil || len(data) > longestPolicy {
		return decode.PolicyDigest(p)
	}
	digest, _ := d.of(data, func() (string, bool) { return decode.PolicyDigest(p), true })
	return digest
}

// The fields of Input beside those that hold a snapshot or events.
const (
	inputPolicy     protowire.Number = 3
	inputPolicyName protowire.Number = 4
	inputTexts      protowire.Number = 6
	inputOmitNames  protowire.Number = 9
)

// unmarshal decodes a request as the protobuf library does. The policy that it contains may be shared.
func (in *receiver) unmarshal(data []byte, request proto.Message) error {
	of, ok := request.(inline)
	if !ok {
		return proto.Unmarshal(data, request)
	}
	encoded, at, ok := onlyField(data, 1)
	if !ok {
		return proto.Unmarshal(data, request)
	}
	var input apportionv1.Input
	given, ok := in.readInput(encoded, &input)
	if !ok {
		return proto.Unmarshal(data, request)
	}
	if err := proto.Unmarshal(replaced(data, 1, at, nil), request); err != nil {
		return err
	}
	into := of.GetInput()
	into.Source, into.Rule, into.Texts, into.OmitNames = input.GetSource(), input.GetRule(), input.GetTexts(), input.GetOmitNames()
	in.given = given
	return nil
}

// readInput reads an Input that has each field at most once, and no snapshot or change; false: it is left to the library.
func (in *receiver) readInput(data []byte, input *apportionv1.Input) (given rule, ok bool) {
	for i := 0; i < len(data); {
		tag, number, from, to := field.At(data, i)
		if to < 0 {
			return rule{}, false
		}
		switch value := data[from:to]; {
		case tag == uint32(inputTexts)<<3|field.Varint:
			input.Texts = number != 0
		case tag == uint32(inputOmitNames)<<3|field.Varint:
			input.OmitNames = number != 0
		case tag == tagOf(inputPolicy) && input.GetRule() == nil:
			if given, ok = in.policies.read(value); !ok {
				return rule{}, false
			}
			input.Rule = &apportionv1.Input_Policy{Policy: given.policy}
		case tag&7 != field.Delimited || !readName(protowire.Number(tag>>3), value, input):
			return rule{}, false
		}
		i = to
	}
	return given, true
}

// readName reads a field of an Input that is a digest or a name, or the place of a snapshot that was taken out.
func readName(number protowire.Number, value []byte, input *apportionv1.Input) bool {
	if !utf8.Valid(value) {
		return false
	}
	switch {
	case number == inputPolicyName && input.GetRule() == nil:
		input.Rule = &apportionv1.Input_PolicyName{PolicyName: string(value)}
	case input.GetSource() != nil:
		return false
	case number == inputDigest:
		input.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: string(value)}
	case number == inputName:
		input.Source = &apportionv1.Input_SnapshotName{SnapshotName: string(value)}
	case number == inputSnapshot && len(value) == 0:
		input.Source = &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{}}
	default:
		return false
	}
	return true
}
