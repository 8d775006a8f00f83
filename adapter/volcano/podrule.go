package volcano

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// traits are what rules on other pods look at in a pod: its namespace, its labels, and the rules that it has itself. Pods with equal ones
// share them.
type traits struct {
	// key is its key in sharedTraits.
	key       string
	namespace string
	labels    labelList
	rules     *podRules
}

// sharedTraits holds traits once, by the JSON of what they are read from.
type sharedTraits map[string]*traits

// podRules are the rules on other pods that one pod has.
type podRules struct {
	affinity, anti []podTerm
	spreads        []podSpread
	ports          []*apportionv1.HostPort
	// unread are constraints that lack what Kubernetes demands.
	unread []apportionConstraint
}

// podTerm is a term of an affinity or anti-affinity to other pods.
type podTerm struct {
	topology string
	selector labels.Selector
	// namespaces are sorted. Those that inNamespaces selects count too; nil: it selects none.
	namespaces   []string
	inNamespaces labels.Selector
}

// podSpread is a topology spread that must hold.
type podSpread struct {
	topology            string
	selector            labels.Selector
	maxSkew, minDomains uint32
	// byAffinity and byTaints: only nodes count that the pod's node affinity selects, or whose taints it tolerates.
	byAffinity, byTaints bool
}

// labelList holds names and values of labels by turns. It takes less memory than a map.
type labelList []string

// Lookup returns the value of a label.
func (l labelList) Lookup(label string) (value string, exists bool) {
	for i := 0; i < len(l); i += 2 {
		if l[i] == label {
			return l[i+1], true
		}
	}
	return "", false
}

// Has reports whether there is a label.
func (l labelList) Has(label string) bool {
	_, exists := l.Lookup(label)
	return exists
}

// Get returns the value of a label, or "".
func (l labelList) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// traitsOf reads what rules on other pods look at in a pod. Pods with equal ones share them.
func (r *reader) traitsOf(m objects.Metadata, spec *objects.Value) *traits {
	affinity := spec.Field("affinity")
	w := writtenRules{
		affinity.Field("podAffinity").Field(requiredField), affinity.Field("podAntiAffinity").Field(requiredField),
		spec.Field("topologySpreadConstraints"), r.hostPorts(spec),
	}
	key := append(append([]byte(m.Namespace), '\n'), w.key()...)
	key = objects.AppendJSON(append(key, '\n'), m.Labels)
	if known := r.traits[string(key)]; known != nil {
		return known
	}
	before := r.Found.Total
	t := &traits{key: string(key), namespace: once(m.Namespace)}
	if r.Is(m.Labels, objects.Map) {
		t.labels = make(labelList, 0, 2*len(m.Labels.Items))
		for _, item := range m.Labels.Items {
			t.labels = append(t.labels, once(item.Key), once(r.TextAt(item)))
		}
	}
	t.rules = r.podRules(t, &w)
	if r.Found.Total == before {
		r.traits[t.key] = t
	}
	return t
}

// writtenRules are the rules on other pods of a pod, as they are written.
type writtenRules struct {
	near, apart, spreads *objects.Value
	ports                []*apportionv1.HostPort
}

// key returns the same text for equal rules.
func (w *writtenRules) key() []byte {
	if w.near == nil && w.apart == nil && w.spreads == nil && len(w.ports) == 0 {
		return nil
	}
	key := objects.AppendJSON(nil, w.near)
	key = objects.AppendJSON(append(key, '\n'), w.apart)
	key = objects.AppendJSON(append(key, '\n'), w.spreads)
	for _, p := range w.ports {
		key = fmt.Appendf(key, "\n%d %q %q", p.GetPort(), p.GetProtocol(), p.GetAddress())
	}
	return key
}

// podRules reads the rules on other pods of a pod; nil: it has none.
func (r *reader) podRules(t *traits, w *writtenRules) *podRules {
	out := &podRules{ports: w.ports}
	out.affinity, out.anti = r.podTerms(t, w.near, out), r.podTerms(t, w.apart, out)
	out.spreads = r.spreads(t, w.spreads, out)
	if len(out.affinity)+len(out.anti)+len(out.spreads)+len(out.ports)+len(out.unread) == 0 {
		return nil
	}
	return out
}

