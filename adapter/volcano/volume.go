package volcano

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/room"
)

// volumeRules judges the volumes of pods as the filters VolumeBinding, VolumeZone and VolumeRestrictions of Kubernetes' scheduler do.
type volumeRules struct {
	*reader

	claims  map[string]*corev1.PersistentVolumeClaim
	spaces  map[string]bool
	volumes map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	// tracked are the drivers whose free capacity the scheduler looks at, of drivers that were read. capacities are what is free by class.
	tracked    map[string]bool
	drivers    int
	capacities map[string][]*freeCapacity
	reported   int
	attach     attachment
	// offered are the volumes of each class that a claim may still be bound to.
	offered map[string][]*corev1.PersistentVolume
	// users counts the waiting pods that use a claim for one pod only, and the claims of a class that wait for a volume.
	users map[string]int
	// nodes have the labels that volumes look at, and nothing else.
	nodes []*corev1.Node
	// reach are the nodes of each condition, and restricted the placements with it.
	reach      map[string]*volumeReach
	restricted map[restrictedKey]*placement
	// left is how often a node may still be held against a condition.
	left int
}

type restrictedKey struct {
	base    *placement
	volumes string
}

// volumeReach says which nodes reach the volumes of a pod: lacks is for each node the number of the text that says what it lacks, from 1;
// 0: it lacks nothing.
type volumeReach struct {
	texts []string
	lacks []uint8
	// fixed: a node that is like one that lacks nothing, but has a name of its own, would lack something.
	fixed bool
}

// without returns what a node lacks, or "".
func (v *volumeReach) without(node int) string {
	if v == nil || v.lacks[node] == 0 {
		return ""
	}
	return v.texts[v.lacks[node]-1]
}

// volumeCondition is what a pod's volumes ask of a node.
type volumeCondition struct {
	// key is the same for conditions that the same nodes meet.
	key, text string
	// costs is what holding a node against it takes, and meets reports whether the node meets it; nil: none does.
	costs int
	meets func(n *corev1.Node) bool
}

// volumeChecks is how often a node is held against a volume in one snapshot. Pods beyond it are not judged by their volumes.
const volumeChecks = 2_000_000

// checksOfSet is what a node set takes besides its nodes, for its texts.
const checksOfSet = 200

// restrictVolumes gives each pod with volumes the placement that its volumes leave, and names those that cannot be judged. Waiting pods
// come first, and namespaces take turns, so that none uses up what others need.
func (r *reader) restrictVolumes(jobs []*job) {
	v := r.newVolumeRules()
	type claimant struct {
		*placed

		task *apportionv1.Task
	}
	var claimants [2]map[string][]claimant
	const waiting, running = 0, 1
	for i := range claimants {
		claimants[i] = map[string][]claimant{}
	}
	for _, j := range jobs {
		for i, group := range j.message.GetGroups() {
			for k := range j.placed[i] {
				p, task, at := &j.placed[i][k], group.GetTasks()[k], waiting
				if task.Node != nil {
					at = running
				}
				if len(p.claims) > 0 {
					claimants[at][p.traits.namespace] = append(claimants[at][p.traits.namespace], claimant{p, task})
				}
			}
		}
	}
	for _, list := range claimants[waiting] {
		for _, c := range list {
			v.count(c.placed)
		}
	}
	spent := map[string]float64{}
	for at, list := range claimants {
		room.InTurns(list, func(namespace string, c claimant) (share float64) {
			before := v.share()
			if !v.restrict(c.placed, at == waiting) || limitedByDriver(c.task) {
				c.unjudged = slices.Concat(c.unjudged, []apportionConstraint{constraintVolumes})
				slices.Sort(c.unjudged)
				c.unjudged = slices.Compact(c.unjudged)
			}
			spent[namespace] += v.share() - before
			return spent[namespace]
		})
	}
}

// share is the sum of the parts used of what a snapshot has for volumes: of checks and of sets of nodes.
func (v *volumeRules) share() float64 {
	share := 1 - float64(v.left)/volumeChecks
	if most := v.Limits.NodeSets; most > 0 {
		share += float64(len(v.restricted)) / float64(most)
	}
	return share
}

// limitedByDriver reports whether the scheduler itself says that a node has no room for a pod's volumes, which is not judged here.
func limitedByDriver(task *apportionv1.Task) bool {
	said := task.GetDetail().GetCondition()
	return strings.Contains(said, "exceed max volume count") || strings.Contains(said, "did not have enough free storage")
}

