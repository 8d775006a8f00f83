package cluster

import (
	"strings"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
)

const (
	core         = "/api/v1"
	volcanoGroup = "scheduling.volcano.sh"
	groupVersion = volcanoGroup + "/v1beta1"
)

// followed are the lists of Volcano and of what constraints of pods are judged by, and kueueResources those of Kueue and of what its queues
// select, by the names of the lists.
var followed, kueueResources = byName(volcano.Kinds()), byName(kueue.Kinds())

func byName(kinds []*objects.Resource) map[string]objects.Resource {
	lists := make(map[string]objects.Resource, len(kinds))
	for _, kind := range kinds {
		lists[kind.List] = *kind
	}
	return lists
}

// order is the order in which lists are given: those of Volcano first. A list that both read is given with Kueue's.
var order = func() []string {
	var names []string
	for _, kind := range volcano.Kinds() {
		if _, both := kueueResources[kind.List]; !both {
			names = append(names, kind.List)
		}
	}
	for _, kind := range kueue.Kinds() {
		names = append(names, kind.List)
	}
	return names
}()

// pathsOf are the paths of a list, of which the first that is served is read.
func pathsOf(list *objects.Resource) []string {
	paths := make([]string, len(list.Versions))
	for i, version := range list.Versions {
		paths[i] = list.Path(version)
	}
	return paths
}

// inNamespace is the path of the part of a list that is in a namespace.
func inNamespace(path, namespace string) string {
	at := strings.LastIndexByte(path, '/')
	return path[:at] + "/namespaces/" + namespace + path[at:]
}

// pageShape is what is kept of the pages of lists.
var pageShape = objects.Union(volcano.Shape(), kueue.Shape())
