package question

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/visible"
)

// Rules returns the policy that the flags name, and otherwise that of the sources. It is empty for a policy of the server.
func (f *InputFlags) Rules(sources []objects.Source) (*policy.Policy, error) {
	switch {
	case f.Policy != "" && f.PolicyName != "":
		return nil, errors.New("only one of --policy and --policy-name is allowed")
	case f.PolicyName != "" && f.server != nil && f.server.Address == "":
		return nil, errors.New("--policy-name: name the server that has the policy with --server; in process there are none")
	case f.PolicyName != "":
		return &policy.Policy{}, nil
	case f.Policy != "":
		return policy.Read(f.Policy)
	case manifest.OfKueue(sources):
		preset, _ := client.Preset(kueuePolicy)
		return &policy.Policy{Message: preset}, nil
	}
	if held, err := policy.Held(sources); held != nil || err != nil {
		return held, err
	}
	return &policy.Policy{Message: client.VolcanoDefault()}, nil
}

// TellOrigin writes where the policy was found, if no flag names it and it is not the default.
func TellOrigin(out io.Writer, rules *policy.Policy) {
	if rules.Object != "" {
		fmt.Fprintf(out, "policy: %s\n", visible.Text(rules.Origin()))
	}
}

// Moment returns the time of the decisions. Without a flag it is set only if a plugin uses it, so that equal files have equal answers.
func (f *InputFlags) Moment(rules *apportionv1.Policy) (moment time.Time, given bool, err error) {
	switch f.AsOf {
	case "now":
		return time.Now(), true, nil
	case "":
		if catalogue.Clocked(rules) {
			return time.Now(), true, nil
		}
		return time.Time{}, false, nil
	}
	moment, err = time.Parse(time.RFC3339, f.AsOf)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("--as-of: a time such as 2006-01-02T15:04:05Z is expected, got %q", f.AsOf)
	}
	return moment, true, nil
}

// By returns the same input with another policy.
func (f *InputFlags) By(name string) InputFlags {
	other := *f
	other.Policy = name
	return other
}
