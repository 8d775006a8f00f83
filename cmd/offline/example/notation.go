package example

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/cmd/offline/dump"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/notation"
)

// forms are the forms of the catalogue that the notation calls otherwise.
var forms = map[string]string{"capacity(tree)": "capacity" + catalogue.Hierarchical, "hdrf": "drf" + catalogue.Hierarchical}

// ask returns the address of the first question about a cluster that the page has a view of. Questions after one that changes the cluster
// are about another cluster.
func (t *Transcript) ask() (string, error) {
	m, err := notation.Compile(t.Cluster)
	if err != nil {
		return "", err
	}
	input := &apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: decode.SnapshotOf(m)}}
	indexed := lookup.Of(input.GetSnapshot())
	why := errors.New("the page has no view of these questions")
	var policy *apportionv1.Policy
	for _, asked := range t.Questions {
		asked, _, _ = strings.Cut(asked, "#")
		words := strings.Fields(asked)
		switch words[0] {
		case "policy":
			if policy, err = policyOf(words[1:]); err != nil {
				why = err
			}
			continue
		case "allocate", "deallocate", "status", "admit", "mark", "rollback", "submit", "withdraw":
			return "", why
		}
		view, err := viewOf(indexed, words)
		if policy == nil || err != nil || view == clusterView && (len(indexed.GetJobs()) == 0 || !divides(policy)) {
			continue
		}
		input.Rule = &apportionv1.Input_Policy{Policy: policy}
		return addressOf(view, input)
	}
	return "", why
}

const clusterView = "cluster"

// divides reports whether a plugin of a policy divides the cluster among queues: without one the view of the cluster has no shares.
func divides(p *apportionv1.Policy) bool {
	return slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool {
		return slices.ContainsFunc(t.GetPlugins(), func(p *apportionv1.Plugin) bool {
			return p.GetProportion() != nil || p.GetCapacity() != nil
		})
	})
}

// viewOf returns the view that shows the answer to a question.
func viewOf(indexed *lookup.Snapshot, words []string) (string, error) {
	switch words[0] {
	case "shares", "tree", "overused":
		return clusterView, nil
	case "reclaim", "preempt", "allocatable", "enqueue":
		first, _, _ := strings.Cut(words[1], "..")
		name, err := jobOf(indexed, first)
		return "job/" + url.PathEscape(name), err
	}
	return "", fmt.Errorf("the page has no view of %s", words[0])
}

// policyOf reads a policy of the notation: how tiers are walked, then tiers of plugins.
func policyOf(words []string) (*apportionv1.Policy, error) {
	tier := &apportionv1.Tier{}
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_STRICT, Tiers: []*apportionv1.Tier{tier}}
	for _, word := range words {
		switch word {
		case "|":
			tier = &apportionv1.Tier{}
			policy.Tiers = append(policy.Tiers, tier)
		case "volcano":
			policy.TierWalk = apportionv1.TierWalk_TIER_WALK_VOLCANO
		case "strict":
		default:
			plugin, known := catalogue.Plugin(cmp.Or(forms[word], word))
			if !known {
				return nil, fmt.Errorf("the page has no %s", word)
			}
			tier.Plugins = append(tier.Plugins, plugin)
		}
	}
	return policy, nil
}

// addressOf returns the address of a view of a cluster and a policy.
func addressOf(view string, input *apportionv1.Input) (string, error) {
	data, err := protojson.Marshal(input)
	if err != nil {
		return "", err
	}
	// The spaces of protojson are drawn by chance.
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return "", err
	}
	address := "#/" + view + "?" + url.Values{"from": {"data:" + Pack(compact.Bytes())}, "policy": {dump.Given}}.Encode()
	if len(address) > longest {
		return "", fmt.Errorf("the address would have %d letters", len(address))
	}
	return address, nil
}
