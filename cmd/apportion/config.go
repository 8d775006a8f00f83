package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	"github.com/apportion/apportion/config"
	"github.com/apportion/apportion/service/identity"
)

// newConfig is `apportion config`.
func newConfig(s streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "Check, show and explain the server's settings",
		Long:  "Check, show and explain the settings of \"apportion serve\".\n\n" + settingsHelp,
		Args:  cobra.NoArgs,
	}
	command.AddCommand(newConfigValidate(s), newConfigPrint(s), newConfigSchema(s), newConfigToken(s))
	return command
}

func newConfigValidate(s streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "validate",
		Short: "Say whether the server would start",
		Long: `Say whether the server would start with these settings: they are read with every file they name, policies and
certificates included. All faults are reported, each with its file and line, variable or flag. It takes the
flags of "serve".`,
		Args: cobra.NoArgs,
	}
	flags := settingFlags(command)
	command.RunE = func(*cobra.Command, []string) error {
		settings, err := config.Read(flags.Sources(os.Environ()))
		if err != nil {
			return err
		}
		warnings, err := daemon.Check(settings)
		for _, warning := range warnings {
			fmt.Fprintln(s.err, "warning: "+warning)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out, "the configuration is valid")
		return nil
	}
	return command
}

func newConfigPrint(s streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "print",
		Short: "Show the settings in force, and where each came from",
		Long: `Show the settings in force as a configuration file, each with the file and line, variable or flag it came from.
Secrets are hidden. It takes the flags of "serve".`,
		Args: cobra.NoArgs,
	}
	flags := settingFlags(command)
	command.RunE = func(*cobra.Command, []string) error {
		settings, err := config.Read(flags.Sources(os.Environ()))
		if err != nil {
			return err
		}
		return settings.Print(s.out)
	}
	return command
}

func newConfigSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = s.out.Write(schema)
			return err
		},
	}
}

func newConfigToken(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Make a bearer token, and the hash to configure",
		Long: `Make a bearer token of 256 random bits. The client sends the token in the header "authorization: Bearer TOKEN";
the configuration holds the hash alone, at identities[].tokens. The token is shown once and kept nowhere.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token := identity.NewToken()
			_, err := fmt.Fprintf(s.out, "token: %s\nhash:  %s\n", token, identity.HashOf(token))
			return err
		},
	}
}
