package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/apportion/apportion/adapter/extender"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// extendFlags are those of `apportion serve` that are about Volcano's extender plugin.
type extendFlags struct {
	listen, users string
	schedulers    []string
	wait          time.Duration
}

func (f *extendFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "extender-listen", "", "`ADDRESS` to answer the extender plugin of Volcano on over HTTP; default: nowhere")
	flags.StringArrayVar(&f.schedulers, "extender", nil,
		"scheduler that asks there, as `PATH=POLICY` or PATH=POLICY,shadow: the path of its extender.urlPrefix and a policy named with\n"+
			"--policy; in shadow every answer is counted and logged, and leaves the decision to Volcano (repeatable)")
	flags.StringVar(&f.users, "extender-users", "", "`FILE` of who may ask there, a line NAME:HEX each, HEX being the SHA-256 of the password; default: everybody")
	flags.DurationVar(&f.wait, "extender-wait", 0, "how long a question waits for a snapshot to be built before it is left to Volcano (default 500ms)")
}

// extending is the HTTP side while it is served.
type extending struct {
	listener net.Listener
	server   *extender.Server
}

// open begins to listen; it returns nil if nobody asked for it.
func (f *extendFlags) open(
	ctx context.Context, policies map[string]*apportionv1.Policy, log *slog.Logger, registry *prometheus.Registry, drain extender.ServerOptions,
) (*extending, error) {
	if f.listen == "" {
		if len(f.schedulers) > 0 || f.users != "" {
			return nil, errors.New("--extender and --extender-users mean something only beside --extender-listen")
		}
		return nil, nil //nolint:nilnil // nobody asked for it
	}
	options := extender.Options{
		Schedulers: make(map[string]extender.Scheduler, len(f.schedulers)), Policy: func(name string) *apportionv1.Policy { return policies[name] },
		Wait: f.wait, Logger: log, Registerer: registry,
	}
	for _, flag := range f.schedulers {
		path, policy, ok := strings.Cut(flag, "=")
		policy, shadow := strings.CutSuffix(policy, ",shadow")
		if !ok || policy == "" {
			return nil, fmt.Errorf("--extender: %q is not PATH=POLICY", flag)
		}
		if _, twice := options.Schedulers[path]; twice {
			return nil, fmt.Errorf("--extender: %q is named twice", path)
		}
		options.Schedulers[path] = extender.Scheduler{Policy: policy, Shadow: shadow}
	}
	if f.users != "" {
		users, err := readUsers(f.users)
		if err != nil {
			return nil, err
		}
		options.Authorize = users.Authorize
	}
	handler, err := extender.New(options)
	if err != nil {
		return nil, fmt.Errorf("--extender: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("--extender-listen: %w", err)
	}
	log.InfoContext(ctx, "answering Volcano", "address", listener.Addr().String(), "paths", handler.Paths())
	drain.Logger = log
	return &extending{listener: listener, server: extender.NewServer(handler, drain)}, nil
}

func readUsers(file string) (extender.Users, error) {
	from, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--extender-users: %w", err)
	}
	defer from.Close()
	users, err := extender.ReadUsers(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return users, nil
}

// serve serves beside what else is served, until ctx ends; fail is called if that ends earlier. The returned function waits for the end.
func (e *extending) serve(ctx context.Context, fail func()) (wait func() error) {
	if e == nil {
		return func() error { return nil }
	}
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

// close closes what was opened but is not served.
func (e *extending) close() error {
	if e == nil {
		return nil
	}
	return e.listener.Close()
}
