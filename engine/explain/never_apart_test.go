package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestTasksThatKeepApartNeedAsManyDomains asks for a gang on four nodes, of which two are in each of the zones 1 and 2 and none has a rack.
func TestTasksThatKeepApartNeedAsManyDomains(t *testing.T) {
	const node, zone, rack = 0, 1, 2
	apart := func(topology uint32) model.PodClass {
		return model.PodClass{Selections: []uint32{0}, AntiAffinities: []model.PodAntiAffinity{{Selection: 0, Topology: topology}}}
	}
	spread := func(topology uint32) model.PodClass {
		return model.PodClass{Selections: []uint32{0}, Spreads: []model.PodSpread{{Selection: 0, Topology: topology, MaxSkew: 1}}}
	}
	together := func(topology uint32) model.PodClass {
		return model.PodClass{Selections: []uint32{0}, Affinity: []uint32{topology}, AffinitySelection: 0}
	}
	for name, test := range map[string]struct {
		class model.PodClass
		tasks int
		want  []policy.Code
		label string
	}{
		"one on each node":                   {class: apart(node), tasks: 4},
		"more than nodes":                    {class: apart(node), tasks: 5, want: []policy.Code{policy.NeverFits, policy.PodAntiAffinity}, label: "node"},
		"one in each zone":                   {class: apart(zone), tasks: 2},
		"more than zones":                    {class: apart(zone), tasks: 3, want: []policy.Code{policy.NeverFits, policy.PodAntiAffinity}, label: "zone"},
		"apart by a label that no node has":  {class: apart(rack), tasks: 5},
		"spread over zones":                  {class: spread(zone), tasks: 8},
		"spread by a label that no node has": {class: spread(rack), tasks: 1, want: []policy.Code{policy.TopologyLabelMissing}, label: "rack"},
		"near by a label that no node has":   {class: together(rack), tasks: 1, want: []policy.Code{policy.PodAffinity}, label: "rack"},
		"the same port":                      {class: model.PodClass{Ports: []model.HostPort{{Port: 80, Protocol: "TCP", Address: model.EveryAddress}}}, tasks: 5, want: []policy.Code{policy.NeverFits, policy.HostPortTaken}},
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.Opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
				b.Pods(&model.PodRules{
					Topologies: []model.Topology{{Key: "node", Node: true}, {Key: "zone"}, {Key: "rack"}}, Classes: []model.PodClass{test.class},
				})
				for i, n := range []string{"a", "b", "c", "d"} {
					b.Node(model.NodeSpec{Name: n, Allocatable: enginetest.Cores(8), Pods: &model.NodePods{Domains: []uint32{0, uint32(i/2) + 1}}})
				}
				b.Queue(model.QueueSpec{Name: "q", Weight: 1})
				b.Job(model.JobSpec{UID: "j", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: uint32(test.tasks)})
				b.Group(model.GroupSpec{Request: enginetest.Cores(1), PodClass: 1})
				for i := range test.tasks {
					b.Task(&model.TaskSpec{UID: string(rune('a' + i)), Node: model.None, Index: -1})
				}
			})
			var codes []policy.Code
			for _, f := range explainAll(t, s, 0)[0].Findings {
				if f.Check != judge.CheckFeasibility {
					continue
				}
				for _, r := range f.Reasons {
					codes = append(codes, r.Code)
				}
				require.Equal(t, test.label, f.Reasons[len(f.Reasons)-1].Detail)
			}
			require.Equal(t, test.want, codes)
		})
	}
}
