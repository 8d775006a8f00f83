package decisionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/difference"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
)

// Replayer repeats the decisions of a log, in the order of the log.
type Replayer struct {
	// Snapshot and Policy return what entries refer to by digest; ErrNotStored if it does not exist.
	Snapshot func(digest string) ([]byte, error)
	// Change returns the change that results in a snapshot that is not stored; ErrNotStored if the change does not exist either.
	Change func(digest string) (base string, data []byte, err error)
	Policy func(digest string) (*apportionv1.Policy, error)
	// Differences limits the reported differences of one entry. 0: 20.
	Differences int

	models   map[string]*model.Model
	policies map[string]*apportionv1.Policy
	sessions map[string]*replayed
}

// replayed is a session under way; nil session: the rest of the session cannot be decided again.
type replayed struct {
	session *wire.Session
	next    uint64
	why     string
}

// Outcome is the result of replaying an entry.
type Outcome struct {
	// Line of the log.
	Line  int    `json:"line"`
	Entry *Entry `json:"-"`
	// Skipped is the reason why the entry was not replayed; "" if it was. Fault is the error in a line that is not an entry.
	Skipped string `json:"skipped,omitempty"`
	Fault   string `json:"fault,omitempty"`
	// Differences between the recorded and the new decision.
	Differences []difference.Difference `json:"differences,omitempty"`
}

// NewReplayer returns a replayer that finds snapshots and policies in a store's directory.
func NewReplayer(directory string) *Replayer {
	return &Replayer{
		Snapshot: func(digest string) ([]byte, error) { return ReadSnapshot(directory, digest) },
		Change:   func(digest string) (string, []byte, error) { return ReadChange(directory, digest) },
		Policy:   func(digest string) (*apportionv1.Policy, error) { return ReadPolicy(directory, digest) },
	}
}

// maxLine bounds a line of a log, in bytes. A longer one is skipped.
const maxLine = 1 << 30

// Replay replays every entry of a log and passes its outcome to each. A line that cannot be read as an entry is skipped. Replay stops when
// the log cannot be read, or when each returns an error.
func (r *Replayer) Replay(log io.Reader, each func(Outcome) error) error {
	lines := bufio.NewReaderSize(log, 1<<16)
	var line []byte
	for number := 1; ; number++ {
		var long bool
		var err error
		if line, long, err = readLine(lines, line[:0], maxLine); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(line) == 0 {
			continue
		}
		o := r.line(line, long)
		o.Line = number
		if err := each(o); err != nil {
			return err
		}
	}
}

// readLine appends the next line to a buffer, at most so many bytes of it and without its end. It returns io.EOF if there is none.
func readLine(from *bufio.Reader, line []byte, most int) (_ []byte, long bool, err error) {
	for {
		part, err := from.ReadSlice('\n')
		left := most - len(line)
		long = long || len(part) > left
		line = append(line, part[:min(len(part), left)]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(part)+len(line) > 0:
			// The last line has no end.
			err = nil
		}
		return bytes.TrimRight(line, "\r\n"), long, err
	}
}

// line decides the entry that a line holds.
func (r *Replayer) line(line []byte, long bool) Outcome {
	e := &Entry{}
	err := errLong
	if !long {
		err = json.Unmarshal(line, e)
		if cut := (*json.SyntaxError)(nil); line[0] == '{' && errors.As(err, &cut) {
			return Outcome{Entry: &Entry{}, Skipped: skipTorn}
		}
	}
	var o Outcome
	if err == nil {
		o, err = r.Entry(e)
	}
	if err != nil {
		return Outcome{Entry: &Entry{}, Skipped: skipNoEntry, Fault: err.Error()}
	}
	o.Entry = e
	return o
}

var (
	errLong     = errors.New("the line is longer than any entry")
	errNoMethod = errors.New("no method is given")
)

// Why entries are skipped.
const (
	skipMasked   = "its fields were masked"
	skipNoSteps  = "the question was not recorded"
	skipNoBasis  = "it failed before its snapshot and policy were known"
	skipUnstored = "its snapshot or policy is not stored"
	skipLost     = "an entry of its session is missing"
	skipTorn     = "it was truncated"
	skipMachine  = "it failed for reasons outside the decision"
	skipNoEntry  = "the line is not an entry"
)

