package kubescheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// bindCompleted is the annotation of a claim that the binding of its volume is complete.
	bindCompleted = "pv.kubernetes.io/bind-completed"
	provisioner   = "disk.example.com"

	immediateClass = "immediate"
	lateClass      = "late"
	zonalClass     = "zonal"
)

// classes makes a class that provides volumes at once, one that waits for the first pod, and one that does so in some zones only.
func (g *generator) classes() {
	immediate, late := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	class := func(name string, mode *storagev1.VolumeBindingMode, topologies []corev1.TopologySelectorTerm) {
		g.Classes = append(g.Classes, &storagev1.StorageClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: mode, AllowedTopologies: topologies,
		})
	}
	class(immediateClass, &immediate, nil)
	class(lateClass, &late, nil)
	topologies := []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: some(g, zones...)},
	}}}
	if g.chance(40) {
		topologies = append(topologies, corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: []string{one(g, zones...)}}, {Key: diskLabel, Values: some(g, disks...)},
		}})
	}
	class(zonalClass, &late, topologies)
}

// volumes lets a waiting pod use one or two claims. A few of them are not bound, do not exist, or have lost their volume.
func (g *generator) volumes(p *corev1.Pod) {
	for i := range one(g, 1, 1, 1, 2) {
		name := fmt.Sprintf("%s-%d", p.Name, i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("data-%d", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
		switch k := g.IntN(30); {
		case k < 14:
			g.bound(p.Namespace, name)
		case k < 18:
			g.claim(p.Namespace, name, lateClass)
		case k < 26:
			g.claim(p.Namespace, name, zonalClass)
		case k < 27:
			g.claim(p.Namespace, name, immediateClass)
		case k < 28:
			g.bound(p.Namespace, name).Status.Phase = corev1.ClaimLost
			g.Volumes = g.Volumes[:len(g.Volumes)-1]
		}
	}
}

// claim makes a claim that is not bound.
func (g *generator) claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	g.Claims = append(g.Claims, c)
	return c
}

// bound makes a claim with its volume, which some nodes reach.
func (g *generator) bound(namespace, name string) *corev1.PersistentVolumeClaim {
	class := one(g, immediateClass, lateClass, zonalClass)
	c := g.claim(namespace, name, class)
	c.Annotations, c.Status.Phase = map[string]string{bindCompleted: "yes"}, corev1.ClaimBound
	c.Spec.VolumeName = namespace + "-" + name
	v := &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: c.Spec.AccessModes, StorageClassName: class, Capacity: c.Spec.Resources.Requests,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: c.Spec.VolumeName},
			},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	switch g.IntN(6) {
	case 0: // Every node reaches it.
	case 1:
		v.Spec.NodeAffinity = required(corev1.LabelHostname, one(g, g.Nodes...).Name)
	case 2: // A volume of a cloud has labels beside its affinity.
		zone := one(g, zones...)
		v.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		v.Spec.NodeAffinity = required(corev1.LabelTopologyZone, zone)
	case 3:
		v.Spec.NodeAffinity = required(diskLabel, some(g, disks...)...)
	default:
		v.Spec.NodeAffinity = required(corev1.LabelTopologyZone, some(g, zones...)...)
	}
	g.Volumes = append(g.Volumes, v)
	return c
}

// required returns the affinity of a volume to nodes with a label.
func required(key string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}
}
