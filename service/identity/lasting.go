package identity

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/apportion/apportion/internal/wire/method"
)

// lasting is a call under way that lasts: a session, an upload. A gate lets it in once, and reviews it when identities or authorities
// change.
type lasting struct {
	gate   *Gate
	method string
	shows  credential
	// end ends the call with a cause.
	end context.CancelCauseFunc

	mutex sync.Mutex
	// caller is who calls, as of the last review, and clusters those that the call has named.
	caller   *Caller
	clusters map[string]bool
	// snapshots are those of the server that the call has named.
	snapshots map[string]bool
}

type lastingKey struct{}

// lasts reports whether the calls of a path last: all but the unary ones of the contract.
func lasts(path string) bool {
	call := method.At(path)
	return call == nil || !method.IsUnary(call)
}

// follow returns the context of a call that was let in and lasts, which Review may end. reviews is the number of reviews before the call
// was admitted.
func (g *Gate) follow(ctx context.Context, l *lasting, reviews int64) context.Context {
	ctx, l.end = context.WithCancelCause(ctx)
	l.gate, l.clusters, l.snapshots = g, map[string]bool{}, map[string]bool{}
	caller := l.caller
	g.mutex.Lock()
	g.lasting[l] = struct{}{}
	g.mutex.Unlock()
	expiry := func() bool { return true }
	if !l.shows.header && len(l.shows.chain) > 0 {
		expiry = time.AfterFunc(time.Until(l.shows.chain[0].NotAfter)+time.Millisecond, l.review).Stop
	}
	context.AfterFunc(ctx, func() {
		expiry()
		g.mutex.Lock()
		defer g.mutex.Unlock()
		delete(g.lasting, l)
	})
	if g.reviews.Load() != reviews {
		l.review()
	}
	return context.WithValue(context.WithValue(ctx, callerKey{}, caller), lastingKey{}, l)
}

// Review ends running calls that would no longer be admitted, because their token, their certificate's authority, their method or a cluster
// that they have named was revoked. Call it when authorities have changed; Admit calls it.
func (g *Gate) Review() {
	g.reviews.Add(1)
	g.mutex.Lock()
	all := make([]*lasting, 0, len(g.lasting))
	for l := range g.lasting {
		all = append(all, l)
	}
	g.mutex.Unlock()
	for _, l := range all {
		l.review()
	}
}

// review ends the call if it would not be let in any more, and else takes over what its caller may do now.
func (l *lasting) review() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	caller, err := l.gate.caller(l.gate.table.Load(), nil, &l.shows)
	if err == nil {
		err = l.permitted(caller)
	}
	if err != nil {
		l.end(err)
		return
	}
	l.caller = caller
}

// permitted returns why a caller may not do what the call does.
func (l *lasting) permitted(caller *Caller) error {
	if caller.Name != l.caller.Name {
		// The call counts for the identity with which it began.
		return unauthenticated("the credentials of the call belong to another identity now")
	}
	if err := caller.MayCall(l.method); err != nil {
		return err
	}
	for cluster := range l.clusters {
		if err := caller.MayName(cluster); err != nil {
			return err
		}
	}
	if len(l.snapshots) > 0 && caller.queues != nil {
		return caller.denied("may see only its own queues", "queues", "")
	}
	for snapshot := range l.snapshots {
		if err := caller.MayAsk(snapshot); err != nil {
			return err
		}
	}
	return nil
}

var errNoCaller = errors.New("a call was not authenticated")

// MayName returns a PERMISSION_DENIED if the caller of a context may not name a cluster in its snapshots. A long-lived call is ended when
// this permission is revoked.
func MayName(ctx context.Context, cluster string) error {
	return authorizeName(ctx, cluster, (*Caller).MayName, func(l *lasting) map[string]bool { return l.clusters })
}

// MayAsk returns a PERMISSION_DENIED if the caller of a context may not use a snapshot that the server maintains. A long-lived call is
// ended when this permission is revoked.
func MayAsk(ctx context.Context, snapshot string) error {
	return authorizeName(ctx, snapshot, (*Caller).MayAsk, func(l *lasting) map[string]bool { return l.snapshots })
}

// Own returns a function that reports whether the caller of a context owns a queue, or nil if it owns all. Without a gate a caller owns
// none.
func Own(ctx context.Context) func(queue string) bool {
	caller := Of(ctx)
	if caller == nil {
		return func(string) bool { return false }
	}
	return caller.Owns()
}

// authorizeName checks a name with allowed, and records it in noted for later reviews of a long call.
func authorizeName(ctx context.Context, name string, allowed func(*Caller, string) error, noted func(*lasting) map[string]bool) error {
	if l, ok := ctx.Value(lastingKey{}).(*lasting); ok {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		err := allowed(l.caller, name)
		if err == nil {
			noted(l)[name] = true
		}
		return err
	}
	caller := Of(ctx)
	if caller == nil {
		return errNoCaller
	}
	return allowed(caller, name)
}
