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

// watched passes the sessions of Volcano's extender plugin to the observers of the service, each as a session of the service.
type watched struct {
	server    *service.Server
	observers []service.Observer
	// queues observes the shares at the beginning of a session, because later questions are about one queue each. May be nil.
	queues *telemetry.Queues
	log    *slog.Logger
}

// watched returns an observer that calls the observers of the service.
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

// Opened begins the session for the observers that want it.
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

// show passes on the shares at the beginning of the session. The scheduler's path is used as the name of the cluster, which Volcano does
// not send.
func (w *watched) show(ctx context.Context, o *extender.Opening) {
	shares := o.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
	w.queues.Observe(withUser(ctx, o.User), &service.Decision{
		PolicyName: o.PolicyName, Basis: o.Basis, Began: o.Began, Answers: []*apportionv1.Answer{shares},
		Snapshot: service.Snapshot{Named: o.Path},
	})
}

// watchedSession is one session. Its methods are called one after the other.
type watchedSession struct {
	*watched

	observers []service.Observer
	// decision contains the fields that all its decisions share.
	decision service.Decision
}

// Asked passes on a batch.
func (s *watchedSession) Asked(ctx context.Context, q *extender.Question) {
	s.decision.Batch++
	d := s.decision
	d.Method, d.Steps, d.Answers, d.AnswerBytes, d.Sent = q.Verb, q.Steps, q.Answers, q.AnswerBytes, q.Sent
	d.Began, d.Took = q.Began, q.Took
	s.tell(withUser(ctx, q.User), &d)
}

// Closed ends the session for the observers.
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

// tellOne calls one observer. Its panic does not affect the scheduler.
func (s *watchedSession) tellOne(ctx context.Context, observer service.Observer, d *service.Decision) {
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "an observer panicked",
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	observer.Observe(ctx, d)
}

// withUser adds the user to the context, for the observers.
func withUser(ctx context.Context, user string) context.Context {
	if user == "" {
		return ctx
	}
	return service.WithIdentity(ctx, user)
}
