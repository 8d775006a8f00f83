package engine

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// kindRoom is what the nodes have for one kind of task.
type kindRoom struct {
	// tasks is how many of the kind have room at the same time, up to limit.
	tasks, limit int
	// reasons say why no node has room for one, with the number of nodes that each is about; the most frequent first.
	reasons []policy.Reason
	counts  []int
}

// nodesFor asks whether a node has room for each kind of task, and then for all tasks that the gang needs at the same time.
func (x *explainer) nodesFor(e *Explanation, w *waiting) error {
	for _, t := range w.kinds {
		room, err := x.roomFor(t, len(w.needed))
		if err != nil {
			return err
		}
		if room.tasks == 0 {
			f := e.find(CheckNodes, Failed, room.reasons...)
			f.Counts, f.Task, f.Amount = room.counts, t, x.view.Request(t)
			return nil
		}
		if len(w.kinds) == 1 && room.tasks >= len(w.needed) {
			e.find(CheckNodes, Passed).Amount = x.sum(w.needed)
			return nil
		}
	}
	if err := x.spendOnNodes(); err != nil {
		return err
	}
	placement, err := x.place(w.needed, nil)
	if err != nil {
		return err
	}
	outcome, reasons := placed(&placement, len(w.needed))
	e.find(CheckNodes, outcome, reasons...).Amount = x.sum(w.needed)
	return nil
}

// placed is the outcome of a placement of n tasks, and its reason.
func placed(p *Placement, n int) (Outcome, []policy.Reason) {
	outcome, code := Failed, policy.NoJointPlacement
	switch p.Outcome {
	case Placed:
		return Passed, nil
	case PlacementUnknown:
		outcome, code = NotKnown, policy.JointPlacementNotFound
	case NoPlacement:
	}
	reason := policy.Because("", code, model.None)
	reason.Have, reason.Limit = float64(p.Most), float64(n)
	return outcome, []policy.Reason{reason}
}

// roomFor counts, up to limit, how many tasks like t the nodes have room for at the same time.
func (x *explainer) roomFor(t model.TaskID, limit int) (*kindRoom, error) {
	key := x.kindOf(t)
	if len(x.by.predicate) == 0 {
		// Then Fits looks at no queue.
		key.queue = 0
	}
	room := x.room[key]
	if room != nil && (room.tasks < room.limit || room.tasks >= limit) {
		return room, nil
	}
	v := x.view
	if err := x.spendOnNodes(); err != nil {
		return nil, err
	}
	room = &kindRoom{limit: limit}
	x.room[key] = room
	idle, request := resource.NewAccount(v.Dims.Len()), v.Request(t)
	for i, n := range x.nodes {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		if !x.Nodes().Fits(t, n, nil) {
			continue
		}
		v.Idle(n, &idle)
		for ; room.tasks < limit && resource.Covers(idle, request); room.tasks++ {
			idle.SubWithin(request)
		}
		if room.tasks >= limit {
			return room, nil
		}
	}
	if room.tasks == 0 {
		if err := x.spendOnNodes(); err != nil {
			return nil, err
		}
		x.refusals(t, room)
	}
	return room, nil
}

// spendOnNodes counts the work of checking every node for a task.
func (x *explainer) spendOnNodes() error {
	const rules = 32
	return x.view.Work.Spend(len(x.nodes), x.view.Dims.Len()+rules)
}

// refusals says why no node has room for a task.
func (x *explainer) refusals(t model.TaskID, room *kindRoom) {
	var why policy.Reasons
	var admitted []model.NodeID
	var held frequency
	for i, n := range x.nodes {
		x.view.Yield(i)
		why.List = why.List[:0]
		if x.Nodes().Fits(t, n, &why) {
			admitted = append(admitted, n)
			continue
		}
		held.add(why.List, 1)
	}
	if len(admitted) > 0 {
		held.add(x.lacks(t, admitted), len(admitted))
	}
	room.reasons, room.counts = held.most()
}

// frequency counts of how many things reasons hold.
type frequency struct {
	reasons []policy.Reason
	counts  []int
	at      map[policy.Reason]int
}

func (f *frequency) add(reasons []policy.Reason, n int) {
	if f.at == nil {
		f.at = make(map[policy.Reason]int)
	}
	for _, reason := range reasons {
		i, known := f.at[reason]
		if !known {
			i = len(f.reasons)
			f.at[reason] = i
			f.reasons, f.counts = append(f.reasons, reason), append(f.counts, 0)
		}
		f.counts[i] += n
	}
}

// maxReasons bounds the reasons of one finding.
const maxReasons = 16

// most returns the most frequent reasons with their counts; among equals the first that was added.
func (f *frequency) most() (reasons []policy.Reason, counts []int) {
	order := make([]int, len(f.reasons))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(l, r int) int { return cmp.Compare(f.counts[r], f.counts[l]) })
	for _, i := range order[:min(len(order), maxReasons)] {
		reasons, counts = append(reasons, f.reasons[i]), append(counts, f.counts[i])
	}
	return reasons, counts
}

// lacks says which dimensions no node has enough of for a task, or that none has enough of everything at once.
func (x *explainer) lacks(t model.TaskID, nodes []model.NodeID) []policy.Reason {
	v := x.view
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
