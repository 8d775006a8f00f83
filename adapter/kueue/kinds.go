package kueue

import "github.com/apportion/apportion/adapter/objects"

// apiGroup is that of Kueue's objects.
const apiGroup = "kueue.x-k8s.io"

// Kinds of objects.
const (
	namespaceKind  = "Namespace"
	nodeKind       = "Node"
	flavorKind     = "ResourceFlavor"
	cohortKind     = "Cohort"
	queueKind      = "ClusterQueue"
	localQueueKind = "LocalQueue"
	checkKind      = "AdmissionCheck"
	workloadKind   = "Workload"
)

// kinds are the objects that are read.
var kinds = objects.NewTable(
	row(core(namespaceKind, "namespaces"), func(e *entities) map[string]labelSet { return e.namespaces }, (*reader).labels),
	row(core(nodeKind, ""), func(e *entities) map[string]labelSet { return e.nodes }, (*reader).labels),
	row(ofKueue(flavorKind, "resourceflavors", false, true), func(e *entities) map[string]*flavor { return e.flavors }, (*reader).flavor),
	row(older(ofKueue(cohortKind, "cohorts", false, false)), func(e *entities) map[string]*cohort { return e.cohorts }, (*reader).cohort),
	row(ofKueue(checkKind, "admissionchecks", false, false), func(e *entities) map[string]*check { return e.checks }, (*reader).check),
	row(ofKueue(queueKind, "clusterqueues", false, true), func(e *entities) map[string]*clusterQueue { return e.queues }, (*reader).queue),
	row(ofKueue(localQueueKind, "localqueues", true, true), func(e *entities) map[string]*localQueue { return e.localQueues },
		(*reader).localQueue),
	row(ofKueue(workloadKind, "workloads", true, true), func(e *entities) map[string]*workload { return e.workloads }, (*reader).workload),
	// A workload has the priority of its class, and placement by topology is not judged.
	objects.Row[*reader]{Resource: older(ofKueue("Topology", "", false, false))},
	objects.Row[*reader]{Resource: ofKueue("WorkloadPriorityClass", "", false, false)},
)

// core is a kind of Kubernetes' core.
func core(kind, list string) objects.Resource {
	return objects.Resource{Kind: kind, Versions: []string{"v1"}, List: list}
}

// ofKueue is a kind of Kueue.
func ofKueue(kind, list string, namespaced, needed bool) objects.Resource {
	return objects.Resource{
		Kind: kind, Group: apiGroup, Versions: []string{"v1beta2", "v1beta1"}, List: list, Namespaced: namespaced, Needed: needed,
		Decides: true,
	}
}

// older is a kind that has one more version.
func older(of objects.Resource) objects.Resource {
	of.Versions = append(of.Versions, "v1alpha1")
	return of
}

// Kinds are the kinds that a cluster lists, in the order in which their objects are given.
func Kinds() []*objects.Resource { return kinds.Resources() }

// Shape is what is read of objects.
func Shape() *objects.Shape { return kinds.Shape() }

// row is the row of a kind whose objects are decoded into a type, and whose entities are held in a list. An object of which nothing is kept
// has no entity.
func row[T, E any](
	of objects.Resource, list func(*entities) map[string]E, read func(*reader, objects.Metadata, *T) (entity E, some bool),
) objects.Row[*reader] {
	shape, decoded := objects.Typed(func(r *reader, m objects.Metadata, o *T) {
		if entity, some := read(r, m, o); some {
			list(&r.entities)[m.Full()] = entity
			r.entity, r.drop = entity, func() { delete(list(&r.entities), m.Full()) }
		}
	})
	return objects.Row[*reader]{Resource: of, Shape: shape, Read: decoded}
}
