package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/apportion/apportion/adapter/extender"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/identity"
)

// extending serves Volcano's extender plugin.
type extending struct {
	listener net.Listener
	handler  *extender.Handler
	server   *extender.Server
	// tls is nil where connections are not encrypted.
	tls   *tls.Config
	users atomic.Pointer[extender.Users]
}

// newExtender returns nil if it is not configured.
func (d *Daemon) newExtender(users extender.Users) (*extending, error) {
	c := &d.settings.Config
	if c.Extender.Listen == "" {
		return nil, nil //nolint:nilnil // No extender is one of the two right answers.
	}
	e := &extending{}
	options := extender.Options{
		Schedulers: make(map[string]extender.Scheduler, len(c.Extender.Schedulers)),
		Policy:     func(name string) *apportionv1.Policy { return (*d.policies.Load())[name] },
		Wait:       c.Extender.Wait, BufferBytes: int64(c.Extender.BufferBytes),
		Limits: decode.LimitsOf(&c.Limit), PushMemory: int64(c.Limit.SessionBytes),
		Tracer: d.telemetry.Tracer, Logger: d.log, Registerer: d.telemetry.Registry,
	}
	for path, policy := range c.Extender.Schedulers {
		options.Schedulers[path] = extender.Scheduler{Policy: policy, Shadow: slices.Contains(c.Extender.Shadow, path)}
	}
	if c.Extender.Users != "" {
		e.admit(users)
		options.Authorize = func(user, password string) bool { return e.users.Load().Authorize(user, password) }
	}
	if len(d.observing.observers) > 0 {
		options.Observer = d.watched()
	}
	var err error
	if e.handler, err = extender.New(options); err != nil {
		return nil, err
	}
	if c.Extender.TLS {
		e.tls = speakingTo(d.authority.Config())
	}
	e.server = extender.NewServer(d.named(c.Extender.Users != "", noting(e.handler)), extender.ServerOptions{
		DrainDelay: c.Drain.Delay, DrainTime: c.Drain.Time, ConnContext: ofConnection, Logger: d.log,
	})
	return e, nil
}

// noting records requests on their connections, authenticated or not, because the handler checks the password.
func noting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := identity.ActivityOf(r.Context()); a != nil {
			defer a.Begin()()
		}
		h.ServeHTTP(w, r)
	})
}

// speakingTo returns the TLS configuration for Volcano's client, which has no certificate and authenticates by a password.
func speakingTo(c *tls.Config) *tls.Config {
	current := c.GetConfigForClient
	c.NextProtos = []string{"http/1.1"}
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config, err := current(hello)
		if err != nil || config == nil {
			return config, err
		}
		config = config.Clone()
		config.NextProtos, config.ClientAuth, config.ClientCAs = []string{"http/1.1"}, tls.NoClientCert, nil
		return config, nil
	}
	return c
}

// admit replaces the users that may call.
func (e *extending) admit(users extender.Users) {
	if e != nil {
		e.users.Store(&users)
	}
}

// serve serves until ctx ends, and calls fail if serving ends earlier. The returned function waits for the end.
func (e *extending) serve(ctx context.Context, log *slog.Logger, fail func()) (wait func() error) {
	if e == nil {
		return func() error { return nil }
	}
	log.InfoContext(ctx, "answering Volcano", "address", addressOf(e.listener), "paths", e.handler.Paths(), "tls", e.tls != nil)
	listener := e.listener
	if e.tls != nil {
		listener = tls.NewListener(listener, e.tls)
	}
	served := make(chan error, 1)
	go func() {
		err := e.server.Serve(ctx, listener)
		if err != nil {
			fail()
		}
		served <- err
	}()
	return func() error { return <-served }
}
