package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// serveFlags are those of `apportion serve`.
type serveFlags struct {
	listen, admin string
	policies      []string
	requestBytes  int
	drainDelay    time.Duration
	drainTime     time.Duration
	logFormat     string
	extend        extendFlags
}

// newServe is `apportion serve`.
func newServe(s streams) *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve decisions over gRPC",
		Long: `Serve decisions over gRPC, with health, reflection, and metrics on a second address. SIGTERM or an
interrupt drains: health says NOT_SERVING, then no new calls are taken, and those under way may end.`,
		Example: `  apportion serve --listen :7171 --admin-listen :7172 --policy cluster=volcano-scheduler.conf
  apportion serve --policy cluster=volcano-scheduler.conf --extender-listen :7173 --extender /volcano=cluster`,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return serve(command.Context(), s, &f) },
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", "localhost:7171", "`ADDRESS` to serve gRPC on; port 0 takes any free one")
	flags.StringVar(&f.admin, "admin-listen", "", "`ADDRESS` to serve /metrics, /healthz and /debug/pprof on over HTTP; default: nowhere")
	flags.StringArrayVar(&f.policies, "policy", nil,
		"policy that requests may name, as `NAME=FILE`: a volcano-scheduler.conf, or a policy file as written by convert (repeatable)")
	flags.IntVar(&f.requestBytes, "max-request-bytes", 64<<20, "refuse larger requests")
	flags.DurationVar(&f.drainDelay, "drain-delay", 0, "keep taking calls for this long after health says NOT_SERVING")
	flags.DurationVar(&f.drainTime, "drain-time", 25*time.Second, "end calls by force that take longer than this to drain")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	mustComplete(command, "log-format", "text", "json")
	f.extend.add(flags)
	return command
}

// serve runs until ctx ends and the calls under way are done.
func serve(ctx context.Context, s streams, f *serveFlags) error {
	log, err := f.logger(s)
	if err != nil {
		return err
	}
	policies, err := f.readPolicies(s)
	if err != nil {
		return err
	}
	answering, err := service.New(service.Options{Policies: policies})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server := service.NewServer(answering, service.ServerOptions{
		RequestBytes: f.requestBytes, DrainDelay: f.drainDelay, DrainTime: f.drainTime, Logger: log, Registry: registry,
	})
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	bridge, err := f.extend.open(ctx, policies, log, registry, extender.ServerOptions{DrainDelay: f.drainDelay, DrainTime: f.drainTime})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if f.admin != "" {
		stop, err := f.serveAdmin(ctx, log, registry)
		if err != nil {
			return errors.Join(err, listener.Close(), bridge.close())
		}
		defer stop()
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	bridged := bridge.serve(ctx, end)
	log.InfoContext(ctx, "serving", "address", listener.Addr().String(), "policies", len(policies))
	err = server.Serve(ctx, listener)
	end()
	err = errors.Join(err, bridged())
	log.InfoContext(ctx, "stopped")
	return err
}

func (f *serveFlags) logger(s streams) (*slog.Logger, error) {
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(s.err, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.err, nil)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", f.logFormat)
}

// readPolicies reads the policies that requests may name, and refuses what no request could use.
func (f *serveFlags) readPolicies(s streams) (map[string]*apportionv1.Policy, error) {
	policies := make(map[string]*apportionv1.Policy, len(f.policies))
	for _, flag := range f.policies {
		name, file, ok := strings.Cut(flag, "=")
		if !ok || name == "" || file == "" {
			return nil, fmt.Errorf("--policy: %q is not NAME=FILE", flag)
		}
		if _, twice := policies[name]; twice {
			return nil, fmt.Errorf("--policy: %q is named twice", name)
		}
		policy, err := readAnyPolicy(s, file)
		if err != nil {
			return nil, err
		}
		if err := check(policy); err != nil {
			return nil, fmt.Errorf("%s: %s", file, client.Describe(err))
		}
		policies[name] = policy
	}
	return policies, nil
}

// readAnyPolicy reads a preset, a policy file, or, by its ending, a volcano-scheduler.conf.
func readAnyPolicy(s streams, file string) (*apportionv1.Policy, error) {
	if !strings.HasSuffix(file, ".conf") {
		return readPolicy(file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	policy, warnings, err := volcano.ReadConfiguration(volcano.Source{Name: file, Data: data})
	render.Warnings(s.err, warnings)
	return policy, err
}

// serveAdmin serves what operators look at. The returned function ends it.
func (f *serveFlags) serveAdmin(ctx context.Context, log *slog.Logger, registry *prometheus.Registry) (func(), error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", f.admin)
	if err != nil {
		return nil, fmt.Errorf("--admin-listen: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.InfoContext(ctx, "serving metrics", "address", listener.Addr().String())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "metrics ended", "error", err.Error())
		}
	}()
	return func() {
		if err := server.Close(); err != nil {
			log.ErrorContext(ctx, "metrics did not end", "error", err.Error())
		}
	}, nil
}
