package judge

import (
	"slices"
	"strings"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// keptByReleased reports whether only pods that are being released keep a task off a node by a rule.
func keptByReleased(h engine.Host, t model.TaskID, n model.NodeID) bool {
	pods := h.View().CountPods()
	return pods != nil && h.View().PodKind(t) != 0 && pods.Excludes(t, n, false) && !pods.Excludes(t, n, true)
}

// maxReleased bounds the pods that are looked at for one that keeps a task off a node.
const maxReleased = 64

// releasedPod is the reason that a pod keeps a task off a node until it is gone: its detail names the pod and its node, if without that pod
// alone no rule keeps the task off.
func (g *Judge) releasedPod(t model.TaskID, n model.NodeID) (policy.Reason, error) {
	reason := policy.Because("", policy.BeingReleased, model.None)
	looked := 0
	for _, j := range g.View().Present() {
		job := g.View().Jobs.At(j)
		if g.View().Account(j).Tasks[model.Releasing] == 0 {
			continue
		}
		for u := job.FirstTask; u < job.EndTask && looked < maxReleased; u++ {
			at := g.View().NodeOf(u)
			if g.View().Status(u) != model.Releasing || at == model.None {
				continue
			}
			looked++
			kept := true
			if err := g.Tried(func() error {
				g.View().SetStatus(u, model.Succeeded, model.None)
				kept = g.View().CountPods().Excludes(t, n, false)
				return nil
			}); err != nil {
				return reason, err
			}
			if !kept {
				reason.Detail = strings.TrimPrefix(job.Namespace+"/"+g.View().TaskName(u), "/") + " on node " + g.View().Nodes[at].Name
				return reason, nil
			}
		}
	}
	return reason, nil
}

// releases says what is being released where tasks have room only then, in each dimension that they ask for, and which pods keep tasks off
// by a rule until they are gone.
func (g *Judge) releases(s seating) ([]policy.Reason, error) {
	sum := resource.NewRow(g.View().Dims.Len())
	var waits []model.NodeID
	for i, after := range afterRoom(g.Host, s.tasks, s.Nodes, nil) {
		n := s.Nodes[i]
		if more := g.beingReleased()[n]; after && more != nil && !slices.Contains(waits, n) {
			sum.Add(*more)
			waits = append(waits, n)
		}
	}
	var reasons []policy.Reason
	asked := g.Sum(s.tasks)
	for m := sum.Positive() & asked.Positive(); m != 0; m = m.Rest() {
		reason := policy.Because("", policy.BeingReleased, model.None)
		reason.Dimension = m.First()
		reason.Have, reason.Limit = sum.V[reason.Dimension], float64(len(waits))
		if len(waits) == 1 {
			reason.Detail = g.View().Nodes[waits[0]].Name
		}
		reasons = append(reasons, reason)
	}
	for i, n := range s.Nodes {
		if len(reasons) >= place.MaxReasons || !keptByReleased(g.Host, s.tasks[i], n) {
			continue
		}
		reason, err := g.releasedPod(s.tasks[i], n)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons, nil
}
