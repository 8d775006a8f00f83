package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apportion/apportion/config"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/shadow"
	"github.com/apportion/apportion/service/telemetry"
	"github.com/apportion/apportion/service/web"
)

// beside is what works beside the decisions, and is told of them. It costs nothing where it is not asked for.
type beside struct {
	observers []service.Observer
	log       *decisionlog.Log
	shadow    *shadow.Shadow
}

// newBeside begins what the settings ask for.
func (d *Daemon) newBeside(ctx context.Context, loaded *loaded) (*beside, error) {
	b, c := &beside{}, &d.settings.Config
	if c.Metrics.Queues > 0 {
		queues := telemetry.NewQueues(telemetry.QueueOptions{Maximum: c.Metrics.Queues})
		d.telemetry.Registry.MustRegister(queues)
		b.observers = append(b.observers, queues)
	}
	log, err := d.newDecisionLog(ctx)
	if err != nil {
		return nil, fmt.Errorf("decision_log: %w", err)
	}
	if log != nil {
		b.log = log
		b.observers = append(b.observers, log)
		d.telemetry.Registry.MustRegister(log.Collectors()...)
	}
	if s := &c.Shadow; s.Policy != "" {
		b.shadow, err = shadow.New(shadow.Options{ //nolint:contextcheck // What it decides later is part of no call.
			Policy: loaded.policies[s.Policy], Name: s.Policy, Of: s.Of, Share: 1 / float64(s.OneIn), Calls: s.Waiting,
			Bytes: int64(s.WaitingBytes), Sessions: s.Sessions, Time: s.Time, Logger: d.log,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("shadow: %w", err), b.close(ctx))
		}
		b.observers = append(b.observers, b.shadow)
		d.telemetry.Registry.MustRegister(b.shadow.Collectors()...)
	}
	return b, nil
}

// newDecisionLog returns nil if nobody asks for it.
func (d *Daemon) newDecisionLog(ctx context.Context) (*decisionlog.Log, error) {
	c := &d.settings.DecisionLog
	if err := checkMask(c.Mask); err != nil {
		return nil, err
	}
	o := decisionlog.Options{
		Share: 1 / float64(c.OneIn), OmitSteps: c.Questions == "digest", Mask: c.Mask, Entries: c.Waiting, Bytes: int64(c.WaitingBytes),
		Drop:      map[string]decisionlog.Drop{"oldest": decisionlog.DropOldest, "block": decisionlog.Block}[c.Drop],
		BlockTime: c.BlockTime, Logger: d.log,
	}
	var err error
	switch c.Sink {
	case "file":
		o.Sink, err = decisionlog.NewFileSink(c.File, decisionlog.FileOptions{Bytes: int64(c.FileBytes), Keep: c.Keep})
	case "stdout":
		o.Sink = decisionlog.NewStreamSink(os.Stdout)
	case "otlp":
		o.Sink, err = decisionlog.NewOTLPSink(ctx, d.options.Version)
	default:
		return nil, nil //nolint:nilnil // No log is one of the two right answers.
	}
	if err != nil {
		return nil, err
	}
	if c.Store != "" {
		if o.Store, err = decisionlog.OpenStore(c.Store, int64(c.StoreBytes)); err != nil {
			return nil, errors.Join(err, o.Sink.Close())
		}
	}
	return decisionlog.New(o), nil
}

// checkMask refuses names that no field has: what is to be masked must not be written by a slip.
func checkMask(names []string) error {
	known := decisionlog.Maskable()
	for _, name := range names {
		if !known[name] {
			return fmt.Errorf("mask: no field with a text is called %s", strconv.Quote(name))
		}
	}
	return nil
}

// use takes the shadow's policy over. If there is none of its name any more, it stays as it was until a start.
func (b *beside) use(c *config.Config, loaded *loaded) error {
	policy, ok := loaded.policies[c.Shadow.Policy]
	if b.shadow == nil || !ok {
		return nil
	}
	return b.shadow.Use(policy)
}

// close writes down what is left to be written.
func (b *beside) close(ctx context.Context) error {
	var faults []error
	if b.shadow != nil {
		faults = append(faults, told("shadow", b.shadow.Close(ctx)))
	}
	if b.log != nil {
		faults = append(faults, told("decision_log", b.log.Close(ctx)))
	}
	return errors.Join(faults...)
}

// told says what did not end in time.
func told(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: not everything was done before the end: %w", what, err)
}

// serveHTTP answers the unary calls in JSON. The returned function drains and ends it.
func (d *Daemon) serveHTTP(fail func()) (end func(context.Context) error) {
	if d.http == nil {
		return func(context.Context) error { return nil }
	}
	c, t := &d.settings.Config, d.telemetry
	const idle = 2 * time.Minute
	server := &http.Server{
		Handler: web.NewHandler(d.server, web.Options{
			MessageBytes: int(c.Limit.MessageBytes), Calls: c.HTTP.Calls, Origins: c.HTTP.Origins,
			Registry: t.Registry, Tracer: t.Tracer, Propagator: t.Propagator,
		}),
		ReadHeaderTimeout: c.Deadline.Handshake, ReadTimeout: c.Deadline.Handshake + c.Deadline.Call, IdleTimeout: idle,
		MaxHeaderBytes: int(c.Limit.HeaderBytes), ConnContext: ofConnection,
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

// speakingHTTP offers both versions of HTTP where gRPC offers one.
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
