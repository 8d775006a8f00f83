package wire

import (
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/text"
)

// Options of a Session; the zero value is usable. The limits of answers, work and rollbacks are those of setting.Limit with the same names,
// and have the same defaults.
type Options struct {
	// Stop is called periodically during long work; it returns true if the caller no longer waits. nil: never.
	Stop func() bool
	// Beside runs independent parts of a question, as engine.OddsQuestion has it, and Stop is then called by several goroutines; nil: one
	// goroutine does all work.
	Beside func(n int, run func(i int))
	// Book is called for memory of which the size becomes known only while a question is worked on, before it is taken; its error ends the
	// question. What StepMemory and Size.Memory return is not among it. nil: there is enough.
	Book func(bytes int64) error
	// AnswerBytes limits the answers to one Do or DoAll, by an upper estimate.
	AnswerBytes int
	// ExplainBytes limits the answer to one step with derivations, in the same way.
	ExplainBytes int
	// Work limits the cost of opening, and then of one Ask or DoAll, in the units of policy.Work.
	Work int64
	// Limits limits the models that steps make.
	Limits decode.Limits
	// UndoBytes limits, by an estimate, the memory for rollbacks.
	UndoBytes int64
	// PolicyDigest is the digest of the policy, if it is known.
	PolicyDigest string
}

// Session answers steps about one model by one policy. It may be used by one goroutine at a time.
type Session struct {
	engine engine.Host
	// given is the policy as it was given, and canonical its canonical form, or nil until it is used.
	given, canonical *apportionv1.Policy
	// model is the model to which out, named and depth refer.
	model  *model.Model
	limits decode.Limits

	digest  string
	stop    func() bool
	beside  func(n int, run func(i int))
	maximum int
	// explain is the maximum of an answer that holds derivations.
	explain int
	out     encoder
	// omitNames: answers have no names where they have positions.
	omitNames bool
	reasons   policy.Reasons
	checks    policy.Checks
	paths     paths
	undo      undo
	// audience restricts the answers to the parts that their reader may see; nil: no restriction.
	audience *Audience
	// named gives names to what reasons refer to; nil: they are collected when the first text is made.
	named *text.Names
	// work is the remaining work of the current question. plugins and depth are the cost of steps for each entity that they name.
	work           *policy.Work
	plugins, depth int
	// unread are the positions of the kinds in what is left out that were not read.
	unread []int
	// past finds past jobs that the server knows; nil: it knows none.
	past func(name string) ([]RememberedJob, error)
	// dividers is the number of plugins that divide.
	dividers int
	// layered is true if the cost depends on the depth of queues.
	layered bool
	// volcano is true if all plugins are Volcano's, which divide without priorities of jobs.
	volcano bool
}

// Open returns a session. Errors in the policy, or in the snapshot as read by a plugin, are a *Fault.
func Open(m *model.Model, p *apportionv1.Policy, options Options) (*Session, error) {
	compiled, err := decode.Policy(p)
	if err != nil {
		return nil, err
	}
	options.complete()
	work := policy.NewWork(options.Work)
	work.Book(options.Book)
	e, err := engine.OpenHost(m, compiled, options.Stop, work)
	if err != nil {
		return nil, decode.InvalidSnapshot(err)
	}
	s := &Session{
		engine: e, given: p, stop: options.Stop, beside: options.Beside, maximum: options.AnswerBytes, explain: options.ExplainBytes,
		limits: options.Limits,
	}
	if s.digest = options.PolicyDigest; s.digest == "" {
		s.digest = decode.CanonicalDigest(s.policy())
	}
	s.work, s.plugins, s.dividers, s.volcano = work, 1, len(e.Dividers()), true
	for i, tier := range p.GetTiers() {
		for k, plugin := range tier.GetPlugins() {
			s.plugins++
			row, ok := catalogue.Of(plugin)
			s.volcano = s.volcano && ok && row.Volcano
			if ok && row.Levels != nil {
				s.layered = s.layered || row.Levels(compiled.Tiers[i][k].Plugin)
			}
		}
	}
	s.follow()
	s.undo.maximum = options.UndoBytes
	return s, nil
}

