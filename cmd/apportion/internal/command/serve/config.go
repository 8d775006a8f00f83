package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/service/identity"
)

// NewConfig is `apportion config`.
func NewConfig(s cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "Check, show and explain the server's settings",
		Long:  "Check, show and explain the settings of \"apportion serve\".\n\n" + settingsHelp,
		Example: `  apportion config validate --config apportion.yaml
  apportion config print --config apportion.yaml`,
	}
	return cli.WithKinds(command, newConfigValidate(s), newConfigPrint(s), newConfigSchema(s), newConfigToken(s))
}

func newConfigValidate(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s}
	return withSettings(a, &cobra.Command{
		Use:   "validate",
		Short: "Check whether the server would start",
		Long: `Check whether the server would start with these settings. All files that they name are read, including policies
and certificates. All errors are reported, each with its file and line, variable or flag. The flags are those of
"serve".`,
		Example: `  apportion config validate --config apportion.yaml`,
	}, func(settings *config.Effective) error {
		warnings, err := daemon.Check(settings)
		for _, warning := range warnings {
			render.Warn(s.Err, warning)
		}
		if err != nil {
			return err
		}
		return a.Write(map[string]any{"valid": true, "warnings": append([]string{}, warnings...)},
			func(p *render.Printer) { p.Line("the configuration is valid") })
	})
}

func newConfigPrint(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s, Format: cli.FormatYAML}
	return withSettings(a, &cobra.Command{
		Use:   "print",
		Short: "Show the effective settings and their sources",
		Long: `Show the effective settings as a configuration file, each with the file and line, variable or flag that set it.
Secrets are hidden. The flags are those of "serve".`,
		Example: `  apportion config print --config apportion.yaml
  apportion config print -o table`,
	}, func(settings *config.Effective) error {
		if a.Format == cli.FormatYAML {
			return settings.Print(s.Out)
		}
		var out bytes.Buffer
		var values map[string]any
		if err := errors.Join(settings.Print(&out), yaml.Unmarshal(out.Bytes(), &values)); err != nil {
			return err
		}
		return a.Write(values, func(p *render.Printer) {
			table := p.NewTable("SETTING", "VALUE", "SOURCE")
			for _, setting := range config.Settings() {
				table.Row(setting.Path, valueAt(values, setting.Path), settings.Origin(setting.Path))
			}
			table.Write(p.Out)
		})
	})
}

// valueAt returns the value at a path of nested maps, a list or a map in one line.
func valueAt(values map[string]any, path string) string {
	first, rest, nested := strings.Cut(path, ".")
	if inner, ok := values[first].(map[string]any); ok && nested {
		return valueAt(inner, rest)
	}
	if text, ok := values[first].(string); ok {
		return text
	}
	line, err := json.Marshal(values[first])
	if err != nil {
		return err.Error()
	}
	return string(line)
}

// withSettings completes a command about the settings of the server, which its flags, variables and file set.
func withSettings(a *cli.Answering, command *cobra.Command, do func(*config.Effective) error) *cobra.Command {
	flags := settingFlags(command)
	a.Register(command)
	command.Args = cli.NoArgs
	command.RunE = func(*cobra.Command, []string) error {
		settings, err := config.Read(flags.Sources(os.Environ()))
		if err != nil {
			return err
		}
		return do(settings)
	}
	return command
}

func newConfigSchema(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s, Format: cli.FormatJSON}
	command := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long:  `Print the JSON Schema of the configuration file; as a table, each setting with its default and what it does.`,
		Example: `  apportion config schema > apportion.schema.json
  apportion config schema -o table`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			return a.Write(json.RawMessage(schema), func(p *render.Printer) {
				const columns = 100
				table := p.NewTable("SETTING", "DEFAULT", "HELP").Wrap(columns)
				for _, setting := range config.Settings() {
					table.Row(setting.Path, setting.Default, setting.Help)
				}
				table.Write(p.Out)
			})
		},
	}
	a.Register(command)
	return command
}

func newConfigToken(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:   "token",
		Short: "Create a bearer token, and the hash to configure",
		Long: `Create a bearer token of 256 random bits. The client sends the token in the header "authorization: Bearer TOKEN";
the configuration contains only the hash, at identities[].tokens. The token is shown once and not stored.`,
		Example: `  apportion config token`,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token := identity.NewToken()
			hash := identity.HashOf(token)
			return a.Write(map[string]string{"token": token, "hash": fmt.Sprint(hash)},
				func(p *render.Printer) { p.Line("token: %s\nhash:  %s", token, hash) })
		},
	}
	a.Register(command)
	return command
}
