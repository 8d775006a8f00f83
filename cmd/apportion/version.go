package main

import (
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// versions is the answer of `apportion version`, in its JSON form.
type versions struct {
	Version  string         `json:"version"`
	Engine   string         `json:"engine"`
	Go       string         `json:"go"`
	Platform string         `json:"platform"`
	Plugins  []pluginOf     `json:"plugins,omitempty"`
	Presets  []presetOfName `json:"presets,omitempty"`
}

// pluginOf is a plugin by the names under which a configuration chooses it.
type pluginOf struct {
	Names     []string `json:"names"`
	Decisions []string `json:"decisions"`
}

// presetOfName is a preset of --policy with its plugins tier by tier.
type presetOfName struct {
	Name  string     `json:"name"`
	Tiers [][]string `json:"tiers"`
}

// newVersion is `apportion version`.
func newVersion(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s}
	var policies bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the program and of the engine, and the policies that it supports",
		Long: `Show the versions of the program and of the engine. With --policies, list the supported plugins with
their decisions, and the presets of --policy with their plugins tier by tier.`,
		Example: `  apportion version
  apportion version --policies`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versions{Version: s.Version, Engine: engine.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if policies {
				v.addPolicies()
			}
			return a.Write(v, v.print)
		},
	}
	a.Register(command)
	command.Flags().BoolVar(&policies, "policies", false, "list the supported plugins and the presets of --policy")
	return command
}

// addPolicies lists the plugins that take part in a decision, and the presets.
func (v *versions) addPolicies() {
	for i := range catalogue.Policies {
		row := &catalogue.Policies[i]
		if row.Decisions == 0 {
			continue
		}
		plugin := pluginOf{Decisions: decisions(row.Decisions)}
		for k := range row.Forms {
			plugin.Names = append(plugin.Names, row.Forms[k].Name)
		}
		v.Plugins = append(v.Plugins, plugin)
	}
	for name, tiers := range catalogue.Presets() {
		v.Presets = append(v.Presets, presetOfName{name, tiers})
	}
}

func (v *versions) print(p *render.Printer) {
	p.Line("apportion %s\nengine %s\n%s %s", v.Version, v.Engine, v.Go, v.Platform)
	if len(v.Plugins) == 0 {
		return
	}
	const columns = 100
	p.Line("")
	plugins := p.NewTable("PLUGIN", "DECISIONS").Wrap(columns)
	for _, plugin := range v.Plugins {
		plugins.Row(strings.Join(plugin.Names, ", "), strings.Join(plugin.Decisions, ", "))
	}
	plugins.Write(p.Out)
	p.Line("")
	presets := p.NewTable("PRESET", "TIERS").Wrap(columns)
	for _, preset := range v.Presets {
		tiers := make([]string, len(preset.Tiers))
		for i, names := range preset.Tiers {
			tiers[i] = strings.Join(names, ", ")
		}
		presets.Row(preset.Name, strings.Join(tiers, "; "))
	}
	presets.Write(p.Out)
}

// decisions returns the names of a set of decisions, in alphabetical order.
func decisions(set engine.Decisions) []string {
	var names []string
	for number, name := range apportionv1.Decision_name {
		if number > 0 && set.Has(engine.Decision(number)) {
			name = strings.TrimPrefix(name, "DECISION_")
			names = append(names, strings.ToLower(strings.ReplaceAll(name, "_", " ")))
		}
	}
	slices.Sort(names)
	return names
}
