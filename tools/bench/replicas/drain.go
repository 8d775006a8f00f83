package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// drain shows that callers do not notice when servers stop and start. Three replicas, processes of the built binary, are
//
//   - restarted one after the other under load by ghz, as a rolling update does it: no call fails;
//   - robbed of one of them by SIGKILL, again and again, while the Go client asks questions, small ones and such as are larger than
//     what gRPC itself would send again: no decision fails;
//   - and restarted and killed while a mirror of the Go client is asked about: no decision fails, and none is about another state.
//
// It fails if a call did, and ends with one line of its figures.
func drain(ctx context.Context, s *setting) error {
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
		killed, err := killOneByOne(ctx, s, replicas)
		if err != nil {
			return err
		}
		killed.print(line)
		return killed.fault()
	})
	if err == nil {
		err = withReplicas(ctx, s, func(replicas []*replica.Replica) error {
			through, err := mirrorThrough(ctx, s, replicas)
			if err != nil {
				return err
			}
			through.print(line)
			return through.fault()
		})
	}
	fmt.Printf("\n%s\n", line)
	return err
}

// withReplicas runs three servers that take calls, and ends them.
func withReplicas(ctx context.Context, s *setting, do func([]*replica.Replica) error) error {
	replicas, err := serve(ctx, s.binary, 3, 500*time.Millisecond)
	defer kill(replicas)
	if err == nil {
		err = ready(ctx, replicas)
	}
	if err != nil {
		return err
	}
	return do(replicas)
}

// errFailed is returned if calls failed.
var errFailed = errors.New("calls failed")
