package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// refusals says why no node has room for a task.
func (g *Judge) refusals(t model.TaskID, room *kindRoom) {
	var why policy.Reasons
	var admitted []model.NodeID
	var held Frequency
	var counts place.NodeCounts
	idle, request := resource.NewAccount(g.View().Dims.Len()), g.View().Request(t)
	for i, n := range g.View().NodeOrder {
		g.View().Yield(i)
		why.List = why.List[:0]
		if g.Nodes().Fits(t, n, &why) {
			admitted = append(admitted, n)
			g.View().Idle(n, &idle)
			counts.Lacking(idle, g.View().Nodes[n].Allocatable, request)
			continue
		}
		g.View().Idle(n, &idle)
		enough := resource.Covers(idle, request)
		free := enough && !g.View().OtherRole(t, n)
		if held.Add(why.List, 1); free {
			held.barred(why.List)
		}
		if !enough && askedAfterRoom(why.List) {
			// Kubernetes' scheduler would find the lack of room first.
			counts.Lacking(idle, g.View().Nodes[n].Allocatable, request)
			continue
		}
		counts.Refused(g.View(), t, n, why.List, free)
	}
	if len(admitted) > 0 {
		held.Add(g.lacks(t, admitted), len(admitted))
	}
	room.reasons, room.counts = held.closest()
	room.byNode = counts.List()
}

// askedAfterRoom reports whether a node is refused by a rule on other pods that Kubernetes' scheduler asks after the room of the node.
func askedAfterRoom(why []policy.Reason) bool {
	return len(why) > 0 && why[0].Code >= policy.PodAffinity && why[0].Code <= policy.TopologyLabelMissing
}

// Frequency counts of how many things reasons hold.
type Frequency struct {
	Reasons []policy.Reason
	Counts  []int
	At      map[policy.Reason]int
	// free counts those of nodes that have enough left for a task.
	free map[policy.Reason]int
}

// Add counts n more things with each of the reasons.
func (f *Frequency) Add(reasons []policy.Reason, n int) {
	if f.At == nil {
		f.At = make(map[policy.Reason]int)
	}
	for _, reason := range reasons {
		i, known := f.At[reason]
		if !known {
			i = len(f.Reasons)
			f.At[reason] = i
			f.Reasons, f.Counts = append(f.Reasons, reason), append(f.Counts, 0)
		}
		f.Counts[i] += n
	}
}

// barred counts reasons of a node that has enough left for a task.
func (f *Frequency) barred(reasons []policy.Reason) {
	if f.free == nil {
		f.free = make(map[policy.Reason]int)
	}
	for _, reason := range reasons {
		f.free[reason]++
	}
}

// Most returns the most frequent reasons with their counts; among equals the first that was added.
func (f *Frequency) Most() (reasons []policy.Reason, counts []int) {
	return f.first(func(l, r int) int { return cmp.Compare(f.Counts[r], f.Counts[l]) })
}

// closest is most, but the reasons that exclude most nodes with enough left are first, because what other nodes lack does not stop a task
// that these would take; then those of nodes that come closest to taking a task.
func (f *Frequency) closest() (reasons []policy.Reason, counts []int) {
	return f.first(func(l, r int) int {
		return cmp.Or(cmp.Compare(f.free[f.Reasons[r]], f.free[f.Reasons[l]]),
			cmp.Compare(place.Distance(f.Reasons[l].Code), place.Distance(f.Reasons[r].Code)), cmp.Compare(f.Counts[r], f.Counts[l]))
	})
}

func (f *Frequency) first(compare func(l, r int) int) (reasons []policy.Reason, counts []int) {
	order := make([]int, len(f.Reasons))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	for _, i := range order[:min(len(order), place.MaxReasons)] {
		reasons, counts = append(reasons, f.Reasons[i]), append(counts, f.Counts[i])
	}
	return reasons, counts
}

// lacks returns the dimensions of which no node has enough for a task, or reports that no node has enough of all at once.
func (g *Judge) lacks(t model.TaskID, nodes []model.NodeID) []policy.Reason {
	v := g.View()
	request := v.Request(t)
	width := v.Dims.Len()
	idle := resource.NewAccount(width)
	// best is the node with most left, largest the one that offers most, total what all have left.
	best, largest, total := make([]model.NodeID, width), make([]float64, width), make([]float64, width)
	most := make([]float64, width)
	var enough resource.Mask
	for i, n := range nodes {
		v.Idle(n, &idle)
		for m := request.Has; m != 0; m = m.Rest() {
			d := m.First()
			if i == 0 || idle.V[d] > most[d] {
				best[d], most[d] = n, idle.V[d]
			}
			largest[d] = max(largest[d], v.Nodes[n].Allocatable.V[d])
			total[d] += max(idle.V[d], 0)
			if request.V[d]-idle.V[d] < resource.Threshold {
				enough = enough.With(d)
			}
		}
	}
	var reasons []policy.Reason
	for m := request.Has &^ enough; m != 0; m = m.Rest() {
		d := m.First()
		reason := policy.Because("", policy.InsufficientResource, model.None)
		reason.Dimension, reason.Need = d, request.V[d]
		switch {
		case request.V[d]-largest[d] >= resource.Threshold:
			reason.Code, reason.Limit = policy.LargerThanAnyNode, largest[d]
		case total[d] >= request.V[d]:
			reason.Code, reason.Have, reason.Limit = policy.Fragmented, most[d], total[d]
		default:
			reason.Have, reason.Limit = v.Used(best[d]).V[d], v.Nodes[best[d]].Allocatable.V[d]
		}
		reasons = append(reasons, reason)
	}
	if len(reasons) == 0 {
		reasons = append(reasons, policy.Because("", policy.NoNodeHasAll, model.None))
	}
	return reasons
}

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
