package volcano

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/engine/model"
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

	snapshot *apportionv1.Snapshot
	// rules are all rules in the order of first use, and kinds the pods that they treat alike.
	rules     []*relatedRules
	ruleAt    map[ruleKey]*relatedRules
	kinds     []*relatedPods
	kindAt    map[kindKey]*relatedPods
	countedAt map[countedKey]countedNodes
	ruled

	// conditions counts how often a node was held against a condition of a spread.
	conditions int64
	// tasks is the number of pods that are tasks.
	tasks int
}

// ruled is what the rules come to that are judged.
type ruled struct {
	selections *selections
	topologies map[string]uint32
	out        *apportionv1.PodRules
	// numbers are those of rules by what they say.
	numbers map[string]int
	classes map[string]uint32
	// sets are those of nodes that spreads count, and setAt their positions by nodes.
	sets    []*apportionv1.NodeSet
	setAt   map[string]int
	tallies podTallies
	// unknown are anti-affinities of pods in namespaces that are not known.
	unknown []*podTerm
}

// ruleKey identifies the rules of a pod. They differ with the placement if a spread counts nodes by it.
type ruleKey struct {
	rules     *podRules
	placement *placement
}

// relatedRules are the rules of a pod in a snapshot.
type relatedRules struct {
	ruleKey

	namespace string
	// beyond: they are not judged, because there are too many.
	beyond   bool
	number   int
	class    *apportionv1.PodClass
	unjudged []apportionConstraint
	unit     *ruleUnit
}

type kindKey struct {
	traits    *traits
	placement *placement
}

// relatedPods is pods with the same namespace, labels and rules.
type relatedPods struct {
	traits *traits
	// pods is how many there are.
	pods int
	// rules are nil for pods without rules.
	rules *relatedRules
	class uint32
	// touched: an anti-affinity that is not known may concern its pods.
	touched bool
}

// maxPodClasses is how many classes a snapshot has at most, and maxPodRules how many rules one of them.
const maxPodClasses, maxPodRules = 65535, 64

// relate states the rules on other pods in the snapshot, if a pod has any, and names those that cannot be judged. If there are too many,
// each namespace has its part of what can be judged.
func (r *reader) relate(snapshot *apportionv1.Snapshot, jobs []*job) {
	rel := &relation{
		reader: r, snapshot: snapshot, ruleAt: map[ruleKey]*relatedRules{}, kindAt: map[kindKey]*relatedPods{},
		countedAt: map[countedKey]countedNodes{},
	}
	each := func(f func(p *placed, task *apportionv1.Task)) {
		for _, j := range jobs {
			for i, group := range j.message.GetGroups() {
				for k := range j.placed[i] {
					f(&j.placed[i][k], group.GetTasks()[k])
				}
			}
		}
	}
	each(func(p *placed, _ *apportionv1.Task) {
		rel.tasks++
		rel.count(p)
	})
	for i := range r.nodes {
		for k := range r.nodes[i].otherPods {
			rel.count(&r.nodes[i].otherPods[k].placed)
		}
	}
	if len(rel.rules) == 0 {
		return
	}
	if !rel.state() {
		rel.choose()
		if !rel.state() {
			for _, rules := range rel.rules {
				rules.beyond = true
			}
			rel.state()
		}
	}
	each(rel.mark)
	for i := range r.nodes {
		n := &r.nodes[i]
		for k := range n.otherPods {
			o := &n.otherPods[k]
			switch class := rel.kindOf(&o.placed).classOf(); {
			case class == 0:
			case o.leaving:
				n.message.LeavingPods = append(n.message.LeavingPods, class)
			default:
				n.message.OtherPods = append(n.message.OtherPods, class)
			}
		}
	}
	rel.warnBeyond()
	rel.finish()
}

// count adds a pod to its kind.
func (r *relation) count(p *placed) {
	if kind := r.kindOf(p); kind != nil {
		kind.pods++
	}
}

