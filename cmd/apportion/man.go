package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is `apportion man`.
func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		GroupID: "files",
		Short:   "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands, apportion.1 and one for each command, to a directory, which is
created if it does not exist. SOURCE_DATE_EPOCH sets their date.`,
		Example: `  apportion man ~/.local/share/man/man1
  man apportion-explain`,
		Args: exactly(1, "a directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // Manual pages are for everyone.
				return err
			}
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "APPORTION", Section: "1", Source: "Apportion " + version, Manual: "Apportion"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
}
