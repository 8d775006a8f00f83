package cluster

import (
	"maps"

	"github.com/apportion/apportion/adapter/objects"
)

// resource is a list of the API server.
type resource struct {
	path string
	// namespaced lists may be readable in one namespace only.
	namespaced bool
	// needed lists are required for any answer. Most answers depend on lists that decide, and are not known without them.
	needed, decides bool
	// judges names what is not judged without the list, which then lacks nothing else. Answers are complete without it.
	judges string
	// kind is the kind of the objects. Of Kueue's kinds it has no version: versions are those that may be served, the newest first.
	kind     objects.Kind
	versions []string
}

// paths are the lists of a resource, of which the first that is served is read.
func (r *resource) paths(name string) []string {
	if len(r.versions) == 0 {
		return []string{r.path + "/" + name}
	}
	paths := make([]string, len(r.versions))
	for i, version := range r.versions {
		paths[i] = r.path + "/" + version + "/" + name
	}
	return paths
}

const (
	core         = "/api/v1"
	volcanoGroup = "scheduling.volcano.sh"
	groupVersion = volcanoGroup + "/v1beta1"
	group        = "/apis/" + groupVersion
)

// resources are the lists to read, by the name of their objects.
var resources = map[string]resource{
	"queues":    {path: group, needed: true, kind: objects.Kind{Name: "Queue", Version: groupVersion}},
	"podgroups": {path: group, namespaced: true, needed: true, kind: objects.Kind{Name: "PodGroup", Version: groupVersion}},
	"pods":      {path: core, namespaced: true, decides: true, kind: objects.Kind{Name: "Pod", Version: "v1"}},
	"nodes":     {path: core, decides: true, kind: objects.Kind{Name: "Node", Version: "v1"}},
	"priorityclasses": {
		path: "/apis/scheduling.k8s.io/v1", decides: true, kind: objects.Kind{Name: "PriorityClass", Version: "scheduling.k8s.io/v1"},
	},
}

const (
	storageVersion   = "storage.k8s.io/v1"
	storageGroup     = "/apis/" + storageVersion
	judgesVolumes    = "volumes of pods"
	judgesNamespaces = "affinities to pods in namespaces selected by labels"
)

// followed are resources and those that constraints of pods are judged by.
var followed = func() map[string]resource {
	all := maps.Clone(resources)
	maps.Copy(all, map[string]resource{
		"namespaces": {path: core, judges: judgesNamespaces, kind: objects.Kind{Name: "Namespace", Version: "v1"}},
		"persistentvolumeclaims": {
			path: core, namespaced: true, judges: judgesVolumes, kind: objects.Kind{Name: "PersistentVolumeClaim", Version: "v1"},
		},
		"persistentvolumes": {path: core, judges: judgesVolumes, kind: objects.Kind{Name: "PersistentVolume", Version: "v1"}},
		"storageclasses":    {path: storageGroup, judges: judgesVolumes, kind: objects.Kind{Name: "StorageClass", Version: storageVersion}},
		"csidrivers":        {path: storageGroup, judges: judgesVolumes, kind: objects.Kind{Name: "CSIDriver", Version: storageVersion}},
		"csinodes":          {path: storageGroup, judges: judgesVolumes, kind: objects.Kind{Name: "CSINode", Version: storageVersion}},
		"csistoragecapacities": {
			path: storageGroup, judges: judgesVolumes, kind: objects.Kind{Name: "CSIStorageCapacity", Version: storageVersion},
		},
	})
	return all
}()

// order is the order in which Volcano's lists are given. That of namespaces is given with Kueue's.
var order = []string{
	"queues", "podgroups", "pods", "nodes", "priorityclasses", "csidrivers", "csinodes", "csistoragecapacities", "storageclasses",
	"persistentvolumes", "persistentvolumeclaims",
}
