package volcano

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/apportion/apportion/adapter/objects"
)

// stored is an object of which volumes of pods are made. One field is set.
type stored struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	class  *storagev1.StorageClass
	driver *storagev1.CSIDriver
	// attach says how many volumes a node attaches, and capacity what is free of a class.
	attach   *storagev1.CSINode
	capacity *freeCapacity
}

// What is read of the objects that volumes are made of.
var (
	claimShape = objects.Annotated(objects.Select(
		"metadata.labels", "metadata.deletionTimestamp", "spec.accessModes", "spec.storageClassName", "spec.volumeMode",
		"spec.volumeAttributesClassName", "spec.volumeName", "spec.selector*", "spec.resources.requests", "status.phase",
	), storageAnnotations...)
	volumeShape = objects.Annotated(objects.Select(
		"metadata.labels", "metadata.deletionTimestamp", "spec?", "spec.nodeAffinity.required*", "spec.capacity", "spec.accessModes",
		"spec.claimRef", "spec.storageClassName", "spec.volumeMode", "spec.volumeAttributesClassName", "spec.csi.driver",
		"spec.csi.volumeHandle", "status.phase",
	), storageAnnotations...)
	storageShape  = objects.Select("provisioner", "volumeBindingMode", "allowedTopologies*")
	driverShape   = objects.Select("spec.storageCapacity")
	attachShape   = objects.Select("spec.drivers.name", "spec.drivers.allocatable.count")
	capacityShape = objects.Select("storageClassName", "capacity", "maximumVolumeSize", "nodeTopology*")
)

// freeCapacity is how large a volume of a class may be on nodes with some labels, where a driver reports it.
type freeCapacity struct {
	class    string
	most     resource.Quantity
	topology labels.Selector
	// costs is what holding a node against the topology takes.
	costs int
}

// claimed is a claim that a pod uses. An ephemeral one is made for the pod by a controller.
type claimed struct {
	name      string
	ephemeral bool
}

// claims lists the claims that a pod uses.
func (r *reader) claims(m objects.Metadata, spec *objects.Value) []claimed {
	var list []claimed
	for _, v := range itemsOf(spec.Field("volumes")) {
		if claim := v.Field("persistentVolumeClaim"); claim != nil {
			list = append(list, claimed{name: once(r.TextAt(claim.Field("claimName")))})
		} else if v.Field("ephemeral") != nil {
			list = append(list, claimed{name: m.Name + "-" + r.TextAt(v.Field(objects.NameField)), ephemeral: true})
		}
	}
	return list
}

// storedMetadata returns the metadata that Kubernetes' rules on volumes look at.
func (r *reader) storedMetadata(m objects.Metadata) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace}
	readAs(r, m.Value.Field("uid"), &out.UID)
	readAs(r, m.Labels, &out.Labels)
	if m.Value.Field("deletionTimestamp") != nil {
		out.DeletionTimestamp = &metav1.Time{}
	}
	for _, key := range storageAnnotations {
		if v := m.Annotations.Field(key); v != nil {
			metav1.SetMetaDataAnnotation(&out, key, r.TextAt(v))
		}
	}
	return out
}

// storageAnnotations are the annotations that Kubernetes' rules on volumes look at.
var storageAnnotations = []string{bindCompleted, selectedNode, corev1.BetaStorageClassAnnotation}

// persistentVolumeClaim reads a PersistentVolumeClaim.
func (r *reader) persistentVolumeClaim(m objects.Metadata, root *objects.Value) {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: r.storedMetadata(m)}
	spec := root.Field(specField)
	if resources := spec.Field("resources"); r.areQuantities(resources.Field("requests")) && r.areQuantities(resources.Field("limits")) {
		readAs(r, spec, &c.Spec)
	}
	c.Status.Phase = corev1.PersistentVolumeClaimPhase(root.Field("status").TextOf("phase"))
	r.storage = append(r.storage, stored{claim: c})
}

