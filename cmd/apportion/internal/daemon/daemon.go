// Package daemon is `apportion serve`: it puts the service together from its settings, and keeps them up to date while it runs.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/tap"

	"github.com/apportion/apportion/cmd/apportion/internal/connection"
	"github.com/apportion/apportion/config"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/watch"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/identity"
	"github.com/apportion/apportion/service/telemetry"
	"github.com/apportion/apportion/wire"
)

// connectionIdle is how long a connection must have been without a call before it gives way to a new one.
const connectionIdle = time.Minute

// Options of a Daemon.
type Options struct {
	// Sources of the settings, to be read again.
	Sources config.Sources
	// Version of the program.
	Version string
	// Output receives the log.
	Output io.Writer
}

// Daemon is a server that is ready to run once.
type Daemon struct {
	options   Options
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	metrics   *metrics
	authority *identity.Authority
	gate      *identity.Gate
	server    *service.Server
	// connections are those of all listeners but admin's.
	connections *connection.Pool
	listeners   []net.Listener
	admin       net.Listener
	http        net.Listener
	beside      *beside
	extender    *extending
	policies    atomic.Pointer[map[string]*apportionv1.Policy]

	// seen is what the files held before they were read.
	seen watch.Contents
	// reloading guards settings, those in force.
	reloading sync.Mutex
	settings  *config.Effective
}

// Open makes a server of settings: everything they name is read and checked, nothing is listened on yet.
func Open(ctx context.Context, settings *config.Effective, o Options) (*Daemon, error) {
	d := &Daemon{options: o, settings: settings}
	d.seen = watch.Look(d.files())
	loaded, err := load(&settings.Config)
	authority, faultTLS := loadTLS(&settings.TLS)
	if err := errors.Join(err, faultTLS); err != nil {
		return nil, err
	}
	d.authority = authority
	d.gate = identity.NewGate(d.authority)
	if err := d.gate.Admit(loaded.identities); err != nil {
		return nil, err
	}
	handler := telemetry.NewLogHandler(logHandler(&settings.Log, o.Output),
		telemetry.Sampling{First: settings.Log.SampleFirst, Every: settings.Log.SampleEvery})
	d.log = slog.New(handler)
	if d.telemetry, err = telemetry.Start(ctx, telemetry.Options{Version: o.Version, Logger: d.log}); err != nil {
		return nil, err
	}
	d.telemetry.Registry.MustRegister(handler.Collector())
	d.connections = connection.New(connection.Options{
		Maximum: settings.Connection.Maximum, Address: settings.Connection.AddressMaximum, Idle: connectionIdle,
	})
	d.telemetry.Registry.MustRegister(d.connections.Collectors()...)
	d.metrics = newMetrics(d.telemetry.Registry, d.authority)
	if d.beside, err = d.newBeside(ctx, loaded); err != nil {
		return nil, errors.Join(err, d.telemetry.Stop(ctx))
	}
	if d.server, err = service.New(d.serviceOptions(loaded)); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	d.policies.Store(&loaded.policies)
	if d.extender, err = d.newExtender(loaded.users); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	loaded.warn(ctx, d.log)
	return d, nil
}

// abandon ends what was begun for a server that will not serve.
func (d *Daemon) abandon(ctx context.Context) error {
	return errors.Join(d.beside.close(ctx), d.telemetry.Stop(ctx))
}

// Check reads and checks everything that settings name, and returns what is suspicious.
func Check(settings *config.Effective) (warnings []string, err error) {
	loaded, err := load(&settings.Config)
	if loaded != nil {
		for _, w := range loaded.warnings {
			warnings = append(warnings, w.String())
		}
	}
	_, faultTLS := loadTLS(&settings.TLS)
	return warnings, errors.Join(err, faultTLS)
}

func logHandler(c *config.Log, output io.Writer) slog.Handler {
	var level slog.Level
	// The names of the levels were checked.
	_ = level.UnmarshalText([]byte(c.Level))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.NewJSONHandler(output, options)
	}
	return slog.NewTextHandler(output, options)
}

// loadTLS returns nil where there is none.
func loadTLS(c *config.TLS) (*identity.Authority, error) {
	if c.Certificate == "" {
		return nil, nil //nolint:nilnil // No authority is one of the two right answers.
	}
	version := uint16(tls.VersionTLS13)
	if c.MinVersion == "TLSv1.2" {
		version = tls.VersionTLS12
	}
	return identity.LoadTLS(identity.TLSOptions{
		Certificate: c.Certificate, Key: c.Key, ClientCA: c.ClientCA, ClientOptional: c.ClientCertificate == "optional",
		MinVersion: version,
	})
}

