package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchPrintsAnswersThatDifferAndReportsAFaultOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		a := &asking{answering: answering{streams: streams{out: &out, err: &errOut}}, watch: watchFlags{on: true, interval: time.Second}}
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		require.NoError(t, a.repeat(ctx, func(context.Context) error {
			asked++
			switch asked {
			case 1, 2:
				_, err := io.WriteString(a.out, "one\n")
				return err
			case 3, 4:
				return errors.New("away")
			case 5:
				_, err := io.WriteString(a.out, "one\n")
				return err
			case 6:
				_, err := io.WriteString(a.out, "two\n")
				return errors.Join(err, errDecidedNo)
			}
			stop()
			return nil
		}))
		require.Equal(t, fmt.Sprintf("one\n\n%s\ntwo\n", time.Now().Add(-time.Second).Format(time.TimeOnly)), out.String())
		require.Equal(t, "apportion: away\n", errOut.String())
	})
}

func TestWithoutWatchAQuestionIsAskedOnce(t *testing.T) {
	a := &asking{}
	asked := 0
	require.ErrorIs(t, a.repeat(t.Context(), func(context.Context) error {
		asked++
		return errDecidedNo
	}), errDecidedNo)
	require.Equal(t, 1, asked)
}
