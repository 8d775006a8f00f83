package extender_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
)

// TestTheDocumentedConfigurationsAreWhatTheySay reads the configurations in docs/volcano.md.
func TestTheDocumentedConfigurationsAreWhatTheySay(t *testing.T) {
	page, err := os.ReadFile("../../docs/volcano.md")
	require.NoError(t, err)
	// A test of the command compares them with its output.
	blocks := regexp.MustCompile("(?s)```console\n\\$ apportion convert [^\n]*--to extender[^\n]*\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		_, warnings, err := schedulerconf.Read(objects.Source{Name: "conf", Data: []byte(block[1])})
		require.NoError(t, err)
		for _, w := range warnings {
			require.Contains(t, w.Message, "takes part in no decision", "every switch and setting is one that Volcano knows")
		}
		var conf struct {
			Tiers []struct {
				Plugins []struct {
					Name      string            `yaml:"name"`
					Arguments map[string]string `yaml:"arguments"`
				} `yaml:"plugins"`
			} `yaml:"tiers"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &conf))
		found := false
		for _, tier := range conf.Tiers {
			for _, plugin := range tier.Plugins {
				if plugin.Name != "extender" {
					continue
				}
				found = true
				for key, value := range plugin.Arguments {
					if strings.HasSuffix(key, "Verb") {
						require.True(t, slices.Contains(verbs, value), "%s: %s", key, value)
					}
				}
				require.Equal(t, "allocate", plugin.Arguments["extender.allocateFuncVerb"])
				require.Equal(t, "deallocate", plugin.Arguments["extender.deallocateFuncVerb"])
				require.NotContains(t, plugin.Arguments, "extender.managedResources")
			}
		}
		require.True(t, found)
	}
	settings, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	convert, err := os.ReadFile("../../cmd/apportion/internal/command/convert/convert.go")
	require.NoError(t, err)
	for _, flag := range regexp.MustCompile("--extender-[a-z-]+|--policies|--admin-[a-z]+").FindAllString(string(page), -1) {
		if !strings.Contains(string(convert), `"`+strings.TrimPrefix(flag, "--")+`"`) {
			require.Contains(t, string(settings), "`"+flag+"`", "no such flag")
		}
	}
	for _, name := range regexp.MustCompile("apportion_extender_[a-z_]+").FindAllString(string(page), -1) {
		require.Contains(t, exported(t), strings.TrimSuffix(name, "_"), "no such metric")
	}
}

// TestTheDocumentedTimesOfAPushAreTheMeasuredOnes: an operator plans with all memory that a push takes, including the memory before it is
// sent.
func TestTheDocumentedTimesOfAPushAreTheMeasuredOnes(t *testing.T) {
	guide, err := os.ReadFile("../../docs/volcano.md")
	require.NoError(t, err)
	measured, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	for _, time := range []string{"360 to 810 ms", "1.3 s", "1.6 to 3.0 s"} {
		require.Contains(t, string(guide), time)
		require.Contains(t, string(measured), time)
	}
}

// exported are the names of all metrics after a session in which everything happened.
func exported(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	var names strings.Builder
	for _, m := range regexp.MustCompile(`"([a-z_]+(?:total|bytes|seconds|tasks))"`).FindAllStringSubmatch(string(source), -1) {
		names.WriteString("apportion_extender_" + strings.TrimPrefix(m[1], "apportion_extender_") + "\n")
	}
	return names.String()
}
