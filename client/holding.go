package client

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// held describes a State as a replica, or this process, holds it.
type held struct {
	*layout

	// digest identifies it at a replica; model is its compiled form in process.
	digest string
	model  *model.Model
	// chain is the number of bytes of changes since the last State that was sent whole.
	chain int
}

// lineage is the last State that a replica, or this process, holds; the next one is sent as a change of it.
type lineage struct {
	// turn belongs to the sender.
	turn chan struct{}
	last *State
	held *held
}

func newLineage() lineage { return lineage{turn: make(chan struct{}, 1)} }

// keeper makes a replica, or this process, hold a snapshot: an encoded one, or an encoded change of one that it holds already.
type keeper func(ctx context.Context, base *held, data []byte) (*held, error)

const (
	// The number of unused positions of each kind, in addition to the number of entities, and the number of bytes of changes, in addition
	// to the size of the whole State, beyond which everything is sent again.
	sparePositions = 1024
	spareBytes     = 64 << 10
)

// wasteful reports whether a layout has more unused positions than entities, so that answers take longer than about a State that was sent
// whole.
func (l *layout) wasteful(live holdings) bool {
	over := func(used, live int) bool { return used > 2*live+sparePositions }
	return over(l.used.nodes, live.nodes) || over(l.used.queues, live.queues) || over(l.used.sets, live.sets) ||
		over(l.used.jobs, live.jobs) || over(l.used.tasks, live.tasks)
}

// find returns how a State is held, and sends it if it is not held. missing describes a State that a replica turned out not to hold.
func (l *lineage) find(ctx context.Context, s *State, at *atomic.Pointer[held], missing *held, keep keeper) (*held, error) {
	if h := at.Load(); h != nil && h != missing {
		return h, nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-l.turn }()
	if h := at.Load(); h != nil && h != missing {
		return h, nil
	}
	if missing == nil {
		h, err := l.step(ctx, s, keep)
		if h != nil || err != nil {
			return l.note(s, at, h, err)
		}
	}
	data, place := s.encode()
	h, err := keep(ctx, nil, data)
	if h != nil {
		h.layout = place
		s.mirror.figures.whole(len(data))
	}
	return l.note(s, at, h, err)
}

// step contains the changes since the last held State. Nil: everything must be sent.
func (l *lineage) step(ctx context.Context, s *State, keep keeper) (*held, error) {
	if l.last == nil || l.last.sequence > s.sequence {
		return nil, nil //nolint:nilnil // Neither held nor refused.
	}
	data, place, ok := s.change(l.last, l.held.layout)
	chain := l.held.chain + len(data)
	if !ok || len(data) > s.bytes/2 || chain > s.bytes+spareBytes || place.wasteful(s.live) {
		return nil, nil //nolint:nilnil // As above.
	}
	h, err := keep(ctx, l.held, data)
	if err != nil {
		if final(ctx, err) {
			return nil, err
		}
		return nil, nil //nolint:nilnil // The base is gone, or the change is refused: a whole snapshot says why.
	}
	h.layout, h.chain = place, chain
	s.mirror.figures.change(len(data))
	return h, nil
}

// note stores how a State is held.
func (l *lineage) note(s *State, at *atomic.Pointer[held], h *held, err error) (*held, error) {
	if err != nil {
		return nil, err
	}
	at.Store(h)
	if l.last == nil || l.last.sequence <= s.sequence {
		l.last, l.held = s, h
	}
	return h, nil
}

// final reports whether the error of sending a change would also occur if everything were sent.
func final(ctx context.Context, err error) bool {
	if ctx.Err() != nil || passing(err) {
		return true
	}
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unauthenticated, codes.PermissionDenied, codes.Internal, codes.Unknown:
		return true
	default:
		return false
	}
}

// atReplica returns how the State is held at the replica that the mirror's calls reach.
func (s *State) atReplica(ctx context.Context, missing *held) (*held, error) {
	c := s.mirror.client
	return s.mirror.remote.find(ctx, s, &s.remote, missing, func(ctx context.Context, base *held, data []byte) (*held, error) {
		u := &Upload{data: data, digest: decode.Digest(data)}
		if base != nil {
			u.base, u.digest = base.digest, decode.ChangeDigest(base.digest, data)
		}
		var err error
		if missing == nil {
			_, err = c.send(ctx, u)
		} else {
			err = c.spread(ctx, u)
		}
		if err != nil {
			return nil, err
		}
		return &held{digest: u.digest}, nil
	})
}

// inline puts the whole State into an input, and returns how it is held there.
func (s *State) inline(in *apportionv1.Input) *held {
	snapshot, place := s.decoded()
	in.Source = &apportionv1.Input_Snapshot{Snapshot: snapshot}
	s.mirror.figures.inline.Add(1)
	return &held{layout: place}
}

// tooLarge reports whether an error means that the snapshot is too large for a replica to hold.
func tooLarge(err error) bool {
	return err != nil && Reason(err) == apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED
}

// inProcess returns the State as it is compiled in this process. A client of a service, which answers there only if the service does not,
// compiles each State whole and keeps none.
func (s *State) inProcess(ctx context.Context, stop func() bool) (*held, error) {
	l := &s.mirror.local
	if s.mirror.client.remote != nil {
		single := newLineage()
		l = &single
	}
	return l.find(ctx, s, &s.local, nil, func(_ context.Context, base *held, data []byte) (*held, error) {
		var m *model.Model
		var err error
		if base == nil {
			m, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Stop: stop})
		} else {
			m, err = new(decode.Decoder).CompileChange(base.model, data, decode.Guard{Stop: stop})
		}
		if err != nil {
			return nil, failure(err)
		}
		return &held{model: m}, nil
	})
}

// notHeld reports whether an error means that a replica does not hold a snapshot.
func notHeld(err error) bool {
	return err != nil && Reason(err) == apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND
}

// errForeign is returned for a State whose mirror belongs to another client.
var errForeign = errors.New("the state belongs to a mirror of another client")

// figures count what a mirror sent.
type figures struct{ changes, changeBytes, wholes, wholeBytes, inline atomic.Uint64 }

func (f *figures) change(bytes int) {
	f.changes.Add(1)
	f.changeBytes.Add(uint64(bytes))
}

func (f *figures) whole(bytes int) {
	f.wholes.Add(1)
	f.wholeBytes.Add(uint64(bytes))
}

// Sent counts what a mirror has sent, or compiled in process.
type Sent struct {
	// Changes counts the States that were sent as a change of an earlier one, Wholes the States that were sent whole.
	Changes, ChangeBytes, Wholes, WholeBytes uint64
	// Inline counts questions that contained the whole State, because replicas repeatedly did not hold it.
	Inline uint64
}

// Sent returns the counters of the mirror.
func (m *Mirror) Sent() Sent {
	f := &m.figures
	return Sent{
		Changes: f.changes.Load(), ChangeBytes: f.changeBytes.Load(),
		Wholes: f.wholes.Load(), WholeBytes: f.wholeBytes.Load(), Inline: f.inline.Load(),
	}
}