// Entry replays one entry. It returns an error if the entry cannot be read.
func (r *Replayer) Entry(e *Entry) (Outcome, error) {
	if e.Method == "" {
		return Outcome{}, errNoMethod
	}
	steps, err := readJSON[apportionv1.Step](e.Steps)
	if err != nil {
		return Outcome{}, err
	}
	answers, err := readJSON[apportionv1.Answer](e.Answers)
	if err != nil {
		return Outcome{}, err
	}
	failure, err := e.readError()
	if err != nil {
		return Outcome{}, err
	}
	session, why, fault := r.open(e)
	switch {
	case why != "":
		return Outcome{Skipped: why}, nil
	case e.End:
		delete(r.sessions, e.Session)
		return Outcome{}, nil
	case isOutside(failure):
		return r.give(e, skipMachine), nil
	}
	var is []*apportionv1.Answer
	failed := fault
	switch {
	case fault == nil:
		is, failed = r.ask(session, e, steps)
	case e.Restricted:
		failed = decode.AsFault(fault).Silenced()
	}
	return Outcome{Differences: r.compare(answers, is, failure, failed)}, nil
}

// ask answers the steps of an entry as its caller may see them. The caller of a session may see everything.
func (r *Replayer) ask(session *wire.Session, e *Entry, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	if !e.Restricted || e.Session != "" {
		return method.Ask(session, e.Method, steps)
	}
	m, err := r.Model(e.SnapshotDigest)
	if err != nil {
		return nil, err
	}
	owned := make(map[string]bool, len(e.Owned))
	for _, name := range e.Owned {
		owned[name] = true
	}
	audience := service.NewAudience(m, func(queue string) bool { return owned[queue] })
	audience.Restrict(session)
	answers, err := method.Ask(session, e.Method, steps)
	audience.Redact(answers)
	return answers, err
}

// give gives up a session because of one of its entries.
func (r *Replayer) give(e *Entry, why string) Outcome {
	if s := r.sessions[e.Session]; s != nil {
		s.session, s.why = nil, why
	}
	return Outcome{Skipped: why}
}

// open returns the session in which an entry is decided, why there is none, or the fault that opening it ends in.
func (r *Replayer) open(e *Entry) (session *wire.Session, why string, fault error) {
	switch {
	case e.Session != "" && (e.Batch > 0 || e.End):
		session, why = r.resume(e)
		return session, why, nil
	case e.Masked:
		return nil, skipMasked, nil
	case e.PolicyDigest == "" || e.SnapshotDigest == "":
		return nil, skipNoBasis, nil
	case e.StepsDigest != "":
		return nil, skipNoSteps, nil
	}
	prefix := "input."
	if e.Session != "" {
		prefix = "open.input."
	}
	m, policy, why, fault := r.basis(e)
	if why == "" && fault == nil {
		if session, fault = wire.Open(m, policy, wire.Options{}); fault == nil {
			session.Show(e.Texts, e.OmitNames)
			fault = happened(session, e, prefix)
		}
	}
	fault = decode.InInput(fault, prefix)
	if e.Session != "" {
		if r.sessions == nil {
			r.sessions = map[string]*replayed{}
		}
		r.sessions[e.Session] = &replayed{session: session, next: 1, why: why}
	}
	return session, why, fault
}

// happened lets the events of an entry happen, and makes its edits. A prefix leads to them.
func happened(session *wire.Session, e *Entry, prefix string) error {
	events, err := readJSON[apportionv1.Event](e.Events)
	if err != nil {
		return err
	}
	edits, err := readJSON[apportionv1.Edit](e.Edits)
	if err != nil {
		return err
	}
	return session.Continue(events, 0, edits, prefix)
}

// resume returns the session of a batch, if all batches before it were there.
func (r *Replayer) resume(e *Entry) (*wire.Session, string) {
	s := r.sessions[e.Session]
	if s == nil {
		return nil, skipLost
	}
	switch {
	case s.session == nil:
	case e.Batch != s.next:
		s.session, s.why = nil, skipLost
	case e.Masked:
		s.session, s.why = nil, skipMasked
	case e.StepsDigest != "":
		s.session, s.why = nil, skipNoSteps
	}
	s.next = e.Batch + 1
	if s.session == nil && s.why == "" {
		s.why = skipNoBasis
	}
	return s.session, s.why
}