// persistentVolume reads a PersistentVolume.
func (r *reader) persistentVolume(m objects.Metadata, root *objects.Value) {
	v, spec := &corev1.PersistentVolume{ObjectMeta: r.storedMetadata(m)}, root.Field(specField)
	if r.areQuantities(spec.Field("capacity")) {
		readAs(r, spec, &v.Spec)
	}
	for _, in := range builtIn {
		if spec.Field(in) != nil {
			// The name of the source is all that is kept of it.
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}
		}
	}
	if affinity := v.Spec.NodeAffinity; affinity != nil && affinity.Required != nil && longest(affinity.Required) > maxExpressions {
		r.Found.Add(r.Doc, spec, "a term of the node affinity has %d expressions, and at most %d are read",
			longest(affinity.Required), maxExpressions)
	}
	v.Status.Phase = corev1.PersistentVolumePhase(root.Field("status").TextOf("phase"))
	r.storage = append(r.storage, stored{volume: v})
}

// areQuantities reports whether all fields of an object are quantities, and adds a problem for each that is none. Kubernetes' own type,
// which is decoded next, computes 1e999999999.
func (r *reader) areQuantities(v *objects.Value) bool {
	before := r.Found.Total
	if v != nil {
		for _, item := range v.Items {
			r.QuantityAt(item)
		}
	}
	return r.Found.Total == before
}

// builtIn are the sources of volumes that Kubernetes once served itself. Its scheduler translates the labels of such volumes to those of
// the driver that serves them now.
var builtIn = []string{
	"gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "vsphereVolume", "portworxVolume",
}

// exclusive are the volumes of a pod, named in the pod itself, that Kubernetes' scheduler keeps from being used twice on a node.
var exclusive = []string{"gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"}

// exclusiveVolume reports whether a volume of a pod is such a one.
func exclusiveVolume(v *objects.Value) bool {
	return slices.ContainsFunc(exclusive, func(source string) bool { return v.Field(source) != nil })
}

// storageClass reads a StorageClass. Without a mode it binds at once, as API servers complete it.
func (r *reader) storageClass(m objects.Metadata, root *objects.Value) {
	mode := storagev1.VolumeBindingImmediate
	if written := root.TextOf("volumeBindingMode"); written != "" {
		mode = storagev1.VolumeBindingMode(written)
	}
	c := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Provisioner: r.TextAt(root.Field("provisioner")), VolumeBindingMode: &mode,
	}
	readAs(r, root.Field("allowedTopologies"), &c.AllowedTopologies)
	r.storage = append(r.storage, stored{class: c})
}

// csiDriver reads a CSIDriver.
func (r *reader) csiDriver(m objects.Metadata, root *objects.Value) {
	d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	d.Spec.StorageCapacity = r.FlagAt(root.Field(specField).Field("storageCapacity"))
	r.storage = append(r.storage, stored{driver: d})
}

// csiNode reads a CSINode: how many volumes each driver attaches to the node.
func (r *reader) csiNode(m objects.Metadata, root *objects.Value) {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	readAs(r, root.Field(specField), &n.Spec)
	r.storage = append(r.storage, stored{attach: n})
}

// storageCapacity reads a CSIStorageCapacity. One without a topology or an amount says nothing of any node.
func (r *reader) storageCapacity(_ objects.Metadata, root *objects.Value) {
	c := &freeCapacity{class: r.TextAt(root.Field("storageClassName")), topology: labels.Nothing()}
	if topology := root.Field("nodeTopology"); topology != nil {
		var selector metav1.LabelSelector
		readAs(r, topology, &selector)
		if c.costs = 1 + len(selector.MatchLabels) + len(selector.MatchExpressions); c.costs > maxExpressions {
			r.Found.Add(r.Doc, topology, "the topology has %d labels and expressions, and at most %d are read", c.costs-1, maxExpressions)
		} else if of, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
			r.Found.Add(r.Doc, topology, "not a label selector: %v", err)
		} else {
			c.topology = of
		}
	}
	most := root.Field("maximumVolumeSize")
	if most == nil {
		most = root.Field("capacity")
	}
	if most == nil {
		c.topology = labels.Nothing()
	} else {
		c.most, _ = r.QuantityAt(most)
	}
	r.storage = append(r.storage, stored{capacity: c})
}

// useClaims notes that a pod on a node uses its claims.
func (r *reader) useClaims(p *pod) {
	if p.node == "" || p.terminated {
		return
	}
	for _, c := range p.placed.claims {
		if r.claimUsers == nil {
			r.claimUsers, r.attached = map[string]string{}, map[string][]string{}
		}
		key := p.namespace + "/" + c.name
		r.claimUsers[key] = p.task.GetName()
		r.attached[p.node] = append(r.attached[p.node], key)
	}
}
