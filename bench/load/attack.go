package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/apportion/apportion/bench/internal/peer"
	"github.com/apportion/apportion/bench/internal/sample"
	"github.com/apportion/apportion/internal/test/replica"
)

// attack is one way to harm a server.
type attack struct {
	name string
	// play attacks a server and returns when the attack is complete. Its connections stay open until ctx ends.
	play func(ctx context.Context, server string, scale float64) (outcome, error)
}

// outcome is the result of an attack.
type outcome struct {
	tried int
	// let is the number that the server accepted, with its unit; refused describes the others.
	let     int
	refused string
}

var attacks = []attack{
	{"answers that are not read", unreadAnswers},
	{"health watches", watches},
	{"calls that are reset", resets},
	{"idle connections", idleConnections},
}

// settle is the time for which the good caller continues after an attack, while its connections are still open.
const settle = 3 * time.Second

// runAttacks plays attacks against servers with default settings, each a process of its own, and prints what they refuse, how much memory
// they take at most, and how long the calls of a good caller take meanwhile. scale is the part of the calls, streams and connections of
// each attack that are made.
func runAttacks(ctx context.Context, binary string, scale float64, wanted *regexp.Regexp) error {
	table := sample.NewTable("attack", "tried", "let in", "refused", "seconds", "peak MiB before", "peak MiB",
		"good caller alone, p50 / p99 ms", "meanwhile, p50 / p99 ms", "most ms", "failed", "on a new connection, most ms", "failed")
	for _, a := range attacks {
		if !wanted.MatchString(a.name) {
			continue
		}
		if err := a.row(ctx, table, binary, scale); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	_, err := table.WriteTo(os.Stdout)
	return err
}

// row plays an attack against a new server and adds its result to a table.
func (a attack) row(ctx context.Context, table *sample.Table, binary string, scale float64) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	server, err := replica.New(ctx, binary)
	if err != nil {
		return err
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	defer server.Kill()
	if err := server.Ready(ctx); err != nil {
		return err
	}
	alone, err := beside(ctx, server.Address, func() error { time.Sleep(settle); return nil })
	if err != nil {
		return err
	}
	before := peer.Peak(server.Process().Pid)
	began := time.Now()
	var out outcome
	var seconds float64
	meanwhile, err := beside(ctx, server.Address, func() error {
		attacking, end := context.WithCancel(ctx)
		defer end()
		var err error
		out, err = a.play(attacking, server.Address, scale)
		seconds = time.Since(began).Seconds()
		time.Sleep(settle)
		return err
	})
	if err != nil {
		return err
	}
	after := peer.Peak(server.Process().Pid)
	if after == 0 && before != 0 {
		return errors.New("the server has ended")
	}
	table.Add(a.name, out.tried, out.let, out.refused, seconds, before>>20, after>>20, alone.calls.both(), meanwhile.calls.both(),
		meanwhile.calls.percentile(1), meanwhile.calls.failed, meanwhile.fresh.percentile(1), meanwhile.fresh.failed)
	return nil
}
