package kueue

// labelSet are the labels of an object.
type labelSet = map[string]string

// entities are the objects that were read, by name, or by namespace/name.
type entities struct {
	namespaces  map[string]labelSet
	nodes       map[string]labelSet
	flavors     map[string]*flavor
	cohorts     map[string]*cohort
	queues      map[string]*clusterQueue
	localQueues map[string]*localQueue
	checks      map[string]*check
	workloads   map[string]*workload
}

func newEntities() entities {
	return entities{
		namespaces: map[string]labelSet{}, nodes: map[string]labelSet{}, flavors: map[string]*flavor{}, cohorts: map[string]*cohort{},
		queues: map[string]*clusterQueue{}, localQueues: map[string]*localQueue{}, checks: map[string]*check{},
		workloads: map[string]*workload{},
	}
}

// remove removes the entity of an object for which a snapshot may have no room.
func (e *entities) remove(kind, key string) {
	switch kind {
	case cohortKind:
		delete(e.cohorts, key)
	case queueKind:
		delete(e.queues, key)
	case workloadKind:
		delete(e.workloads, key)
	}
}
