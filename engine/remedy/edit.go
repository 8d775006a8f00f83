package remedy

import (
	"math"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// changeBy goes on from the cluster after edits for a job and those that follow from them, as Change does. The session must be as its
// model.
func changeBy(h engine.Host, m *model.Model, j model.JobID, edits []edit.Edit) error {
	return h.Change(h.View().Dims.Names(), func(b *model.ChangeBuilder) { edit.Make(b, m, complete(m, j, edits), nil) })
}

// complete returns edits for a job with those that follow from them in place of earlier ones that do, which have no Step: of its minimum
// and of its minimum resources.
func complete(m *model.Model, j model.JobID, edits []edit.Edit) []edit.Edit {
	job := m.Jobs.At(j)
	edits = slices.DeleteFunc(slices.Clone(edits), func(e edit.Edit) bool { return e.Step == 0 })
	least, out := minimumAfter(m, j, edits), edits
	own := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Kind == edit.Minimum && e.Group == model.None })
	if least != job.MinAvailable && (own < 0 || edits[own].Amount != float64(least)) {
		e := edit.Of(edit.Minimum)
		e.Job, e.Before, e.Given, e.Amount = j, float64(job.MinAvailable), true, float64(least)
		out = append(out, e)
	}
	row := minResourcesAfter(m, j, edits, least)
	for has := row.Has; has != 0; has = has.Rest() {
		d := has.First()
		if row.V[d] != job.MinResources.V[d] {
			e := edit.Of(edit.MinResources)
			e.Job, e.Dimension, e.Before, e.Given, e.Amount = j, d, job.MinResources.V[d], true, row.V[d]
			out = append(out, e)
		}
	}
	return out
}

// minimumAfter returns how many tasks the gang of a job needs after edits: fewer by as many as the job and its roles need fewer.
func minimumAfter(m *model.Model, j model.JobID, edits []edit.Edit) int32 {
	least := m.Jobs.At(j).MinAvailable
	for i := range edits {
		if e := &edits[i]; e.Kind == edit.Minimum {
			least -= int32(e.Before - e.Amount)
		}
	}
	return max(least, 0)
}

// minResourcesAfter returns the minimum resources of a job after edits, absent if it has none: in proportion to the minimum, without what
// the tasks that the gang needs ask for less. Amounts are whole.
func minResourcesAfter(m *model.Model, j model.JobID, edits []edit.Edit, least int32) resource.Row {
	job := m.Jobs.At(j)
	if job.MinResources.Absent() {
		return resource.Row{}
	}
	row := job.MinResources.Clone()
	for i := range edits {
		e := &edits[i]
		if e.Kind != edit.Request {
			continue
		}
		less := 0.0
		for _, t := range gangOf(m, e.Group) {
			less += max(m.Request(t).V[e.Dimension]-e.Amount, 0)
		}
		if row.Has.Has(e.Dimension) {
			row.V[e.Dimension] = max(row.V[e.Dimension]-less, 0)
		}
	}
	if job.MinAvailable > 0 && least != job.MinAvailable {
		for has := row.Has; has != 0; has = has.Rest() {
			row.V[has.First()] = math.Ceil(float64(row.V[has.First()]*float64(least)) / float64(job.MinAvailable))
		}
	}
	return row
}

// gangOf lists pending tasks of a role, as many as the gang needs: the minimum of the role, or else of the job.
func gangOf(m *model.Model, g model.GroupID) []model.TaskID {
	group := m.Groups.At(g)
	job := m.Jobs.At(group.Job)
	most := job.MinAvailable
	if group.MinAvailable >= 0 {
		most = group.MinAvailable
	}
	var list []model.TaskID
	for t := job.FirstTask; t < job.EndTask && len(list) < int(most); t++ {
		if task := m.Tasks.At(t); task.Group == g && task.Status == model.Pending {
			list = append(list, t)
		}
	}
	return list
}

// Edits returns the kind of the edits of a kind of remedy; 0: they are of several kinds, or there are none.
func (k Kind) Edits() edit.Kind {
	return [LastKind + 1]edit.Kind{
		SmallerMinimum: edit.Minimum, SmallerRequest: edit.Request, OtherQueue: edit.Queue, OpenQueue: edit.Open,
		HigherCapability: edit.Capability, HigherGuarantee: edit.Guarantee, HigherDeserved: edit.Deserved, HigherWeight: edit.Weight,
		MoreNodes: edit.NodesLike, Uncordoned: edit.Uncordon, JobsEnd: edit.End, OtherNodes: edit.AllowedNode,
	}[k]
}
