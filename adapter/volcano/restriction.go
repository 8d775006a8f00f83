package volcano

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

type apportionConstraint = apportionv1.PlacementConstraint

// The constraints that pods and PodGroups have.
const (
	constraintVolumes         = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES
	constraintHostPorts       = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS
	constraintPodAffinity     = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY
	constraintTopologySpread  = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_TOPOLOGY_SPREAD
	constraintResourceClaims  = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_RESOURCE_CLAIMS
	constraintNetworkTopology = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_NETWORK_TOPOLOGY
	constraintLeftOut         = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT
)

// placed is a pod's placement and the constraints that node sets do not express.
type placed struct {
	placement *placement
	unjudged  []apportionConstraint
	traits    *traits
	claims    []claimed
	// class is the number of its class in the snapshot's rules on other pods.
	class uint32
}

// usedPlacements lists the placements of the tasks of these jobs in the order of first use.
func usedPlacements(jobs []*job) []*placement {
	var list []*placement
	seen := map[*placement]bool{}
	for _, j := range jobs {
		for _, group := range j.placed {
			for _, p := range group {
				if !seen[p.placement] {
					seen[p.placement] = true
					list = append(list, p.placement)
				}
			}
		}
	}
	return list
}

// restrictTasks sets the node sets and the constraints of a job's tasks. Values that all tasks of a group share are set at the group.
func (j *job) restrictTasks() {
	for i, group := range j.message.Groups {
		tasks := j.placed[i]
		group.NodeSet = sharedSet(tasks)
		group.Unjudged = sharedConstraints(tasks)
		group.PodClass = sharedClass(tasks)
		if group.Role == leftOutRole {
			group.Unjudged = append(group.Unjudged, constraintLeftOut)
		}
		if j.topology {
			group.Unjudged = append(group.Unjudged, constraintNetworkTopology)
		}
		for k, p := range tasks {
			own := slices.DeleteFunc(slices.Clone(p.unjudged), func(c apportionConstraint) bool {
				return slices.Contains(group.Unjudged, c)
			})
			if p.placement.set == group.NodeSet && len(own) == 0 && p.class == group.PodClass {
				continue
			}
			task := group.Tasks[k]
			if task.Detail == nil {
				task.Detail = &apportionv1.TaskDetail{}
			}
			task.Detail.Unjudged = own
			if p.class != group.PodClass {
				task.Detail.PodClass = p.class
			}
			if p.placement.set != group.NodeSet {
				task.Detail.NodeSet = p.placement.set
			}
		}
	}
}

// sharedSet returns the node set that most tasks have, the earliest of several; none if a task may use all nodes, because a task cannot
// override a group's node set with none.
func sharedSet(tasks []placed) string {
	counts := map[string]int{}
	for _, p := range tasks {
		counts[p.placement.set]++
	}
	if counts[""] > 0 {
		return ""
	}
	best := ""
	for _, p := range tasks {
		if counts[p.placement.set] > counts[best] {
			best = p.placement.set
		}
	}
	return best
}

// sharedClass is sharedSet for classes of pods.
func sharedClass(tasks []placed) uint32 {
	counts, best := map[uint32]int{}, uint32(0)
	for _, p := range tasks {
		counts[p.class]++
	}
	if counts[0] > 0 {
		return 0
	}
	for _, p := range tasks {
		if counts[p.class] > counts[best] {
			best = p.class
		}
	}
	return best
}

// sharedConstraints are those that all tasks have.
func sharedConstraints(tasks []placed) []apportionConstraint {
	if len(tasks) == 0 {
		return nil
	}
	shared := slices.Clone(tasks[0].unjudged)
	for _, p := range tasks[1:] {
		shared = slices.DeleteFunc(shared, func(c apportionConstraint) bool { return !slices.Contains(p.unjudged, c) })
	}
	return shared
}
