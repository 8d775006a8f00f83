package service

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// ready is an opened session between two callers.
type ready struct {
	*wire.Session

	basis *apportionv1.Basis
	bytes int64
}

// hold compiles a snapshot unless it is held already, and holds it if it is not too large for that. Of several callers with the same
// bytes one compiles.
func (s *Service) hold(
	ctx context.Context, key heldKey, data []byte, stop func() bool,
) (m *model.Model, holds, already bool, err error) {
	for {
		m, holds, already, err = s.holdOnce(ctx, key, data, stop)
		// Who waited for a caller that has gone compiles by himself.
		if !errors.Is(err, policy.ErrStopped) || stop() {
			return m, holds, already, err
		}
	}
}

func (s *Service) holdOnce(
	ctx context.Context, key heldKey, data []byte, stop func() bool,
) (m *model.Model, holds, already bool, err error) {
	if h := s.cache.find(key); h != nil {
		return h.model, true, true, nil
	}
	type result struct {
		model *model.Model
		holds bool
	}
	compiled, err, _ := s.compiling.Do(key.identity+"\x00"+key.digest, func() (any, error) {
		if h := s.cache.find(key); h != nil {
			return result{h.model, true}, nil
		}
		began := time.Now()
		g, size := s.guard(stop), wire.Measure(data)
		g.Size = &size
		leave, err := s.admit(ctx, decisionRank, size.Memory())
		if err != nil {
			return nil, err
		}
		defer leave()
		m, err := new(wire.Decoder).CompileWithin(data, g)
		if err != nil {
			return nil, err
		}
		s.metrics.compiledModel(began, m)
		s.metrics.compiled.Inc()
		s.received(ctx, key.digest, data)
		return result{m, s.cache.put(key, m, wire.ClusterOf(data), wire.ModelBytes(m)+int64(len(data)))}, nil
	})
	if err != nil {
		return nil, false, false, err
	}
	r, _ := compiled.(result)
	return r.model, r.holds, false, nil
}

// find returns the snapshot of a digest that a request names in a field.
func (s *Service) find(ctx context.Context, digest, field string) (*held, error) {
	if err := checkDigest(digest, field); err != nil {
		return nil, err
	}
	h := s.cache.find(heldKey{IdentityOf(ctx), digest})
	if h == nil {
		s.metrics.requests.WithLabelValues("miss").Inc()
		return nil, &wire.Fault{
			Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND, Field: field,
			Text: "no such snapshot is held here; send it again",
		}
	}
	s.metrics.requests.WithLabelValues("hit").Inc()
	if err := s.permit(ctx, func() string { return h.cluster }); err != nil {
		return nil, err
	}
	return h, nil
}

// checkDigest refuses what no digest looks like.
func checkDigest(digest, field string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != 32 || strings.ToLower(digits) != digits {
		return invalidRequest(field, "a digest is sha256: and 64 hexadecimal digits")
	}
	return nil
}

// openHeld returns a session on a snapshot that is held: one that waits for a caller, or a new one.
func (s *Service) openHeld(h *held, r rule, stop func() bool) (call, error) {
	session := s.cache.take(h, r.digest)
	if session != nil {
		session.Stop(stop)
	} else {
		opened, err := s.openModel(h.model, r, stop)
		if err != nil {
			return call{}, err
		}
		opened.Keep()
		session = &ready{Session: opened, basis: basisOf(opened, h.key.digest)}
	}
	return call{Session: session.Session, basis: session.basis, release: func() {
		session.Stop(nil)
		session.Restore()
		session.bytes = session.Bytes()
		s.cache.give(h, r.digest, session)
	}}, nil
}

func (s *Service) openModel(m *model.Model, r rule, stop func() bool) (*wire.Session, error) {
	return wire.Open(m, r.policy, wire.Options{
		Stop: stop, AnswerBytes: s.options.AnswerBytes, ExplainBytes: s.options.ExplainBytes, UndoBytes: s.options.UndoBytes,
	})
}

func basisOf(session *wire.Session, digest string) *apportionv1.Basis {
	basis := session.Basis()
	basis.SnapshotDigest = digest
	return basis
}
