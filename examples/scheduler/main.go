// Command scheduler simulates a small GPU cluster under several policies. It is a complete scheduler without the decisions: it asks
// Apportion, in process or on a server, which jobs enter and come next, which queue may use more, and which tasks are evicted. See
// README.md.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/apportion/apportion/client"
)

//go:embed testdata/cluster.yaml
var defaultCluster []byte

//go:embed testdata/trace.csv
var defaultTrace []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scheduler: "+client.Describe(err))
		os.Exit(1)
	}
}

// settings are the flags of the command line.
type settings struct {
	cluster, trace, policies, svg, server string
	tls                                   bool
	generate                              uint64
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	flags.StringVar(&s.cluster, "cluster", "", "`FILE` with nodes and queues; default: the built-in cluster")
	flags.StringVar(&s.trace, "trace", "", "`FILE` with the jobs to come; default: the built-in day")
	flags.StringVar(&s.policies, "policies", strings.Join(policyNames(), ","), "policies to compare, separated by commas")
	flags.StringVar(&s.svg, "svg", "", "also plot into this `FILE`")
	flags.StringVar(&s.server, "server", "", "ask the server at this `ADDRESS` instead of deciding in process")
	flags.BoolVar(&s.tls, "tls", false, "reach the server over TLS")
	flags.Uint64Var(&s.generate, "generate", 0, "write another day's trace, drawn from this `SEED`, and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.generate != 0 {
		return writeTrace(out, generateTrace(s.generate))
	}
	return s.compare(ctx, out)
}

// compare simulates the same day under each policy and reports them side by side.
func (s *settings) compare(ctx context.Context, out io.Writer) error {
	cluster, err := open(s.cluster, defaultCluster, readCluster)
	if err != nil {
		return err
	}
	trace, err := open(s.trace, defaultTrace, readTrace)
	if err != nil {
		return err
	}
	if err := cluster.check(trace); err != nil {
		return err
	}
	decider, err := s.dial()
	if err != nil {
		return err
	}
	var results []*Result
	for name := range strings.SplitSeq(s.policies, ",") {
		policy, err := policyNamed(name)
		if err != nil {
			return errors.Join(err, decider.Close())
		}
		result, err := Simulate(ctx, decider, cluster, trace, policy)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), decider.Close())
		}
		results = append(results, result)
	}
	report(out, cluster, trace, results)
	if s.svg != "" {
		var plot bytes.Buffer
		plotShares(&plot, cluster, results)
		if err := os.WriteFile(s.svg, plot.Bytes(), 0o600); err != nil {
			return errors.Join(err, decider.Close())
		}
	}
	return decider.Close()
}

func (s *settings) dial() (*client.Client, error) {
	switch {
	case s.server == "":
		return client.InProcess(), nil
	case s.tls:
		return client.Dial(s.server)
	}
	return client.Dial(s.server, client.WithPlaintext())
}

// open reads a file, or what takes its place if none is named.
func open[T any](file string, builtIn []byte, read func(io.Reader) (T, error)) (T, error) {
	data := builtIn
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			var none T
			return none, err
		}
	}
	value, err := read(bytes.NewReader(data))
	if err != nil {
		return value, fmt.Errorf("%s: %w", file, err)
	}
	return value, nil
}
