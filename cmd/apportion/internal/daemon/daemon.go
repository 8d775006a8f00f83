// Package daemon implements `apportion serve`: it assembles the service from its settings, and reloads them while it runs.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/connection"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/watch"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/identity"
	"github.com/apportion/apportion/service/telemetry"
)

// connectionIdle is the time without a call after which a new connection may replace a connection.
const connectionIdle = time.Minute

// Options of a Daemon.
type Options struct {
	// Sources of the settings, which reloads read again.
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
	// connections contains the connections of all listeners except the admin listener.
	connections *connection.Pool
	listeners   []net.Listener
	admin       net.Listener
	http        net.Listener
	observing   *observing
	extender    *extending
	// follower is nil if no cluster is followed.
	follower *cluster.Follower
	// memory is nil if there is no ledger.
	memory *cluster.Memory
	// history is nil if none is kept.
	history *cluster.History
	// page is nil if the page is not served.
	page     http.Handler
	policies atomic.Pointer[map[string]*apportionv1.Policy]

	// seen contains the contents of the files before they were read; watchFiles is watch.Files, which tests replace.
	seen       watch.Contents
	watchFiles func(context.Context, watch.Options, func() []string, func())
	// followed is the policy of the followed cluster.
	followed followed
	// reloading guards settings, the current ones.
	reloading sync.Mutex
	settings  *config.Effective
}

