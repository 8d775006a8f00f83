// Command drain shows what callers notice of servers that come and go: nothing. Three replicas, processes of the built binary, are
//
//   - restarted one after the other under load by ghz, as a rolling update does it: no call fails;
//   - and robbed of one of them by SIGKILL, again and again, while the Go client asks questions, small ones and such as are larger than
//     what gRPC itself would send again: no decision fails.
//
// It fails if a call did, and ends with one line of its figures.
//
//	make show-drain
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/apportion/apportion/bench/internal/sample"
	"github.com/apportion/apportion/internal/test/replica"
)

// setting is what is shown with.
type setting struct {
	binary, ghz string
	span        time.Duration
	kills       int
}

func main() {
	var s setting
	flag.StringVar(&s.binary, "binary", "bin/apportion", "the server's `FILE`")
	flag.StringVar(&s.ghz, "ghz", ".bin/ghz", "`FILE` of ghz as tools/ghz builds it")
	flag.DurationVar(&s.span, "time", 20*time.Second, "how long ghz loads the replicas while they are restarted")
	flag.IntVar(&s.kills, "kills", 3, "how often a replica is killed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := show(ctx, &s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drain: "+err.Error())
		os.Exit(1)
	}
}

func show(ctx context.Context, s *setting) error {
	fmt.Printf("%s/%s, %d processors for three servers and their callers together\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	line := sample.NewLine("show-drain")
	err := withReplicas(ctx, s, func(replicas []*replica.Replica) error {
		rolled, err := roll(ctx, s, replicas)
		if err != nil {
			return err
		}
		rolled.print(line)
		return rolled.fault()
	})
	if err != nil {
		return err
	}
	err = withReplicas(ctx, s, func(replicas []*replica.Replica) error {
		killed, err := kill(ctx, s, replicas)
		if err != nil {
			return err
		}
		killed.print(line)
		return killed.fault()
	})
	fmt.Printf("\n%s\n", line)
	return err
}

// withReplicas runs three servers that take calls, and ends them.
func withReplicas(ctx context.Context, s *setting, do func([]*replica.Replica) error) (err error) {
	const count = 3
	replicas := make([]*replica.Replica, 0, count)
	defer func() {
		for _, r := range replicas {
			r.Kill()
		}
	}()
	for range count {
		r, err := replica.New(ctx, s.binary, "--drain-delay", "500ms")
		if err != nil {
			return err
		}
		if err := r.Start(ctx); err != nil {
			return err
		}
		replicas = append(replicas, r)
	}
	for _, r := range replicas {
		if err := r.Ready(ctx); err != nil {
			return err
		}
	}
	return do(replicas)
}

// errFailed says that callers noticed.
var errFailed = errors.New("calls failed")
