package volcano

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// placement is the node selector, required node affinity and tolerations of the pods that share it.
type placement struct {
	pod corev1.Pod
	// preferred are the preferred terms of its node affinity, and prefers finds how much nodes are preferred by them; nil: none. plain is
	// then the placement without them.
	preferred []corev1.PreferredSchedulingTerm
	prefers   *nodeaffinity.PreferredSchedulingTerms
	plain     *placement
	// key is its key in placements.
	key string
	// volumes are the nodes that reach the pods' volumes; nil: all. base is then the placement without them.
	volumes *volumeReach
	base    *placement
	// set is the name of the node set once it is known; empty: all nodes.
	set string
	// allowed is the result for this generation of nodes; 0: none.
	allowed    allowed
	generation uint64
}

// conditions returns what holding a node against the placement costs. Eight expressions or tolerations cost about as much as one node.
func (p *placement) conditions() int64 {
	const atOnce = 8
	spec := &p.pod.Spec
	n := len(spec.NodeSelector) + len(spec.Tolerations)
	if spec.Affinity != nil {
		for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			n += 1 + len(term.MatchExpressions) + len(term.MatchFields)
		}
	}
	for i := range p.preferred {
		n += 1 + len(p.preferred[i].Preference.MatchExpressions) + len(p.preferred[i].Preference.MatchFields)
	}
	return int64(1 + n/atOnce)
}

// nodeCandidate is a node as Kubernetes' own code looks at it.
type nodeCandidate = *corev1.Node

// placements holds each placement once, by its JSON.
type placements map[string]*placement

// requiredPlacement reads a pod's placement without what it merely prefers. Pods with equal ones share it.
func (r *reader) requiredPlacement(spec *objects.Value) *placement {
	selector, tolerations := spec.Field("nodeSelector"), spec.Field("tolerations")
	required := spec.Field("affinity").Field("nodeAffinity").Field(requiredField)
	key := objects.AppendJSON(nil, selector)
	key = objects.AppendJSON(append(key, '\n'), required)
	key = objects.AppendJSON(append(key, '\n'), tolerations)
	if known, ok := r.placements[string(key)]; ok {
		return known
	}
	p, before := &placement{key: string(key)}, r.Found.Total
	readAs(r, selector, &p.pod.Spec.NodeSelector)
	readAs(r, tolerations, &p.pod.Spec.Tolerations)
	if required != nil {
		terms := &corev1.NodeSelector{}
		readAs(r, required, terms)
		p.pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		if n := longest(terms); n > maxExpressions {
			r.Found.Add(r.Doc, required, "a term of the node affinity has %d expressions, and at most %d are read", n, maxExpressions)
		} else if _, err := nodeaffinity.NewNodeSelector(terms); err != nil {
			r.Found.Add(r.Doc, required, "not a node affinity: %v", err)
		}
	}
	if r.Found.Total == before {
		r.placements[p.key] = p
	}
	return p
}

// maxExpressions is the maximum number of expressions of a term of a node affinity. Kubernetes' library reads a term in a time that grows
// with the square of it: 10,000 expressions take a second.
const maxExpressions = 1000

// longest returns the number of expressions of the longest term.
func longest(terms *corev1.NodeSelector) int {
	n := 0
	for _, term := range terms.NodeSelectorTerms {
		n = max(n, len(term.MatchExpressions)+len(term.MatchFields))
	}
	return n
}

// readAs reads a value as Kubernetes' own type.
func readAs[T any](r *reader, v *objects.Value, into *T) {
	if v == nil {
		return
	}
	if err := json.Unmarshal(objects.AppendJSON(nil, v), into); err != nil {
		r.Found.Add(r.Doc, v, "not valid in Kubernetes: %v", err)
	}
}

// candidate returns the fields of a node that decide which pods it accepts.
func (r *reader) candidate(m objects.Metadata, spec *objects.Value) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	readAs(r, m.Labels, &n.Labels)
	readAs(r, spec.Field("taints"), &n.Spec.Taints)
	return n
}

// unschedulable returns the reasons why a node accepts no new tasks; nil if it accepts them. A node without a condition Ready counts as
// ready.
func (r *reader) unschedulable(spec, status *objects.Value) *apportionv1.NodeUnschedulable {
	ready := conditionOf(status, string(corev1.NodeReady))
	if ready != nil && ready.TextOf("status") != string(corev1.ConditionTrue) {
		return &apportionv1.NodeUnschedulable{
			Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_NOT_READY, Detail: r.reported(ready),
		}
	}
	if cordoned := r.FlagAt(spec.Field("unschedulable")); cordoned != nil && *cordoned {
		return &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED}
	}
	return nil
}

