package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/apportion/apportion/internal/hostname"
	"github.com/apportion/apportion/service/web"
	"github.com/apportion/apportion/ui"
)

// serveHTTP serves the unary calls in JSON. The returned function drains and stops it.
func (d *Daemon) serveHTTP(fail func()) (end func(context.Context) error) {
	if d.http == nil {
		return func(context.Context) error { return nil }
	}
	c, t := &d.settings.Config, d.telemetry
	const idle, window = 2 * time.Minute, 64 << 10
	server := &http.Server{
		Handler: d.named(len(c.Identities) > 0, d.withPage(web.NewHandler(d.server, web.Options{
			Settings: c.HTTP, Registry: t.Registry, Tracer: t.Tracer, Propagator: t.Propagator,
		}))),
		ReadHeaderTimeout: c.Deadline.Handshake, ReadTimeout: c.Deadline.Handshake + c.Deadline.Message,
		// The time from the headers to the end of the answer: the message arrives, the call is answered, the client reads the answer.
		WriteTimeout: c.Deadline.Message + c.Deadline.Call + c.Deadline.Answer, IdleTimeout: idle,
		MaxHeaderBytes: int(c.Limit.HeaderBytes), ConnContext: ofConnection,
		// The bytes that a client may send before its call is admitted, as over gRPC.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: c.Connection.Streams, MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: 4 * window,
		},
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	listener := d.http
	if d.authority != nil {
		listener = tls.NewListener(listener, speakingHTTP(d.authority.Config()))
	}
	d.log.Info("serving JSON", "address", addressOf(d.http), "tls", d.authority != nil)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("JSON ended", "error", err.Error())
			fail()
		}
	})
	return func(ctx context.Context) error {
		defer serving.Wait()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return server.Close()
		}
		return err
	}
}

// named refuses requests for names that the server does not have, unless callers authenticate: pages of other sites cannot do that.
func (d *Daemon) named(authenticated bool, next http.Handler) http.Handler {
	if authenticated {
		return next
	}
	return hostname.Only(d.settings.Connection.Hosts, next)
}

// withPage also serves the page, if it is enabled.
func (d *Daemon) withPage(calls http.Handler) http.Handler {
	if d.page == nil {
		return calls
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", http.RedirectHandler(ui.Path, http.StatusFound))
	mux.Handle(ui.Path, d.page)
	mux.Handle("/", calls)
	return mux
}

// newPage returns the page with the presets, nil if it is not enabled.
func newPage(set bool) (http.Handler, error) {
	if !set {
		return nil, nil //nolint:nilnil // No page is no fault.
	}
	policies, err := ui.Presets()
	if err != nil {
		return nil, err
	}
	return ui.NewHandler(ui.Options{Policies: policies})
}

// speakingHTTP offers HTTP/1.1 in addition to HTTP/2.
func speakingHTTP(c *tls.Config) *tls.Config {
	protocols := []string{"h2", "http/1.1"}
	c.NextProtos = protocols
	current := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config, err := current(hello)
		if err != nil || config == nil {
			return config, err
		}
		config = config.Clone()
		config.NextProtos = slices.Clone(protocols)
		return config, nil
	}
	return c
}
