package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apportion/apportion/internal/test/replica"
)

// fleet is servers of one binary, each a process of its own.
type fleet []*replica.Replica

// launch starts so many servers with these arguments of `apportion serve`, and returns once all take calls. Each has one processor, unless
// adapt says otherwise before it starts.
func launch(ctx context.Context, binary string, count int, adapt func(*replica.Replica), arguments ...string) (servers fleet, err error) {
	defer func() {
		if err != nil {
			servers.kill()
			servers = nil
		}
	}()
	for range count {
		r, err := replica.New(ctx, binary, arguments...)
		if err != nil {
			return servers, err
		}
		if adapt != nil {
			adapt(r)
		}
		servers = append(servers, r)
		if err := r.Start(ctx); err != nil {
			return servers, err
		}
	}
	for _, r := range servers {
		if err := r.Ready(ctx); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

func (f fleet) kill() {
	for _, r := range f {
		r.Kill()
	}
}

// again starts a server anew at its address, and waits until callers have come back to it, as a rolling update does before it goes on.
func again(ctx context.Context, r *replica.Replica) error {
	const enough, tries = 20, 200
	if err := r.Start(ctx); err != nil {
		return err
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	for range tries {
		answered, err := r.Answered(ctx, "EvaluateShares")
		if err != nil || answered >= enough {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no client came back to the server at %s", r.Address)
}
