package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Options of a Service; the zero value is usable.
type Options struct {
	// Policies that requests may name.
	Policies map[string]*apportionv1.Policy
	// AnswerBytes bounds one answer. 0: wire.DefaultAnswerBytes.
	AnswerBytes int
	// ExplainBytes bounds the answer to one step that asks for derivations. 0: wire.DefaultExplainBytes.
	ExplainBytes int
	// UndoBytes bounds what a call or session remembers for rollbacks. 0: wire.DefaultUndoBytes.
	UndoBytes int64
	// CallTime bounds a unary call, and each batch of a session, whatever deadline its caller sets. 0: a minute; below 0: nothing.
	CallTime time.Duration
	// SnapshotBytes bounds a snapshot sent in chunks, ReceivingBytes all that are being received at a time. 0: 1 GiB and 4 GiB.
	SnapshotBytes, ReceivingBytes int64
	// CacheBytes bounds the snapshots held, IdentityBytes those of one identity, as compiled. 0: 4 GiB and half of CacheBytes.
	CacheBytes, IdentityBytes int64
	// Sessions bounds the sessions open at a time. 0: 1,000.
	Sessions int
	// PendingBatches is how many batches of a session may be unanswered. 0: 64.
	PendingBatches int
	// Permit returns an error, a *wire.Fault to be told, if the caller of a context may not name a cluster. nil: everybody may name any.
	Permit func(ctx context.Context, cluster string) error
	// SessionBytes bounds what open sessions take: what is compiled for them, and what they change. 0: 2 GiB.
	SessionBytes int64
	// IdentitySessions bounds the sessions of one identity. 0: half of Sessions, at least 1.
	IdentitySessions int
	// SessionTime ends a session after this long, SessionIdle one whose client has said nothing for this long. 0: 24 hours and 15 minutes;
	// below 0: never.
	SessionTime, SessionIdle time.Duration
	// UploadTime bounds how long a snapshot may take to come in chunks. 0: 5 minutes; below 0: any time.
	UploadTime time.Duration
	// Limits of what a request may hold.
	Limits Limits
	// Overload says how work is admitted.
	Overload Overload
	// Observers are told what was decided.
	Observers []Observer
	// Logger of faults of the service itself. nil: they are not logged.
	Logger *slog.Logger
}

func (o *Options) complete() {
	if o.CallTime == 0 {
		o.CallTime = time.Minute
	}
	o.SnapshotBytes = orDefault(o.SnapshotBytes, 1<<30)
	o.ReceivingBytes = orDefault(o.ReceivingBytes, 4<<30)
	o.CacheBytes = orDefault(o.CacheBytes, 4<<30)
	o.IdentityBytes = orDefault(o.IdentityBytes, o.CacheBytes/2)
	o.SessionBytes = orDefault(o.SessionBytes, 2<<30)
	o.Sessions = orDefault(o.Sessions, 1000)
	o.PendingBatches = orDefault(o.PendingBatches, 64)
	o.IdentitySessions = orDefault(o.IdentitySessions, max(o.Sessions/2, 1))
	if o.SessionTime == 0 {
		o.SessionTime = 24 * time.Hour
	}
	if o.SessionIdle == 0 {
		o.SessionIdle = 15 * time.Minute
	}
	if o.UploadTime == 0 {
		o.UploadTime = 5 * time.Minute
	}
	o.Limits.complete()
	o.Overload.complete()
	o.Policies = maps.Clone(o.Policies)
}

// Service answers the calls of the contract. It is for any number of goroutines.
type Service struct {
	apportionv1.UnimplementedApportionServiceServer

	options Options
	log     *slog.Logger
	rules   atomic.Pointer[map[string]rule]
	metrics *metrics

	cache     *cache
	compiling singleflight.Group
	receiving *budget
	sessions  atomic.Int64
	holding   *holdings
	gate      *gate
	inbox     *inbox
	// perIdentity counts the sessions of identities.
	perIdentity counts
	// begun counts the calls whose headers have come.
	begun  counts
	opened atomic.Uint64

	draining  chan struct{}
	drainOnce sync.Once
	drainEnd  time.Time
}

// rule is a policy to decide by.
type rule struct {
	policy *apportionv1.Policy
	digest string
}

// New returns a service, or what is wrong with the named policies.
//
//nolint:gocritic // Options are given once.
func New(options Options) (*Service, error) {
	options.complete()
	s := &Service{options: options, log: options.Logger, draining: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.SetPolicies(options.Policies); err != nil {
		return nil, err
	}
	o := &s.options.Overload
	s.gate = newGate(o)
	s.receiving = newBudget("receiving_bytes", s.options.ReceivingBytes, time.Second)
	s.holding = newHoldings(s.options.SessionBytes)
	s.inbox = &inbox{budget: newBudget("overload.receiving", o.Receiving, o.Wait), maximum: defaultRequestBytes, patience: o.Wait}
	s.metrics = newMetrics(s)
	s.cache = newCache(options.CacheBytes, options.IdentityBytes, max(2, runtime.GOMAXPROCS(0)), s.metrics.evicted.Inc)
	return s, nil
}

// SetPolicies replaces the policies that requests may name, all of them at once, or none and returns what is wrong with any. Calls and
// sessions that have begun go on with what they found.
func (s *Service) SetPolicies(policies map[string]*apportionv1.Policy) error {
	rules := make(map[string]rule, len(policies))
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		if _, err := wire.Policy(p); err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
		}
		rules[name] = rule{p, wire.PolicyDigest(p)}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	s.rules.Store(&rules)
	return nil
}
