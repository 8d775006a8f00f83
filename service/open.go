package service

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service/buffer"
)

// opened is a session on the input of a unary call.
type opened struct {
	session *wire.Session
	basis   *apportionv1.Basis
	// release releases the booked memory, or the session.
	release func()
	// audience restricts the answers to the parts that the caller may see; nil: the caller may see everything.
	audience *Audience
}

// memory estimates the memory for opening a session on an input and answering steps in it.
func (c *call) memory(ctx context.Context, in *apportionv1.Input, steps []*apportionv1.Step) int64 {
	policy := c.server.policyOf(in)
	change, from := method.Changed(in)
	if since := wire.Since(in.GetEvents()[from:], in.GetEdits()); len(since) > 0 {
		steps = append(since, steps...)
	}
	switch source := in.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		size := c.sizeOf(source.Snapshot)
		return size.Memory() + c.server.stepMemory(steps, size.Extent(policy))
	case *apportionv1.Input_SnapshotDigest, *apportionv1.Input_SnapshotName:
		e, bytes := c.server.held(ctx, in)
		if e == nil {
			return 0
		}
		extent := decode.ExtentOf(e.model, policy)
		if change == nil {
			return bytes + c.server.stepMemory(steps, extent)
		}
		data, size := c.changeOf(change)
		return bytes + decode.ChangeMemory(e.model, data, size) + c.server.stepMemory(steps, extent.With(size))
	}
	return 0
}

// held returns the snapshot that an input names, and the memory that it takes; nil if it is missing, or if the caller may not ask about it,
// which opening the input reports: how much a question takes tells how large the snapshot is.
func (s *Server) held(ctx context.Context, in *apportionv1.Input) (*entry, int64) {
	if name := in.GetSnapshotName(); name != "" {
		if v, err := s.newestShown(ctx, name, ""); err == nil {
			return v.entry, v.bytes
		}
		return nil, 0
	}
	key := entryKey{IdentityOf(ctx), in.GetSnapshotDigest()}
	if e := s.cache.find(key); e != nil {
		return e, s.cache.size(key)
	}
	if e := s.keptVersion(ctx, in.GetSnapshotDigest()); e != nil {
		return e, e.bytes
	}
	return nil, 0
}

// named returns the snapshot that an input names by digest or by name, to a caller that may see all of it. prefix leads to the fields of
// the input.
func (s *Server) named(ctx context.Context, in *apportionv1.Input, prefix string) (*entry, error) {
	e, err := s.shown(ctx, in, prefix)
	if err == nil {
		err = s.whole(ctx, e, prefix+"source")
	}
	return e, err
}

// shown is like named, but also for a caller that may see only its own queues.
func (s *Server) shown(ctx context.Context, in *apportionv1.Input, prefix string) (*entry, error) {
	if source, ok := in.GetSource().(*apportionv1.Input_SnapshotName); ok {
		v, err := s.newestShown(ctx, source.SnapshotName, prefix+"snapshot_name")
		if err != nil {
			return nil, err
		}
		return v.entry, nil
	}
	return s.findShown(ctx, in.GetSnapshotDigest(), prefix+"snapshot_digest")
}

// sizeOf counts the contents of a request's snapshot, encoded or decoded. Bytes that must be encoded again count twice.
func (c *call) sizeOf(decoded *apportionv1.Snapshot) *decode.Size {
	if c.snapshot.data != nil {
		return c.snapshot.measure()
	}
	size := decode.SizeOf(decoded, 2*int64(proto.Size(decoded)))
	return &size
}

// changeOf returns the encoded change of a request, and its size. A decoded change is encoded again.
func (c *call) changeOf(change *apportionv1.Change) ([]byte, *decode.Size) {
	if c.snapshot.change {
		return c.snapshot.data, c.snapshot.measure()
	}
	// Applying the change refuses a text that is not UTF-8.
	data, _ := proto.Marshal(change)
	size := decode.Measure(data)
	return data, &size
}

// stepMemory estimates the memory for answering steps.
func (s *Server) stepMemory(steps []*apportionv1.Step, e decode.Extent) int64 {
	memory, _ := wire.StepMemory(steps, e, s.sessionOptions())
	return memory
}

// policyOf returns the policy that an input gives or names, nil if there is none.
func (s *Server) policyOf(in *apportionv1.Input) *apportionv1.Policy {
	if p := in.GetPolicy(); p != nil {
		return p
	}
	return (*s.rules.Load())[in.GetPolicyName()].policy
}

// open opens a session on the input of a unary call, which is asked the steps given.
func (c *call) open(
	ctx context.Context, in *apportionv1.Input, p *progress, seen *record, steps []*apportionv1.Step,
) (opened, error) {
	o, err := c.openSource(ctx, in, p, seen, steps)
	_, from := method.Changed(in)
	if err != nil || from == len(in.GetEvents()) && len(in.GetEdits()) == 0 {
		return o, err
	}
	seen.Events, seen.Edits = in.GetEvents()[from:], in.GetEdits()
	if err = o.session.Continue(in.GetEvents(), from, in.GetEdits(), "input."); err == nil {
		// The basis has the warnings about the result.
		view := o.basis.GetView()
		o.basis = basisOf(o.session, o.basis.GetSnapshotDigest())
		o.basis.View = view
	}
	return o, err
}

