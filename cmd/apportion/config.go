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
		Short: "Check whether the server would start",
		Long: `Check whether the server would start with these settings. All files that they name are read, including policies
and certificates. All errors are reported, each with its file and line, variable or flag. The flags are those of
"serve".`,
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
		Short: "Show the effective settings and their sources",
		Long: `Show the effective settings as a configuration file, each with the file and line, variable or flag that set it.
Secrets are hidden. The flags are those of "serve".`,
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
		Short: "Create a bearer token, and the hash to configure",
		Long: `Create a bearer token of 256 random bits. The client sends the token in the header "authorization: Bearer TOKEN";
the configuration contains only the hash, at identities[].tokens. The token is shown once and not stored.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token := identity.NewToken()
			_, err := fmt.Fprintf(s.out, "token: %s\nhash:  %s\n", token, identity.HashOf(token))
			return err
		},
	}
}