// basis finds the model and the policy of an entry.
func (r *Replayer) basis(e *Entry) (*model.Model, *apportionv1.Policy, string, error) {
	policy, known := r.policies[e.PolicyDigest]
	if !known {
		var err error
		if policy, err = r.Policy(e.PolicyDigest); err != nil {
			return nil, nil, unstored(err), nil
		}
		if r.policies == nil {
			r.policies = map[string]*apportionv1.Policy{}
		}
		r.policies[e.PolicyDigest] = policy
	}
	m, why, err := r.model(e.SnapshotDigest)
	return m, policy, why, err
}

// Model returns the model of a stored snapshot, or of a stored snapshot after stored changes.
func (r *Replayer) Model(digest string) (*model.Model, error) {
	m, why, err := r.model(digest)
	if err == nil && m == nil {
		err = errors.New(why)
	}
	return m, err
}

// link is a change of a chain that ends at a whole snapshot.
type link struct {
	digest string
	data   []byte
}

// model returns the model of a digest: of a stored snapshot, or of one after stored changes.
func (r *Replayer) model(digest string) (m *model.Model, why string, fault error) {
	var chain []link
	at := digest
	for m = r.models[at]; m == nil; m = r.models[at] {
		data, err := r.Snapshot(at)
		if err == nil {
			if decode.Digest(data) != at {
				return nil, "the snapshot stored has another digest than its name says", nil
			}
			if m, err = decode.CompileBytes(data); err != nil {
				return nil, "", err
			}
			break
		}
		if !errors.Is(err, ErrNotStored) || r.Change == nil {
			return nil, unstored(err), nil
		}
		base, change, err := r.Change(at)
		if err != nil {
			return nil, unstored(err), nil
		}
		// The digest covers the digest of the base, so that no chain can form a circle.
		if decode.ChangeDigest(base, change) != at {
			return nil, "the change stored has another digest than its name says", nil
		}
		chain = append(chain, link{at, change})
		at = base
	}
	r.remember(at, m)
	for _, l := range slices.Backward(chain) {
		var d decode.Decoder
		if m, fault = d.CompileChange(m, l.data, decode.Guard{}); fault != nil {
			return nil, "", fault
		}
		r.remember(l.digest, m)
	}
	return m, "", nil
}

// remember keeps a model for the next entries. The last few are enough: calls about one snapshot stand together.
func (r *Replayer) remember(digest string, m *model.Model) {
	const most = 8
	if r.models[digest] != nil {
		return
	}
	if len(r.models) >= most || r.models == nil {
		r.models = map[string]*model.Model{}
	}
	r.models[digest] = m
}

func unstored(err error) string {
	if errors.Is(err, ErrNotStored) {
		return skipUnstored
	}
	return err.Error()
}

// isOutside reports whether an error says nothing of the decision: a limit, a deadline or a fault of the server.
func isOutside(st *rpcstatus.Status) bool {
	switch decode.ReasonOf(st) {
	case apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE,
		apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED,
		apportionv1.ErrorReason_ERROR_REASON_INTERNAL:
		return true
	default:
		return false
	}
}

func (r *Replayer) compare(was, is []*apportionv1.Answer, failure *rpcstatus.Status, failed error) []difference.Difference {
	most := r.Differences
	if most <= 0 {
		most = 20
	}
	var now *rpcstatus.Status
	if failed != nil {
		now = decode.Status(failed)
	}
	found := difference.Between(&apportionv1.AnswerBatch{Answers: was}, &apportionv1.AnswerBatch{Answers: is}, most)
	if failure != nil || now != nil {
		was, is := &apportionv1.Answer{}, &apportionv1.Answer{}
		if failure != nil {
			was.Answer = &apportionv1.Answer_Error{Error: failure}
		}
		if now != nil {
			is.Answer = &apportionv1.Answer_Error{Error: now}
		}
		found = append(found, difference.Between(was, is, most)...)
	}
	return found[:min(len(found), most)]
}
