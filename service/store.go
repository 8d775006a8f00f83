package service

import (
	"context"
	"errors"
	"time"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/admission"
)

// store compiles a snapshot unless it is cached already, and caches it if it is not too large for that. Of several callers with the same
// bytes one compiles. If base is not nil, data is a change of it.
func (s *Server) store(
	ctx context.Context, key entryKey, data []byte, base *entry, p *progress,
) (m *model.Model, cached, already bool, err error) {
	for {
		m, cached, already, err = s.storeOnce(ctx, key, data, base, p)
		// A caller that waited for one that has gone compiles the snapshot itself.
		if !errors.Is(err, policy.ErrStopped) || p.stop() {
			return m, cached, already, err
		}
	}
}

func (s *Server) storeOnce(
	ctx context.Context, key entryKey, data []byte, base *entry, p *progress,
) (m *model.Model, cached, already bool, err error) {
	if e := s.cache.find(key); e != nil {
		return e.model, true, true, nil
	}
	type result struct {
		model  *model.Model
		cached bool
	}
	compiled, err, _ := s.compiling.Do(key.identity+"\x00"+key.digest, func() (any, error) {
		if e := s.cache.find(key); e != nil {
			return result{e.model, true}, nil
		}
		began := time.Now()
		g, size := s.guard(p.stop), decode.Measure(data)
		g.Size = &size
		memory := size.Memory()
		if base != nil {
			memory = decode.ChangeMemory(base.model, data, &size)
		}
		leave, err := s.enter(p, admission.Decision, memory)
		if err != nil {
			return nil, err
		}
		defer leave()
		m, cluster, err := s.compileStored(data, base, g)
		if err != nil {
			return nil, err
		}
		s.metrics.compiledModel(began, m)
		s.metrics.compiled.Inc()
		s.received(ctx, Received{Digest: key.digest, Base: base.digest(), Data: data})
		return result{m, s.cache.put(key, m, cluster, decode.OwnBytes(m)+int64(len(data))+entryBytes, base)}, nil
	})
	if err != nil {
		return nil, false, false, err
	}
	r, _ := compiled.(result)
	return r.model, r.cached, false, nil
}

// compileStored returns the model of a snapshot, or of a base after a change, and the cluster that it names.
func (s *Server) compileStored(data []byte, base *entry, g decode.Guard) (*model.Model, string, error) {
	if base == nil {
		m, err := new(decode.Decoder).CompileWithin(data, g)
		return m, decode.ClusterOf(data), err
	}
	m, err := new(decode.Decoder).CompileChange(base.model, data, g)
	return m, base.cluster, err
}
