package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// Every block ```json TYPE is a message of the contract. The block after a request that names the tour's snapshot is the answer to it.
func TestTheMessagesOfTheContractsTourAreReal(t *testing.T) {
	before, err := os.ReadFile("contract.md")
	require.NoError(t, err)
	tour := tour{t: t}
	after := tour.walk(string(before))
	if *update {
		require.NoError(t, os.WriteFile("contract.md", []byte(after), 0o600))
		return
	}
	require.Equal(t, string(before), after, "run go test ./docs -update and read the difference")
}

type tour struct {
	t        *testing.T
	snapshot *apportionv1.Snapshot
	digest   string
	policy   *apportionv1.Policy
	// answer is the expected content of the next block; nil: the block is not an answer.
	answer proto.Message
}

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func (u *tour) walk(text string) string {
	var out strings.Builder
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		out.WriteString(line + "\n")
		name, ok := strings.CutPrefix(line, "```json ")
		if !ok {
			continue
		}
		block, rest, ok := strings.Cut(text, "```\n")
		require.True(u.t, ok, "%s: a block does not end", name)
		text = rest
		out.WriteString(u.block(name, block) + "```\n")
	}
	return out.String()
}

// messageOf returns the type of a message of either package.
func messageOf(name string) (protoreflect.MessageType, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("apportion.v1." + name))
	if err != nil {
		return protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("apportion.v1alpha1." + name))
	}
	return kind, nil
}

// block returns what a block has to hold.
func (u *tour) block(name, text string) string {
	if u.answer != nil {
		answer := u.answer
		u.answer = nil
		require.Equal(u.t, name, string(answer.ProtoReflect().Descriptor().Name()), "the block after a request is its answer")
		return u.pretty(answer)
	}
	if u.digest != "" {
		text = digests.ReplaceAllString(text, u.digest)
	}
	kind, err := messageOf(name)
	require.NoError(u.t, err, name)
	message := kind.New().Interface()
	require.NoError(u.t, protojson.Unmarshal([]byte(text), message), "%s: %s", name, text)
	switch m := message.(type) {
	case *apportionv1.Snapshot:
		u.snapshot = m
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(u.t, err)
		u.digest = decode.Digest(data)
	case *apportionv1.Policy:
		u.policy = m
	case interface{ GetInput() *apportionv1.Input }:
		u.ask(m.GetInput(), message)
	}
	return text
}

// ask sets answer to the response to a request, or to its error.
func (u *tour) ask(input *apportionv1.Input, request proto.Message) {
	snapshot, policy := u.snapshot, u.policy
	if inline := input.GetSnapshot(); inline != nil {
		snapshot = inline
	}
	if inline := input.GetPolicy(); inline != nil {
		policy = inline
	}
	response, err := respond(snapshot, policy, input.GetSnapshotDigest(), request)
	if _, ok := errors.AsType[*decode.Fault](err); ok {
		u.answer = decode.Status(err)
		return
	}
	require.NoError(u.t, err)
	u.answer = response
}

func respond(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy, digest string, request proto.Message) (proto.Message, error) {
	m, err := decode.Compile(snapshot)
	if err != nil {
		return nil, err
	}
	s, err := wire.Open(m, policy, wire.Options{})
	if err != nil {
		return nil, err
	}
	basis := s.Basis()
	basis.SnapshotDigest = digest
	do := func(step *apportionv1.Step) *apportionv1.Answer { return s.Do(step) }
	switch q := request.(type) {
	case *apportionv1.EvaluateSharesRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: q.GetShares()}})
		return &apportionv1.EvaluateSharesResponse{Basis: basis, Shares: a.GetShares()}, nil
	case *apportionv1.CheckEnqueueRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: q.GetEnqueue()}})
		return &apportionv1.CheckEnqueueResponse{Basis: basis, Enqueue: a.GetEnqueue()}, nil
	case *apportionv1.ExplainRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: q.GetExplain()}})
		return &apportionv1.ExplainResponse{Basis: basis, Explain: a.GetExplain()}, nil
	case *apportionv1.PlanRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: q.GetPlan()}})
		return &apportionv1.PlanResponse{Basis: basis, Plan: a.GetPlan()}, nil
	case *apportionv1.ForecastRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Forecast{Forecast: q.GetForecast()}})
		return &apportionv1.ForecastResponse{Basis: basis, Forecast: a.GetForecast()}, nil
	case *apportionv1.RemediesRequest:
		a := do(&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: q.GetRemedies()}})
		return &apportionv1.RemediesResponse{Basis: basis, Remedies: a.GetRemedies()}, nil
	case *apportionv1.SimulateRequest:
		answers, err := s.DoAll(q.GetSteps())
		return &apportionv1.SimulateResponse{Basis: basis, Answers: answers}, err
	}
	return &status.Status{}, nil
}

// pretty is the JSON form of a message, with everything on one line that fits.
func (u *tour) pretty(m proto.Message) string {
	data, err := protojson.Marshal(m)
	require.NoError(u.t, err)
	var out strings.Builder
	u.lay(&out, data, "")
	return out.String() + "\n"
}

const width = 120

func (u *tour) lay(out *strings.Builder, data json.RawMessage, indent string) {
	var line bytes.Buffer
	require.NoError(u.t, json.Compact(&line, data))
	flat := spaced(line.String())
	if len(indent)+len(flat) <= width || flat[0] != '{' && flat[0] != '[' {
		out.WriteString(flat)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	open, err := decoder.Token()
	require.NoError(u.t, err)
	out.WriteString(open.(json.Delim).String() + "\n")
	inner := indent + "  "
	for first := true; decoder.More(); first = false {
		if !first {
			out.WriteString(",\n")
		}
		out.WriteString(inner)
		if open == json.Delim('{') {
			key, err := decoder.Token()
			require.NoError(u.t, err)
			out.WriteString(`"` + key.(string) + `": `)
		}
		var value json.RawMessage
		require.NoError(u.t, decoder.Decode(&value))
		u.lay(out, value, inner)
	}
	shut, err := decoder.Token()
	require.NoError(u.t, err)
	out.WriteString("\n" + indent + shut.(json.Delim).String())
}

// spaced puts a space after each comma and colon of compact JSON that is not inside a string.
func spaced(compact string) string {
	var out strings.Builder
	quoted, escaped := false, false
	for _, r := range compact {
		out.WriteRune(r)
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = quoted
		case r == '"':
			quoted = !quoted
		case !quoted && (r == ',' || r == ':'):
			out.WriteByte(' ')
		}
	}
	return out.String()
}
