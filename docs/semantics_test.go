package docs

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/notation"
)

var update = flag.Bool("update", false, "write the engine's answers into semantics.md")

// Every block ```cluster is a cluster; every block ```console after it is a transcript of questions about it.
func TestTheExamplesOfTheSemanticsAreTheEnginesAnswers(t *testing.T) {
	before, err := os.ReadFile("semantics.md")
	require.NoError(t, err)
	after := replay(t, string(before))
	if *update {
		require.NoError(t, os.WriteFile("semantics.md", []byte(after), 0o600))
		return
	}
	require.Equal(t, string(before), after, "run go test ./docs -update and read the difference")
}

func replay(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	var cluster *model.Model
	heading := ""
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		out.WriteString(line + "\n")
		if strings.HasPrefix(line, "#") {
			heading = line
		}
		if line != "```cluster" && line != "```console" {
			continue
		}
		block, rest, ok := strings.Cut(text, "```\n")
		require.True(t, ok, "%s: a block does not end", heading)
		text = rest
		if line == "```cluster" {
			m, err := notation.Compile(block)
			require.NoError(t, err, heading)
			cluster = m
		} else {
			answers, err := play(cluster, block)
			require.NoError(t, err, heading)
			block = answers
		}
		out.WriteString(block + "```\n")
	}
	return out.String()
}
