package volcano

import (
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// kindsOf lists the constraints that rules are.
func kindsOf(rules *podRules) (list []apportionConstraint) {
	if len(rules.ports) > 0 {
		list = append(list, constraintHostPorts)
	}
	if len(rules.affinity)+len(rules.anti) > 0 {
		list = append(list, constraintPodAffinity)
	}
	if len(rules.spreads) > 0 {
		list = append(list, constraintTopologySpread)
	}
	for _, c := range rules.unread {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	slices.Sort(list)
	return list
}

// resolve finds what the rules of a pod come to. It is false if finding the nodes that spreads count takes too long.
func (r *relation) resolve(of *relatedRules) bool {
	rules := of.rules
	of.number, of.class, of.unjudged = 0, &apportionv1.PodClass{}, kindsOf(rules)
	if of.beyond || len(rules.affinity)+len(rules.anti)+len(rules.spreads)+len(rules.ports) > maxPodRules {
		return true
	}
	of.class.Ports, of.unjudged = rules.ports, slices.Clone(rules.unread)
	r.resolveAffinity(of)
	r.resolveAnti(of)
	whole := r.resolveSpreads(of)
	slices.Sort(of.unjudged)
	of.unjudged = slices.Compact(of.unjudged)
	return whole
}

// number gives rules that say the same one number, and 0 to those that say nothing.
func (r *relation) number(of *relatedRules) {
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(of.class)
	if err != nil || len(key) == 0 {
		return
	}
	if of.number = r.numbers[string(key)]; of.number == 0 {
		of.number = len(r.numbers) + 1
		r.numbers[string(key)] = of.number
		r.tallies.addClass(of.class)
	}
}

// resolveAffinity resolves the terms of an affinity, which select the pods that match all of them.
func (r *relation) resolveAffinity(of *relatedRules) {
	var all podSelection
	for i := range of.rules.affinity {
		t := &of.rules.affinity[i]
		if !r.selections.known(t) {
			of.class.AffinityTopologies = nil
			of.unjudged = append(of.unjudged, constraintPodAffinity)
			return
		}
		all = append(all, t)
		if at := r.topology(t.topology); !slices.Contains(of.class.GetAffinityTopologies(), at) {
			of.class.AffinityTopologies = append(of.class.AffinityTopologies, at)
		}
	}
	if len(all) > 0 {
		of.class.AffinitySelection = r.selections.number(all)
	}
}

// resolveAnti resolves the terms of an anti-affinity.
func (r *relation) resolveAnti(of *relatedRules) {
	for i := range of.rules.anti {
		t := &of.rules.anti[i]
		if !r.selections.known(t) {
			of.unjudged = append(of.unjudged, constraintPodAffinity)
			r.unknown = append(r.unknown, t)
			continue
		}
		of.class.AntiAffinities = append(of.class.AntiAffinities, &apportionv1.PodAntiAffinity{
			Selection: r.selections.number(podSelection{t}), Topology: r.topology(t.topology),
		})
	}
}

// resolveSpreads resolves the topology spreads.
func (r *relation) resolveSpreads(of *relatedRules) bool {
	whole := true
	for i := range of.rules.spreads {
		s := &of.rules.spreads[i]
		set, within := r.counted(of.placement, s)
		whole = whole && within
		of.class.Spreads = append(of.class.Spreads, &apportionv1.PodSpread{
			Selection: r.selections.number(spreadSelection(of, s)), Topology: r.topology(s.topology), MaxSkew: s.maxSkew,
			MinDomains: s.minDomains, NodeSet: set,
		})
	}
	return whole
}

// spreadSelection is the pods that a spread counts. An empty selector selects none, as in Kubernetes' scheduler.
func spreadSelection(of *relatedRules, s *podSpread) podSelection {
	term := &podTerm{selector: s.selector, namespaces: []string{of.namespace}}
	if s.selector.Empty() {
		term.namespaces = nil
	}
	return podSelection{term}
}

func (r *relation) topology(key string) uint32 {
	at, known := r.topologies[key]
	if !known {
		at = uint32(len(r.topologies))
		r.topologies[key] = at
		r.out.Topologies = append(r.out.Topologies, &apportionv1.Topology{Key: key})
	}
	return at
}

// countedKey is what the nodes depend on that a spread counts.
type countedKey struct {
	placement            *placement
	byAffinity, byTaints bool
}

// countedNodes are the nodes that a spread counts. key is the same for the same nodes, and empty for all nodes.
type countedNodes struct {
	nodes []uint32
	key   string
}

// counted returns the name of the set of nodes that a spread counts; empty: all nodes. It is false if there are too many sets, or if too
// many nodes were looked at.
func (r *relation) counted(p *placement, s *podSpread) (string, bool) {
	at := countedKey{p, s.byAffinity, s.byTaints}
	if !s.byAffinity && !s.byTaints {
		return "", true
	}
	c, known := r.countedAt[at]
	if !known {
		if r.conditions += p.conditions() * int64(len(r.nodes)); r.conditions > matches {
			return "", false
		}
		c = r.countedBy(at)
		r.countedAt[at] = c
	}
	if c.key == "" {
		return "", true
	}
	i, known := r.setAt[c.key]
	if !known {
		if i = len(r.sets); i >= r.setsLeft() {
			return "", false
		}
		name := fmt.Sprintf("nodes that a spread counts (%d)", i+1)
		for slices.ContainsFunc(r.snapshot.GetNodeSets(), func(s *apportionv1.NodeSet) bool { return s.GetName() == name }) {
			name += "'"
		}
		r.setAt[c.key], r.sets = i, append(r.sets, &apportionv1.NodeSet{Name: name, Nodes: c.nodes})
	}
	return r.sets[i].GetName(), true
}

// setsLeft is how many sets of nodes spreads may have.
func (r *relation) setsLeft() int {
	if most := r.Limits.NodeSets; most > 0 {
		return max(int(most)-len(r.snapshot.GetNodeSets()), 0)
	}
	return matches
}

// countedBy finds the nodes that a spread counts.
func (r *relation) countedBy(at countedKey) countedNodes {
	required := nodeaffinity.GetRequiredNodeAffinity(&at.placement.pod)
	effects := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	var nodes []uint32
	var key []byte
	for i := range r.nodes {
		n := r.nodes[i].candidate
		if at.byAffinity {
			if match, err := required.Match(n); err != nil || !match {
				continue
			}
		}
		if at.byTaints {
			tolerated := at.placement.pod.Spec.Tolerations
			if _, not := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, tolerated, effects, false); not {
				continue
			}
		}
		nodes = append(nodes, uint32(i))
		key = binary.LittleEndian.AppendUint32(key, uint32(i))
	}
	if len(nodes) == len(r.nodes) {
		return countedNodes{}
	}
	return countedNodes{nodes, "nodes" + string(key)}
}
