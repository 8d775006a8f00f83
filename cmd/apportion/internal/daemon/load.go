package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/identity"
)

// loaded contains the values of the live settings, read from the files that they name.
type loaded struct {
	policies   map[string]*apportionv1.Policy
	identities []identity.Identity
	users      extender.Users
	warnings   []warning
}

// warning is a warning about the file of a policy.
type warning struct {
	policy  string
	warning *apportionv1.Warning
}

// String gives the policy, the path and the text.
func (w warning) String() string {
	return fmt.Sprintf("policy %q: %s: %s", w.policy, w.warning.GetPath(), w.warning.GetMessage())
}

func (l *loaded) warn(ctx context.Context, log *slog.Logger) {
	for _, w := range l.warnings {
		log.WarnContext(ctx, "a policy has warnings", "policy", w.policy, "path", w.warning.GetPath(), "text", w.warning.GetMessage())
	}
}

// load reads everything, and returns all errors.
func load(c *config.Config) (*loaded, error) {
	l := &loaded{policies: map[string]*apportionv1.Policy{}}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		read, err := readPolicy(c.Policies[name])
		if err == nil {
			_, err = decode.Policy(read.Message)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
			continue
		}
		l.policies[name] = read.Message
		for _, w := range read.Warnings {
			l.warnings = append(l.warnings, warning{name, w})
		}
	}
	for _, id := range c.Identities {
		one := identity.Identity{
			Name: id.Name, SPIFFE: id.SPIFFE, DNS: id.DNS, Methods: id.Methods, Clusters: id.Clusters, Snapshots: id.Snapshots,
			Queues: id.Queues,
		}
		for _, token := range id.Tokens {
			hash, err := identity.ParseHash(token)
			if err != nil {
				faults = append(faults, err)
			}
			one.Tokens = append(one.Tokens, hash)
		}
		l.identities = append(l.identities, one)
	}
	if c.Extender.Users != "" {
		users, err := readUsers(c.Extender.Users)
		if err != nil {
			faults = append(faults, err)
		}
		l.users = users
	}
	return l, errors.Join(faults...)
}

func readUsers(name string) (extender.Users, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	users, err := extender.ReadUsers(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return users, errors.Join(err, file.Close())
}

// readPolicy reads a policy from the file or the preset in a setting.
func readPolicy(source string) (*policy.Policy, error) {
	kind, name := config.KindOf(source)
	if kind == config.PresetPolicy {
		if _, ok := policy.Preset(name); !ok {
			return nil, fmt.Errorf("no preset %q; there are %s", name, strings.Join(client.Presets(), ", "))
		}
	}
	return policy.Read(name)
}
