package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// pluginName is the file name under which kubectl finds the program as `kubectl apportion`.
const pluginName = "kubectl-apportion"

// isPlugin reports whether the program was started under the name of kubectl's plugin.
func isPlugin(path string) bool {
	return strings.TrimSuffix(filepath.Base(path), ".exe") == pluginName
}

// becomePlugin makes the command line that of kubectl's plugin: commands ask about the live cluster unless manifests are named.
func becomePlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl apportion"}
	for _, command := range root.Commands() {
		if flag := command.Flags().Lookup("cluster"); flag != nil {
			flag.DefValue = "true"
			if err := flag.Value.Set("true"); err != nil {
				command.PrintErrln(err)
			}
		}
	}
}
