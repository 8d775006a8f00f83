package volcano

import (
	"encoding/binary"
	"math"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// preferredRule describes the set of all nodes for tasks that prefer some of them.
const preferredRule = "all nodes, some of them preferred"

// placement reads a pod's placement. Pods with equal ones share it.
func (r *reader) placement(spec *objects.Value) *placement {
	plain := r.requiredPlacement(spec)
	preferred := spec.Field("affinity").Field("nodeAffinity").Field(preferredField)
	if preferred == nil || preferred.Type == objects.List && len(preferred.Items) == 0 {
		return plain
	}
	key := objects.AppendJSON(append([]byte(plain.key), '\n'), preferred)
	if known, ok := r.placements[string(key)]; ok {
		return known
	}
	p, before := &placement{key: string(key), pod: plain.pod, plain: plain}, r.Found.Total
	if r.prefer(p, preferred); r.Found.Total == before {
		r.placements[p.key] = p
	}
	return p
}

// forgetPreferences makes tasks prefer no node by their affinity if what they prefer would take too many node sets, or too long to find
// out.
func (r *reader) forgetPreferences(jobs []*job) {
	sets, conditions, some := 0, int64(0), false
	for _, p := range usedPlacements(jobs) {
		sets, conditions, some = sets+1, conditions+p.conditions()*int64(len(r.nodes)), some || p.plain != nil
	}
	const part = 2
	most := r.Limits.NodeSets / part
	if !some || (most == 0 || int64(sets) <= most) && conditions <= matches/part {
		return
	}
	for _, j := range jobs {
		for _, group := range j.placed {
			for i := range group {
				if plain := group[i].placement.plain; plain != nil {
					group[i].placement = plain
				}
			}
		}
	}
	r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_DROPPED, func() string { return "" },
		"pods prefer nodes in too many ways: which nodes their affinities prefer is left out of scores")
}

// prefer reads the preferred terms of a node affinity.
func (r *reader) prefer(p *placement, written *objects.Value) {
	readAs(r, written, &p.preferred)
	n := 0
	for i := range p.preferred {
		n = max(n, len(p.preferred[i].Preference.MatchExpressions)+len(p.preferred[i].Preference.MatchFields))
	}
	if n > maxExpressions {
		r.Found.Add(r.Doc, written, "a term of the node affinity has %d expressions, and at most %d are read", n, maxExpressions)
		return
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(p.preferred)
	if err != nil {
		r.Found.Add(r.Doc, written, "not a node affinity: %v", err)
		return
	}
	p.prefers = terms
}

// preference is how much pods of a placement prefer a node.
type preference struct {
	untolerated uint32
	affinity    int32
}

// preference counts the taints of a node that pods would rather avoid, and sums the weights of the preferred terms that match it, as
// Kubernetes' scheduler does.
func (p *placement) preference(n *corev1.Node) (of preference) {
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule &&
			!corev1helpers.TolerationsTolerateTaint(klog.Logger{}, p.pod.Spec.Tolerations, taint, false) {
			of.untolerated++
		}
	}
	if p.prefers != nil {
		of.affinity = int32(min(max(p.prefers.Score(n), math.MinInt32), math.MaxInt32))
	}
	return of
}

// preferences collects nodes that are preferred alike.
type preferences struct {
	list []*apportionv1.NodePreference
	at   map[preference]*apportionv1.NodePreference
}

func (c *preferences) add(node uint32, of preference) {
	if of == (preference{}) {
		return
	}
	if c.at == nil {
		c.at = map[preference]*apportionv1.NodePreference{}
	}
	alike := c.at[of]
	if alike == nil {
		alike = &apportionv1.NodePreference{Untolerated: of.untolerated, Affinity: of.affinity}
		c.at[of], c.list = alike, append(c.list, alike)
	}
	alike.Nodes = append(alike.Nodes, node)
}

// appendPreferences makes the key of sets differ with their preferences.
func appendPreferences(key []byte, list []*apportionv1.NodePreference) []byte {
	for _, p := range list {
		key = binary.LittleEndian.AppendUint32(append(key, 1), p.GetUntolerated())
		key = binary.LittleEndian.AppendUint32(key, uint32(p.GetAffinity()))
		for _, n := range p.GetNodes() {
			key = binary.LittleEndian.AppendUint32(key, n)
		}
	}
	return key
}
