// Package serve has the commands that answer others until they are ended, serve, ui and mcp, and those about a server: config and health.
package serve

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	"github.com/apportion/apportion/internal/memory"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/service/buffer"
)

const settingsHelp = `Settings come from flags, variables (APPORTION_…) and the file of --config or APPORTION_CONFIG. Flags take
precedence over variables, and variables over the file. docs/configuration.md explains each setting; "apportion
config print" shows the effective settings.`

// NewServe is `apportion serve`.
func NewServe(s cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve decisions over gRPC",
		Long: `Serve decisions over gRPC, with health and reflection, and metrics on a separate address.

` + settingsHelp + `

SIGTERM or an interrupt drains the server: health returns NOT_SERVING, new calls are rejected, and running calls
may complete. SIGHUP reads policies, identities and certificates again, as does a change of their files.`,
		Example: `  apportion serve
  apportion serve --policies cluster=volcano-scheduler.conf --admin-listen localhost:7172
  apportion serve --config apportion.yaml --log-format json
  apportion serve --follow --http-listen localhost:8080 --http-ui
  apportion serve --follow --ledger usage.ledger`,
		Args: cli.NoArgs,
	}
	flags := settingFlags(command)
	command.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "follow":
			name = "follow-enabled"
		case "ledger":
			name = "ledger-file"
		}
		return pflag.NormalizedName(name)
	})
	command.RunE = func(command *cobra.Command, _ []string) error {
		processor.Spare()
		buffer.Map(memory.Outside())
		sources := flags.Sources(os.Environ())
		settings, err := config.Read(sources)
		if err != nil {
			return err
		}
		server, err := daemon.Open(command.Context(), settings, daemon.Options{Sources: sources, Version: s.Version, Output: s.Err})
		if err != nil {
			return err
		}
		if err := server.Listen(command.Context()); err != nil {
			return err
		}
		return server.Serve(command.Context())
	}
	return command
}

// settingFlags adds a flag for each setting.
func settingFlags(command *cobra.Command) *config.Flags {
	flags := config.AddFlags(command.Flags())
	for _, setting := range config.Settings() {
		if choices := setting.Choices(); len(choices) > 0 {
			cli.MustComplete(command, setting.Flag(), choices...)
		}
	}
	cli.Must(command, command.MarkFlagFilename("config", "yaml", "yml"))
	return flags
}
