package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
)

// newHealth is `apportion health`.
func newHealth(s streams) *cobra.Command {
	var f serverFlags
	var wait bool
	command := &cobra.Command{
		Use:     "health --server ADDRESS",
		Short:   "Check whether a server serves",
		Long:    `Check whether a server serves. The exit code is 3 if it does not.`,
		Example: `  apportion health --server localhost:7171 --wait --timeout 10s`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			asked, ctx, done, err := f.decider(command.Context())
			if err != nil {
				return err
			}
			defer done()
			if err := health(ctx, asked, wait); err != nil {
				return err
			}
			fmt.Fprintln(s.out, "serving")
			return nil
		},
	}
	f.register(command.Flags())
	command.Flags().BoolVar(&wait, "wait", false, "retry until it serves, or until the timeout")
	if err := command.MarkFlagRequired("server"); err != nil {
		command.PrintErrln(err)
	}
	return command
}

// pause is how long to wait before a server is asked again.
const pause = 50 * time.Millisecond

// health asks once, or until the server serves.
func health(ctx context.Context, asked *client.Client, wait bool) error {
	for {
		err := asked.Health(ctx)
		if errors.Is(err, client.ErrNotServing) {
			err = status.Error(codes.Unavailable, err.Error())
		}
		if err == nil || !wait {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