func (r *reader) newVolumeRules() *volumeRules {
	v := &volumeRules{
		reader: r, claims: map[string]*corev1.PersistentVolumeClaim{}, spaces: map[string]bool{},
		volumes: map[string]*corev1.PersistentVolume{}, classes: map[string]*storagev1.StorageClass{}, tracked: map[string]bool{},
		offered: map[string][]*corev1.PersistentVolume{}, users: map[string]int{}, reach: map[string]*volumeReach{},
		restricted: map[restrictedKey]*placement{}, left: volumeChecks,
	}
	v.capacities = map[string][]*freeCapacity{}
	var attaching []*storagev1.CSINode
	for _, s := range r.storage {
		switch {
		case s.claim != nil:
			v.claims[s.claim.Namespace+"/"+s.claim.Name], v.spaces[s.claim.Namespace] = s.claim, true
		case s.volume != nil:
			v.volumes[s.volume.Name] = s.volume
			if s.volume.Spec.ClaimRef != nil || s.volume.Status.Phase == corev1.VolumeAvailable {
				class := volumeClass(s.volume)
				v.offered[class] = append(v.offered[class], s.volume)
			}
		case s.class != nil:
			v.classes[s.class.Name] = s.class
		case s.driver != nil:
			v.drivers++
			v.tracked[s.driver.Name] = s.driver.Spec.StorageCapacity != nil && *s.driver.Spec.StorageCapacity
		case s.capacity != nil:
			v.reported++
			v.capacities[s.capacity.class] = append(v.capacities[s.capacity.class], s.capacity)
		case s.attach != nil:
			attaching = append(attaching, s.attach)
		}
	}
	for i := range r.nodes {
		n := r.nodes[i].candidate
		v.nodes = append(v.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: n.Labels}})
	}
	v.attach = v.attachment(attaching)
	return v
}

// knows reports whether all objects of a kind are known, of which so many were read.
func (v *volumeRules) knows(kind string, read int) bool { return read > 0 || v.Listed[kind] }

// count notes what the waiting pods want of the same claims and classes.
func (v *volumeRules) count(p *placed) {
	for _, u := range p.claims {
		key := p.traits.namespace + "/" + u.name
		c := v.claims[key]
		if c != nil && slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
			v.users[key]++
		}
		if c != nil && c.Spec.VolumeName == "" {
			v.users[classKey(claimClass(c))]++
		}
		v.attach.want(v.driverOf(c), key)
	}
}

// classKey is the key of a class in users. No claim has such a name.
func classKey(class string) string { return "class " + class }

// restrict sets the placement of a pod. It is false if something about its volumes is not judged.
func (v *volumeRules) restrict(p *placed, waiting bool) bool {
	conditions, judged := v.conditions(p, waiting)
	if len(conditions) == 0 {
		return judged
	}
	reach, key := v.reached(conditions)
	if reach == nil {
		return false
	}
	of := restrictedKey{p.placement, key}
	own := v.restricted[of]
	if own == nil {
		if most := v.Limits.NodeSets; most > 0 && int64(len(v.placements)+len(v.restricted)) >= most || v.left < len(v.nodes)+checksOfSet {
			return false
		}
		v.left -= len(v.nodes) + checksOfSet
		own = &placement{pod: p.placement.pod, key: p.placement.key, base: p.placement, volumes: reach}
		v.restricted[of] = own
	}
	p.placement = own
	return judged
}

// reached returns which nodes meet all conditions, and the key of these; nil if that takes too long.
func (v *volumeRules) reached(conditions []volumeCondition) (*volumeReach, string) {
	key, costs := "", 0
	for _, c := range conditions {
		key, costs = key+c.key+"\n", costs+c.costs
	}
	if known, some := v.reach[key]; some {
		return known, key
	}
	if costs *= len(v.nodes); costs > v.left {
		return nil, key
	}
	v.left -= costs
	out := &volumeReach{lacks: make([]uint8, len(v.nodes))}
	for _, c := range conditions {
		out.texts = append(out.texts, c.text)
	}
	lacking := func(n *corev1.Node) int {
		return slices.IndexFunc(conditions, func(c volumeCondition) bool { return c.meets == nil || !c.meets(n) })
	}
	for i, n := range v.nodes {
		// The name says which node a claim has selected.
		n.Name = v.reader.nodes[i].candidate.Name
		out.lacks[i] = uint8(lacking(n) + 1)
	}
	if i := slices.Index(out.lacks, 0); i >= 0 {
		out.fixed = lacking(renamed(v.nodes[i])) >= 0
	}
	v.reach[key] = out
	return out, key
}

// maxClaims is how many claims of a pod are judged.
const maxClaims = 50

