package volcano

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
)

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
