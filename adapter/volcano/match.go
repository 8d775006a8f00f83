package volcano

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"
)

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
