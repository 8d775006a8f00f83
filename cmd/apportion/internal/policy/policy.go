// Package policy reads a policy by the name that a flag, a scenario or a setting gives it: that of a preset or of a file.
package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/spelling"
)

// Policy is a policy that was read.
type Policy struct {
	Message  *apportionv1.Policy
	Warnings []*apportionv1.Warning
	// Configuration is the volcano-scheduler.conf that it was read from; nil if it was another file or a preset.
	Configuration *objects.Source
	// Object names the ConfigMap of the cluster that contains the configuration; empty if a flag names the policy.
	Object string
}

// Origin names the ConfigMap, and the release of Volcano if the cluster says it.
func (p *Policy) Origin() string {
	if p.Configuration == nil || p.Configuration.Release == "" {
		return p.Object
	}
	return p.Object + ", of Volcano " + p.Configuration.Release
}

// Held returns the policy in the ConfigMap of Volcano's scheduler among the objects of a cluster, nil if there is none.
func Held(sources []objects.Source) (*Policy, error) {
	held, err := schedulerconf.InCluster(sources)
	if err != nil {
		return nil, fmt.Errorf("%w; --policy chooses", err)
	}
	if held == nil {
		return nil, nil //nolint:nilnil // A cluster without the ConfigMap is no error.
	}
	message, warnings, err := held.Read()
	if err != nil {
		return nil, fmt.Errorf("%s, whose policy is used unless --policy names another: %w", held.Object, err)
	}
	return &Policy{Message: message, Warnings: warnings, Configuration: &held.Source, Object: held.Object + " in " + held.File}, nil
}

// InstalledName names the policy that decides if no configuration is given: the file of the installers of Volcano.
const InstalledName = "the file that Volcano's installers ship"

// Installed returns that policy.
func Installed() *Policy {
	preset, _ := Preset(catalogue.Installed)
	preset.Source = InstalledName
	return &Policy{Message: preset, Object: InstalledName}
}

// Preset returns the preset of a name, which may be written preset:NAME.
func Preset(name string) (*apportionv1.Policy, bool) {
	return client.Preset(strings.TrimPrefix(name, "preset:"))
}

// Read returns the preset of a name, or the policy in a file: a volcano-scheduler.conf, a dump of the ConfigMap that holds one, or a policy
// of the contract in YAML, JSON or binary form.
func Read(name string) (*Policy, error) {
	if preset, ok := Preset(name); ok {
		return &Policy{Message: preset}, nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !isPath(name) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, err
	}
	return parse(objects.Source{Name: name, Data: data})
}

// Missing returns the error for a name that can only be that of a policy, and is neither a preset nor a file; nil for any other name.
func Missing(name string) error {
	if _, ok := Preset(name); ok || isPath(name) {
		return nil
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return unknown(name)
}

func unknown(name string) error {
	like := spelling.Suggestion(strings.TrimPrefix(name, "preset:"), slices.Values(client.Presets()))
	kinds := "it is neither a preset (" + strings.Join(client.Presets(), ", ") + ") nor a file"
	return fmt.Errorf("no policy %q%s", name, spelling.Then(like, kinds))
}

func parse(source objects.Source) (*Policy, error) {
	conf, ok, err := configuration(source)
	if err != nil {
		return nil, err
	}
	if ok {
		message, warnings, err := schedulerconf.Read(conf)
		return &Policy{Message: message, Warnings: warnings, Configuration: &conf}, err
	}
	if len(bytes.TrimSpace(source.Data)) == 0 {
		return nil, fmt.Errorf("%s is empty: a policy is expected", source.Name)
	}
	message := &apportionv1.Policy{}
	return &Policy{Message: message}, document.Unmarshal(source.Name, source.Data, message)
}

// configuration returns the volcano-scheduler.conf that a file is or holds. A file whose name ends in .conf is one even if nothing in it
// says so.
func configuration(source objects.Source) (conf objects.Source, ok bool, err error) {
	conf, ok, err = schedulerconf.Find(source)
	if !ok && err == nil && filepath.Ext(source.Name) == ".conf" {
		return source, true, nil
	}
	return conf, ok, err
}

// Configuration reads a volcano-scheduler.conf, or a dump of the ConfigMap that holds one.
func Configuration(name string) (objects.Source, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return objects.Source{}, err
	}
	source := objects.Source{Name: name, Data: data}
	conf, ok, err := configuration(source)
	if !ok && err == nil {
		return source, nil
	}
	return conf, err
}

// Is reports whether a name is that of a policy, and not that of a file of other objects.
func Is(name string) bool {
	if _, ok := Preset(name); ok || filepath.Ext(name) == ".conf" {
		return true
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	source := objects.Source{Name: name, Data: data}
	if _, ok, err := schedulerconf.Find(source); ok || err != nil {
		return true
	}
	var keys struct {
		Tiers yaml.Node `yaml:"tiers"`
	}
	if yaml.Unmarshal(data, &keys) == nil {
		return keys.Tiers.Kind != 0
	}
	// Manifests are text, so a binary file may be a policy.
	_, err = parse(source)
	return err == nil
}

// Near returns the name as it is meant in a file: the path of a policy there is relative to the file.
func Near(file, name string) string {
	if _, ok := Preset(name); ok || !isPath(name) || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}

// isPath reports whether a name can only be that of a file.
func isPath(name string) bool { return strings.ContainsAny(name, "./\\") }

// Count returns how many tiers and plugins a policy has.
func Count(policy *apportionv1.Policy) (tiers, plugins int) {
	for _, tier := range policy.GetTiers() {
		plugins += len(tier.GetPlugins())
	}
	return len(policy.GetTiers()), plugins
}

// Plugin returns the arguments of the first plugin of a kind, such as `(*apportionv1.Plugin).GetFair`, nil if the policy has none.
func Plugin[T any](policy *apportionv1.Policy, of func(*apportionv1.Plugin) *T) *T {
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if arguments := of(plugin); arguments != nil {
				return arguments
			}
		}
	}
	return nil
}

// ByKueue reports whether a policy is that of Kueue.
func ByKueue(policy *apportionv1.Policy) bool {
	return Plugin(policy, (*apportionv1.Plugin).GetKueue) != nil
}

// ByFair reports whether a policy divides by fair, which alone of Volcano's plugins heeds past usage.
func ByFair(policy *apportionv1.Policy) bool {
	return Plugin(policy, (*apportionv1.Plugin).GetFair) != nil
}
