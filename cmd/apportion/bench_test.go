package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// BenchmarkCommand runs the commands that take long on the standard cluster: 1,000 queues, 100,000 tasks, 5,000 nodes.
func BenchmarkCommand(b *testing.B) {
	file := filepath.Join(b.TempDir(), "standard.pb")
	var generated strings.Builder
	if code := run(b.Context(), []string{"generate", "--standard", "-o", "binary"}, nil, &generated, io.Discard); code != cli.ExitYes {
		b.Fatal(code)
	}
	if err := os.WriteFile(file, []byte(generated.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, line := range []string{
		"diff proportion capacity", "diff proportion fair", "audit", "audit --policy fair", "verify --policy fair",
		"whatif --set queue/queue-00002.weight=5",
	} {
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if code := run(b.Context(), append(strings.Fields(line), "--snapshot", file), nil, io.Discard, b.Output()); code == cli.ExitUsage {
					b.Fatal(line)
				}
			}
		})
	}
}
