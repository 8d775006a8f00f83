package remedy

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Limits on the number of variations that are tried for each kind of remedy.
const (
	maxRemedyRoles  = 8
	maxRemedyQueues = 32
	maxRemedyListed = 8
	maxRemedyDepth  = 8
	maxRemedyWeight = 1 << 16
)

// edit is an edit of the job.
func (r *remedier) edit(kind edit.Kind) edit.Edit {
	e := edit.Of(kind)
	e.Job = r.job
	return e
}

// queueEdit is an edit of a queue.
func (r *remedier) queueEdit(kind edit.Kind, q model.QueueID) edit.Edit {
	e := r.edit(kind)
	e.Queue, e.Job = q, model.None
	return e
}

// smallerMinimum lowers the minimum of the job as far as the minima of its roles allow, or a role's minimum together with it.
func (r *remedier) smallerMinimum() error {
	dials, ofRoles := r.minimumDials()
	if len(dials) == 0 {
		r.untried(SmallerMinimum, NoneThere)
		return nil
	}
	if ofRoles > maxRemedyRoles {
		r.cut(SmallerMinimum, BoundRoles, maxRemedyRoles, ofRoles)
	}
	return r.alternatives(SmallerMinimum, dials)
}

// smallerMinimumWithEvictions lowers the minimum until a plan serves the job, which then loses less of it than to start at once. It is for
// jobs that no plan serves as they are.
func (r *remedier) smallerMinimumWithEvictions() error {
	r.evicts = true
	defer func() { r.evicts = false }()
	dials, _ := r.minimumDials()
	return r.alternatives(SmallerMinimum, dials)
}

// minimumDials are the dials of the minimum of the job and of those of its first roles, and how many roles have one.
func (r *remedier) minimumDials() ([]dial, int) {
	v := r.base
	job := v.Jobs.At(r.job)
	roles := int32(0)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		roles += max(v.Groups.At(g).MinAvailable, 0)
	}
	var dials []dial
	if free := job.MinAvailable - max(roles, 1); free > 0 {
		dials = append(dials, r.minimumDial(model.None, job.MinAvailable, free))
	}
	ofRoles := 0
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		// Minima of roles do not count if their sum exceeds the minimum of the job.
		if least := v.Groups.At(g).MinAvailable; least > 0 && roles <= job.MinAvailable {
			if d := r.minimumDial(g, least, min(least, job.MinAvailable-1)); d.most > 0 {
				if ofRoles++; ofRoles <= maxRemedyRoles {
					dials = append(dials, d)
				}
			}
		}
	}
	return dials, ofRoles
}

func (r *remedier) minimumDial(g model.GroupID, before, most int32) dial {
	e := r.edit(edit.Minimum)
	e.Group, e.Before, e.Given, e.Step = g, float64(before), true, 1
	return dial{edit: e, most: int(most), falls: true}
}

// alternatives lists a remedy for each dial that suffices alone, or else one of all of them together.
func (r *remedier) alternatives(kind Kind, dials []dial) error {
	sets := make([][]dial, len(dials))
	for i := range dials {
		sets[i] = dials[i : i+1 : i+1]
	}
	return r.alternativeSets(kind, sets)
}

// alternativeSets is alternatives for dials that belong together.
func (r *remedier) alternativeSets(kind Kind, sets [][]dial) error {
	some := false
	for _, set := range sets {
		listed, err := r.list(kind, set)
		if err != nil {
			return err
		}
		some = some || listed
	}
	if some || len(sets) < 2 {
		return nil
	}
	_, err := r.list(kind, slices.Concat(sets...))
	return err
}

// list searches the smallest turn of dials, and of those beside them, and lists it, unless it does not help or is listed already.
func (r *remedier) list(kind Kind, dials []dial) (bool, error) {
	edits, err := r.smallest(slices.Concat(dials, r.beside))
	if err != nil || edits == nil {
		return false, err
	}
	if kind == SmallerMinimum && minimumAfter(r.base, r.job, edits) == 0 {
		// A gang of no task is none.
		return false, nil
	}
	return r.add(Remedy{Kind: r.as(kind), Edits: edits, Plan: r.asked[r.key(edits)].plan})
}

