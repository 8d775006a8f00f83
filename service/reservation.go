package service

import (
	"strconv"
	"sync"
	"time"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service/admission"
)

// sessionMemory is the memory of the sessions that are open. A model counts once for each identity, however many of its sessions use it,
// and even where it is held for calls that name its digest: a session keeps it when it is released there.
type sessionMemory struct {
	budget *admission.Budget

	mutex  sync.Mutex
	models map[modelKey]int
}

type modelKey struct {
	identity string
	model    *model.Model
}

func newSessionMemory(limit int64) *sessionMemory {
	return &sessionMemory{models: map[modelKey]int{}, budget: admission.NewBudget(admission.BudgetOptions{
		Name: "session_bytes", Bytes: limit, Retry: time.Second, Purpose: "held by sessions",
	})}
}

// reservation is the memory booked for one session.
type reservation struct {
	of  *sessionMemory
	key modelKey
	// bytes is the booked memory in addition to the model.
	bytes int64
}

// open books the memory of a session, or returns the reason why it may not.
func (m *sessionMemory) open(identity string, of *model.Model, session *wire.Session) (*reservation, error) {
	key := modelKey{identity, of}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	bytes := session.Bytes()
	all := bytes
	if m.models[key] == 0 {
		all += decode.ModelBytes(key.model)
	}
	if !m.budget.Take(identity, all) {
		return nil, m.exceeded(identity, all)
	}
	m.models[key]++
	return &reservation{m, key, bytes}, nil
}

// grow books what a session has come to take.
func (r *reservation) grow(session *wire.Session) error {
	bytes := session.Bytes()
	if bytes == r.bytes {
		return nil
	}
	if more := bytes - r.bytes; more < 0 {
		r.of.budget.Give(r.key.identity, -more)
	} else if !r.of.budget.Take(r.key.identity, more) {
		return r.of.exceeded(r.key.identity, more)
	}
	r.bytes = bytes
	return nil
}

// close gives back what a session took.
func (r *reservation) close() {
	r.of.mutex.Lock()
	defer r.of.mutex.Unlock()
	bytes := r.bytes
	if r.of.models[r.key]--; r.of.models[r.key] == 0 {
		delete(r.of.models, r.key)
		bytes += decode.ModelBytes(r.key.model)
	}
	r.of.budget.Give(r.key.identity, bytes)
}

func (m *sessionMemory) exceeded(identity string, more int64) error {
	mine := m.budget.UsedBy(identity) + more
	return busy("session_bytes", mine, m.budget.Bytes(), sessionsRetry,
		"the sessions of this identity would take "+strconv.FormatInt(mine, 10)+
			" bytes, more than they would leave of what there is for all")
}
