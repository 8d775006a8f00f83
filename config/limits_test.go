package config_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/config"
)

func TestEveryLimitSaysWhatACallerGetsBeyondIt(t *testing.T) {
	for _, s := range config.Settings() {
		switch section, _, _ := strings.Cut(s.Path, "."); section {
		case "limit", "overload", "deadline", "connection":
			require.NotEmpty(t, s.Beyond, s.Path)
		}
	}
}

func TestTheThreatModelNamesSettingsAndTestsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../docs/threat-model.md")
	require.NoError(t, err)
	settings := map[string]bool{}
	for _, s := range config.Settings() {
		settings[s.Path] = true
	}
	for _, name := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, settings[name[1]], "no setting %s", name[1])
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		found := exec.CommandContext(t.Context(), "grep", "-rqE", "--include=*_test.go", "^func "+name[1]+`\(`, "..")
		require.NoError(t, found.Run(), "no test %s", name[1])
	}
}
