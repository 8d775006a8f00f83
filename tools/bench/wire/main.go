// Command wire measures the service over gRPC on loopback, from another process, side by side with the least that grpc-go can do: calls
// that carry as many bytes up and the same answer down, and look into none.
//
//	go run ./bench/wire [-only shares,change,policies,growth,memory,small,steps,stream,lists] [-rounds 7] [-block 1s]
//	go run ./bench/wire scale [-max 1000000] [-rounds 5] [-policy proportion] [-depth 0] [-plot bench/wire/report/scale.svg]
//
// Each group of cases is measured in rounds: every case gets a block of time in every round, in another order each time, so that what else
// the machine does disturbs all of them alike. Ratios are those of one round; their median counts. It ends with one line of its main
// figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// settings of a run.
type settings struct {
	rounds      int
	block       time.Duration
	environment []string
	profile     string
}

func main() {
	serve := flag.String("serve", "", "be the server of this `ROLE` (service, floor) of another process that measures")
	only := flag.String("only", "", "measure these `GROUPS` only: "+strings.Join(groupNames(), ","))
	environment := flag.String("server-env", "", "environment of the service's process, as `GOGC=200,GOMEMLIMIT=1GiB`")
	var s settings
	flag.IntVar(&s.rounds, "rounds", 7, "how often every case is measured")
	flag.DurationVar(&s.block, "block", time.Second, "how long each time")
	flag.StringVar(&s.profile, "profile", "", "write cpu-PID.prof and heap-PID.prof of each process of the service into this directory")
	flag.Parse()
	if *environment != "" {
		s.environment = strings.Split(*environment, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch {
	case *serve != "":
		err = peer.Run(*serve)
	case flag.Arg(0) == "scale":
		err = runScale(ctx, flag.Args()[1:])
	default:
		err = measure(ctx, s, *only)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

// group is a set of cases that are compared with each other.
type group struct {
	name    string
	measure func(context.Context, *run, *sample.Line) error
}

var groups = []group{
	{"shares", shares},
	{"change", change},
	{"policies", policies},
	{"growth", growth},
	{"memory", memory},
	{"small", small},
	{"steps", steps},
	{"stream", stream},
	{"lists", lists},
}

func groupNames() []string {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.name
	}
	return names
}

func measure(ctx context.Context, s settings, only string) error {
	fmt.Printf("%d CPUs (%s), %s %s/%s, %d rounds of %v a case\n",
		runtime.NumCPU(), processor(), runtime.Version(), runtime.GOOS, runtime.GOARCH, s.rounds, s.block)
	line := sample.NewLine("bench-wire")
	chosen := strings.Split(only, ",")
	for _, g := range groups {
		if only != "" && !slices.Contains(chosen, g.name) {
			continue
		}
		r := &run{settings: s}
		if err := errors.Join(g.measure(ctx, r, line), r.close()); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	fmt.Println()
	fmt.Println(line)
	return nil
}

// processor returns the name of the CPU.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