// smallerRequest lowers what the waiting tasks of a role ask for, down to one step of each dimension.
func (r *remedier) smallerRequest() error {
	v, job := r.View(), r.base.Jobs.At(r.job)
	asked := map[model.GroupID]resource.Row{}
	for t := job.FirstTask; t < job.EndTask; t++ {
		task := v.Tasks.At(t)
		if task.Status != model.Pending || task.Gate == model.GateOther {
			continue
		}
		if asked[task.Group].Absent() {
			asked[task.Group] = resource.NewRow(v.Dims.Len())
		}
		row := asked[task.Group]
		row.Max(v.Request(t))
		asked[task.Group] = row
	}
	var sets [][]dial
	roles := 0
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		if asked[g].Absent() {
			continue
		}
		if roles++; roles > maxRemedyRoles {
			continue
		}
		if dials := r.requestDials(g, asked[g]); len(dials) > 0 {
			sets = append(sets, dials)
		}
	}
	switch {
	case len(sets) == 0:
		r.untried(SmallerRequest, NoneThere)
		return nil
	case roles > maxRemedyRoles:
		r.cut(SmallerRequest, BoundRoles, maxRemedyRoles, roles)
	}
	return r.alternativeSets(SmallerRequest, sets)
}

func (r *remedier) requestDials(g model.GroupID, asked resource.Row) []dial {
	var dials []dial
	for m := asked.Positive() &^ r.View().Dims.Pods(); m != 0; m = m.Rest() {
		e := r.edit(edit.Request)
		e.Group, e.Dimension, e.Before, e.Given = g, m.First(), asked.V[m.First()], true
		unit := unitsOf(r.names[e.Dimension])[0]
		if d := amountDial(e, r.names[e.Dimension], unit); d.most > 0 && e.Before > unit {
			dials = append(dials, d)
		}
	}
	return dials
}

// pathOf returns a queue and those above it, the nearest first, at most maxRemedyDepth.
func (r *remedier) pathOf(q model.QueueID) []model.QueueID {
	var path []model.QueueID
	for known := true; known && len(path) < maxRemedyDepth && !slices.Contains(path, q); q, known = r.base.Queue(r.base.Queues[q].Parent) {
		path = append(path, q)
	}
	return path
}

// levels are the queues whose settings are tried: the job's queue and its ancestors.
func (r *remedier) levels(kind Kind) []model.QueueID {
	if len(r.path) == maxRemedyDepth {
		above, known := r.base.Queue(r.base.Queues[r.path[maxRemedyDepth-1]].Parent)
		if known && !slices.Contains(r.path, above) {
			r.cut(kind, BoundLevels, maxRemedyDepth, 0)
		}
	}
	return r.path
}

// otherQueue moves the job into each queue that has none below it: those first that have most ancestors in common with its own, then those
// that have most left of what they deserve.
func (r *remedier) otherQueue() error {
	v := r.base
	inner := map[string]bool{}
	for _, q := range v.QueueOrder {
		inner[v.Queues[q].Parent] = true
	}
	type candidate struct {
		queue model.QueueID
		apart int
		left  float64
	}
	var list []candidate
	for _, q := range v.QueueOrder {
		if q == r.path[0] || inner[v.Queues[q].Name] {
			continue
		}
		apart := len(r.path)
		for _, above := range r.pathOf(q) {
			if at := slices.Index(r.path, above); at >= 0 {
				apart = at
				break
			}
		}
		list = append(list, candidate{q, apart, r.left(q)})
	}
	if len(list) == 0 {
		r.untried(OtherQueue, NoneThere)
		return nil
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.apart, b.apart), cmp.Compare(b.left, a.left)) })
	tried, listed := 0, 0
	for ; tried < min(len(list), maxRemedyQueues) && listed < maxRemedyListed; tried++ {
		e := r.edit(edit.Queue)
		e.Queue = list[tried].queue
		ok, err := r.list(OtherQueue, []dial{whole(e)})
		if err != nil {
			return err
		}
		if ok {
			listed++
		}
	}
	if tried < len(list) {
		r.cut(OtherQueue, BoundQueues, tried, len(list))
	}
	return nil
}

