package service

import (
	"sync"
	"sync/atomic"
	"time"
)

// ends says when a session ends that neither side has ended: after its lifetime, of which the client is warned, or because nothing is
// asked any more.
type ends struct {
	warned, over, idle *time.Timer
	end                time.Time
	patience           time.Duration
}

// warning is how long before its end a client is told, at most a tenth of the lifetime.
const warning = time.Minute

// never is longer than any session lasts.
const never = 100 * 365 * 24 * time.Hour

func (s *Service) newEnds() *ends {
	life, patience := s.options.SessionTime, s.options.SessionIdle
	if life < 0 {
		life = never
	}
	if patience < 0 {
		patience = never
	}
	return &ends{
		warned: time.NewTimer(life - min(warning, life/10)), over: time.NewTimer(life), idle: time.NewTimer(patience),
		end: time.Now().Add(life), patience: patience,
	}
}

// heard notes that the client asked something.
func (e *ends) heard() { e.idle.Reset(e.patience) }

func (e *ends) left() time.Duration { return time.Until(e.end) }

func (e *ends) stop() {
	e.warned.Stop()
	e.over.Stop()
	e.idle.Stop()
}

// counts keeps count of something by identity, and forgets who has none.
type counts struct {
	mutex sync.Mutex
	of    map[string]int
	all   atomic.Int64
}

// others reports whether anybody else has any.
func (c *counts) others(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, mine := c.of[identity]
	return len(c.of) > 1 || len(c.of) == 1 && !mine
}

// add returns the new count.
func (c *counts) add(identity string, n int) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[identity] += n
	left := c.of[identity]
	if left == 0 {
		delete(c.of, identity)
	}
	return left
}
