// Package delegation rewrites a volcano-scheduler.conf so that Volcano's extender plugin asks Apportion, and Volcano decides as before.
package delegation

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Options say how Volcano reaches Apportion.
type Options struct {
	// URL is the URL of the scheduler's path, such as http://127.0.0.1:7173/volcano.
	URL string
	// Timeout bounds each request.
	Timeout time.Duration
}

func (o *Options) check() error {
	parsed, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return err
	case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "":
		return fmt.Errorf("%q is not a URL with a path, such as http://127.0.0.1:7173/volcano", o.URL)
	case o.Timeout <= 0:
		return errors.New("the timeout must be positive: without one Volcano waits forever")
	}
	return nil
}

// Forms are two configurations that ask Apportion, and what they leave to Volcano's plugins.
type Forms struct {
	// Delegating takes the delegated decisions from Apportion, whose policy is the original configuration.
	Delegating []byte
	// Shadow asks Apportion and takes no decision from it.
	Shadow []byte
	// Delegated are the verbs of the decisions that Apportion takes, exactly as Volcano's own plugins would.
	Delegated []string
	// Kept are decisions that stay with Volcano, although Apportion decides for some of its plugins.
	Kept []Kept
}

// Kept is a decision that would differ if it were delegated.
type Kept struct {
	// Verb is the extender's name for the decision.
	Verb string
	// Line is the line in the original configuration of the plugin that prevents delegation.
	Line int
	// Reason is an explanation.
	Reason string
}

// New returns the forms of a configuration, and warnings about it. The error is a *objects.Error if the configuration cannot be read, and
// says so if there is nothing to delegate.
func New(source objects.Source, options Options) (*Forms, []*apportionv1.Warning, error) {
	if err := options.check(); err != nil {
		return nil, nil, err
	}
	policy, warnings, err := schedulerconf.ReadAll(source)
	if err != nil {
		return nil, nil, err
	}
	if _, err := decode.Policy(policy); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", source.Name, err)
	}
	d, err := parse(source)
	if err != nil {
		return nil, nil, err
	}
	forms := &Forms{}
	all := make([][]voter, len(functions))
	for i := range functions {
		all[i] = voters(&functions[i], policy, d)
	}
	where, found := choose(all, policy)
	if !found {
		return nil, nil, nothing(source.Name, all)
	}
	var taken, asked []*function
	for i := range functions {
		f := &functions[i]
		if !slices.ContainsFunc(all[i], decided) {
			continue
		}
		asked = append(asked, f)
		if obstacle := f.obstacle(all[i], where); obstacle != nil {
			forms.Kept = append(forms.Kept, *obstacle)
			continue
		}
		taken, forms.Delegated = append(taken, f), append(forms.Delegated, f.verb)
	}
	if forms.Shadow, err = d.shadow(asked, &options); err != nil {
		return nil, nil, err
	}
	for i := range functions {
		if slices.Contains(taken, &functions[i]) {
			d.switchOff(&functions[i], all[i])
		}
	}
	forms.Delegating, err = d.delegating(taken, where, forms, &options)
	// Plugins that Apportion does not implement stay in place and keep working.
	warnings = slices.DeleteFunc(warnings, func(w *apportionv1.Warning) bool {
		return w.GetCode() == apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED
	})
	return forms, warnings, err
}

// nothing returns the error that no decision can be delegated, with the reason for each decision that involves a plugin of Apportion.
func nothing(name string, all [][]voter) error {
	var why []string
	for i, list := range all {
		first := slices.IndexFunc(list, decided)
		if first < 0 {
			continue
		}
		// In the place of the plugins themselves only what no other place avoids is an obstacle.
		if obstacle := functions[i].obstacle(list, slot{list[first].tier, list[first].place}); obstacle != nil {
			why = append(why, fmt.Sprintf("\n%s:%d: %s: %s", name, obstacle.Line, obstacle.Verb, obstacle.Reason))
		}
	}
	if why == nil {
		return fmt.Errorf("%s: no plugin takes part in a decision that can be delegated", name)
	}
	return fmt.Errorf("%s: no decision can be delegated:%s", name, strings.Join(why, ""))
}
