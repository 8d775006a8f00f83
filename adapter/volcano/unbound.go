package volcano

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
