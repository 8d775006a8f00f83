package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// avoiding returns rules of n classes, each of which keeps pods of its own selection away, and of one class whose pods are in all of them.
func avoiding(n uint32) *model.PodRules {
	rules := &model.PodRules{Topologies: []model.Topology{{Key: "node", Node: true}}}
	all := model.PodClass{}
	for i := range n {
		all.Selections = append(all.Selections, i)
		rules.Classes = append(rules.Classes, model.PodClass{AntiAffinities: []model.PodAntiAffinity{{Selection: i}}})
	}
	rules.Classes = append(rules.Classes, all)
	return rules
}

func TestTheRulesThatConcernOneClassAreBounded(t *testing.T) {
	table, err := newPodTable(&model.Model{Pods: avoiding(2000)}, nil)
	require.NoError(t, err)
	require.Equal(t, 2001, table.classes[2001].looks, "each class may keep it away")
	require.Len(t, table.classes[2001].counts, 2000)

	_, err = newPodTable(&model.Model{Pods: avoiding(3000)}, nil)
	require.ErrorContains(t, err, "pods.classes[3000].selections: 6000 rules concern its pods, at most 4096 are taken")
}

func TestCountingPodsCostsWhatTheirRulesCost(t *testing.T) {
	for _, c := range []struct {
		classes uint32
		want    int
	}{{1, 3}, {100, 300}} {
		m := &model.Model{Pods: avoiding(c.classes)}
		table, err := newPodTable(m, nil)
		require.NoError(t, err)
		class := c.classes + 1
		m.Nodes = []model.Node{{Pods: &model.NodePods{Others: []uint32{class, class}, Leaving: []uint32{class}}}}
		crowd := table.crowdOf(m)
		require.Equal(t, 1+cellCost*c.want, table.work(m, &crowd), "a step for the node that no filter counts, and those of each tally of three pods")
	}
}
