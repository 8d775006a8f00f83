package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func FuzzACallSetsNothingButItsParameters(f *testing.F) {
	root := &cobra.Command{Use: "root"}
	command := &cobra.Command{Use: "ask JOB", Run: func(*cobra.Command, []string) {}}
	command.Flags().StringSlice("queue", nil, "queues")
	command.Flags().StringArray("set", nil, "changes")
	command.Flags().Int("top", 0, "rows")
	command.Flags().String("file", "", "a file, which agents may not name")
	root.AddCommand(command)
	tool := Tool{Name: "ask", Command: "ask", Arguments: []Argument{{Name: "job"}}, Flags: "queue set top"}
	for _, seed := range []string{
		`{"job":"a/b"}`, `{"job":"--file=x","queue":["a","--file=x"],"set":["a,--file=x"],"top":3}`, `{"job":"-","queue":"a"}`, `[]`, `{"file":"x"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		args, in, err := tool.line(root, json.RawMessage(raw))
		if err != nil {
			return
		}
		require.Empty(t, in)
		require.NoError(t, command.Flags().Set("file", ""))
		if command.ParseFlags(args) != nil {
			return
		}
		require.Empty(t, command.Flag("file").Value.String())
		require.Len(t, command.Flags().Args(), 1, "one job")
	})
}

func TestALongTextIsCutAtALine(t *testing.T) {
	text, cut := cutLines("one\ntwo\nthree\n", 9)
	require.True(t, cut)
	require.Equal(t, "one\ntwo\n… 1 more lines are left out", text)
	text, cut = cutLines("one\n", 9)
	require.False(t, cut)
	require.Equal(t, "one\n", text)
	text, _ = cutLines(strings.Repeat("x", 99), 9)
	require.Equal(t, "… 99 bytes in one line are left out", text)
}
