// Command replicas runs several servers, processes of the built binary, and shows what their callers see.
//
//	replicas balance  shows how a proxy and a balancing client divide calls between them (make show-replicas)
//	replicas mirrors  shows how many states of a mirror are sent whole (the last table of balance alone)
//	replicas drain    shows that no call fails when they are restarted or killed (make show-drain)
//	replicas freeze   shows that no call fails when one of them is stopped by SIGSTOP
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// setting contains the flags of a run.
type setting struct {
	binary  string
	span    time.Duration
	proxy   string
	workers int
	share   float64
	ghz     string
	kills   int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "replicas: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("one of balance, mirrors, drain and freeze is expected")
	}
	var s setting
	var show func(context.Context, *setting) error
	flags := flag.NewFlagSet("replicas "+args[0], flag.ExitOnError)
	flags.StringVar(&s.binary, "binary", "bin/apportion", "the server's `FILE`")
	switch args[0] {
	case "balance", "mirrors":
		if show = balance; args[0] == "mirrors" {
			show = mirrors
		}
		flags.DurationVar(&s.span, "time", 5*time.Second, "how long each way is measured")
		flags.StringVar(&s.proxy, "haproxy", "haproxy", "the proxy's `FILE`")
		flags.IntVar(&s.workers, "workers", 16, "calls under way at a time")
		flags.Float64Var(&s.share, "share", 0.25, "part of a processor that each server gets; 1: all that it can have")
	case "drain":
		show = drain
		flags.DurationVar(&s.span, "time", 20*time.Second, "how long ghz loads the replicas while they are restarted")
		flags.StringVar(&s.ghz, "ghz", ".bin/ghz", "`FILE` of ghz as tools/ghz builds it")
		flags.IntVar(&s.kills, "kills", 3, "how often a replica is killed")
	case "freeze":
		show = freeze
		flags.IntVar(&s.workers, "workers", 16, "calls under way at a time")
	default:
		return fmt.Errorf("%q is none of balance, mirrors, drain and freeze", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return show(ctx, &s)
}
