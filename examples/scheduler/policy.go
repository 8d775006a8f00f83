package main

import (
	"fmt"
	"strings"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Policy is one way to decide, under a name.
type Policy struct {
	Name    string
	Message *apportionv1.Policy
	// Plans says that it reclaims by plans.
	Plans bool
}

// dividers are the plugins in which the policies differ. In addition, each has priority and gang for jobs, and binpack to fill node after
// node, all in one tier: a task is a victim if every plugin that votes selects it. (In two tiers, as in Volcano's default, gang would
// decide alone.)
var dividers = []struct{ name, plugin string }{
	{"proportion", "proportion"},
	{"capacity", "capacity"},
	{"drf", "drf"},
	{"hierarchical-drf", "drf/hierarchical"},
	{fair, fair},
}

// fair is this project's own policy.
const fair = "fair"

func policyNames() []string {
	names := make([]string, 0, len(dividers))
	for _, d := range dividers {
		names = append(names, d.name)
	}
	return names
}

func policyNamed(name string) (Policy, error) {
	for _, d := range dividers {
		if d.name == name {
			message, err := client.Policy(client.Tier{"priority", "gang", d.plugin, "binpack"})
			if err != nil {
				return Policy{}, err
			}
			message.TierWalk = apportionv1.TierWalk_TIER_WALK_STRICT
			return Policy{Name: name, Message: message, Plans: name == fair}, nil
		}
	}
	return Policy{}, fmt.Errorf("no policy %q; there are %s", name, strings.Join(policyNames(), ", "))
}

// yardstick divides by weight alone. What it gives a queue is the entitlement that every policy is measured by.
func yardstick() (*apportionv1.Policy, error) {
	return client.Policy(client.Tier{"proportion"})
}
