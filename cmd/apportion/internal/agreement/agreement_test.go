// Package agreement_test shows that the answers about one waiting job agree with each other. It knows the contract alone: it asks the
// client, as a user would.
package agreement_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// How many clusters a run tries, and of how many of them it also tries remedies, which take most of the time. The number of a cluster
// names it: failures tell it.
var (
	runs     = flag.Int("clusters", 60, "how many clusters are tried under every policy")
	first    = flag.Int("first", 0, "number of the first cluster")
	remedied = flag.Int("remedied", 1, "remedies are tried under one of so many policies")
	report   = flag.String("report", "", "`FILE` to write each contradiction to")
)

// policies are the policies of the catalogue: each preset, and each plugin that is in no preset together with the default plugins.
func policies(t require.TestingT) map[string]*apportionv1.Policy {
	all, taken := map[string]*apportionv1.Policy{}, map[string]bool{}
	for _, name := range client.Presets() {
		policy, ok := client.Preset(name)
		require.True(t, ok)
		all[name] = policy
		for _, tier := range policy.GetTiers() {
			for _, plugin := range tier.GetPlugins() {
				taken[fmt.Sprintf("%T%v", plugin.GetPlugin(), plugin)] = true
			}
		}
	}
	made := func(name string, tiers ...client.Tier) {
		policy, err := client.Policy(tiers...)
		require.NoError(t, err)
		all[name] = policy
	}
	for _, form := range client.Plugins() {
		policy, err := client.Policy(client.Tier{form})
		require.NoError(t, err)
		if plugin := policy.GetTiers()[0].GetPlugins()[0]; !taken[fmt.Sprintf("%T%v", plugin.GetPlugin(), plugin)] {
			made("with "+form, client.Tier{"priority", "gang", "conformance"}, client.Tier{"drf", "proportion", form})
		}
	}
	made("fair alone", client.Tier{"fair"})
	made("gang alone", client.Tier{"gang"})
	made("capacity by guarantees", client.Tier{"priority", "gang"}, client.Tier{"capacity"})
	return all
}

// TestAnswersAboutOneJobAgree asks about every waiting job of random clusters under every policy.
func TestAnswersAboutOneJobAgree(t *testing.T) {
	raced.Skip(t)
	all := &tally{kinds: map[string]int{}, examples: map[string]string{}, questions: map[string]int{}}
	names := slices.Sorted(maps.Keys(policies(t)))
	for i := range *runs {
		snapshot := clusters.Example(*first + i)
		if (*first+i)%3 == 0 {
			obstruct(snapshot)
		}
		for k, name := range names {
			a := &asked{TestingT: t, tally: all, snapshot: snapshot, policy: policies(t)[name], where: fmt.Sprintf("cluster %d, %s", *first+i, name)}
			a.all((i+k)%*remedied == 0)
		}
	}
	t.Log(*runs, "clusters,", len(names), "policies, questions:", all.questions)
	require.Positive(t, all.questions["can never run"])
	require.Positive(t, all.questions["remedy of two kinds applied"])
	if *report != "" {
		require.NoError(t, os.WriteFile(*report, []byte(strings.Join(all.lines, "\n")+"\n"), 0o600))
	}
	for _, kind := range slices.Sorted(maps.Keys(all.kinds)) {
		t.Errorf("%d × %s: %s", all.kinds[kind], kind, all.examples[kind])
	}
}

func FuzzAnswersAboutOneJobAgree(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		snapshot := clusters.Draw(t, "cluster")
		all := &tally{kinds: map[string]int{}, examples: map[string]string{}, questions: map[string]int{}}
		for name, policy := range policies(t) {
			(&asked{TestingT: t, tally: all, snapshot: snapshot, policy: policy, where: name}).all(true)
		}
		require.Empty(t, all.examples, "%s", protojson.Format(snapshot))
	}))
}

// tally counts contradictions by kind, with the first of each, and questions.
type tally struct {
	kinds     map[string]int
	examples  map[string]string
	questions map[string]int
	lines     []string
}

func (t *tally) contradiction(kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.kinds[kind]++; t.kinds[kind] == 1 {
		t.examples[kind] = text
	}
	if *report != "" {
		t.lines = append(t.lines, kind+": "+text)
	}
}
