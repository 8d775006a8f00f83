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

// becomePlugin changes the command line to that of kubectl's plugin: commands read the live cluster unless files are named.
func becomePlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl apportion"}
	askLive(root)
}

// askLive lets a command and its subcommands read the live cluster by default.
func askLive(parent *cobra.Command) {
	for _, command := range parent.Commands() {
		askLive(command)
		if flag := command.Flags().Lookup("cluster"); flag != nil {
			flag.DefValue = "true"
			must(command, flag.Value.Set("true"))
		}
	}
}
