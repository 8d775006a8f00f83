package explain

import (
	"math"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// emptyRoom is what the nodes hold of one kind of task if nothing else is on them and all of them take tasks.
type emptyRoom struct {
	// tasks is how many, counts why no node takes one, and apart the rule by which they keep each other away, if there are fewer for it.
	tasks  int
	counts []place.NodeCount
	apart  []policy.Reason
}

// infeasible returns why a job that waits could not run even if nothing else ran, all nodes took tasks and no other queue wanted anything:
// it asks for more than the cluster has, than its queue may ever hold, or than the nodes take; each that is so. Each is a proof; where
// tasks of several kinds depend on each other no proof is tried, so that no finding does not say that the job can run.
func (x *explainer) infeasible(d *judge.Judgement, w *engine.Need) ([]judge.Finding, error) {
	minimum := x.minimum(d, w)
	needs := []resource.Row{minimum}
	if asked := x.View().Jobs.At(d.Job).MinResources; d.Enters && !asked.Absent() {
		needs = append(needs, asked)
	}
	found := x.aboveTotal(minimum)
	for _, f := range x.aboveLimits(d, needs...) {
		// A queue without a limit of its own may hold all of the cluster.
		if len(found) == 0 || f.Reasons[0].Dimension != found[0].Reasons[0].Dimension || f.Reasons[0].Limit < found[0].Reasons[0].Limit {
			found = append(found, f)
		}
	}
	if mayChoose(w) {
		return found, nil
	}
	needed := make(map[engine.Kind]int, len(w.Kinds))
	for _, t := range w.Needed {
		needed[x.KindOf(t)]++
	}
	for _, t := range w.Kinds {
		room, err := x.emptyRoom(t)
		if err != nil {
			return nil, err
		}
		if most := needed[x.KindOf(t)]; room.tasks < most {
			return append(found, x.tooFew(t, room, most)), nil
		}
	}
	return found, nil
}

// minimum is the least that a job needs to start: before it has tasks its minimum resources, then the sum of as many tasks as its gang
// needs, of those that ask for least. Where it may choose among kinds, these may be different tasks in each dimension.
func (x *explainer) minimum(d *judge.Judgement, w *engine.Need) resource.Row {
	if len(w.Tasks) == 0 && x.CreatesTasks(d.Job) {
		return x.View().Jobs.At(d.Job).MinResources
	}
	least := x.Sum(w.Needed)
	if !mayChoose(w) || !x.View().Work.Use(len(w.Tasks), x.View().Dims.Len()) {
		return least
	}
	asked := make([]float64, len(w.Tasks))
	for m := least.Has; m != 0; m = m.Rest() {
		at := m.First()
		for i, t := range w.Tasks {
			asked[i] = x.View().Request(t).V[at]
		}
		slices.Sort(asked)
		least.V[at] = 0
		for _, amount := range asked[:len(w.Needed)] {
			least.V[at] += amount
		}
	}
	return least
}

// mayChoose reports whether the gang of a job may do without any of its kinds of tasks.
func mayChoose(w *engine.Need) bool { return len(w.Kinds) > 1 && len(w.Needed) < len(w.Tasks) }

// tooFew is the finding that empty nodes hold fewer of a kind of task than the gang needs.
func (x *explainer) tooFew(t model.TaskID, room *emptyRoom, needed int) judge.Finding {
	f := judge.Finding{Check: judge.CheckFeasibility, Outcome: judge.Failed, Task: model.None, Amount: x.View().Request(t)}
	if room.tasks > 0 {
		reason := policy.Because("", policy.NeverFits, model.None)
		reason.Have, reason.Limit = float64(room.tasks), float64(needed)
		f.Reasons = append([]policy.Reason{reason}, room.apart...)
		return f
	}
	f.Task, f.NodeCounts = t, room.counts
	for _, c := range room.counts {
		reason := policy.Because("", c.Code, model.None)
		reason.Detail = c.Detail
		if c.Dimensions != 0 {
			reason.Dimension = c.Dimensions.First()
			reason.Need = x.View().Request(t).V[reason.Dimension]
		}
		f.Reasons, f.Counts = append(f.Reasons, reason), append(f.Counts, c.N)
	}
	return f
}

// emptyRoom looks at each node once for each kind of task.
func (x *explainer) emptyRoom(t model.TaskID) (*emptyRoom, error) {
	key := x.KindOf(t)
	if known := x.empty[key]; known != nil {
		return known, nil
	}
	v := x.View()
	if err := v.Work.Spend(len(x.View().NodeOrder), v.Dims.Len()); err != nil {
		return nil, err
	}
	room, request, set := &emptyRoom{}, v.Request(t), v.NodeSetOf(t)
	var counts place.NodeCounts
	idle := resource.NewAccount(v.Dims.Len())
	exclude := func(n model.NodeID, key place.NodeCount) {
		v.Idle(n, &idle)
		if counts.Add(key); resource.Covers(idle, request) && !v.OtherRole(t, n) {
			counts.Free[key]++
		}
	}
	pods, takers := x.rulesOf(t), []model.NodeID(nil)
	for i, n := range x.View().NodeOrder {
		v.Yield(i)
		var why policy.Reasons
		switch small := resource.Uncovered(v.Nodes[n].Allocatable, request); {
		case !x.suits(t, n, &why):
			exclude(n, place.NodeCount{Code: why.List[0].Code, Detail: why.List[0].Detail})
		case !v.InSet(set, n) && !v.NodeSets[set].Exclusion(n).Firm:
			exclude(n, place.NodeCount{Code: policy.NodeNotInSet, Detail: v.NodeSets[set].Exclusion(n).Rule})
		case small != 0:
			counts.Add(place.NodeCount{Code: policy.NodeTooSmall, Dimensions: small})
		case pods != nil && pods.Outside(t, n, &why):
			exclude(n, place.NodeCount{Code: why.List[0].Code, Detail: why.List[0].Detail})
		default:
			takers = append(takers, n)
			room.tasks = min(room.tasks+holds(v.Nodes[n].Allocatable, request), math.MaxInt32)
		}
	}
	if room.counts = counts.List(); pods != nil {
		var why policy.Reasons
		room.tasks = pods.AtMost(t, takers, room.tasks, &why)
		room.apart = why.List
	}
	if x.empty == nil {
		x.empty = make(map[engine.Kind]*emptyRoom)
	}
	x.empty[key] = room
	return room, nil
}

// rulesOf returns the rules on other pods if some concern a task, otherwise nil.
func (x *explainer) rulesOf(t model.TaskID) *policy.Pods {
	if x.View().PodKind(t) == 0 {
		return nil
	}
	return x.View().CountPods()
}

// suits reports whether no plugin refuses a node to the queue of a task whatever else is on it.
func (x *explainer) suits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	for _, p := range x.Predicates() {
		why.List = why.List[:0]
		if p.Fits(t, n, why) || len(why.List) == 0 {
			continue
		}
		switch why.List[0].Code { //nolint:exhaustive // The others depend on what is on the node.
		case policy.NodeGroupMissing, policy.NodeGroupNotInAffinity, policy.NodeGroupAntiAffinity:
			return false
		}
	}
	return true
}

