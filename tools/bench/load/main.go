// Command load puts the service under load.
//
//	load cases     makes calls by ghz and compares latencies with thresholds (make bench-load)
//	load overload  offers up to ten times what a server can do, and shows its goodput (make show-overload)
//	load fairness  asks small questions beside hostile callers (make show-fairness)
//	load attacks   plays attacks and shows which bounds held (make show-attacks)
//	load balance   compares ways to spread calls over several servers (make show-replicas)
//	load mirrors   shows how many states of a mirror are sent whole (the last table of balance alone)
//	load extender  sends pushes as stock Volcano does, beside other work (make bench-extender)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// modes are the functions of the program, by its first argument. The last two are processes that others start.
var modes = map[string]func(context.Context, *flag.FlagSet, []string) error{
	"cases": cases, "overload": overload, "fairness": fairness, "attacks": attacksOn, "extender": pushes,
	"balance": balanced(balance), "mirrors": balanced(mirrors),
	"crowd": crowdOf, "burn": burn,
}

func run(args []string) error {
	if len(args) == 0 || modes[args[0]] == nil {
		return errors.New("one of cases, overload, fairness, attacks, balance, mirrors and extender is expected")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return modes[args[0]](ctx, flag.NewFlagSet("load "+args[0], flag.ExitOnError), args[1:])
}

func crowdOf(ctx context.Context, _ *flag.FlagSet, args []string) error {
	callers, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	held, err := strconv.ParseBool(args[2])
	if err != nil {
		return err
	}
	return runCrowd(ctx, args[0], callers, held)
}

func burn(_ context.Context, _ *flag.FlagSet, args []string) error {
	span, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	goroutines, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	busy(goroutines, span)
	return nil
}

// server is a flag that names the server's program.
func server(flags *flag.FlagSet, binary *string) {
	flags.StringVar(binary, "server", "bin/apportion", "`FILE` of the server as make build leaves it")
}

// pattern is a flag that is a regular expression; empty, it matches everything.
func pattern(flags *flag.FlagSet, usage string) *regexp.Regexp {
	only := regexp.MustCompile("")
	flags.TextVar(only, "only", only, usage)
	return only
}

func cases(ctx context.Context, flags *flag.FlagSet, args []string) error {
	s := settings{only: pattern(flags, "the cases whose names match this `REGEXP`")}
	server(flags, &s.binary)
	flags.StringVar(&s.ghz, "ghz", ".bin/ghz", "`FILE` of ghz as tools/ghz builds it")
	flags.StringVar(&s.out, "out", "tools/bench/load/report", "`DIRECTORY` of the reports")
	flags.BoolVar(&s.strict, "strict", false, "fail if a threshold is exceeded")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return runCases(ctx, s)
}

func overload(ctx context.Context, flags *flag.FlagSet, args []string) error {
	p := pressure{factors: []float64{0.5, 0.8, 1, 2, 5, 10}}
	flags.Func("rates", "`MULTIPLES` of the sustainable rate, separated by commas; the last is held to the bound", func(list string) error {
		p.factors = nil
		for text := range strings.SplitSeq(list, ",") {
			factor, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			p.factors = append(p.factors, factor)
		}
		return nil
	})
	server(flags, &p.binary)
	flags.IntVar(&p.jobs, "jobs", 5000, "jobs of 20 tasks in the snapshot of each call")
	flags.DurationVar(&p.duration, "duration", time.Second, "how long a rate is measured at a time")
	flags.IntVar(&p.rounds, "rounds", 12, "how often all rates are gone through")
	flags.DurationVar(&p.deadline, "deadline", time.Second, "deadline of a call; an answer after it counts for nothing")
	apart := flags.Bool("apart", true, "give the server a processor of its own, and the generator the others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *apart && alone() {
		return keepOff()
	}
	return p.run(ctx)
}

func fairness(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var s siege
	server(flags, &s.binary)
	flags.IntVar(&s.hostile, "hostile", 8, "number of hostile callers")
	flags.BoolVar(&s.held, "held", false, "let the hostile callers ask about snapshots that the server holds")
	flags.DurationVar(&s.duration, "duration", 8*time.Second, "how long the small questions are measured, alone and beside the others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return s.run(ctx)
}

func attacksOn(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var t target
	server(flags, &t.binary)
	flags.Float64Var(&t.scale, "scale", 1, "part of the calls, streams, connections and rounds of each attack that are made")
	flags.DurationVar(&t.raceTime, "race-time", 5*time.Minute, "how long the server is asked under the race detector")
	only := pattern(flags, "the attacks whose names match this `REGEXP`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return runAttacks(ctx, t, only)
}

func balanced(show func(context.Context, balancing) error) func(context.Context, *flag.FlagSet, []string) error {
	return func(ctx context.Context, flags *flag.FlagSet, args []string) error {
		var b balancing
		server(flags, &b.binary)
		flags.DurationVar(&b.span, "time", 5*time.Second, "how long each way is measured")
		flags.StringVar(&b.proxy, "haproxy", "haproxy", "the proxy's `FILE`")
		flags.IntVar(&b.workers, "workers", 16, "calls under way at a time")
		flags.Float64Var(&b.share, "share", 0.25, "part of a processor that each server gets; 1: all that it can have")
		if err := flags.Parse(args); err != nil {
			return err
		}
		return show(ctx, b)
	}
}

func pushes(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var s extending
	server(flags, &s.binary)
	flags.IntVar(&s.shape.Pods, "pods", 10_000, "pods of the push")
	flags.BoolVar(&s.shape.Lean, "bare", false, "pods of 0.4 KB instead of 5.2 KB")
	flags.IntVar(&s.pushes, "pushes", 10, "sessions that are opened, one after the other")
	flags.DurationVar(&s.timeout, "timeout", time.Second, "the scheduler's extender.httpTimeout")
	flags.IntVar(&s.load, "load", 2*runtime.NumCPU(), "busy goroutines that stand for the rest of the machine; 0: only without")
	flags.StringVar(&s.buffer, "buffer", "16MiB", "the server's extender.buffer_bytes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return s.measure(ctx)
}
