package decisionlog

import (
	"encoding/json"
	"time"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Entry is one line of the log: a unary call, one batch of a session, or one request of Volcano's. Messages are in the contract's JSON.
type Entry struct {
	Time time.Time `json:"time"`
	// Method is its name without the service's, or the verb of Volcano's extender plugin.
	Method   string `json:"method"`
	Identity string `json:"identity,omitempty"`
	// Scheduler is the path of that plugin, and Sent the response: the same as Answers, in the plugin's format, or an abstention.
	Scheduler string          `json:"scheduler,omitempty"`
	Sent      json.RawMessage `json:"sent,omitempty"`
	// Session identifies a session among those of all servers; Batch counts its batches from 1, 0 is its opening, and End is true if it
	// ended.
	Session string `json:"session,omitempty"`
	Batch   uint64 `json:"batch,omitempty"`
	End     bool   `json:"end,omitempty"`
	// TraceID and SpanID are set if the call was traced.
	TraceID string `json:"trace_id,omitempty"`
	SpanID  string `json:"span_id,omitempty"`
	// EngineVersion, PolicyDigest and SnapshotDigest are the basis of the answer. PolicyName is "" if the request contained the policy.
	EngineVersion  string `json:"engine_version"`
	PolicyName     string `json:"policy_name,omitempty"`
	PolicyDigest   string `json:"policy_digest,omitempty"`
	SnapshotDigest string `json:"snapshot_digest,omitempty"`
	// Texts is true if the reasons in the answers have texts; for a session it is set in its opening.
	Texts bool `json:"texts,omitempty"`
	// OmitNames is true if the answers have no names beside positions, as Texts.
	OmitNames bool `json:"omit_names,omitempty"`
	// Restricted is true if the caller may see only its own queues: Owned, and those below these. The answers contain what it was sent.
	Restricted bool     `json:"restricted,omitempty"`
	Owned      []string `json:"owned,omitempty"`
	// Seconds is the duration of answering the steps.
	Seconds float64 `json:"seconds"`
	// Dimensions are the names of the dimension numbers in the answers.
	Dimensions []string `json:"dimensions,omitempty"`
	// Events happened since the snapshot before the first step, and Edits were made then; of a session in its opening. StepsDigest covers
	// them.
	Events []json.RawMessage `json:"events,omitempty"`
	Edits  []json.RawMessage `json:"edits,omitempty"`
	// Steps are the questions; or StepsDigest, if they are not logged.
	Steps       []json.RawMessage `json:"steps,omitempty"`
	StepsDigest string            `json:"steps_digest,omitempty"`
	// Answers belong to the steps at the same positions. If Error is set, the error was sent instead of answers; answers before it are
	// kept.
	Answers []json.RawMessage `json:"answers,omitempty"`
	Error   json.RawMessage   `json:"error,omitempty"`
	// Masked is true if fields were masked: the entry cannot be replayed.
	Masked bool `json:"masked,omitempty"`
	// Lost is the number of entries dropped since the previous entry.
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

// readJSON reads a list of messages of an entry.
func readJSON[M any, P interface {
	*M
	proto.Message
}](list []json.RawMessage) ([]P, error) {
	messages := make([]P, len(list))
	for i, raw := range list {
		messages[i] = new(M)
		if err := protojson.Unmarshal(raw, messages[i]); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// readError returns the error of an entry, nil if there is none.
func (e *Entry) readError() (*rpcstatus.Status, error) {
	if len(e.Error) == 0 {
		return nil, nil //nolint:nilnil // No error is what was read.
	}
	st := &rpcstatus.Status{}
	return st, protojson.Unmarshal(e.Error, st)
}