// podTerms reads the terms of an affinity to other pods.
func (r *reader) podTerms(t *traits, v *objects.Value, of *podRules) []podTerm {
	var terms []corev1.PodAffinityTerm
	readAs(r, v, &terms)
	var out []podTerm
	for i := range terms {
		term := &terms[i]
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		var spaces labels.Selector
		if err == nil && term.NamespaceSelector != nil {
			spaces, err = metav1.LabelSelectorAsSelector(term.NamespaceSelector)
		}
		switch {
		case err != nil:
			r.Found.Add(r.Doc, v, "not an affinity to pods: %v", err)
			continue
		case term.TopologyKey == "":
			of.unread = append(of.unread, constraintPodAffinity)
			continue
		}
		if term.LabelSelector != nil {
			selector = withKeys(t, selector, term.MatchLabelKeys, selection.In)
			selector = withKeys(t, selector, term.MismatchLabelKeys, selection.NotIn)
		}
		names := slices.Clone(term.Namespaces)
		if len(names) == 0 && spaces == nil {
			names = []string{t.namespace}
		}
		slices.Sort(names)
		out = append(out, podTerm{
			topology: term.TopologyKey, selector: selector, namespaces: slices.Compact(names), inNamespaces: spaces,
		})
	}
	return out
}

// withKeys adds to a selector that labels have, or do not have, the values that a pod has itself. API servers do the same when the pod is
// created, after which it makes no difference.
func withKeys(t *traits, s labels.Selector, keys []string, is selection.Operator) labels.Selector {
	for _, key := range keys {
		value, some := t.labels.Lookup(key)
		if !some {
			continue
		}
		if requirement, err := labels.NewRequirement(key, is, []string{value}); err == nil {
			s = s.Add(*requirement)
		}
	}
	return s
}

// spreads reads the topology spreads that must hold.
func (r *reader) spreads(t *traits, v *objects.Value, of *podRules) []podSpread {
	var all []corev1.TopologySpreadConstraint
	readAs(r, v, &all)
	var out []podSpread
	for i := range all {
		c := &all[i]
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		switch {
		case err != nil:
			r.Found.Add(r.Doc, v, "not a topology spread: %v", err)
			continue
		case c.TopologyKey == "" || c.MaxSkew < 1:
			of.unread = append(of.unread, constraintTopologySpread)
			continue
		}
		if c.LabelSelector != nil {
			selector = withKeys(t, selector, c.MatchLabelKeys, selection.In)
		}
		s := podSpread{topology: c.TopologyKey, selector: selector, maxSkew: uint32(c.MaxSkew), byAffinity: true}
		if c.MinDomains != nil {
			s.minDomains = uint32(max(*c.MinDomains, 0))
		}
		if c.NodeAffinityPolicy != nil {
			s.byAffinity = *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
		}
		if c.NodeTaintsPolicy != nil {
			s.byTaints = *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
		}
		out = append(out, s)
	}
	return out
}

// hostPorts lists the ports of the node that a pod asks for, each once: those of its containers and of the init containers that keep
// running.
func (r *reader) hostPorts(spec *objects.Value) []*apportionv1.HostPort {
	var out []*apportionv1.HostPort
	add := func(container *objects.Value) {
		for _, v := range itemsOf(container.Field("ports")) {
			if v.Field("hostPort") == nil {
				continue
			}
			number := r.WholeAt(v.Field("hostPort"))
			if number <= 0 || number > maxPort {
				continue
			}
			p := &apportionv1.HostPort{
				Port: uint32(number), Protocol: once(cmp.Or(r.TextAt(v.Field("protocol")), string(corev1.ProtocolTCP))),
				Address: once(cmp.Or(r.TextAt(v.Field("hostIP")), everyAddress)),
			}
			if !slices.ContainsFunc(out, func(o *apportionv1.HostPort) bool {
				return o.GetPort() == p.GetPort() && o.GetProtocol() == p.GetProtocol() && o.GetAddress() == p.GetAddress()
			}) {
				out = append(out, p)
			}
		}
	}
	for _, c := range itemsOf(spec.Field("containers")) {
		add(c)
	}
	for _, c := range itemsOf(spec.Field("initContainers")) {
		if c.TextOf("restartPolicy") == string(corev1.ContainerRestartPolicyAlways) {
			add(c)
		}
	}
	return out
}

const (
	maxPort      = 65535
	everyAddress = "0.0.0.0"
)

// itemsOf returns the elements of a list; none for anything else.
func itemsOf(v *objects.Value) []*objects.Value {
	if v == nil || v.Type != objects.List {
		return nil
	}
	return v.Items
}

// namespace reads a Namespace, whose labels affinities to pods may select.
func (r *reader) namespace(m objects.Metadata, _ *objects.Value) {
	n := namespace{name: m.Name}
	if r.Is(m.Labels, objects.Map) {
		for _, item := range m.Labels.Items {
			n.labels = append(n.labels, once(item.Key), once(r.TextAt(item)))
		}
	}
	r.namespaces = append(r.namespaces, n)
}

// namespace is a Namespace with its labels.
type namespace struct {
	name   string
	labels labelList
}
