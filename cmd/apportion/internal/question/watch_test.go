package question

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

func TestWatchPrintsWhatChangedAndReportsAFaultOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		a := &Asking{
			Answering: cli.Answering{Streams: cli.Streams{Out: &out, Err: &errOut}, Format: cli.FormatTable}, Watch: WatchFlags{On: true, Interval: time.Second},
		}
		say := func(rows ...[]string) error {
			return a.Write(nil, func(p *render.Printer) {
				table := p.NewTable("JOB", ">TASKS", "FOUND")
				for _, row := range rows {
					table.Row(row...)
				}
				table.Write(p.Out)
				p.Line("%d wait", len(rows))
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		require.NoError(t, a.Repeat(ctx, func(context.Context) error {
			asked++
			switch asked {
			case 1, 2:
				return say([]string{"ml/a", "2", "no node has enough gpu"}, []string{"ml/b", "1", "in turn"})
			case 3, 4:
				return errors.New("away")
			case 5:
				return say([]string{"ml/a", "2", "no node has enough gpu"}, []string{"ml/b", "1", "in turn"})
			case 6:
				return errors.Join(say([]string{"ml/a", "1", "queue ml is full"}, []string{"ml/b", "1", "in turn"}, []string{"ml/c", "4", ""}), cli.ErrDecidedNo)
			case 7:
				return say([]string{"ml/a", "1", "queue ml is full"}, []string{"ml/c", "4", ""})
			}
			stop()
			return nil
		}))
		at := func(seconds int) string {
			return time.Now().Add(time.Duration(seconds) * time.Second).Format(time.TimeOnly)
		}
		require.Equal(t, "JOB   TASKS  FOUND\nml/a      2  no node has enough gpu\nml/b      1  in turn\n2 wait\n"+
			"\n"+at(-2)+"\n~ ml/a  tasks: 2 -> 1; found: no node has enough gpu -> queue ml is full\n+ ml/c  4\n~ 2 wait -> 3 wait\n"+
			"\n"+at(-1)+"\n- ml/b  1  in turn\n~ 3 wait -> 2 wait\n", out.String())
		require.Equal(t, "apportion: away\n", errOut.String())
	})
}

func TestWatchPrintsAnObjectForEachAnswerThatDiffers(t *testing.T) {
	for format, want := range map[string]string{
		cli.FormatJSON: "{\n  \"n\": 1\n}\n{\n  \"n\": 2\n}\n", cli.FormatYAML: "n: 1\n---\nn: 2\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			a := &Asking{Answering: cli.Answering{Streams: cli.Streams{Out: &out, Err: io.Discard}, Format: format}, Watch: WatchFlags{On: true, Interval: time.Second}}
			ctx, stop := context.WithCancel(t.Context())
			asked := 0
			require.NoError(t, a.Repeat(ctx, func(context.Context) error {
				if asked++; asked == 4 {
					stop()
				}
				return a.Write(map[string]int{"n": (asked + 1) / 2}, nil)
			}))
			require.Equal(t, want, out.String())
		})
	}
}

func TestWithoutWatchAQuestionIsAskedOnce(t *testing.T) {
	a := &Asking{}
	asked := 0
	require.ErrorIs(t, a.Repeat(t.Context(), func(context.Context) error {
		asked++
		return cli.ErrDecidedNo
	}), cli.ErrDecidedNo)
	require.Equal(t, 1, asked)
}
