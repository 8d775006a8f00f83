package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/test/raced"
)

// TestEveryKindOfMutantIsWritten also sees that the certificates as they are recorded are accepted, and that each kind has mutants that are
// not, but for weights that all grow alike.
func TestEveryKindOfMutantIsWritten(t *testing.T) {
	raced.Skip(t)
	t.Chdir("../../..")
	folder := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run(&out, folder, 3000, 7))
	for _, m := range mutations {
		require.Contains(t, out.String(), m.kind+"\n")
	}
	for line := range strings.Lines(out.String()) {
		recorded := strings.Contains(line, "case\n") || strings.Contains(line, "vector\n") || strings.Contains(line, "all weights")
		if strings.HasSuffix(line, "  the case\n") {
			recorded = false
		}
		require.Equal(t, recorded, strings.Contains(line, "      0 refused"), line)
	}
	lines := -1
	for _, name := range []string{"numbers", "certificates.jsonl", "go"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		if lines < 0 {
			lines = bytes.Count(data, []byte("\n"))
		}
		require.Equal(t, lines, bytes.Count(data, []byte("\n")), name)
	}
	require.Greater(t, lines, 4000)
	require.Error(t, run(&out, "", 1, 1))
}