// holds returns how many of a request an amount covers, at least one: it covers one.
func holds(offered, request resource.Row) int {
	most := float64(math.MaxInt32)
	for m := request.Has; m != 0; m = m.Rest() {
		if d := m.First(); request.V[d] >= resource.Threshold {
			most = min(most, math.Floor((offered.V[d]+resource.Threshold)/request.V[d]))
		}
	}
	return max(int(most), 1)
}

// aboveTotal finds that the cluster has less than a job needs, of what the cluster has.
func (x *explainer) aboveTotal(need resource.Row) []judge.Finding {
	v, total := x.View(), resource.NewAccount(x.View().Dims.Len())
	for _, n := range x.View().NodeOrder {
		total.Add(v.Nodes[n].Allocatable)
	}
	for m := need.Has; m != 0; m = m.Rest() {
		d := m.First()
		has := max(total.V[d], v.Total.V[d])
		if has <= 0 || need.V[d]-has < resource.Threshold {
			continue
		}
		reason := policy.Because("", policy.AboveTotal, model.None)
		reason.Dimension, reason.Need, reason.Limit = d, need.V[d], has
		return never(reason, need)
	}
	return nil
}

// never is the finding that an amount is asked for which there never is.
func never(reason policy.Reason, amount resource.Row) []judge.Finding {
	return []judge.Finding{{
		Check: judge.CheckFeasibility, Outcome: judge.Failed, Task: model.None, Reasons: []policy.Reason{reason}, Amount: amount,
	}}
}

// aboveLimits finds that a job asks for more than its queue may ever hold: by what holds the job back, or by the limit of its queue.
func (x *explainer) aboveLimits(d *judge.Judgement, needs ...resource.Row) []judge.Finding {
	for i := range d.Findings {
		for _, reason := range d.Findings[i].Reasons {
			at, limit := reason.Dimension, x.lastingLimit(&reason)
			for _, need := range needs {
				if !math.IsInf(limit, 1) && need.Has.Has(at) && need.V[at]-limit >= resource.Threshold {
					reason.Have, reason.Need, reason.Limit = 0, need.V[at], limit
					return never(reason, need)
				}
			}
		}
	}
	q := x.View().Jobs.At(d.Job).Queue
	limit, offered := x.limitOf(q)
	for _, need := range needs {
		for m := need.Has & limit.Has; m != 0; m = m.Rest() {
			// A limit of cpu or memory of 0 is none (Volcano) unless guarantees leave no more, and of others a reason says that it is one.
			at := m.First()
			none := limit.V[at] <= 0 && (!offered || !resource.Base.Has(at))
			if none || need.V[at]-limit.V[at] < resource.Threshold {
				continue
			}
			reason := policy.Because("", policy.AboveLimit, q)
			reason.Dimension, reason.Need, reason.Limit = at, need.V[at], limit.V[at]
			return never(reason, need)
		}
	}
	return nil
}

// lastingLimit returns the most that the queue of a reason may ever hold, infinite if the reason says nothing of it: a budget that lowers
// a limit is granted again.
func (x *explainer) lastingLimit(reason *policy.Reason) float64 {
	switch {
	case reason.Code == policy.AboveRealCapability:
		return reason.Limit
	case reason.Code == policy.AboveLimit && reason.Queue >= 0:
		if stated := x.View().Queues[reason.Queue].Capability; stated.Has.Has(reason.Dimension) {
			return stated.V[reason.Dimension]
		}
	}
	return math.Inf(1)
}

// limitOf returns the most that a queue may ever hold, absent if nothing limits it, and whether that is its real capability, which, where a
// plugin admits by it, depends on the guarantees of others, and not on what they use.
func (x *explainer) limitOf(q model.QueueID) (limit resource.Row, offered bool) {
	for _, of := range x.Dividers() {
		if of.Queues == nil {
			continue
		}
		if share, divided := of.Queues.Share(q); divided && !share.Admits.Absent() {
			return share.Admits, true
		}
		return x.View().Queues[q].Capability, false
	}
	return resource.Row{}, false
}

// precede puts what makes a job impossible before all else that holds it back.
func (e *Explanation) precede(never []judge.Finding) {
	if len(never) > 0 {
		e.Findings = slices.Concat(never, e.Findings)
	}
}
