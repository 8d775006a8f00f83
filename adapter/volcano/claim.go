package volcano

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"
)

// unbound returns what claims without volumes ask of nodes, or why no node takes a pod with them. known is false if something about them is
// not judged.
func (v *volumeRules) unbound(claims []*corev1.PersistentVolumeClaim) (list []volumeCondition, known bool, why string) {
	if len(claims) == 0 {
		return nil, true, ""
	}
	known = true
	for _, c := range claims {
		name := claimClass(c)
		class := v.classes[name]
		if class == nil && name != "" && !v.knows(storageKind, len(v.classes)) {
			return nil, false, ""
		}
		if class == nil {
			return nil, true, fmt.Sprintf("the claim %q is not bound to a volume yet, and %s", c.Name, withoutClass(name))
		}
		if *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
			return nil, true, fmt.Sprintf("the claim %q is not bound to a volume yet, and its class does not wait for a pod", c.Name)
		}
		// A volume that is kept for a claim is no matter of others.
		contested := v.users[classKey(name)] > 1 && slices.ContainsFunc(v.offered[name], func(pv *corev1.PersistentVolume) bool {
			return pv.Spec.ClaimRef == nil
		})
		if !v.knowsRoom(class) || contested || !v.knows(volumeKind, len(v.volumes)) && !everywhere(class) {
			known = false
		}
	}
	slices.SortStableFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int {
		first, second := a.Spec.Resources.Requests[corev1.ResourceStorage], b.Spec.Resources.Requests[corev1.ResourceStorage]
		return first.Cmp(second)
	})
	one := volumeCondition{key: "unbound", costs: 1, meets: func(n *corev1.Node) bool { return v.provided(claims, n) }}
	var names []string
	for _, c := range claims {
		name := claimClass(c)
		names = appendNew(names, name)
		one.key += " " + name + " " + c.Annotations[selectedNode]
		if offered := v.candidates(c); len(offered) > 0 {
			const atOnce = 4
			one.key += " " + c.Namespace + "/" + c.Name
			one.costs += atOnce * len(offered)
		}
		if class := v.classes[name]; v.tracked[class.Provisioner] {
			one.key += fmt.Sprintf(" %d", sizeOf(c))
			for _, free := range v.capacities[name] {
				one.costs += free.costs
			}
		}
	}
	slices.Sort(names)
	one.text = "a volume of storage class " + few(names, ", ")
	return []volumeCondition{one}, known, ""
}

// everywhere reports whether a class provides volumes for every node.
func everywhere(c *storagev1.StorageClass) bool {
	return len(c.AllowedTopologies) == 0 && c.Provisioner != "" && c.Provisioner != noProvisioner
}

// candidates lists the volumes of a claim's class that are free, or kept for the claim.
func (v *volumeRules) candidates(c *corev1.PersistentVolumeClaim) (list []*corev1.PersistentVolume) {
	for _, pv := range v.offered[claimClass(c)] {
		if pv.Spec.ClaimRef == nil || keptFor(pv, c) {
			list = append(list, pv)
		}
	}
	return list
}

// provided reports whether on a node each claim finds a volume, or its class provides one.
func (v *volumeRules) provided(claims []*corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	chosen := map[string]*corev1.PersistentVolume{}
	for _, c := range claims {
		selected := c.Annotations[selectedNode]
		if selected != "" && selected != n.Name {
			return false
		}
		if selected == "" {
			pv, err := matching(c, v.offered[claimClass(c)], n, chosen)
			if err != nil {
				return false
			}
			if pv != nil {
				chosen[pv.Name] = pv
				continue
			}
		}
		class := v.classes[claimClass(c)]
		if selected == "" && !everywhere(class) && !v.knows(volumeKind, len(v.volumes)) {
			// One of the volumes that were not read may do.
			continue
		}
		if cmp.Or(class.Provisioner, noProvisioner) == noProvisioner ||
			!inTopology(class.AllowedTopologies, n) || !v.hasRoom(class, c, n) {
			return false
		}
	}
	return true
}

// inTopology reports whether a node meets one of the terms of a class, or the class has none.
func inTopology(terms []corev1.TopologySelectorTerm, n *corev1.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return len(t.MatchLabelExpressions) > 0 && !slices.ContainsFunc(t.MatchLabelExpressions,
			func(e corev1.TopologySelectorLabelRequirement) bool {
				value, some := n.Labels[e.Key]
				return !some || !slices.Contains(e.Values, value)
			})
	})
}

// withoutClass says why a claim has no storage class.
func withoutClass(name string) string {
	if name == "" {
		return "it names no storage class"
	}
	return fmt.Sprintf("its storage class %q does not exist", name)
}

// The rules by which Kubernetes matches claims and volumes, as k8s.io/component-helpers/storage/volume has them. That package is not
// imported because it links the types of every API group of Kubernetes: 61 packages, an eighth of a first build, a fifth of the binary and
// ten milliseconds of every start. Tests compare with it.
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// claimClass returns the storage class that a claim names, "" for none. The older annotation comes first.
func claimClass(c *corev1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return ptr.Deref(c.Spec.StorageClassName, "")
}

// volumeClass returns the storage class of a volume, "" for none.
func volumeClass(pv *corev1.PersistentVolume) string {
	if class, ok := pv.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return pv.Spec.StorageClassName
}

// keptFor reports whether a volume names a claim as the one that it belongs to.
func keptFor(pv *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == c.Name && ref.Namespace == c.Namespace && (ref.UID == "" || ref.UID == c.UID)
}