// toleratesCordon reports whether pods of the placement also use cordoned nodes, as the filter NodeUnschedulable of Kubernetes' scheduler
// decides, which Volcano runs too.
func (p *placement) toleratesCordon() bool {
	cordon := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, cordon, p.pod.Spec.Tolerations, nil, false)
	return !untolerated
}

// closedTo reports whether a node takes no pod of a placement, whatever its taints say.
func closedTo(u *apportionv1.NodeUnschedulable, tolerant bool) bool {
	return u != nil && !(tolerant && u.GetCause() == apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED)
}

// statedTaints are the taints that repeat a reason why a node is unschedulable.
var statedTaints = map[string]bool{
	corev1.TaintNodeUnschedulable: true, corev1.TaintNodeNotReady: true, corev1.TaintNodeUnreachable: true,
}

// keepsOff reports whether a taint keeps pods off a node that do not tolerate it, beside the reason why the node is unschedulable.
func keepsOff(t *corev1.Taint, unschedulable bool) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && (!unschedulable || !statedTaints[t.Key])
}

// restrict names the node set of each placement that a task of the snapshot has.
func (r *reader) restrict(snapshot *apportionv1.Snapshot, used []*placement) {
	names := map[string]bool{}
	// The same nodes by the same rule are one set; numbered counts those of each rule.
	sets, numbered := map[string]string{}, map[string]int{}
	var key []byte
	for _, p := range used {
		p.set = ""
		a := r.allowedOnce(p)
		nodes, rule := a.nodes, a.rule
		switch cordoned := a.tolerant && r.cordoned(); {
		case len(nodes) == len(r.nodes) && len(a.preferences) > 0 && !a.fixed && !cordoned:
			rule = preferredRule
		case cordoned:
			rule = strings.TrimPrefix(rule+"; cordoned nodes are tolerated", "; ")
		case len(nodes) == len(r.nodes) && a.fixed:
			rule = cmp.Or(rule, strings.Join(requirements(&p.pod.Spec), "; "), "the nodes of its volumes")
		case len(nodes) == len(r.nodes):
			continue
		}
		key = strconv.AppendBool(strconv.AppendBool(append(append(key[:0], rule...), 0), a.tolerant), a.fixed)
		for _, n := range nodes {
			key = binary.LittleEndian.AppendUint32(key, n)
		}
		for _, e := range a.exclusions {
			key = append(append(append(key, 0), e.GetRule()...), 0)
			for _, n := range e.GetNodes() {
				key = binary.LittleEndian.AppendUint32(key, n)
			}
			key = strconv.AppendBool(strconv.AppendBool(key, e.GetFirm()), e.GetOtherRole())
		}
		key = appendPreferences(key, a.preferences)
		name, ok := sets[string(key)]
		if !ok {
			name = rule
			for names[name] {
				numbered[rule]++
				name = fmt.Sprintf("%s (%d)", rule, 1+numbered[rule])
			}
			names[name], sets[string(key)] = true, name
			set := &apportionv1.NodeSet{Name: name, Nodes: nodes, Exclusions: a.exclusions, ToleratesCordon: a.tolerant, Fixed: a.fixed}
			set.Preferences = a.preferences
			if name != rule {
				set.Rule = rule
			}
			snapshot.NodeSets = append(snapshot.NodeSets, set)
		}
		p.set = name
	}
}

// cordoned reports whether a node is cordoned.
func (r *reader) cordoned() bool {
	return slices.ContainsFunc(r.nodes, func(n node) bool {
		return n.message.GetUnschedulable().GetCause() == apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED
	})
}

// allowedOnce is allowedBy, cached for one generation of nodes.
func (r *reader) allowedOnce(p *placement) *allowed {
	if r.generation == 0 || p.generation != r.generation {
		p.allowed = r.allowedBy(p)
		p.generation = r.generation
	}
	return &p.allowed
}

// allowed is the nodes that a placement permits.
type allowed struct {
	nodes []uint32
	// tolerant: cordoned nodes are permitted too. fixed: no node that is like one of them would be.
	tolerant, fixed bool
	// rule is what excludes the others, and exclusions are the reasons as Kubernetes' scheduler counts them: of each node the first.
	rule       string
	exclusions []*apportionv1.NodeExclusion
	// preferences are those of the nodes.
	preferences []*apportionv1.NodePreference
}