// left returns how much of what the job needs a queue has left of what it deserves, in the dimension in which that is least.
func (r *remedier) left(q model.QueueID) float64 {
	least := math.Inf(-1)
	for _, d := range r.Dividers() {
		if d.Queues == nil {
			continue
		}
		share, takes := d.Queues.Share(q)
		if !takes || share.Deserved.Absent() {
			continue
		}
		least = math.Inf(1)
		for m := r.need.Positive(); m != 0; m = m.Rest() {
			at := m.First()
			least = min(least, (share.Deserved.V[at]-share.Allocated.V[at])/r.need.V[at])
		}
		break
	}
	return least
}

// setting changes a setting of the job's queue, or else of a queue above it, or else of all of them.
func (r *remedier) setting(kind Kind) error {
	var sets [][]dial
	for _, q := range r.levels(kind) {
		if dials := r.settingDials(kind, q); len(dials) > 0 {
			sets = append(sets, dials)
		}
		if kind == HigherWeight && r.base.Queues[q].Weight >= maxRemedyWeight {
			r.cut(kind, BoundWeight, maxRemedyWeight, 0)
		}
	}
	if len(sets) == 0 {
		r.untried(kind, NoneThere)
		return nil
	}
	return r.alternativeSets(kind, sets)
}

// settingDials are the dials of a setting of a queue, one for each dimension that the job needs.
func (r *remedier) settingDials(kind Kind, q model.QueueID) []dial {
	queue := &r.base.Queues[q]
	switch kind { //nolint:exhaustive // The others are no settings.
	case OpenQueue:
		if queue.State == model.Open {
			return nil
		}
		return []dial{whole(r.queueEdit(edit.Open, q))}
	case HigherWeight:
		e := r.queueEdit(edit.Weight, q)
		e.Before, e.Given, e.Step = float64(queue.Weight), true, 1
		return []dial{{edit: e, most: max(maxRemedyWeight-int(queue.Weight), 0)}}
	case HigherCapability:
		return r.amountDials(edit.Capability, q, queue.Capability)
	case HigherGuarantee:
		return r.amountDials(edit.Guarantee, q, queue.Guarantee)
	case HigherDeserved:
		return r.amountDials(edit.Deserved, q, queue.Deserved)
	}
	return nil
}

// amountDials returns dials that raise amounts of a queue up to a useful maximum: above the total for a limit, to the total for the others.
func (r *remedier) amountDials(field edit.Kind, q model.QueueID, now resource.Row) []dial {
	if field == edit.Capability && now.Absent() {
		return nil
	}
	var dials []dial
	for m := r.need.Positive(); m != 0; m = m.Rest() {
		e := r.queueEdit(field, q)
		e.Dimension = m.First()
		wanted := needed(&standing{reasons: r.out.Reasons}, func(model.QueueID) bool { return true }, e.Dimension)
		limit := max(r.base.Total.V[e.Dimension], wanted)
		if !now.Absent() {
			e.Before, e.Given = now.V[e.Dimension], now.Has.Has(e.Dimension)
		}
		if field == edit.Capability {
			// cpu and memory are unlimited where the limit names neither or says 0.
			if e.Dimension <= resource.Memory && e.Before <= 0 || math.IsInf(e.Before, 1) {
				continue
			}
			limit = max(limit, e.Before) + r.need.V[e.Dimension]
		}
		if limit <= e.Before {
			continue
		}
		d := amountDial(e, r.names[e.Dimension], limit)
		turn := d
		d.hint = func(s *standing) int {
			return turn.steps(needed(s, func(at model.QueueID) bool { return at == q || field != edit.Capability }, e.Dimension))
		}
		dials = append(dials, d)
	}
	return dials
}