// openSource opens a session on the snapshot of an input, or on the change of it that is its first event.
func (c *call) openSource(
	ctx context.Context, in *apportionv1.Input, p *progress, seen *record, steps []*apportionv1.Step,
) (opened, error) {
	s := c.server
	r, err := c.rule(in)
	if err != nil {
		return opened{}, err
	}
	seen.Policy = r.policy
	end := phase(ctx, "open")
	defer end()
	switch source := in.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		seen.Snapshot = c.observed(source.Snapshot)
		sums := len(in.GetEvents())+len(in.GetEdits()) == 0 && wire.OnlySums(r.policy, steps)
		m, release, err := c.compile(ctx, source.Snapshot, p.stop, sums)
		if err != nil {
			return opened{}, err
		}
		session, err := s.openModel(m, r, p)
		if err != nil {
			return opened{release: release}, err
		}
		return opened{session: session, basis: session.Basis(), release: release}, nil
	case *apportionv1.Input_SnapshotDigest, *apportionv1.Input_SnapshotName:
		e, err := s.shown(ctx, in, "input.")
		if err != nil {
			return opened{}, err
		}
		if len(in.GetEvents()) > 0 {
			if err := s.whole(ctx, e, "input.events"); err != nil {
				return opened{}, err
			}
		}
		change, _ := method.Changed(in)
		if change == nil {
			return s.openFor(ctx, e, r, p, seen)
		}
		seen.Snapshot = e.observed()
		session, digest, err := c.openChanged(e, change, r, p, seen)
		if err != nil {
			return opened{}, err
		}
		return opened{session: session, basis: viewedBasis(session, digest, e), release: func() {}}, nil
	}
	return opened{}, method.NoSnapshot()
}

// openChanged opens a session on a cached snapshot after a change, the first event of an input, and returns the digest of the result.
func (c *call) openChanged(
	e *entry, first *apportionv1.Change, r rule, p *progress, seen *record,
) (session *wire.Session, digest string, err error) {
	s, change := c.server, &c.snapshot
	if !change.change {
		data, err := proto.Marshal(first)
		if err != nil {
			return nil, "", invalidRequest("input.events[0].change", "a text is not UTF-8")
		}
		change = &snapshot{data: data}
	}
	began := time.Now()
	g := s.guard(p.stop)
	g.Size = change.measure()
	m, err := new(decode.Decoder).CompileChange(e.model, change.data, g)
	s.metrics.compiledModel(began, m)
	if err != nil {
		return nil, "", method.NotChanged(err, "input.")
	}
	digest = decode.ChangeDigest(e.key.digest, change.data)
	seen.Snapshot = Snapshot{Digest: digest, Model: m, Named: e.cluster, Base: e.key.digest, data: change.data, buffer: change.buffer}
	session, err = s.openModel(m, r, p)
	return session, digest, err
}

// observed returns the description of an inline snapshot for observers.
func (c *call) observed(decoded *apportionv1.Snapshot) Snapshot {
	if c.snapshot.data != nil {
		return Snapshot{data: c.snapshot.data, buffer: c.snapshot.buffer}
	}
	return Snapshot{Message: decoded}
}

// rule returns the policy of an input.
func (c *call) rule(in *apportionv1.Input) (rule, error) {
	if given := in.GetPolicy(); given != nil && c.messages != nil && c.messages.given.policy == given {
		return c.messages.given, nil
	}
	return c.server.rule(in.GetPolicy(), in.GetPolicyName(), "input.")
}

// rule returns the policy given or named. prefix leads to the fields that hold them.
func (s *Server) rule(given *apportionv1.Policy, name, prefix string) (rule, error) {
	if given != nil {
		return rule{policy: given, digest: s.digests.digest(given)}, nil
	}
	if name == "" {
		return rule{}, method.NoPolicy(prefix)
	}
	if r, ok := (*s.rules.Load())[name]; ok {
		return r, nil
	}
	return rule{}, method.UnknownPolicy(prefix, name)
}

// permit returns an error if the caller may not name the cluster that a snapshot names. It is asked before the snapshot is compiled, and
// when a cached one is used again.
func (s *Server) permit(ctx context.Context, cluster func() string) error {
	if s.options.Permit == nil {
		return nil
	}
	return s.options.Permit(ctx, cluster())
}

// guard returns the limits for compiling a snapshot for a call.
func (s *Server) guard(stop func() bool) decode.Guard {
	return decode.Guard{Limits: decode.LimitsOf(&s.options.Limit), Stop: stop}
}

// decoders are reused with their memory: a model that answers one call is built where the last one was.
var decoders buffer.Idle[*decode.Decoder]

