package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
)

// BenchmarkRules reports what rules on other pods cost, as cpu-ns/op: compiling a snapshot and opening a session, and explaining all jobs that
// wait. Half of the jobs keep their pods on nodes of their own, the others spread theirs over zones.
func BenchmarkRules(b *testing.B) {
	for _, ruled := range []bool{false, true} {
		name := map[bool]string{false: "without", true: "with"}[ruled]
		snapshot := generate.Snapshot(generate.Standard())
		if ruled {
			keepApart(snapshot)
		}
		policy := rule(b, "proportion")
		opened := func() *engine.Session {
			m, err := decode.Compile(snapshot)
			require.NoError(b, err)
			s, err := engine.Open(m, policy, nil)
			require.NoError(b, err)
			return s
		}
		b.Run("open/"+name, func(b *testing.B) { costs(b, func() { opened() }) })
		b.Run("explain/"+name, func(b *testing.B) {
			s := opened()
			waiting := s.Waiting()
			costs(b, func() {
				require.NoError(b, explain.Jobs(s, waiting, false, func(*explain.Explanation) error { return nil }))
			})
		})
	}
}

// keepApart gives every job one of 64 classes of rules.
func keepApart(s *apportionv1.Snapshot) {
	const classes, zones, onNode, inZone = 64, 10, 0, 1
	s.Pods = &apportionv1.PodRules{Topologies: []*apportionv1.Topology{{Key: "kubernetes.io/hostname", Node: true}, {Key: "zone"}}}
	for i := range uint32(classes) {
		class := &apportionv1.PodClass{Selections: []uint32{i}}
		if i%2 == 0 {
			class.AntiAffinities = []*apportionv1.PodAntiAffinity{{Selection: i, Topology: onNode}}
		} else {
			class.Spreads = []*apportionv1.PodSpread{{Selection: i, Topology: inZone, MaxSkew: 10}}
		}
		s.Pods.Classes = append(s.Pods.Classes, class)
	}
	for i, n := range s.GetNodes() {
		n.Domains = []uint32{0, uint32(i%zones) + 1}
	}
	for i, j := range s.GetJobs() {
		for _, g := range j.GetGroups() {
			g.PodClass = uint32(i%classes) + 1
		}
	}
}
