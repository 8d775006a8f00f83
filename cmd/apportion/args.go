package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// exactly refuses any other number of arguments; what says what they name, such as `one task`.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("name %s: %s", what, command.UseLine())
		}
		return nil
	}
}

// atLeastOne refuses a command line without arguments; what says what they name, such as `one task or more`.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name %s: %s", what, command.UseLine())
		}
		return nil
	}
}
