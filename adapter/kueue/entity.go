package kueue

// entities are the objects that were read, by name, or by namespace/name.
type entities struct {
	namespaces  map[string]map[string]string
	nodes       map[string]map[string]string
	flavors     map[string]*flavor
	cohorts     map[string]*cohort
	queues      map[string]*clusterQueue
	localQueues map[string]*localQueue
	checks      map[string]*check
	workloads   map[string]*workload
}

func newEntities() entities {
	return entities{
		namespaces: map[string]map[string]string{}, nodes: map[string]map[string]string{}, flavors: map[string]*flavor{},
		cohorts: map[string]*cohort{},
		queues:  map[string]*clusterQueue{}, localQueues: map[string]*localQueue{}, checks: map[string]*check{},
		workloads: map[string]*workload{},
	}
}

// kind names.
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

// put sets the entity of an object; nil removes it.
func (e *entities) put(kind, key string, entity any) {
	switch kind {
	case namespaceKind:
		set(e.namespaces, key, entity)
	case nodeKind:
		set(e.nodes, key, entity)
	case flavorKind:
		set(e.flavors, key, entity)
	case cohortKind:
		set(e.cohorts, key, entity)
	case queueKind:
		set(e.queues, key, entity)
	case localQueueKind:
		set(e.localQueues, key, entity)
	case checkKind:
		set(e.checks, key, entity)
	case workloadKind:
		set(e.workloads, key, entity)
	}
}

func set[E any](list map[string]E, key string, entity any) {
	if e, ok := entity.(E); ok {
		list[key] = e
	} else {
		delete(list, key)
	}
}

// get returns the entity of an object; nil: there is none, as for a Workload that is finished.
func (e *entities) get(kind, key string) any {
	switch kind {
	case namespaceKind:
		return got(e.namespaces, key)
	case nodeKind:
		return got(e.nodes, key)
	case flavorKind:
		return got(e.flavors, key)
	case cohortKind:
		return got(e.cohorts, key)
	case queueKind:
		return got(e.queues, key)
	case localQueueKind:
		return got(e.localQueues, key)
	case checkKind:
		return got(e.checks, key)
	case workloadKind:
		return got(e.workloads, key)
	}
	return nil
}

func got[E any](list map[string]E, key string) any {
	if e, ok := list[key]; ok {
		return e
	}
	return nil
}