// allowedBy returns the nodes that a placement permits.
func (r *reader) allowedBy(p *placement) allowed {
	required := nodeaffinity.GetRequiredNodeAffinity(&p.pod)
	requirement := requirements(&p.pod.Spec)
	stated := strings.Join(requirement, " and ")
	var a allowed
	var reasons exclusions
	unmatched := false
	var taints, volumes []string
	var preferences preferences
	a.tolerant = p.toleratesCordon()
	for i := range r.nodes {
		n := r.nodes[i].candidate
		looked := func(t *corev1.Taint) bool { return keepsOff(t, closedTo(r.nodes[i].message.Unschedulable, a.tolerant)) }
		tolerated := p.pod.Spec.Tolerations
		taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, tolerated, looked, false)
		match, err := required.Match(n)
		mismatch, unreached := err != nil || !match, p.volumes.without(i) != ""
		switch {
		case untolerated:
			reasons.add(uint32(i), exclusion{"taint " + taint.Key, unreached, strings.HasPrefix(taint.Key, roleTaint)})
		case mismatch:
			reasons.add(uint32(i), exclusion{rule: stated, firm: unreached})
		case unreached:
			reasons.add(uint32(i), exclusion{rule: p.volumes.without(i), firm: true})
		default:
			a.nodes = append(a.nodes, uint32(i))
			preferences.add(uint32(i), p.preference(n))
		}
		if mismatch {
			unmatched = true
		} else if untolerated {
			taints = appendNew(taints, taint.ToString())
		} else if text := p.volumes.without(i); text != "" {
			volumes = appendNew(volumes, text)
		}
	}
	var parts []string
	if unmatched {
		parts = append(parts, requirement...)
	}
	if len(taints) > 0 {
		parts = append(parts, "no toleration of taint "+few(taints, " or "))
	}
	if len(volumes) > 0 {
		parts = append(parts, few(volumes, "; "))
	}
	a.rule, a.exclusions, a.preferences = r.Shortened(strings.Join(parts, "; ")), reasons.list(r), preferences.list
	a.fixed = len(a.nodes) > 0 && r.fixed(p, r.nodes[a.nodes[0]].candidate)
	return a
}

// fixed reports whether a placement does not permit a node that is like one that it permits, but has a name of its own.
func (r *reader) fixed(p *placement, n *corev1.Node) bool {
	if p.volumes != nil && p.volumes.fixed {
		return true
	}
	if required := p.pod.Spec.Affinity; required == nil && p.pod.Spec.NodeSelector[corev1.LabelHostname] == "" {
		return false
	}
	match, err := nodeaffinity.GetRequiredNodeAffinity(&p.pod).Match(renamed(n))
	return err != nil || !match
}

// renamed returns a node that is like another one, under a name that none has.
func renamed(n *corev1.Node) *corev1.Node {
	const other = "another node"
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: other, Labels: maps.Clone(n.Labels)}}
	if _, named := out.Labels[corev1.LabelHostname]; named {
		out.Labels[corev1.LabelHostname] = other
	}
	return out
}

// exclusions are nodes by the reason that excludes them.
type exclusions struct {
	rules []exclusion
	nodes map[exclusion][]uint32
}

// exclusion is a reason. firm: no change of a pod lets it use the node, because that does not reach its volumes. otherRole: the node has a
// role of its own in the cluster.
type exclusion struct {
	rule            string
	firm, otherRole bool
}

// roleTaint begins the keys of taints that keep nodes for a role, such as the control plane.
const roleTaint = "node-role.kubernetes.io/"

func (e *exclusions) add(node uint32, of exclusion) {
	if e.nodes == nil {
		e.nodes = map[exclusion][]uint32{}
	}
	if e.nodes[of] == nil {
		e.rules = append(e.rules, of)
	}
	e.nodes[of] = append(e.nodes[of], node)
}

// list returns the reasons, those of most nodes first. The first stands for all nodes that no other one
// lists; further reasons beyond shown are one.
func (e *exclusions) list(r *reader) []*apportionv1.NodeExclusion {
	const shown = 16
	slices.SortStableFunc(e.rules, func(a, b exclusion) int { return cmp.Compare(len(e.nodes[b]), len(e.nodes[a])) })
	var list []*apportionv1.NodeExclusion
	for i, of := range e.rules {
		switch x := (&apportionv1.NodeExclusion{Rule: r.Shortened(of.rule), Nodes: e.nodes[of], Firm: of.firm, OtherRole: of.otherRole}); {
		case i == 0:
			x.Nodes = nil
			list = append(list, x)
		case i < shown:
			list = append(list, x)
		default:
			last := list[shown-1]
			last.Rule, last.Nodes = "other taints or labels", append(slices.Clip(last.Nodes), x.GetNodes()...)
			last.Firm, last.OtherRole = last.GetFirm() || x.GetFirm(), last.GetOtherRole() && x.GetOtherRole()
		}
	}
	return list
}

// appendNew appends a text unless the list contains it.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// few joins the first three of a list.
func few(list []string, with string) string {
	const shown = 3
	if len(list) <= shown {
		return strings.Join(list, with)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