func (d *Daemon) serviceOptions(loaded *loaded) service.Options {
	c, l, o, t := &d.settings.Config, &d.settings.Limit, &d.settings.Overload, d.telemetry
	return service.Options{
		Policies: loaded.policies, Permit: permit, Observers: d.beside.observers, CallTime: c.Deadline.Call,
		AnswerBytes: int(l.AnswerBytes), ExplainBytes: int(l.ExplainBytes), UndoBytes: int64(l.UndoBytes),
		SnapshotBytes: int64(l.SnapshotBytes), ReceivingBytes: int64(l.ReceivingBytes), UploadTime: l.UploadTime,
		CacheBytes: int64(l.CacheBytes), IdentityBytes: int64(l.IdentityBytes),
		SessionBytes: int64(l.SessionBytes), Sessions: l.Sessions, IdentitySessions: l.IdentitySessions, PendingBatches: l.PendingBatches,
		SessionTime: l.SessionTime, SessionIdle: l.SessionIdle,
		Limits: service.Limits{
			Limits: limitsOf(l),
			Steps:  int64(l.Steps), QuestionBytes: int64(l.QuestionBytes), PolicyBytes: int64(l.PolicyBytes), Chunks: int64(l.Chunks),
		},
		Overload: admission.Options{
			Running: o.Running, Reserve: o.Reserve, Memory: int64(o.Memory), Waiting: o.Waiting, Wait: o.Wait,
			Calls: o.Calls, Receiving: int64(o.Receiving),
		},
		RequestBytes: int(l.MessageBytes), HeaderBytes: uint32(l.HeaderBytes), NoReflection: !c.Reflection,
		ConnectionStreams: uint32(c.Connection.Streams), ConnectionAge: c.Connection.Age, ConnectionGrace: c.Connection.Grace,
		ConnectionIdle: c.Connection.Idle, ConnectionPing: c.Connection.Ping,
		HandshakeTime: c.Deadline.Handshake, MessageTime: c.Deadline.Message, DrainDelay: c.Drain.Delay, DrainTime: c.Drain.Time,
		Logger: d.log, Registry: t.Registry, Meter: t.Meter, Tracer: t.Tracer, Propagator: t.Propagator,
		Tap: []tap.ServerInHandle{d.gate.Tap, named}, Transport: d.gate.ServerOptions(),
	}
}

// limitsOf are the limits of one snapshot, however it comes.
func limitsOf(l *config.Limit) wire.Limits {
	return wire.Limits{
		Dimensions: int64(l.Dimensions), Nodes: int64(l.Nodes), NodeSets: int64(l.NodeSets), Queues: int64(l.Queues), QueueDepth: int64(l.QueueDepth),
		Jobs: int64(l.Jobs), Groups: int64(l.Groups), Tasks: int64(l.Tasks), TextBytes: int64(l.TextBytes),
	}
}

// named tells the service who calls, for its quotas.
func named(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if caller := identity.Of(ctx); caller != nil && caller.Name != "" {
		ctx = service.WithIdentity(ctx, caller.Name)
	}
	return ctx, nil
}

var errNoCaller = errors.New("a call has passed no gate")

// permit asks the caller's identity whether it may name a cluster.
func permit(ctx context.Context, cluster string) error {
	caller := identity.Of(ctx)
	if caller == nil {
		return errNoCaller
	}
	return caller.MayName(cluster)
}

// Serve serves until ctx ends and the server is drained. It reads its files again when they change, and on SIGHUP.
func (d *Daemon) Serve(ctx context.Context) error {
	// What is left to tell is told after the context has ended.
	last := context.WithoutCancel(ctx)
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { d.follow(ctx) })
	endAdmin := d.serveAdmin()
	endExtender := d.extender.serve(ctx, d.log, stop)
	endHTTP := d.serveHTTP(stop)
	for _, l := range d.listeners {
		d.log.InfoContext(ctx, "serving", "address", addressOf(l), "version", d.options.Version, "tls", d.authority != nil)
	}
	err := d.server.Serve(ctx, d.listeners...)
	stop()
	const patience = 5 * time.Second
	flush, cancel := context.WithTimeout(last, patience)
	defer cancel()
	err = errors.Join(err, endExtender(), endHTTP(flush))
	beside.Wait()
	endAdmin()
	d.log.InfoContext(last, "stopped")
	return errors.Join(err, d.beside.close(flush), d.telemetry.Stop(flush))
}

// follow reads files again when they change, and on SIGHUP.
func (d *Daemon) follow(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	var watching sync.WaitGroup
	defer watching.Wait()
	if c := d.settings.Reload; c.Watch {
		watching.Go(func() {
			watch.Files(ctx, watch.Options{Interval: c.Interval, Seen: d.seen, Logger: d.log}, d.files, func() { d.Reload(ctx) })
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			d.log.InfoContext(ctx, "reading files again, as SIGHUP asks")
			d.Reload(ctx)
		}
	}
}

// ready reports whether the server takes calls, from new connections too.
func (d *Daemon) ready() bool { return d.server.Ready() && !d.connections.Full() }

// serveAdmin serves what operators look at. The returned function ends it.
func (d *Daemon) serveAdmin() (end func()) {
	if d.admin == nil {
		return func() {}
	}
	const patience, headerBytes = 10 * time.Second, 64 << 10
	server := &http.Server{
		Handler: d.telemetry.Admin(telemetry.AdminOptions{Ready: d.ready, Profiling: d.settings.Admin.Profiling}),
		// Not ReadTimeout: it would end a profile that takes longer.
		ReadHeaderTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	d.log.Info("serving metrics", "address", addressOf(d.admin))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(d.admin); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("metrics ended", "error", err.Error())
		}
	})
	return func() {
		if err := server.Close(); err != nil {
			d.log.Error("metrics did not end", "error", err.Error())
		}
		serving.Wait()
	}
}
