package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapped finds the folder of a line of the map.
var mapped = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// divided are the folders of which each folder in them has a line of its own.
var divided = []string{".", "engine", "adapter", "service", "cmd/apportion/internal", "cmd/apportion/internal/command", "internal"}

func TestEveryFolderIsOnTheMap(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Map\n")
	require.True(t, found, "CONTRIBUTING.md has no section Map")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := map[string]int{}
	for _, m := range mapped.FindAllStringSubmatch(section, -1) {
		lines[m[1]]++
	}

	folders := map[string]bool{}
	for _, file := range tracked(t, ".") {
		for folder := filepath.Dir(file); folder != "."; folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	for folder := range folders {
		if slices.Contains(divided, filepath.Dir(folder)) && lines[folder] == 0 {
			t.Errorf("%s is not on the map of CONTRIBUTING.md", folder)
		}
	}
	for folder, times := range lines {
		if !folders[folder] {
			t.Errorf("the map of CONTRIBUTING.md has a line for %s, which does not exist", folder)
		}
		if times > 1 {
			t.Errorf("the map of CONTRIBUTING.md has %d lines for %s", times, folder)
		}
	}
}