// compile returns the model of the snapshot in a unary request, and a function that takes the model's memory back. No answer may refer to
// the model then but by strings. sums is true if the questions need only the sums of tasks.
func (c *call) compile(
	ctx context.Context, decoded *apportionv1.Snapshot, stop func() bool, sums bool,
) (*model.Model, func(), error) {
	began := time.Now()
	s, data := c.server, c.snapshot.data
	if data == nil {
		return s.compileDecoded(ctx, decoded, stop)
	}
	if err := s.permit(ctx, func() string { return decode.ClusterOf(data) }); err != nil {
		return nil, nil, err
	}
	g := s.guard(stop)
	g.Size, g.Sums = c.snapshot.measure(), sums
	d, ok := decoders.Get()
	if !ok {
		d = new(decode.Decoder)
	}
	release := func() { decoders.Put(d) }
	m, err := d.CompileWithin(data, g)
	s.metrics.compiledModel(began, m)
	if err != nil {
		release()
		return nil, nil, err
	}
	return m, release, nil
}

// compileDecoded compiles the snapshot of a caller without gRPC, or of an input that is written in parts, within the same limits.
func (s *Server) compileDecoded(ctx context.Context, decoded *apportionv1.Snapshot, stop func() bool) (*model.Model, func(), error) {
	began := time.Now()
	if err := s.permit(ctx, decoded.GetCluster); err != nil {
		return nil, nil, err
	}
	data, err := proto.Marshal(decoded)
	if err != nil {
		return nil, nil, invalidRequest("input.snapshot", "a text is not UTF-8")
	}
	m, err := new(decode.Decoder).CompileWithin(data, s.guard(stop))
	s.metrics.compiledModel(began, m)
	return m, func() {}, err
}

// find returns the cached snapshot of a digest that a request names in a field, to a caller that may see all of it.
func (s *Server) find(ctx context.Context, digest, field string) (*entry, error) {
	e, err := s.findShown(ctx, digest, field)
	if err == nil {
		err = s.whole(ctx, e, field)
	}
	return e, err
}

// findShown is find for a caller that may see all of the snapshot, or its own queues alone.
func (s *Server) findShown(ctx context.Context, digest, field string) (*entry, error) {
	if err := checkDigest(digest, field); err != nil {
		return nil, err
	}
	e := s.cache.find(entryKey{IdentityOf(ctx), digest})
	if e != nil && e.kept != "" && s.mayAsk(ctx, e.kept) != nil {
		// The basis of a session on a kept snapshot, or on a change of one, shows its view.
		e = nil
	}
	if e == nil {
		e = s.keptVersion(ctx, digest)
	}
	if e == nil {
		s.metrics.miss.Inc()
		return nil, notHeld(field, "no such snapshot is held here; send it again")
	}
	s.metrics.hit.Inc()
	if err := s.permit(ctx, func() string { return e.cluster }); err != nil {
		return nil, err
	}
	return e, nil
}

// notHeld is the fault of a digest of a snapshot that the server does not hold.
func notHeld(field, text string) error {
	return &decode.Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND, Field: field, Text: text,
	}
}

// checkDigest refuses what no digest looks like.
func checkDigest(digest, field string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != 32 || strings.ToLower(digits) != digits {
		return invalidRequest(field, "a digest is sha256: and 64 hexadecimal digits")
	}
	return nil
}

// openCached returns a session on a cached snapshot: a pooled one, or a new one.
func (s *Server) openCached(e *entry, r rule, p *progress) (opened, error) {
	pooled := s.cache.take(e, r.digest)
	if pooled != nil {
		pooled.Stop(p.stop)
		pooled.Book(p.book)
	} else {
		session, err := s.openModel(e.model, r, p)
		if err != nil {
			return opened{}, err
		}
		session.Keep()
		pooled = &pooledSession{Session: session, basis: viewedBasis(session, e.key.digest, e)}
	}
	return opened{session: pooled.Session, basis: pooled.basis, release: func() {
		pooled.Stop(nil)
		pooled.Book(nil)
		pooled.Show(false, false)
		pooled.Remember(nil)
		pooled.Restore()
		pooled.bytes = pooled.Bytes()
		s.cache.give(e, r.digest, pooled)
	}}, nil
}

func (s *Server) openModel(m *model.Model, r rule, p *progress) (*wire.Session, error) {
	o := s.sessionOptions()
	o.Stop, o.Book, o.PolicyDigest = p.stop, p.book, r.digest
	return wire.Open(m, r.policy, o)
}

func (s *Server) sessionOptions() wire.Options {
	l := &s.options.Limit
	return wire.Options{
		AnswerBytes: int(l.AnswerBytes), ExplainBytes: int(l.ExplainBytes), UndoBytes: int64(l.UndoBytes), Work: l.Work,
		Limits: decode.LimitsOf(l),
	}
}

func basisOf(session *wire.Session, digest string) *apportionv1.Basis {
	basis := session.Basis()
	basis.SnapshotDigest = digest
	return basis
}

// viewedBasis is the basis of a session on a snapshot that is held, or on the result of a change of it.
func viewedBasis(session *wire.Session, digest string, e *entry) *apportionv1.Basis {
	basis := basisOf(session, digest)
	basis.View = e.view()
	return basis
}
