package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

// newMan is `apportion man`.
func newMan(s streams) *cobra.Command {
	a := &answering{streams: s}
	command := &cobra.Command{
		Use:    "man DIRECTORY",
		Hidden: true, // The first help lists what people ask about a cluster.
		Short:  "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands, apportion.1 and one for each command, to a directory, which is
created if it does not exist. SOURCE_DATE_EPOCH sets their date.`,
		Example: `  apportion man ~/.local/share/man/man1
  man apportion-explain`,
		Args: arguments(1, 1, "a directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // Manual pages are for everyone.
				return err
			}
			root := newRoot(s)
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "APPORTION", Section: "1", Source: "Apportion " + version, Manual: "Apportion"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "apportion*.1"))
			if err != nil {
				return err
			}
			return a.write(pages, func(p *render.Printer) { p.Line("%s in %s", plural(len(pages), "manual page"), args[0]) })
		},
	}
	a.register(command)
	return command
}
