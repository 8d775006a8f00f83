package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/apportion/apportion/adapter/extender"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/telemetry"
)

// watched tells the observers of the service what Volcano's extender plugin asks: each of its sessions as a session of the service.
type watched struct {
	server    *service.Server
	observers []service.Observer
	// queues observe the shares with which a session begins, because questions within it are about one queue at a time. May be nil.
	queues *telemetry.Queues
	log    *slog.Logger
}

// watched returns an observer that tells those of the service.
func (d *Daemon) watched() *watched {
	w := &watched{server: d.server, log: d.log}
	for _, observer := range d.observing.observers {
		if queues, is := observer.(*telemetry.Queues); is {
			w.queues = queues
		} else {
			w.observers = append(w.observers, observer)
		}
	}
	return w
}

// Opened tells those who want to know of the session.
func (w *watched) Opened(ctx context.Context, o *extender.Opening) extender.SessionObserver {
	if w.queues != nil {
		w.show(ctx, o)
	}
	s := &watchedSession{
		watched: w, decision: service.Decision{Scheduler: o.Path, PolicyName: o.PolicyName, Policy: o.Policy, Basis: o.Basis},
	}
	for _, observer := range w.observers {
		if observer.Wants(ctx, service.SessionMethod, o.PolicyName) {
			s.observers = append(s.observers, observer)
		}
	}
	if len(s.observers) == 0 {
		return nil
	}
	s.decision.Session = w.server.NewSessionID()
	opening := s.decision
	opening.Method, opening.Began, opening.Took = "onSessionOpen", o.Began, o.Took
	opening.Snapshot = service.Snapshot{Model: o.Model}
	s.tell(withUser(ctx, o.User), &opening)
	return s
}

// show shows the queues as the session finds them. The scheduler's path stands for its cluster, whose name Volcano does not tell.
func (w *watched) show(ctx context.Context, o *extender.Opening) {
	shares := o.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
	w.queues.Observe(withUser(ctx, o.User), &service.Decision{
		PolicyName: o.PolicyName, Basis: o.Basis, Began: o.Began, Answers: []*apportionv1.Answer{shares},
		Snapshot: service.Snapshot{Named: o.Path},
	})
}

// watchedSession is one session; its calls come one after the other.
type watchedSession struct {
	*watched

	observers []service.Observer
	// decision is what all its decisions have in common.
	decision service.Decision
}

// Asked tells of a batch.
func (s *watchedSession) Asked(ctx context.Context, q *extender.Question) {
	s.decision.Batch++
	d := s.decision
	d.Method, d.Steps, d.Answers, d.AnswerBytes, d.Sent = q.Verb, q.Steps, q.Answers, q.AnswerBytes, q.Sent
	d.Began, d.Took = q.Began, q.Took
	s.tell(withUser(ctx, q.User), &d)
}

// Closed tells that the session is over.
func (s *watchedSession) Closed(ctx context.Context) {
	s.decision.Batch++
	d := s.decision
	d.Method, d.Last = "onSessionClose", true
	s.tell(ctx, &d)
}

func (s *watchedSession) tell(ctx context.Context, d *service.Decision) {
	for _, observer := range s.observers {
		s.tellOne(ctx, observer, d)
	}
}

// tellOne tells one observer. A panic of it is not the scheduler's.
func (s *watchedSession) tellOne(ctx context.Context, observer service.Observer, d *service.Decision) {
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "an observer panicked",
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	observer.Observe(ctx, d)
}

// withUser tells the observers who asks.
func withUser(ctx context.Context, user string) context.Context {
	if user == "" {
		return ctx
	}
	return service.WithIdentity(ctx, user)
}
