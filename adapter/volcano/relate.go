package volcano

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// otherPod is a pod on a node that is no task of the snapshot.
type otherPod struct {
	placed  placed
	leaving bool
}

// relation resolves the rules on other pods of one snapshot.
type relation struct {
	*reader

	snapshot   *apportionv1.Snapshot
	selections *selections
	topologies map[string]uint32
	out        *apportionv1.PodRules
	// rules are by rules and, if nodes are counted by it, placement; classes by rules and selections.
	rules   map[ruleKey]*relatedRules
	classes map[string]uint32
	sets    map[string]string
	// unknown are anti-affinities of pods in namespaces that are not known.
	unknown []*podTerm
}

type ruleKey struct {
	rules     *podRules
	placement *placement
}

// relatedRules are the rules of a pod in a snapshot.
type relatedRules struct {
	number   int
	class    *apportionv1.PodClass
	unjudged []apportionConstraint
}

// maxPodClasses is how many classes a snapshot has at most, and maxPodRules how many rules one of them.
const maxPodClasses, maxPodRules = 65535, 64

// relate states the rules on other pods in the snapshot, if a pod has any, and names those that cannot be judged.
func (r *reader) relate(snapshot *apportionv1.Snapshot, jobs []*job) {
	rel := &relation{
		reader: r, snapshot: snapshot, selections: newSelections(r.namespaces), topologies: map[string]uint32{},
		out: &apportionv1.PodRules{}, rules: map[ruleKey]*relatedRules{}, classes: map[string]uint32{}, sets: map[string]string{},
	}
	some := false
	each := func(f func(p *placed, task *apportionv1.Task)) {
		for _, j := range jobs {
			for i, group := range j.message.GetGroups() {
				for k := range j.placed[i] {
					f(&j.placed[i][k], group.GetTasks()[k])
				}
			}
		}
	}
	each(func(p *placed, _ *apportionv1.Task) { some = rel.resolve(p) || some })
	for i := range r.nodes {
		for k := range r.nodes[i].otherPods {
			some = rel.resolve(&r.nodes[i].otherPods[k].placed) || some
		}
	}
	if !some {
		return
	}
	whole := true
	each(func(p *placed, task *apportionv1.Task) { whole = rel.classify(p, task) && whole })
	for i := range r.nodes {
		n := &r.nodes[i]
		for k := range n.otherPods {
			o := &n.otherPods[k]
			whole = rel.classify(&o.placed, nil) && whole
			switch class := o.placed.class; {
			case class == 0:
			case o.leaving:
				n.message.LeavingPods = append(n.message.LeavingPods, class)
			default:
				n.message.OtherPods = append(n.message.OtherPods, class)
			}
		}
	}
	if !whole {
		// Too many pods, selectors or classes: nothing of it is judged.
		each(func(p *placed, _ *apportionv1.Task) {
			p.class, p.unjudged = 0, slices.Concat(p.unjudged, kindsOf(p.traits.rules))
		})
		for i := range r.nodes {
			r.nodes[i].message.OtherPods, r.nodes[i].message.LeavingPods = nil, nil
		}
		return
	}
	if rel.findDomains(); len(rel.out.GetClasses()) > 0 {
		snapshot.Pods = rel.out
	}
}

