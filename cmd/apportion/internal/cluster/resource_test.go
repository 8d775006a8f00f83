package cluster

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..", "..", "..")

func readText(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(data)
}

// TestRolesPermitWhatIsRead compares the roles for users and for a server with the tables of kinds: a new kind needs its rule.
func TestRolesPermitWhatIsRead(t *testing.T) {
	want := map[string]bool{}
	for _, kind := range slices.Concat(volcano.Kinds(), kueue.Kinds()) {
		want[kind.Group+"/"+kind.List] = true
	}
	got := map[string]bool{}
	for decoder := yaml.NewDecoder(bytes.NewReader([]byte(readText(t, "deploy", "rbac", "reader.yaml")))); ; {
		var role struct {
			Kind  string `yaml:"kind"`
			Rules []struct {
				Groups    []string `yaml:"apiGroups"`
				Resources []string `yaml:"resources"`
				Verbs     []string `yaml:"verbs"`
			} `yaml:"rules"`
		}
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if slices.Contains(rule.Verbs, "list") {
					got[rule.Groups[0]+"/"+resource] = true
				}
			}
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	chart := readText(t, "deploy", "chart", "templates", "rbac.yaml")
	for name := range want {
		_, list, _ := strings.Cut(name, "/")
		require.Regexp(t, `resources: \[([a-z]+, )*`+list+`[,\]]`, chart)
	}
}

// TestDocumentsListWhatIsRead finds the command that lists a cluster, as the tables of kinds say it, in the documents.
func TestDocumentsListWhatIsRead(t *testing.T) {
	command := "kubectl get " + objects.Listing(volcano.Kinds()) + " -A -o yaml"
	for _, path := range [][]string{{"README.md"}, {"docs", "cli.md"}, {"docs", "page.md"}} {
		require.Contains(t, readText(t, path...), command)
	}
	of := objects.Listing(kueue.Kinds())
	written := readText(t, "docs", "kueue.md")
	_, after, found := strings.Cut(written, "kubectl get ")
	require.True(t, found)
	lists, _, _ := strings.Cut(after, " ")
	require.ElementsMatch(t, append(strings.Split(of, ","), "namespaces"), strings.Split(lists, ","))
}
