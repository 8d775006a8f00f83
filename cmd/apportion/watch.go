package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// watchFlags say whether a command asks again and again.
type watchFlags struct {
	on       bool
	interval time.Duration
}

func (f *watchFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "watch", false, "repeat every --interval and print answers that differ, until interrupted")
	flags.DurationVar(&f.interval, "interval", 5*time.Second, "`TIME` between two runs with --watch")
}

// repeat asks once, or with --watch until the context ends. Then it prints an answer whenever it differs from the one before; a question
// that fails is reported, and asked again.
func (a *asking) repeat(ctx context.Context, ask func(context.Context) error) error {
	if !a.watch.on {
		return ask(ctx)
	}
	if a.watch.interval <= 0 {
		return errors.New("--interval: a time above 0 is needed")
	}
	out, errOut := a.out, a.err
	defer func() { a.out, a.err = out, errOut }()
	var last, lastError string
	tick := time.NewTicker(a.watch.interval)
	defer tick.Stop()
	for {
		var answer, told bytes.Buffer
		a.out, a.err = &answer, &told
		if err := ask(ctx); err != nil && !errors.Is(err, errDecidedNo) && ctx.Err() == nil {
			fmt.Fprintln(&told, "apportion: "+describe(err))
		}
		if text := told.String(); text != lastError {
			lastError = text
			fmt.Fprint(errOut, text)
		}
		if text := answer.String(); text != "" && text != last {
			if last != "" {
				fmt.Fprintf(out, "\n%s\n", time.Now().Format(time.TimeOnly))
			}
			last = text
			fmt.Fprint(out, text)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
