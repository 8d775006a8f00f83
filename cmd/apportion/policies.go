package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire/catalogue"
)

// newPolicies is `apportion policies`.
func newPolicies(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "policies",
		Short: "List the supported plugins, and the presets of --policy",
		Long: `List the supported plugins with their decisions, and the presets of --policy with their plugins tier by
tier.`,
		Example: `  apportion policies`,
		Args:    cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			style := new(outputFlags).style(s.out)
			plugins := style.NewTable("PLUGIN", "DECISIONS").Wrap(100)
			for i := range catalogue.Policies {
				if row := &catalogue.Policies[i]; row.Decisions != 0 {
					plugins.Row(formsOf(row), decisions(row.Decisions))
				}
			}
			plugins.Write(s.out)
			fmt.Fprintln(s.out)
			presets := style.NewTable("PRESET", "TIERS").Wrap(100)
			for name, tiers := range catalogue.Presets() {
				presets.Row(name, tiersOf(tiers))
			}
			presets.Write(s.out)
		},
	}
}

// formsOf returns the names under which a plugin is chosen.
func formsOf(row *catalogue.Policy) string {
	names := make([]string, len(row.Forms))
	for i := range row.Forms {
		names[i] = row.Forms[i].Name
	}
	return strings.Join(names, ", ")
}

// decisions returns the names of a set of decisions, in alphabetical order.
func decisions(set engine.Decisions) string {
	var names []string
	for number, name := range apportionv1.Decision_name {
		if number > 0 && set.Has(engine.Decision(number)) {
			name = strings.TrimPrefix(name, "DECISION_")
			names = append(names, strings.ToLower(strings.ReplaceAll(name, "_", " ")))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// tiersOf returns the plugins of a preset.
func tiersOf(tiers [][]string) string {
	texts := make([]string, len(tiers))
	for i, names := range tiers {
		texts[i] = strings.Join(names, ", ")
	}
	return strings.Join(texts, "; ")
}
