package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// crowd is a process with callers, each with an address of its own, that ask the most expensive questions which default limits allow.
type crowd struct{ *peer.Peer }

// tallies counts the results of a crowd's calls so far.
type tallies struct {
	// Answered counts the answers to each kind of question.
	Answered []int64 `json:"answered"`
	Refused  int64   `json:"refused"`
}

// since returns the difference from an earlier tally.
func (t tallies) since(earlier tallies) tallies {
	for i := range t.Answered {
		t.Answered[i] -= earlier.Answered[i]
	}
	t.Refused -= earlier.Refused
	return t
}

func (t tallies) all() float64 {
	var all int64
	for _, n := range t.Answered {
		all += n
	}
	return float64(all)
}

func (t tallies) perSecond(lasts time.Duration) []float64 {
	rates := make([]float64, len(t.Answered))
	for i, n := range t.Answered {
		rates[i] = float64(n) / lasts.Seconds()
	}
	return rates
}

// startCrowd starts a crowd and returns once its callers call.
func startCrowd(ctx context.Context, server string, callers int, held bool) (*crowd, error) {
	p, err := peer.Spawn(ctx, nil, "crowd", server, strconv.Itoa(callers), strconv.FormatBool(held))
	if err != nil {
		return nil, err
	}
	c := &crowd{p}
	if _, err := c.count(); err != nil {
		return nil, errors.Join(fmt.Errorf("the hostile callers did not start: %w", err), c.Stop())
	}
	return c, nil
}

// count returns the results of the calls so far.
func (c *crowd) count() (t tallies, err error) {
	err = c.Ask("count", &t)
	return t, err
}

// runCrowd is the whole life of a process that startCrowd has started: it calls, writes the tallies for each line that it reads, and ends
// with its standard input.
func runCrowd(ctx context.Context, server string, callers int, held bool) error {
	var holder *grpc.ClientConn
	if held {
		var err error
		if holder, err = dial(server, 2); err != nil {
			return err
		}
		defer holder.Close() //nolint:errcheck // It ends with the process.
	}
	expensive, err := expensiveQuestions(ctx, holder)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	answered, refused := make([]atomic.Int64, len(expensive)), atomic.Int64{}
	for i := range callers {
		conn, err := dial(server, 2+i)
		if err != nil {
			return err
		}
		all.Go(func() {
			defer conn.Close() //nolint:errcheck // It ends with the process.
			for n := i; ctx.Err() == nil; n++ {
				kind := n % len(expensive)
				if err := call(ctx, conn, expensive[kind]); err == nil {
					answered[kind].Add(1)
				} else if status.Code(err) == codes.ResourceExhausted {
					refused.Add(1)
				}
			}
		})
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		t := tallies{Refused: refused.Load()}
		for i := range answered {
			t.Answered = append(t.Answered, answered[i].Load())
		}
		if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
			return err
		}
	}
	return lines.Err()
}
