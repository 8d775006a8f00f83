package service

import "time"

// timeouts says when a session ends that neither side has ended: after its lifetime, of which the client is warned, or because nothing is
// asked any more.
type timeouts struct {
	warned, over, idle *time.Timer
	end, asked         time.Time
	patience           time.Duration
}

// warning is the time before its end at which a session sends going_away, at most a tenth of its lifetime.
const warning = time.Minute

// never is longer than any session lasts.
const never = 100 * 365 * 24 * time.Hour

func (s *Server) newTimeouts() *timeouts {
	life, patience := s.options.Limit.SessionTime, s.options.Limit.SessionIdle
	if life < 0 {
		life = never
	}
	if patience < 0 {
		patience = never
	}
	now := time.Now()
	return &timeouts{
		warned: time.NewTimer(life - min(warning, life/10)), over: time.NewTimer(life), idle: time.NewTimer(patience),
		end: now.Add(life), asked: now, patience: patience,
	}
}

// questioned records the time of a question. It does not reset the timer idle, which costs more than many a step.
func (t *timeouts) questioned(at time.Time) { t.asked = at }

// idled is called when the timer idle has expired. It returns true if there was no question since the timer was set, and otherwise sets it
// again.
func (t *timeouts) idled() bool {
	left := t.patience - time.Since(t.asked)
	if left > 0 {
		t.idle.Reset(left)
	}
	return left <= 0
}

func (t *timeouts) left() time.Duration { return time.Until(t.end) }

func (t *timeouts) stop() {
	t.warned.Stop()
	t.over.Stop()
	t.idle.Stop()
}
