package extender

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerOptions of a Server; the zero value is usable.
type ServerOptions struct {
	// ReadTime bounds how long a request may take to arrive. 0: 30 seconds.
	ReadTime time.Duration
	// WriteTime bounds the time from then until the answer is sent. 0: 30 seconds.
	WriteTime time.Duration
	// DrainDelay is the time for which requests are still accepted after the server begins to stop. 0: none.
	DrainDelay time.Duration
	// DrainTime limits the time of the remaining requests after that. 0: 25 seconds.
	DrainTime time.Duration
	// ConnContext returns the context of the requests on a connection. nil: it is the server's.
	ConnContext func(ctx context.Context, conn net.Conn) context.Context
	// Logger receives errors of connections. nil: they are not logged.
	Logger *slog.Logger
}

const (
	defaultReadTime  = 30 * time.Second
	defaultWriteTime = 30 * time.Second
	defaultDrainTime = 25 * time.Second
	headerTime       = 5 * time.Second
	// idleTime is longer than the time between two sessions of a scheduler, so that its connections stay open.
	idleTime = 5 * time.Minute
	// headerBytes is many times what Volcano sends.
	headerBytes = 16 << 10
)

// Server serves a Handler on listeners until it is stopped.
type Server struct {
	options ServerOptions
	http    *http.Server
}

// NewServer returns a server of any handler, mostly a *Handler.
func NewServer(h http.Handler, options ServerOptions) *Server {
	orDefault := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	orDefault(&options.ReadTime, defaultReadTime)
	orDefault(&options.WriteTime, defaultWriteTime)
	orDefault(&options.DrainTime, defaultDrainTime)
	log := options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{options: options, http: &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: options.ReadTime,
		WriteTimeout: options.ReadTime + options.WriteTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ConnContext: options.ConnContext, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

// Serve serves until ctx ends and then drains: it accepts requests for DrainDelay, and then gives the remaining ones DrainTime to end. It
// returns nil after a drain, and otherwise the listener's error. Call it once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.http.Close())
	case <-ctx.Done():
	}
	delay := time.NewTimer(s.options.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case err := <-failed:
		return errors.Join(err, s.http.Close())
	}
	drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.DrainTime)
	defer cancel()
	err := s.http.Shutdown(drained)
	if err != nil {
		err = s.http.Close()
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
