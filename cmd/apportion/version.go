package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/engine"
)

// newVersion is `apportion version`.
func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the program and of the engine",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.out, "apportion %s\nengine %s\n%s %s/%s\n",
				version, engine.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