// kindsOf lists the constraints that rules are.
func kindsOf(rules *podRules) (list []apportionConstraint) {
	if rules == nil {
		return nil
	}
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

// resolve resolves the rules of a pod, and reports whether it has any.
func (r *relation) resolve(p *placed) bool {
	if p.traits == nil || p.traits.rules == nil {
		return false
	}
	key := r.keyOf(p)
	if r.rules[key] != nil {
		return true
	}
	rules := p.traits.rules
	out := &relatedRules{
		number: len(r.rules) + 1, class: &apportionv1.PodClass{Ports: rules.ports}, unjudged: slices.Clone(rules.unread),
	}
	r.rules[key] = out
	if len(rules.affinity)+len(rules.anti)+len(rules.spreads)+len(rules.ports) > maxPodRules {
		out.class, out.unjudged = &apportionv1.PodClass{}, kindsOf(rules)
		return true
	}
	if r.resolveAffinity(rules, out); slices.ContainsFunc(rules.anti, func(t podTerm) bool { return !r.selections.known(&t) }) {
		out.unjudged = append(out.unjudged, constraintPodAffinity)
	}
	for i := range rules.anti {
		t := &rules.anti[i]
		if !r.selections.known(t) {
			r.unknown = append(r.unknown, t)
			continue
		}
		out.class.AntiAffinities = append(out.class.AntiAffinities, &apportionv1.PodAntiAffinity{
			Selection: r.selections.number(podSelection{t}), Topology: r.topology(t.topology),
		})
	}
	for i := range rules.spreads {
		s := &rules.spreads[i]
		term := &podTerm{selector: s.selector, namespaces: []string{p.traits.namespace}}
		if s.selector.Empty() {
			// It counts no pods, as in Kubernetes' scheduler.
			term.namespaces = nil
		}
		out.class.Spreads = append(out.class.Spreads, &apportionv1.PodSpread{
			Selection: r.selections.number(podSelection{term}), Topology: r.topology(s.topology), MaxSkew: s.maxSkew,
			MinDomains: s.minDomains, NodeSet: r.counted(p.placement, s),
		})
	}
	slices.Sort(out.unjudged)
	out.unjudged = slices.Compact(out.unjudged)
	return true
}

// resolveAffinity resolves the terms of an affinity, which select the pods that match all of them.
func (r *relation) resolveAffinity(rules *podRules, out *relatedRules) {
	var all podSelection
	for i := range rules.affinity {
		t := &rules.affinity[i]
		if !r.selections.known(t) {
			out.class.AffinityTopologies = nil
			out.unjudged = append(out.unjudged, constraintPodAffinity)
			return
		}
		all = append(all, t)
		if at := r.topology(t.topology); !slices.Contains(out.class.GetAffinityTopologies(), at) {
			out.class.AffinityTopologies = append(out.class.AffinityTopologies, at)
		}
	}
	if len(all) > 0 {
		out.class.AffinitySelection = r.selections.number(all)
	}
}

// keyOf is the key of a pod's rules. They differ with the placement if a spread counts nodes by it.
func (r *relation) keyOf(p *placed) ruleKey {
	key := ruleKey{rules: p.traits.rules}
	if len(key.rules.spreads) > 0 {
		key.placement = cmp.Or(p.placement.base, p.placement)
	}
	return key
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

// counted returns the name of the set of nodes that a spread counts; empty: all nodes.
func (r *relation) counted(p *placement, s *podSpread) string {
	required := nodeaffinity.GetRequiredNodeAffinity(&p.pod)
	effects := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	var nodes []uint32
	var key []byte
	for i := range r.nodes {
		n := r.nodes[i].candidate
		if s.byAffinity {
			if match, err := required.Match(n); err != nil || !match {
				continue
			}
		}
		if s.byTaints {
			tolerated := p.pod.Spec.Tolerations
			if _, not := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, tolerated, effects, false); not {
				continue
			}
		}
		nodes = append(nodes, uint32(i))
		key = binary.LittleEndian.AppendUint32(key, uint32(i))
	}
	if len(nodes) == len(r.nodes) {
		return ""
	}
	name, known := r.sets[string(key)]
	if !known {
		name = fmt.Sprintf("nodes that a spread counts (%d)", len(r.sets)+1)
		for slices.ContainsFunc(r.snapshot.GetNodeSets(), func(s *apportionv1.NodeSet) bool { return s.GetName() == name }) {
			name += "'"
		}
		r.sets[string(key)] = name
		r.snapshot.NodeSets = append(r.snapshot.NodeSets, &apportionv1.NodeSet{Name: name, Nodes: nodes})
	}
	return name
}

// classify finds the class of a pod, and names what is not judged of a waiting one. It is false if there is too much of it. task is nil for
// a pod that is no task.
func (r *relation) classify(p *placed, task *apportionv1.Task) bool {
	if p.traits == nil {
		return true
	}
	rules := &relatedRules{class: &apportionv1.PodClass{}}
	if p.traits.rules != nil {
		rules = r.rules[r.keyOf(p)]
	}
	selected, whole := r.selections.of(p.traits)
	if !whole {
		return false
	}
	unjudged := rules.unjudged
	if task != nil && task.Node == nil && slices.ContainsFunc(r.unknown, func(t *podTerm) bool {
		return t.selector.Matches(p.traits.labels)
	}) && !slices.Contains(unjudged, constraintPodAffinity) {
		unjudged = append(slices.Clip(unjudged), constraintPodAffinity)
	}
	if len(unjudged) > 0 {
		p.unjudged = slices.Concat(p.unjudged, unjudged)
		slices.Sort(p.unjudged)
	}
	if rules.number == 0 && len(selected) == 0 {
		return true
	}
	key := binary.AppendUvarint(nil, uint64(rules.number))
	for _, n := range selected {
		key = binary.AppendUvarint(key, uint64(n))
	}
	class, known := r.classes[string(key)]
	if !known {
		class = uint32(len(r.classes) + 1)
		if class > maxPodClasses {
			return false
		}
		r.classes[string(key)] = class
		r.out.Classes = append(r.out.Classes, &apportionv1.PodClass{
			Selections: selected, AffinityTopologies: rules.class.GetAffinityTopologies(),
			AffinitySelection: rules.class.GetAffinitySelection(),
			AntiAffinities:    rules.class.GetAntiAffinities(), Spreads: rules.class.GetSpreads(), Ports: rules.class.GetPorts(),
		})
	}
	p.class = class
	return true
}

// findDomains states the domains of the nodes.
func (r *relation) findDomains() {
	for at, t := range r.out.GetTopologies() {
		values, single := map[string]uint32{}, true
		for i := range r.nodes {
			value, some := r.nodes[i].candidate.Labels[t.GetKey()]
			if _, twice := values[value]; !some || twice {
				single = false
			}
			if some && values[value] == 0 {
				values[strings.Clone(value)] = uint32(len(values) + 1)
			}
		}
		if t.Node = single; single {
			continue
		}
		for i := range r.nodes {
			if value, some := r.nodes[i].candidate.Labels[t.GetKey()]; some {
				n := r.nodes[i].message
				n.Domains = append(n.GetDomains(), make([]uint32, at+1-len(n.GetDomains()))...)
				n.Domains[at] = values[value]
			}
		}
	}
}