// kindOf returns the kind of a pod; nil if nothing is known of it.
func (r *relation) kindOf(p *placed) *relatedPods {
	if p.traits == nil {
		return nil
	}
	key := kindKey{traits: p.traits}
	if p.traits.rules != nil && len(p.traits.rules.spreads) > 0 {
		key.placement = cmp.Or(p.placement.base, p.placement)
	}
	kind := r.kindAt[key]
	if kind != nil {
		return kind
	}
	kind = &relatedPods{traits: p.traits}
	if rules := p.traits.rules; rules != nil {
		at := ruleKey{rules, key.placement}
		if kind.rules = r.ruleAt[at]; kind.rules == nil {
			kind.rules = &relatedRules{ruleKey: at, namespace: p.traits.namespace}
			r.ruleAt[at], r.rules = kind.rules, append(r.rules, kind.rules)
		}
	}
	r.kindAt[key], r.kinds = kind, append(r.kinds, kind)
	return kind
}

func (k *relatedPods) classOf() uint32 {
	if k == nil {
		return 0
	}
	return k.class
}

func (r *relation) newRuled() ruled {
	return ruled{
		selections: newSelections(r.namespaces), topologies: map[string]uint32{}, out: &apportionv1.PodRules{}, numbers: map[string]int{},
		classes: map[string]uint32{}, setAt: map[string]int{}, tallies: podTallies{seen: map[podTally]bool{}, of: map[uint32]int{}},
	}
}

// state finds what all rules come to that are not beyond the bounds, and reports whether it is within them.
func (r *relation) state() bool {
	r.ruled = r.newRuled()
	for _, rules := range r.rules {
		if !r.resolve(rules) {
			return false
		}
		r.number(rules)
	}
	pairs, cells, concern := 0, 0, []int{0}
	for _, kind := range r.kinds {
		if !r.classify(kind) {
			return false
		}
		if len(concern) <= len(r.classes) {
			own := r.tallies.concern(r.out.GetClasses()[kind.class-1])
			concern = append(concern, own)
			if pairs += own; own > maxPodTallies || pairs > maxPodPairs {
				return false
			}
		}
		if cells += kind.pods * concern[kind.class]; cells > model.PodCells(r.tasks) {
			return false
		}
	}
	r.touch()
	return true
}

// classify finds the class of a kind of pods. It is false if there is too much of it.
func (r *relation) classify(kind *relatedPods) bool {
	rules := kind.rules
	if rules == nil {
		rules = &relatedRules{class: &apportionv1.PodClass{}}
	}
	selected, whole := r.selections.of(kind.traits)
	if kind.class = 0; !whole {
		return false
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
	kind.class = class
	return true
}

// touch finds the kinds of pods that an anti-affinity may concern of which it is not known whether it does. If that takes too long, it may
// concern all.
func (r *relation) touch() {
	all := len(r.unknown)*len(r.kinds) > matches
	for _, kind := range r.kinds {
		kind.touched = all || slices.ContainsFunc(r.unknown, func(t *podTerm) bool { return t.selector.Matches(kind.traits.labels) })
	}
}

// mark states the class of a task, and names what is not judged of one that waits.
func (r *relation) mark(p *placed, task *apportionv1.Task) {
	kind := r.kindOf(p)
	if kind == nil {
		return
	}
	p.class = kind.class
	var unjudged []apportionConstraint
	if kind.rules != nil {
		unjudged = kind.rules.unjudged
	}
	if task.Node == nil && kind.touched && !slices.Contains(unjudged, constraintPodAffinity) {
		unjudged = append(slices.Clip(unjudged), constraintPodAffinity)
	}
	if len(unjudged) > 0 {
		p.unjudged = slices.Concat(p.unjudged, unjudged)
		slices.Sort(p.unjudged)
	}
}

// finish adds the rules to the snapshot, and the domains of the nodes.
func (r *relation) finish() {
	if len(r.out.GetClasses()) == 0 {
		return
	}
	r.snapshot.NodeSets = append(r.snapshot.NodeSets, r.sets...)
	r.snapshot.Pods = r.out
	r.findDomains()
}

// findDomains states the domains of the nodes. Only a node's own name makes it a domain of its own: a node that is added in a zone of one
// node is in that zone.
func (r *relation) findDomains() {
	for at, t := range r.out.GetTopologies() {
		values, single := map[string]uint32{}, t.GetKey() == corev1.LabelHostname
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
