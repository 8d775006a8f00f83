package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire/catalogue"
)

// rules returns the policy; nil: the server's policy of the returned name.
func (f *inputFlags) rules() (*apportionv1.Policy, []*apportionv1.Warning, error) {
	given := slices.DeleteFunc([]string{f.config, f.policy, f.policyName}, func(flag string) bool { return flag == "" })
	switch {
	case len(given) > 1:
		return nil, nil, errors.New("only one of --config, --policy and --policy-name is allowed")
	case f.policyName != "" && f.server != nil && f.server.address == "":
		return nil, nil, errors.New("--policy-name: name the server that has the policy with --server; in process there are none")
	case f.policyName != "":
		return nil, nil, nil
	case f.config != "":
		source, err := readSource(f.config)
		if err != nil {
			return nil, nil, err
		}
		return volcano.ReadConfiguration(source)
	case f.policy != "":
		policy, err := readPolicy(f.policy)
		return policy, nil, err
	}
	return client.VolcanoDefault(), nil, nil
}

// readPolicy returns a preset, also by its name in a server's settings, or the policy in a file.
func readPolicy(name string) (*apportionv1.Policy, error) {
	if preset, ok := client.Preset(strings.TrimPrefix(name, "preset:")); ok {
		return preset, nil
	}
	policy := &apportionv1.Policy{}
	err := readMessage(name, "policy", policy)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./\\") {
		return nil, fmt.Errorf("no policy %q: neither a preset (%s) nor a file", name, strings.Join(client.Presets(), ", "))
	}
	return policy, err
}

// moment returns the time of the decisions. Without a flag it is set only if a plugin uses it, so that equal files have equal answers.
func (f *inputFlags) moment(policy *apportionv1.Policy) (moment time.Time, given bool, err error) {
	switch f.asOf {
	case "now":
		return time.Now(), true, nil
	case "":
		for _, tier := range policy.GetTiers() {
			for _, plugin := range tier.GetPlugins() {
				if row, ok := catalogue.Of(plugin); ok && row.Clock {
					return time.Now(), true, nil
				}
			}
		}
		return time.Time{}, false, nil
	}
	moment, err = time.Parse(time.RFC3339, f.asOf)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("--as-of: a time such as 2006-01-02T15:04:05Z is expected, got %q", f.asOf)
	}
	return moment, true, nil
}

// by returns the same input with another policy.
func (f inputFlags) by(policy string) inputFlags {
	f.config, f.policy = "", policy
	if strings.HasSuffix(policy, ".conf") {
		f.config, f.policy = policy, ""
	}
	return f
}
