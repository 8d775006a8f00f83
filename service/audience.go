package service

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// A caller that owns some queues sees these and their jobs in snapshots that the server holds for others, and the sums of all other queues.
// Package wire refuses questions about anything else and makes answers without other names; its answers pass redact, which lists each field
// that may be sent and drops every other one. Snapshots that the caller sent are its own, and not restricted.

// Audience is a caller that owns some queues, as a reader of one model.
type Audience struct {
	audience *wire.Audience
	model    *model.Model
	own      func(queue string) bool
}

// NewAudience returns the caller that owns the queues with matching names, and all queues below them.
func NewAudience(m *model.Model, own func(queue string) bool) *Audience {
	return &Audience{wire.NewAudience(m, own), m, own}
}

// Restrict restricts the later answers of a session on the model. Redact completes what this begins.
func (a *Audience) Restrict(session *wire.Session) { session.Restrict(a.audience) }

// owned returns the names of the caller's queues. An audience of these names is the same.
func (a *Audience) owned() []string {
	var names []string
	for q := range a.model.Queues {
		if name := a.model.Queues[q].Name; a.model.HasQueue(model.QueueID(q)) && a.own(name) {
			names = append(names, name)
		}
	}
	return names
}

// audienceOf returns the audience that the caller of a context is to a snapshot; nil: it may see everything.
func (s *Server) audienceOf(ctx context.Context, e *entry) *Audience {
	own := s.ownedBy(ctx, e)
	if own == nil {
		return nil
	}
	return NewAudience(e.model, own)
}

// ownedBy returns a function that reports which queues of a snapshot the caller of a context owns; nil: it may see everything.
func (s *Server) ownedBy(ctx context.Context, e *entry) func(queue string) bool {
	if s.options.Own == nil || !e.ofOthers() {
		return nil
	}
	return s.options.Own(ctx)
}

// whole returns a PERMISSION_DENIED if the caller of a context may not do with a snapshot what shows all of it. field is the path of what
// names the snapshot, or changes it.
func (s *Server) whole(ctx context.Context, e *entry, field string) error {
	if s.ownedBy(ctx, e) == nil {
		return nil
	}
	return &decode.Fault{
		Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED, Field: field,
		Text: "the caller may see only its own queues, by the calls Explain, EvaluateShares and Simulate",
	}
}

// openFor returns a session on a snapshot that is held, as far as the caller may see it, and records the snapshot and that restriction.
func (s *Server) openFor(ctx context.Context, e *entry, r rule, p *progress, into *record) (opened, error) {
	a := s.audienceOf(ctx, e)
	if a != nil && len(into.observers) > 0 {
		into.Restricted, into.Owned = true, a.owned()
	}
	into.Snapshot = e.observed()
	o, err := s.openCached(e, r, p)
	switch {
	case a == nil:
	case err != nil:
		err = decode.AsFault(err).Silenced()
	default:
		a.restrict(&o)
	}
	return o, err
}

// restrict makes a session answer for the audience.
func (a *Audience) restrict(o *opened) {
	a.Restrict(o.session)
	basis := proto.CloneOf(o.basis)
	basis.Restricted = true
	a.redact(basis)
	release := o.release
	o.audience, o.basis, o.release = a, basis, func() {
		o.session.Restrict(nil)
		release()
	}
}

// Redact drops from answers what the audience may not see.
func (a *Audience) Redact(answers []*apportionv1.Answer) {
	for _, answer := range answers {
		a.redact(answer)
	}
}

// redact drops every field that is not in shownFields, entries about queues and jobs that the audience may not see, and positions of these.
func (a *Audience) redact(m proto.Message) { a.message(m.ProtoReflect()) }

// message redacts a message, and reports whether any of it may be sent.
func (a *Audience) message(m protoreflect.Message) bool {
	fields, known := shownFields[m.Descriptor().FullName()]
	if !known || !a.maySeeEntry(m) {
		return false
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		about, ok := fields[f.Name()]
		switch {
		case !ok:
			m.Clear(f)
		case f.IsList():
			a.list(m, f, about)
		case f.Message() != nil && about != asItIs:
			if !a.message(v.Message()) {
				m.Clear(f)
			}
		case !a.maySee(about, v):
			m.Clear(f)
		}
		return true
	})
	m.SetUnknown(nil)
	return true
}