// follow updates the values that depend on the model, which steps replace.
func (s *Session) follow() {
	m := s.engine.View().Model
	if m == s.model {
		return
	}
	s.model, s.named, s.out.dims, s.depth = m, nil, m.Dims, 1
	s.findUnread()
	if s.layered {
		s.depth = max(int(decode.LevelsOf(m)), 1)
	}
}

var defaults = sync.OnceValue(setting.Default[setting.Limit])

// complete sets limits that are not above zero to their defaults.
func (o *Options) complete() {
	if o.AnswerBytes <= 0 {
		o.AnswerBytes = int(defaults().AnswerBytes)
	}
	if o.ExplainBytes <= 0 {
		o.ExplainBytes = int(defaults().ExplainBytes)
	}
	if o.Work <= 0 {
		o.Work = defaults().Work
	}
	if o.UndoBytes <= 0 {
		o.UndoBytes = int64(defaults().UndoBytes)
	}
}

// policy returns the policy in its canonical form.
func (s *Session) policy() *apportionv1.Policy {
	if s.canonical == nil {
		s.canonical = decode.Canonical(s.given)
	}
	return s.canonical
}

// Stop replaces the function by which long work checks whether to stop.
func (s *Session) Stop(stop func() bool) {
	s.stop = stop
	s.engine.Stop(stop)
}

// Book replaces the function that is asked for memory.
func (s *Session) Book(book func(bytes int64) error) { s.work.Book(book) }

// AnswerBytes returns an upper estimate of the size of the last answers of Ask or DoAll.
func (s *Session) AnswerBytes() int { return s.out.maximum - s.out.left }

// Engine returns the engine's session. Callers must not modify it.
func (s *Session) Engine() engine.Host { return s.engine }

// Basis returns the basis of the answers, without the digest of the snapshot, which depends on its bytes.
func (s *Session) Basis() *apportionv1.Basis {
	basis := &apportionv1.Basis{
		EngineVersion: engine.Version, PolicyDigest: s.digest, PolicySource: s.given.GetSource(),
		Dimensions: s.engine.View().Dims.OrderedNames(),
	}
	for _, w := range s.engine.Warnings() {
		warning := &apportionv1.Warning{
			Code: apportionv1.WarningCode(w.Code), Message: decode.Cut(s.warningText(&w), 4*decode.MaxText),
			Queue: s.out.optional(int(w.Queue)),
		}
		if warning.Epochs = w.Epochs; w.Code == policy.BudgetCutsGuarantee {
			warning.Dimension = new(uint32(s.engine.View().Dims.Position(w.Dimension)))
		}
		if w.Path != "" {
			warning.Path = "snapshot." + w.Path
		}
		basis.Warnings = append(basis.Warnings, warning)
	}
	return basis
}

// warningText returns the text of a warning with its amounts in people's units.
func (s *Session) warningText(w *policy.Warning) string {
	words := w.Text
	for i, amount := range w.Amounts {
		shown := text.Figure(s.engine.View().Dims.Name(w.Dimension), amount)
		words = strings.ReplaceAll(words, "{"+strconv.Itoa(i)+"}", shown)
	}
	return text.Sentence(words)
}

// stopped is meant to be called for every row i of a loop, and asks once in many rows.
func (s *Session) stopped(i int) bool { return i&1023 == 1023 && s.stop != nil && s.stop() }

// Show sets whether the reasons in later answers have texts, and whether names are omitted where there are positions. The default is
// neither.
func (s *Session) Show(texts, omitNames bool) {
	s.named = nil
	s.out.text, s.omitNames = nil, omitNames
	if texts {
		s.out.text = s.reasonText
	}
}

// reasonText puts a reason into words.
func (s *Session) reasonText(r *apportionv1.Cause) string {
	if s.named == nil {
		names := s.names()
		s.named = &names
	}
	return text.Reason(*s.named, r)
}

