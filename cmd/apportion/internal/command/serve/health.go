package serve

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// NewHealth is `apportion health`.
func NewHealth(s cli.Streams) *cobra.Command {
	var f question.ServerFlags
	var wait bool
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:   "health --server ADDRESS",
		Short: "Check whether a server serves",
		Long: `Check whether a server serves, and list the snapshots that it maintains and the caller may use: how
old each is, which kinds of objects it lacks, and which objects are left out. The exit code is 3 if the
server does not serve. A caller without a valid token sees no snapshots.`,
		Example: `  apportion health --server localhost:7171 --wait --timeout 10s`,
		Args:    cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			asked, ctx, done, err := f.Decider(command.Context())
			if err != nil {
				return err
			}
			defer done()
			if err := health(ctx, asked, wait); err != nil {
				return err
			}
			views, err := asked.Views(ctx)
			if code := status.Code(err); err != nil && code != codes.Unauthenticated && code != codes.PermissionDenied {
				return err
			}
			return writeHealth(a, views)
		},
	}
	f.Register(command.Flags())
	a.Register(command)
	command.Flags().BoolVar(&wait, "wait", false, "retry until it serves, or until the timeout")
	cli.Must(command, command.MarkFlagRequired("server"))
	return command
}

// writeHealth writes that a server serves, and the state of its snapshots.
func writeHealth(a *cli.Answering, views []*apportionv1.SnapshotView) error {
	answer := struct {
		Serving   bool          `json:"serving"`
		Snapshots []cli.Message `json:"snapshots,omitempty"`
	}{Serving: true}
	for _, view := range views {
		answer.Snapshots = append(answer.Snapshots, cli.Within(view))
	}
	return a.Write(answer, func(p *render.Printer) {
		p.Line("serving")
		for _, view := range views {
			switch {
			case view.GetDigest() == "":
				p.Line("snapshot %s is not available yet", view.GetName())
			case !view.GetComplete():
				p.Line("snapshot %s is not complete", view.GetName())
			default:
				p.Line("snapshot %s is complete", view.GetName())
			}
			for _, w := range question.Staleness(view) {
				p.Line("  %s", w.GetMessage())
			}
		}
	})
}

// pause is the wait before the server is asked again.
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
