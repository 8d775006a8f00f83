package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// goodHost is the last byte of the good caller's address on the loopback network. Attackers have those from 1 on.
const goodHost = 250

// bystander is the good caller: its calls on a connection that it keeps, and those that begin with a new connection.
type bystander struct{ calls, fresh latencies }

// made is the number of all calls.
func (b *bystander) made() int {
	return len(b.calls.times) + len(b.fresh.times) + b.failed()
}

// failed is the number of calls that failed.
func (b *bystander) failed() int { return b.calls.failed + b.fresh.failed }

// fate tells how many of all calls failed, and the first error.
func (b *bystander) fate(calls string) string {
	out := fmt.Sprintf("%d of %d %s failed", b.failed(), b.made(), calls)
	if fault := cmp.Or(b.calls.fault, b.fresh.fault); fault != nil {
		out += fmt.Sprintf(" (%v)", fault)
	}
	return out
}

// beside makes small calls from an address of the loopback network, and some on new connections, until do returns.
func beside(ctx context.Context, server string, do func() error) (*bystander, error) {
	small, err := smallQuestion()
	if err != nil {
		return nil, err
	}
	conn, err := dial(server, goodHost)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // It ends with the process.
	b := &bystander{}
	done := make(chan struct{})
	var calling sync.WaitGroup
	repeat := func(every time.Duration, into *latencies, one func() error) {
		calling.Go(func() {
			for {
				began := time.Now()
				into.add(began, one())
				select {
				case <-done:
					return
				case <-time.After(every):
				}
			}
		})
	}
	ask := func(conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return call(ctx, conn, small)
	}
	repeat(10*time.Millisecond, &b.calls, func() error { return ask(conn) })
	repeat(200*time.Millisecond, &b.fresh, func() error {
		conn, err := dial(server, goodHost)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // As above.
		return ask(conn)
	})
	err = do()
	close(done)
	calling.Wait()
	return b, err
}