// names gives names to what answers refer to by number.
func (s *Session) names() text.Names {
	v := s.engine.View()
	names := text.Names{Dimensions: v.Dims.OrderedNames(), Queues: make([]string, len(v.Queues))}
	for i := range v.Queues {
		names.Queues[i] = s.audience.queueName(v, model.QueueID(i))
	}
	names.Cohort = func(q uint32) bool { return wirekueue.QueueOf(v.Model, model.QueueID(q)).GetCohort() }
	names.Job = func(j uint32) string { return s.audience.jobName(v, model.JobID(j)) }
	names.Node = func(n uint32) string { return v.Nodes[n].Name }
	names.Task = func(t uint32) string { return s.audience.taskName(v, model.TaskID(t)) }
	names.Spent = func(q, dimension uint32) (all, almost bool) {
		if int(q) >= len(v.Queues) || int(dimension) >= v.Dims.Len() || v.Memory == nil || v.Queues[q].Memory == nil {
			return false, false
		}
		of, d := v.Queues[q].Memory.Budget, v.Dims.Order()[dimension]
		hard := of != nil && of.Kind == model.HardBudget && of.Amount.Has.Has(d)
		return hard && of.Spent.At(d) >= of.Amount.At(d), hard && of.Amount.At(d)-of.Spent.At(d) < v.Memory.EpochSeconds
	}
	return names
}

// JobName is namespace/name of a job, or its uid where it has no name.
func JobName(job *model.Job) string {
	switch {
	case job.Name == "":
		return job.UID
	case job.Namespace == "":
		return job.Name
	}
	return job.Namespace + "/" + job.Name
}

// Bytes estimates the memory of a session in addition to its model, once tasks have changed: the accounts of its plugins and the changing
// part of the view.
func (s *Session) Bytes() int64 {
	v := s.engine.View()
	// The plugins that divide keep about this many rows for each queue, and together as many for what changes.
	const rowsOfDivider, rowsOfQueue = 4, 10
	row, queues, jobs := decode.RowBytes(v.Dims.Len()), int64(len(v.Queues)), int64(v.Jobs.Len())
	plugins := int64(s.plugins-1)*(64*queues+64*jobs) + int64(s.dividers)*rowsOfDivider*queues*row
	changing := 8*jobs + int64(v.Moved())*(4*row+decode.BytesOf[model.Account](1)+256) + int64(v.Tasks.Len())*8 +
		int64(len(v.Nodes))*row + rowsOfQueue*queues*row
	if state := s.kueueState(); state != nil {
		plugins += int64(state.Bytes())
	}
	return plugins + changing + int64(v.PodBytes()) + int64(v.Journal.Bytes()) + decode.BytesOf[policy.Check](s.engine.Scratch()) +
		s.engine.ListedBytes()
}

// markBytes is about what a mark takes.
const markBytes = 1 << 10

// undo keeps account of the memory that is held so that changes can be undone: a client could otherwise mark, and then change for ever.
type undo struct {
	maximum int64
	// held is the memory of former states, and at[i] its value at mark i.
	held int64
	at   []int64
}

func (u *undo) mark() {
	u.held += markBytes
	u.at = append(u.at, u.held)
}

func (u *undo) rollback(mark int) {
	u.held = u.at[mark]
	u.at = u.at[:mark+1]
}

func (u *undo) clear() { u.held, u.at = 0, nil }

// mayChange returns a *Fault if no more changes can be remembered. Without a mark, no step needs to be undone.
func (s *Session) mayChange() error {
	journal := s.engine.View().Journal
	if !journal.Recording() || s.undo.held+int64(journal.Bytes()) <= s.undo.maximum {
		return nil
	}
	maximum := strconv.FormatInt(s.undo.maximum, 10)
	return &decode.Fault{
		Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED,
		Text:     "more changes than " + maximum + " bytes can remember were made since the first mark; roll back first",
		Metadata: map[string]string{"limit": "undo_bytes", "maximum": maximum},
	}
}

// leave books the present state as left behind, if some mark may return to it.
func (s *Session) leave() {
	if s.engine.View().Journal.Recording() {
		s.undo.held += s.Bytes() + decode.ModelBytes(s.engine.View().Model)
	}
}

// Keep makes the current state the one that Restore returns to.
func (s *Session) Keep() {
	s.engine.Keep()
	s.undo.clear()
}

// Restore undoes everything since Keep, so that a session can be reused for the next caller.
func (s *Session) Restore() {
	s.engine.Restore()
	s.follow()
	s.undo.clear()
}
