package volcano

import (
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
)

// The API groups of the kinds that are read; Kubernetes' core group has only a version.
const (
	volcanoGroup  = "scheduling.volcano.sh"
	priorityGroup = "scheduling.k8s.io"
	storageGroup  = "storage.k8s.io"
	coreVersion   = "v1"
	betaVersion   = "v1beta1"
	// volcanoVersion is the apiVersion of the kinds of volcanoGroup.
	volcanoVersion = volcanoGroup + "/" + betaVersion
)

// Kinds of objects.
const (
	nodeKind      = "Node"
	queueKind     = "Queue"
	podGroupKind  = "PodGroup"
	podKind       = "Pod"
	classKind     = "PriorityClass"
	namespaceKind = "Namespace"
	claimKind     = "PersistentVolumeClaim"
	volumeKind    = "PersistentVolume"
	storageKind   = "StorageClass"
	driverKind    = "CSIDriver"
	attachKind    = "CSINode"
	capacityKind  = "CSIStorageCapacity"
)

// What is not judged where a list cannot be read.
const (
	judgesVolumes    = "volumes of pods"
	judgesNamespaces = "affinities to pods in namespaces selected by labels"
)

// olderVersions are those of objects that files have and clusters no longer serve.
var olderVersions = []string{betaVersion, "v1alpha1"}

// kinds are the objects that are read. The configuration of Volcano's scheduler is read by package schedulerconf.
var kinds = objects.NewTable(
	objects.Row[*reader]{Resource: ofVolcano(queueKind, "queues", false), Shape: queueShape, Read: (*reader).queue},
	objects.Row[*reader]{Resource: ofVolcano(podGroupKind, "podgroups", true), Shape: podGroupShape, Read: (*reader).podGroup},
	objects.Row[*reader]{Resource: core(podKind, "pods", true, ""), Shape: podShape, Read: (*reader).pod},
	objects.Row[*reader]{Resource: core(nodeKind, "nodes", false, ""), Shape: nodeShape, Read: (*reader).node},
	objects.Row[*reader]{
		Resource: objects.Resource{
			Kind: classKind, Group: priorityGroup, Versions: []string{coreVersion}, Older: olderVersions, List: "priorityclasses",
			Decides: true,
		},
		Shape: classShape, Read: (*reader).priorityClass,
	},
	objects.Row[*reader]{Resource: ofStorage(driverKind, "csidrivers"), Shape: driverShape, Read: (*reader).csiDriver},
	objects.Row[*reader]{Resource: ofStorage(attachKind, "csinodes"), Shape: attachShape, Read: (*reader).csiNode},
	objects.Row[*reader]{
		Resource: ofStorage(capacityKind, "csistoragecapacities"), Shape: capacityShape, Read: (*reader).storageCapacity,
	},
	objects.Row[*reader]{Resource: ofStorage(storageKind, "storageclasses"), Shape: storageShape, Read: (*reader).storageClass},
	objects.Row[*reader]{
		Resource: core(volumeKind, "persistentvolumes", false, judgesVolumes), Shape: volumeShape, Read: (*reader).persistentVolume,
	},
	objects.Row[*reader]{
		Resource: core(claimKind, "persistentvolumeclaims", true, judgesVolumes), Shape: claimShape, Read: (*reader).persistentVolumeClaim,
	},
	objects.Row[*reader]{
		Resource: core(namespaceKind, "namespaces", false, judgesNamespaces), Shape: objects.Select("metadata.labels"),
		Read: (*reader).namespace,
	},
	objects.Row[*reader]{Resource: schedulerconf.ConfigMap}, objects.Row[*reader]{Resource: schedulerconf.Deployment},
)

// ofVolcano is a kind of Volcano.
func ofVolcano(kind, list string, namespaced bool) objects.Resource {
	return objects.Resource{
		Kind: kind, Group: volcanoGroup, Versions: []string{betaVersion}, List: list, Namespaced: namespaced, Needed: true,
	}
}

// core is a kind of Kubernetes' core, by which constraints of pods alone are judged, or on which most answers depend.
func core(kind, list string, namespaced bool, judges string) objects.Resource {
	return objects.Resource{
		Kind: kind, Versions: []string{coreVersion}, List: list, Namespaced: namespaced, Decides: judges == "", Judges: judges,
	}
}

// ofStorage is a kind that volumes are judged by.
func ofStorage(kind, list string) objects.Resource {
	return objects.Resource{
		Kind: kind, Group: storageGroup, Versions: []string{coreVersion}, Older: olderVersions, List: list, Judges: judgesVolumes,
	}
}

// Kinds are the kinds that a cluster lists, in the order in which their objects are given.
func Kinds() []*objects.Resource { return kinds.Resources() }

// Shape is what is read of objects.
func Shape() *objects.Shape { return kinds.Shape() }
