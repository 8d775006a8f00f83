// Command load puts the service under load.
//
//	load cases     makes the calls of cases.json by ghz and compares latencies with thresholds (make bench-load)
//	load overload  offers up to ten times what a server can do, and shows its goodput (make show-overload)
//	load fairness  asks small questions beside hostile callers (make show-fairness)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"time"

	"github.com/apportion/apportion/bench/internal/peer"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("one of cases, overload and fairness is expected")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	flags := flag.NewFlagSet("load "+args[0], flag.ExitOnError)
	switch args[0] {
	case "-serve":
		return peer.Run(args[1])
	case "crowd":
		callers, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		held, err := strconv.ParseBool(args[3])
		if err != nil {
			return err
		}
		return runCrowd(ctx, args[1], callers, held)
	case "cases":
		var s settings
		flags.StringVar(&s.ghz, "ghz", ".bin/ghz", "`FILE` of ghz as tools/ghz builds it")
		flags.StringVar(&s.out, "out", "bench/load/report", "`DIRECTORY` of the reports")
		flags.BoolVar(&s.strict, "strict", false, "fail if a threshold is exceeded")
		only := flags.String("only", "", "the cases whose names match this `REGEXP`")
		err := flags.Parse(args[1:])
		if err == nil {
			s.only, err = regexp.Compile(*only)
		}
		if err != nil {
			return err
		}
		return runCases(ctx, s)
	case "overload":
		var p pressure
		flags.IntVar(&p.jobs, "jobs", 5000, "jobs of 20 tasks in the snapshot of each call")
		flags.DurationVar(&p.duration, "duration", time.Second, "how long a rate is measured at a time")
		flags.IntVar(&p.rounds, "rounds", 12, "how often all rates are gone through")
		flags.DurationVar(&p.deadline, "deadline", time.Second, "deadline of a call; an answer after it counts for nothing")
		apart := flags.Bool("apart", true, "give the server a processor of its own, and the generator the others")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if *apart && alone() {
			return keepOff()
		}
		return p.run(ctx)
	case "fairness":
		var s siege
		flags.IntVar(&s.hostile, "hostile", 8, "number of hostile callers")
		flags.BoolVar(&s.held, "held", false, "let the hostile callers ask about snapshots that the server holds")
		flags.DurationVar(&s.duration, "duration", 8*time.Second, "how long the small questions are measured, alone and beside the others")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return s.run(ctx)
	}
	return fmt.Errorf("%q is none of cases, overload and fairness", args[0])
}
