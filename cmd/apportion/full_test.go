package main

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// full is a stream that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnAnswerThatCannotBeWrittenFailsInEveryFormat(t *testing.T) {
	const cluster = "../../examples/clusters/research"
	for _, line := range [][]string{
		{"shares"}, {"shares", "-o", "json"}, {"shares", "-o", "yaml"}, {"pending"}, {"get", "jobs"}, {"explain", "language/pretrain-7b"},
	} {
		var problems bytes.Buffer
		require.Equal(t, cli.ExitUsage, run(t.Context(), append(line, "-f", cluster), nil, full{}, &problems), line)
		require.Equal(t, "policy: the file that Volcano's installers ship\napportion: no space left on device\n", problems.String(), line)
	}
}

func TestAnUnknownCommandIsAnsweredWithThoseThatItResembles(t *testing.T) {
	var problems bytes.Buffer
	require.Equal(t, cli.ExitUsage, run(t.Context(), []string{"share"}, nil, io.Discard, &problems))
	require.Equal(t, "apportion: unknown command \"share\" for \"apportion\"\n\nDid you mean this?\n  shares\n", problems.String())
}