// Open creates a server from settings. It reads and checks everything that they name, and does not listen yet.
func Open(ctx context.Context, settings *config.Effective, o Options) (*Daemon, error) {
	d := &Daemon{options: o, settings: settings, watchFiles: watch.Files}
	d.seen = watch.Look(d.files())
	loaded, err := load(&settings.Config)
	authority, faultTLS := loadTLS(&settings.TLS)
	if err := errors.Join(err, faultTLS); err != nil {
		return nil, err
	}
	if settings.Follow.Enabled {
		d.followed.name, d.followed.policy = followedName, policy.Installed().Message
		if settings.Follow.System == kueueSystem {
			d.followed.name = kueueSystem
			d.followed.policy, _ = client.Preset(kueueSystem)
			// Kueue's rules are in no ConfigMap.
			d.followed.tried.Store(true)
		}
		d.addFollowed(loaded.policies)
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
	if d.observing, err = d.newObservers(ctx, loaded); err != nil {
		return nil, errors.Join(err, d.telemetry.Stop(ctx))
	}
	if d.server, err = service.New(d.serviceOptions(loaded)); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	d.policies.Store(&loaded.policies)
	if d.extender, err = d.newExtender(loaded.users); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	if d.follower, err = d.newFollower(); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	if d.page, err = newPage(settings.HTTP.UI); err != nil {
		return nil, errors.Join(err, d.abandon(ctx))
	}
	loaded.warn(ctx, d.log)
	return d, nil
}

// abandon stops the parts of a server that will not serve.
func (d *Daemon) abandon(ctx context.Context) error {
	return errors.Join(d.observing.close(ctx), d.telemetry.Stop(ctx), d.forget())
}

// Check reads and checks everything that settings name, and returns warnings.
func Check(settings *config.Effective) (warnings []string, err error) {
	loaded, err := load(&settings.Config)
	if loaded != nil {
		for _, w := range loaded.warnings {
			warnings = append(warnings, w.String())
		}
	}
	_, faultTLS := loadTLS(&settings.TLS)
	_, faultBudgets := budget.ReadFile(settings.Ledger.Budgets, optionsOf(&settings.Ledger))
	return warnings, errors.Join(err, faultTLS, faultBudgets)
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
	c, t := &d.settings.Config, d.telemetry
	o := service.Options{
		Limit: c.Limit, Overload: c.Overload, Deadline: c.Deadline, Connection: c.Connection, Drain: c.Drain,
		NoReflection: !c.Reflection, Policies: loaded.policies, Observers: d.observing.observers,
	}
	o.Permit, o.PermitSnapshot = identity.MayName, identity.MayAsk
	o.Logger, o.Registry, o.Meter, o.Tracer, o.Propagator = d.log, t.Registry, t.Meter, t.Tracer, t.Propagator
	o.Own = identity.Own
	o.Tap, o.Transport = []tap.ServerInHandle{d.gate.Tap, named}, d.gate.ServerOptions()
	return o
}

// named adds the caller's identity to the context, for the quotas of the service.
func named(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if caller := identity.Of(ctx); caller != nil && caller.Name != "" {
		ctx = service.WithIdentity(ctx, caller.Name)
	}
	return ctx, nil
}

// Serve serves until ctx ends and the server is drained. It reads its files again when they change, and on SIGHUP.
func (d *Daemon) Serve(ctx context.Context) error {
	// The last telemetry is sent after the context has ended.
	last := context.WithoutCancel(ctx)
	ctx, stop := context.WithCancel(ctx)
	// Registered before the first call is answered, so that SIGHUP does not end the process.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	var following sync.WaitGroup
	following.Go(func() { d.follow(ctx, hangups) })
	if d.follower != nil {
		following.Go(func() { d.follower.Run(ctx) })
		if d.settings.Follow.System != kueueSystem {
			following.Go(func() { d.followPolicy(ctx) })
		}
	}
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
	following.Wait()
	endAdmin()
	d.log.InfoContext(last, "stopped")
	return errors.Join(err, d.observing.close(flush), d.telemetry.Stop(flush), d.forget())
}

// follow reads files again when they change, and on SIGHUP.
func (d *Daemon) follow(ctx context.Context, hangups <-chan os.Signal) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if c := d.settings.Reload; c.Watch {
		watching.Go(func() {
			d.watchFiles(ctx, watch.Options{Interval: c.Interval, Seen: d.seen, Logger: d.log}, d.files, func() { d.Reload(ctx) })
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			d.log.InfoContext(ctx, "reading files again after SIGHUP")
			d.Reload(ctx)
		}
	}
}

// ready reports whether the server accepts calls and new connections, and has read the cluster that it follows, and its policy.
func (d *Daemon) ready() bool {
	return d.server.Ready() && !d.connections.Full() && (d.follower == nil || d.follower.Ready() && d.followed.tried.Load())
}

// newFollower returns a follower of the cluster in the settings, nil if none is followed.
func (d *Daemon) newFollower() (*cluster.Follower, error) {
	c := &d.settings.Follow
	if !c.Enabled {
		return nil, nil //nolint:nilnil // No follower is no fault.
	}
	var err error
	if d.memory, err = openMemory(&d.settings.Ledger); err != nil {
		return nil, err
	}
	if d.history, err = openHistory(&d.settings.History, d.settings.Policies, &d.followed); err != nil {
		return nil, err
	}
	f, err := cluster.NewFollower(d.server, cluster.FollowOptions{
		Name: c.Name, Label: c.Cluster, Kubeconfig: c.Kubeconfig, Context: c.Context, Schedulers: c.Schedulers, Interval: c.Interval,
		Kueue:  c.System == kueueSystem,
		Limits: decode.LimitsOf(&d.settings.Limit), Memory: d.memory, History: d.history, Logger: d.log,
	})
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	if d.memory != nil {
		d.server.Remember(c.Name, d.memory.File, d.memory.Budgets)
	}
	d.telemetry.Registry.MustRegister(f.Collectors()...)
	return f, nil
}

// serveAdmin serves metrics and probes. The returned function stops it.
func (d *Daemon) serveAdmin() (end func()) {
	if d.admin == nil {
		return func() {}
	}
	const patience, headerBytes = 10 * time.Second, 64 << 10
	server := &http.Server{
		Handler: d.named(false, d.telemetry.Admin(telemetry.AdminOptions{Ready: d.ready, Profiling: d.settings.Admin.Profiling})),
		// ReadTimeout is not set, because it would end profiles that take longer.
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
