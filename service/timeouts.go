package service

import "time"

// timeouts says when a session ends that neither side has ended: after its lifetime, of which the client is warned, or because nothing is
// asked any more.
type timeouts struct {
	warned, over, idle *time.Timer
	end                time.Time
	patience           time.Duration
}

// warning is how long before its end a client is told, at most a tenth of the lifetime.
const warning = time.Minute

// never is longer than any session lasts.
const never = 100 * 365 * 24 * time.Hour

func (s *Server) newTimeouts() *timeouts {
	life, patience := s.options.SessionTime, s.options.SessionIdle
	if life < 0 {
		life = never
	}
	if patience < 0 {
		patience = never
	}
	return &timeouts{
		warned: time.NewTimer(life - min(warning, life/10)), over: time.NewTimer(life), idle: time.NewTimer(patience),
		end: time.Now().Add(life), patience: patience,
	}
}

// heard notes that the client asked something.
func (t *timeouts) heard() { t.idle.Reset(t.patience) }

func (t *timeouts) left() time.Duration { return time.Until(t.end) }

func (t *timeouts) stop() {
	t.warned.Stop()
	t.over.Stop()
	t.idle.Stop()
}
