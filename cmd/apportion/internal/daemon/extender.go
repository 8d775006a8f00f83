package daemon

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"

	"github.com/apportion/apportion/adapter/extender"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// extending answers Volcano's extender plugin beside what else is served.
type extending struct {
	listener net.Listener
	handler  *extender.Handler
	server   *extender.Server
	users    atomic.Pointer[extender.Users]
}

// newExtender returns nil if nobody asks for it.
func (d *Daemon) newExtender(users extender.Users) (*extending, error) {
	c := &d.settings.Config
	if c.Extender.Listen == "" {
		return nil, nil //nolint:nilnil // No extender is one of the two right answers.
	}
	e := &extending{}
	options := extender.Options{
		Schedulers: make(map[string]extender.Scheduler, len(c.Extender.Schedulers)),
		Policy:     func(name string) *apportionv1.Policy { return (*d.policies.Load())[name] },
		Wait:       c.Extender.Wait, BufferBytes: int64(c.Extender.BufferBytes), Logger: d.log, Registerer: d.telemetry.Registry,
	}
	for path, policy := range c.Extender.Schedulers {
		options.Schedulers[path] = extender.Scheduler{Policy: policy, Shadow: slices.Contains(c.Extender.Shadow, path)}
	}
	if c.Extender.Users != "" {
		e.admit(users)
		options.Authorize = func(user, password string) bool { return e.users.Load().Authorize(user, password) }
	}
	var err error
	if e.handler, err = extender.New(options); err != nil {
		return nil, err
	}
	e.server = extender.NewServer(e.handler, extender.ServerOptions{DrainDelay: c.Drain.Delay, DrainTime: c.Drain.Time, Logger: d.log})
	return e, nil
}

// admit replaces those who may ask.
func (e *extending) admit(users extender.Users) {
	if e != nil {
		e.users.Store(&users)
	}
}

// serve serves until ctx ends; fail is called if that ends earlier. The returned function waits for the end.
func (e *extending) serve(ctx context.Context, log *slog.Logger, fail func()) (wait func() error) {
	if e == nil {
		return func() error { return nil }
	}
	log.InfoContext(ctx, "answering Volcano", "address", addressOf(e.listener), "paths", e.handler.Paths())
	served := make(chan error, 1)
	go func() {
		err := e.server.Serve(ctx, e.listener)
		if err != nil {
			fail()
		}
		served <- err
	}()
	return func() error { return <-served }
}
