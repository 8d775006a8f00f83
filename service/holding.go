package service

import (
	"strconv"
	"sync"
	"time"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/wire"
)

// holdings is the memory of the sessions that are open. A model counts once for each identity, however many of its sessions use it, and
// even where it is held for calls that name its digest: a session keeps it when it is let go there.
type holdings struct {
	budget *budget

	mutex  sync.Mutex
	models map[modelKey]int
}

type modelKey struct {
	identity string
	model    *model.Model
}

func newHoldings(limit int64) *holdings {
	return &holdings{budget: newBudget("session_bytes", limit, time.Second), models: map[modelKey]int{}}
}

// holding is what one session takes.
type holding struct {
	of  *holdings
	key modelKey
	// bytes is what is booked beside the model.
	bytes int64
}

// open books what a session takes, or returns why it may not.
func (h *holdings) open(identity string, m *model.Model, session *wire.Session) (*holding, error) {
	key := modelKey{identity, m}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	bytes := session.Bytes()
	all := bytes
	if h.models[key] == 0 {
		all += wire.ModelBytes(key.model)
	}
	if !h.budget.take(identity, all) {
		return nil, h.exceeded(identity, all)
	}
	h.models[key]++
	return &holding{h, key, bytes}, nil
}

// grow books what a session has come to take.
func (s *holding) grow(session *wire.Session) error {
	bytes := session.Bytes()
	if bytes == s.bytes {
		return nil
	}
	if more := bytes - s.bytes; more < 0 {
		s.of.budget.give(s.key.identity, -more)
	} else if !s.of.budget.take(s.key.identity, more) {
		return s.of.exceeded(s.key.identity, more)
	}
	s.bytes = bytes
	return nil
}

// close gives back what a session took.
func (s *holding) close() {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	bytes := s.bytes
	if s.of.models[s.key]--; s.of.models[s.key] == 0 {
		delete(s.of.models, s.key)
		bytes += wire.ModelBytes(s.key.model)
	}
	s.of.budget.give(s.key.identity, bytes)
}

func (h *holdings) exceeded(identity string, more int64) error {
	mine := h.budget.usageOf(identity) + more
	return wire.Exceeded("session_bytes", mine, h.budget.limit, "the sessions of this identity would take "+strconv.FormatInt(mine, 10)+
		" bytes, more than they would leave of what there is for all")
}
