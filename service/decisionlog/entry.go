package decisionlog

import (
	"encoding/json"
	"time"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Entry is one line of the log: a unary call, one batch of a session, or one request of Volcano's. Messages are in the contract's JSON.
type Entry struct {
	Time time.Time `json:"time"`
	// Method is its name without the service's, or the verb of Volcano's extender plugin.
	Method   string `json:"method"`
	Identity string `json:"identity,omitempty"`
	// Scheduler is the path at which that plugin asks, and Sent what it was answered: the same as Answers, in its own form, or that the
	// decision is left to it.
	Scheduler string          `json:"scheduler,omitempty"`
	Sent      json.RawMessage `json:"sent,omitempty"`
	// Session names a session among those of all servers; Batch counts its batches from 1, 0 is its opening, and End says that it is over.
	Session string `json:"session,omitempty"`
	Batch   uint64 `json:"batch,omitempty"`
	End     bool   `json:"end,omitempty"`
	// TraceID and SpanID are set if the call was traced.
	TraceID string `json:"trace_id,omitempty"`
	SpanID  string `json:"span_id,omitempty"`
	// EngineVersion, PolicyDigest and SnapshotDigest are what the answer rests on. PolicyName is "" where the request held the policy.
	EngineVersion  string `json:"engine_version"`
	PolicyName     string `json:"policy_name,omitempty"`
	PolicyDigest   string `json:"policy_digest,omitempty"`
	SnapshotDigest string `json:"snapshot_digest,omitempty"`
	// Texts says that the reasons in the answers carry their texts; of a session its opening says so.
	Texts bool `json:"texts,omitempty"`
	// Seconds is how long answering the steps took.
	Seconds float64 `json:"seconds"`
	// Dimensions are the names that numbers of dimensions in the answers stand for.
	Dimensions []string `json:"dimensions,omitempty"`
	// Steps are what was asked; or StepsDigest, if they are not to be written down.
	Steps       []json.RawMessage `json:"steps,omitempty"`
	StepsDigest string            `json:"steps_digest,omitempty"`
	// Answers belong to the steps at the same positions. If Error is set it was sent in their place; those before it are kept.
	Answers []json.RawMessage `json:"answers,omitempty"`
	Error   json.RawMessage   `json:"error,omitempty"`
	// Masked says that fields were masked: the entry cannot be decided again.
	Masked bool `json:"masked,omitempty"`
	// Lost is how many entries were dropped since the entry before this one.
	Lost uint64 `json:"lost,omitempty"`
}

func rawAll[M proto.Message](messages []M) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(messages))
	for _, m := range messages {
		raw, err := protojson.Marshal(m)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// readSteps returns the steps of an entry.
func (e *Entry) readSteps() ([]*apportionv1.Step, error) {
	steps := make([]*apportionv1.Step, len(e.Steps))
	for i, raw := range e.Steps {
		steps[i] = &apportionv1.Step{}
		if err := protojson.Unmarshal(raw, steps[i]); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// readAnswers returns the answers of an entry.
func (e *Entry) readAnswers() ([]*apportionv1.Answer, error) {
	answers := make([]*apportionv1.Answer, len(e.Answers))
	for i, raw := range e.Answers {
		answers[i] = &apportionv1.Answer{}
		if err := protojson.Unmarshal(raw, answers[i]); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// readError returns the error of an entry, nil if there is none.
func (e *Entry) readError() (*rpcstatus.Status, error) {
	if len(e.Error) == 0 {
		return nil, nil //nolint:nilnil // No error is what was read.
	}
	st := &rpcstatus.Status{}
	return st, protojson.Unmarshal(e.Error, st)
}