// conditions returns what a pod's volumes ask of nodes. judged is false if there is more to it that is not known.
func (v *volumeRules) conditions(p *placed, waiting bool) (list []volumeCondition, judged bool) {
	if len(p.claims) > maxClaims {
		return nil, false
	}
	judged = true
	var unbound []*corev1.PersistentVolumeClaim
	for _, u := range p.claims {
		key := p.traits.namespace + "/" + u.name
		c := v.claims[key]
		if c == nil && !v.spaces[p.traits.namespace] && !v.Listed[claimKind] {
			// No claim of the namespace was read.
			judged = false
			continue
		}
		if why := v.refused(u, c, waiting); why != "" {
			return []volumeCondition{{key: why, text: why}}, true
		}
		if waiting && (v.users[key] > 1 || !v.attaches(v.driverOf(c))) {
			judged = false
		}
		if c.Spec.VolumeName == "" {
			unbound = append(unbound, c)
			continue
		}
		conditions, known := v.bound(c)
		if list = append(list, conditions...); !known {
			judged = false
		}
	}
	conditions, known, why := v.unbound(unbound)
	if why != "" {
		return []volumeCondition{{key: why, text: why}}, true
	}
	return append(list, conditions...), judged && known
}

// refused returns why no node takes a pod with a claim; empty: one may.
func (v *volumeRules) refused(u claimed, c *corev1.PersistentVolumeClaim, waiting bool) string {
	switch {
	case c == nil && u.ephemeral:
		return fmt.Sprintf("the claim %q of its ephemeral volume does not exist yet", u.name)
	case c == nil:
		return fmt.Sprintf("the claim %q does not exist", u.name)
	case c.Status.Phase == corev1.ClaimLost:
		return fmt.Sprintf("the claim %q has lost its volume %q", u.name, c.Spec.VolumeName)
	case c.DeletionTimestamp != nil && waiting:
		return fmt.Sprintf("the claim %q is being deleted", u.name)
	case c.Spec.VolumeName != "" && !metav1.HasAnnotation(c.ObjectMeta, bindCompleted):
		return fmt.Sprintf("the claim %q is not bound to its volume %q yet", u.name, c.Spec.VolumeName)
	case c.Spec.VolumeName != "" && v.volumes[c.Spec.VolumeName] == nil && v.knows(volumeKind, len(v.volumes)):
		return fmt.Sprintf("the volume %q of the claim %q does not exist", c.Spec.VolumeName, u.name)
	}
	if user := v.claimUsers[c.Namespace+"/"+c.Name]; waiting && user != "" &&
		slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return fmt.Sprintf("the claim %q is for one pod only, and pod %q uses it", u.name, user)
	}
	return ""
}

// zoneLabels are the labels of a volume that a node must have too.
var zoneLabels = []string{
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
}

// bound returns what the volume of a bound claim asks of nodes. known is false if the volume was not read, or is not judged.
func (v *volumeRules) bound(c *corev1.PersistentVolumeClaim) (list []volumeCondition, known bool) {
	pv := v.volumes[c.Spec.VolumeName]
	if pv == nil || pv.Spec.GCEPersistentDisk != nil {
		return nil, false
	}
	if affinity := pv.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector := nodeaffinity.NewLazyErrorNodeSelector(affinity.Required)
		var terms []string
		expressions := 0
		for i := range affinity.Required.NodeSelectorTerms {
			term := &affinity.Required.NodeSelectorTerms[i]
			expressions += 1 + len(term.MatchExpressions) + len(term.MatchFields)
			terms = append(terms, termText(term))
		}
		key, err := json.Marshal(affinity.Required)
		list = append(list, volumeCondition{
			key: "affinity " + string(key), text: "node affinity of its volume " + few(terms, " or "), costs: 1 + expressions,
			meets: func(n *corev1.Node) bool {
				ok, err := selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: n.Labels}})
				return err == nil && ok
			},
		})
		if err != nil {
			return nil, false
		}
	}
	for _, label := range zoneLabels {
		value, some := pv.Labels[label]
		if !some {
			continue
		}
		var zones []string
		for zone := range strings.SplitSeq(value, "__") {
			zones = append(zones, strings.TrimSpace(zone))
		}
		if slices.Contains(zones, "") {
			continue // Kubernetes' scheduler ignores a label that it cannot read.
		}
		list = append(list, volumeCondition{
			key: "zone " + label + "=" + value, text: "label of its volume " + label + "=" + value, costs: 1,
			meets: func(n *corev1.Node) bool { return inZone(n, label, zones) },
		})
	}
	return list, true
}

// inZone reports whether a node is in one of the zones or regions of a volume. One without any label of a zone or region is.
func inZone(n *corev1.Node, label string, zones []string) bool {
	if !slices.ContainsFunc(zoneLabels, func(l string) bool { _, some := n.Labels[l]; return some }) {
		return true
	}
	value, some := n.Labels[label]
	if !some {
		switch label {
		case corev1.LabelFailureDomainBetaZone:
			value, some = n.Labels[corev1.LabelTopologyZone]
		case corev1.LabelFailureDomainBetaRegion:
			value, some = n.Labels[corev1.LabelTopologyRegion]
		}
	}
	return some && slices.Contains(zones, value)
}