// matching returns the volume that a claim gets on a node as kube-scheduler chooses it (FindMatchingVolume): the one that is kept for the
// claim, else the smallest available one of its class that has what it asks for. It returns nil if there is none, and an error if the
// claim's selector is not valid.
func matching(
	c *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, n *corev1.Node, chosen map[string]*corev1.PersistentVolume,
) (*corev1.PersistentVolume, error) {
	selector := labels.Everything()
	if c.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(c.Spec.Selector); err != nil {
			return nil, err
		}
	}
	var best *corev1.PersistentVolume
	for _, pv := range volumes {
		switch {
		case chosen[pv.Name] != nil || !holds(pv, c):
		case keptFor(pv, c):
			if best = pv; !reaches(pv, n) {
				best = nil
			}
			return best, nil
		case pv.Spec.ClaimRef == nil && pv.Status.Phase == corev1.VolumeAvailable && volumeClass(pv) == claimClass(c) &&
			selector.Matches(labels.Set(pv.Labels)) && hasModes(pv, c) && (best == nil || smaller(pv, best)) && reaches(pv, n):
			best = pv
		}
	}
	return best, nil
}

// holds reports whether a volume that is not being deleted is as large as a claim asks for, and of its mode and attributes.
func holds(pv *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	const unstated = corev1.PersistentVolumeFilesystem
	has, asked := pv.Spec.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	return has.Cmp(asked) >= 0 && pv.DeletionTimestamp == nil &&
		ptr.Deref(pv.Spec.VolumeMode, unstated) == ptr.Deref(c.Spec.VolumeMode, unstated) &&
		ptr.Deref(pv.Spec.VolumeAttributesClassName, "") == ptr.Deref(c.Spec.VolumeAttributesClassName, "")
}

// hasModes reports whether a volume has every access mode that a claim asks for.
func hasModes(pv *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(c.Spec.AccessModes, func(asked corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(pv.Spec.AccessModes, asked)
	})
}

// smaller reports whether a volume has less room than another.
func smaller(pv, other *corev1.PersistentVolume) bool {
	has, than := pv.Spec.Capacity[corev1.ResourceStorage], other.Spec.Capacity[corev1.ResourceStorage]
	return has.Cmp(than) < 0
}

// reaches reports whether a volume can be used on a node.
func reaches(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	labeled := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: n.Labels}}
	meets, err := corev1helpers.MatchNodeSelectorTerms(labeled, pv.Spec.NodeAffinity.Required)
	return meets && err == nil
}

// attachment counts volumes against what nodes attach of each driver, as the filter NodeVolumeLimits of Kubernetes' scheduler does. What is
// attached changes with the pods on a node, so that no node is left out for it.
type attachment struct {
	// known: what nodes attach was read.
	known bool
	// least is the fewest volumes of a driver that a node still attaches; a driver without limits has none.
	least map[string]int
	// wanted counts the claims of waiting pods by driver, each once.
	wanted map[string]int
	seen   map[string]bool
}

// attachment counts what pods have attached to the nodes.
func (v *volumeRules) attachment(nodes []*storagev1.CSINode) attachment {
	a := attachment{
		known: v.knows(attachKind, len(nodes)), least: map[string]int{}, wanted: map[string]int{}, seen: map[string]bool{},
	}
	for _, n := range nodes {
		used := map[string]int{}
		for _, key := range slices.Compact(slices.Sorted(slices.Values(v.attached[n.Name]))) {
			used[v.driverOf(v.claims[key])]++
		}
		for _, d := range n.Spec.Drivers {
			if d.Allocatable == nil || d.Allocatable.Count == nil {
				continue
			}
			left := int(*d.Allocatable.Count) - used[d.Name]
			if least, some := a.least[d.Name]; !some || left < least {
				a.least[d.Name] = left
			}
		}
	}
	return a
}

// want notes that a waiting pod uses a claim.
func (a *attachment) want(driver, claim string) {
	if driver != "" && !a.seen[claim] {
		a.seen[claim] = true
		a.wanted[driver]++
	}
}

// attaches reports whether every node attaches all volumes of a driver that waiting pods want, wherever they go.
func (v *volumeRules) attaches(driver string) bool {
	least, limited := v.attach.least[driver]
	return driver == "" || v.attach.known && (!limited || v.attach.wanted[driver] <= least)
}

// driverOf returns the driver that attaches the volume of a claim; empty: none does, or it is not known.
func (v *volumeRules) driverOf(c *corev1.PersistentVolumeClaim) string {
	if c == nil {
		return ""
	}
	if pv := v.volumes[c.Spec.VolumeName]; pv != nil && pv.Spec.CSI != nil {
		return pv.Spec.CSI.Driver
	}
	class := v.classes[claimClass(c)]
	if c.Spec.VolumeName != "" || class == nil || class.Provisioner == noProvisioner {
		return ""
	}
	return class.Provisioner
}

// knowsRoom reports whether it is known how large volumes of a class may be, or that its driver does not say.
func (v *volumeRules) knowsRoom(class *storagev1.StorageClass) bool {
	switch {
	case class.Provisioner == "" || class.Provisioner == noProvisioner:
		return true
	case !v.knows(driverKind, v.drivers):
		return false
	}
	return !v.tracked[class.Provisioner] || v.knows(capacityKind, v.reported)
}

// hasRoom reports whether a driver provides a volume of the size of a claim on a node, as far as it says.
func (v *volumeRules) hasRoom(class *storagev1.StorageClass, c *corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	if !v.tracked[class.Provisioner] || !v.knows(capacityKind, v.reported) {
		return true
	}
	return slices.ContainsFunc(v.capacities[class.Name], func(free *freeCapacity) bool {
		return free.most.Value() >= sizeOf(c) && free.topology.Matches(labels.Set(n.Labels))
	})
}

// sizeOf returns what a claim asks for, in bytes.
func sizeOf(c *corev1.PersistentVolumeClaim) int64 {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.Value()
}