// list keeps the elements of a list that may be sent.
func (a *Audience) list(m protoreflect.Message, f protoreflect.FieldDescriptor, about subject) {
	list, kept := m.Mutable(f).List(), 0
	for i := range list.Len() {
		element := list.Get(i)
		if f.Message() != nil && !a.message(element.Message()) || f.Message() == nil && !a.maySee(about, element) {
			continue
		}
		list.Set(kept, element)
		kept++
	}
	list.Truncate(kept)
	if kept == 0 {
		m.Clear(f)
	}
}

// subject is the kind of entity to which a position in an answer refers.
type subject int

const (
	// nothing: the field is not a position.
	nothing subject = iota
	// aQueue of the audience, or an ancestor of one.
	aQueue
	// aJob and aTask of a queue of the audience.
	aJob
	aTask
	// asItIs: a message of another package.
	asItIs
)

// maySee reports whether a field of an answer may be sent.
func (a *Audience) maySee(about subject, v protoreflect.Value) bool {
	switch about {
	case aQueue:
		return a.audience.Shows(model.QueueID(v.Uint()))
	case aJob:
		return a.ownsJob(v.Uint())
	case aTask:
		t := v.Uint()
		return t < uint64(a.model.Tasks.Len()) && a.model.HasTask(model.TaskID(t)) && a.audience.Owns(a.model.QueueOf(model.TaskID(t)))
	case nothing, asItIs:
	}
	return true
}

// ownsJob reports whether a position is that of a job in a queue of the audience.
func (a *Audience) ownsJob(j uint64) bool {
	return j < uint64(a.model.Jobs.Len()) && a.audience.Owns(a.model.Jobs.At(model.JobID(j)).Queue)
}

// maySeeEntry reports whether a message is about what the audience may see: the queue or job that it is an entry of.
func (a *Audience) maySeeEntry(m protoreflect.Message) bool {
	switch e := m.Interface().(type) {
	case *apportionv1.QueueShare:
		return a.audience.Shows(model.QueueID(e.GetQueue()))
	case *apportionv1.InspectedQueue:
		return a.audience.Shows(model.QueueID(e.GetQueue()))
	case *apportionv1.QueueStanding:
		return a.audience.Owns(model.QueueID(e.GetQueue()))
	case *apportionv1.JobShare, *apportionv1.Explanation, *apportionv1.InspectedJob, *apportionv1.InspectedTask, *apportionv1.KueueVictim:
		about, ok := e.(interface{ GetJob() uint32 })
		return ok && a.ownsJob(uint64(about.GetJob()))
	case *apportionv1.PendingGroup:
		return slices.ContainsFunc(e.GetJobs(), func(j uint32) bool { return a.ownsJob(uint64(j)) })
	case *apportionv1.LeftOutExplanation:
		q, ok := a.model.Queue(e.GetLeftOut().GetQueue())
		return ok && a.audience.Owns(q)
	}
	return true
}

// shownFields are the fields of each message that are sent to an audience, with the subject of each. No other field is, and no other
// message.
var shownFields = parseShown(shownTexts())

// shownTexts lists the shown fields as text, `name` or `name:subject`: those of messages that several answers have here, and those of the
// answer of a question with the question, in wire.Question.Visible.
func shownTexts() map[string]string {
	answers := []string{"error:asItIs"}
	lists := map[string]string{
		"Basis":        "engine_version policy_digest snapshot_digest dimensions restricted view",
		"SnapshotView": "name digest as_of age complete kinds",
		"ViewedKind":   "resource read count resource_version fault left_out_count",
		"Resource":     "dimensions amounts",
		"Cause": "plugin code queue:aQueue dimensions have need limit detail hierarchy_fault text count free " +
			"start_time end_time holder",
	}
	for _, q := range wire.Questions {
		if q.Visible != nil {
			answers = append(answers, q.Name)
			maps.Copy(lists, q.Visible)
		}
	}
	lists["Answer"] = strings.Join(answers, " ")
	return lists
}

// parseShown reads the texts of shownTexts.
func parseShown(lists map[string]string) map[protoreflect.FullName]map[protoreflect.Name]subject {
	subjects := map[string]subject{"": nothing, "aQueue": aQueue, "aJob": aJob, "aTask": aTask, "asItIs": asItIs}
	all := make(map[protoreflect.FullName]map[protoreflect.Name]subject, len(lists))
	for message, list := range lists {
		fields := map[protoreflect.Name]subject{}
		for field := range strings.FieldsSeq(list) {
			name, about, _ := strings.Cut(field, ":")
			fields[protoreflect.Name(name)] = subjects[about]
		}
		all[protoreflect.FullName("apportion.v1."+message)] = fields
	}
	return all
}
