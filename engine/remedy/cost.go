package remedy

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// maxRemedyLosses bounds the queues that are listed as losing by one remedy.
const maxRemedyLosses = 8

// add lists a remedy with what it costs others, unless the same edits are listed already or the changed cluster has a setting that the
// policy warns of and does not warn of now.
func (r *remedier) add(found Remedy) (bool, error) {
	// Waiting for jobs to end is another remedy than ending them.
	same := func(other Remedy) bool { return slices.Equal(other.Edits, found.Edits) }
	if found.Kind != Wait && slices.ContainsFunc(r.out.List, same) {
		return false, nil
	}
	sound := true
	ends := !slices.ContainsFunc(found.Edits, func(e Edit) bool { return e.Field != JobEnded })
	err := r.under(found.Edits, func() error {
		for key, count := range r.warnings() {
			// A queue may be warned of once its last job has ended, but no setting has changed.
			sound = sound && (ends || count <= r.warned[key])
		}
		if sound {
			r.cost(&found)
		}
		return nil
	})
	if err != nil || !sound {
		return false, err
	}
	changed := &editor{Model: r.base, job: r.job, edits: found.Edits}
	found.MinAvailable, found.MinResources = changed.minimum(), changed.minResources()
	for i := range found.Edits {
		if edit := &found.Edits[i]; edit.Field == JobEnded {
			account := r.View().Account(edit.Job)
			found.Ended += int(account.Holding() + account.Tasks[model.Releasing])
			if found.Freed.Absent() {
				found.Freed = resource.NewRow(r.base.Dims.Len())
			}
			found.Freed.Add(occupied(r.Host, edit.Job))
			if found.Kind == Wait {
				found.At = max(found.At, r.base.Jobs.At(edit.Job).ExpectedEnd)
			}
		}
	}
	r.out.List = append(r.out.List, found)
	return true, nil
}

// warningKey identifies a warning by its subject.
type warningKey struct {
	code  policy.WarningCode
	queue model.QueueID
}

// warnings counts the warnings about settings of queues.
func (r *remedier) warnings() map[warningKey]int {
	counted := map[warningKey]int{}
	for _, w := range r.Warnings() {
		if w.Queue != model.None || w.Code == policy.GuaranteesExceedTotal {
			counted[warningKey{w.Code, w.Queue}]++
		}
	}
	return counted
}

// deservedOf returns what each queue deserves by a divider.
func deservedOf(v *policy.View, d engine.Divider) map[model.QueueID]resource.Row {
	if d.Queues == nil {
		return nil
	}
	all := map[model.QueueID]resource.Row{}
	for _, q := range v.QueueOrder {
		if share, takes := d.Queues.Share(q); takes && !share.Deserved.Absent() {
			all[q] = share.Deserved.Clone()
		}
	}
	return all
}

// cost finds the queues that deserve less in the present state than before: of jobs other than the job itself and the jobs that end, which
// reduce the demand.
func (r *remedier) cost(found *Remedy) {
	v := r.View()
	size := func(l *QueueLoss) float64 {
		less := l.Before.Clone()
		less.Sub(l.After)
		size, _ := resource.DominantShare(less, r.base.Total, r.base.Total.Positive())
		return size
	}
	own := slices.Clone(r.path)
	for i := range found.Edits {
		if edit := &found.Edits[i]; edit.Field == JobEnded {
			own = append(own, r.pathOf(r.base.Jobs.At(edit.Job).Queue)...)
		}
	}
	for i, d := range r.Dividers() {
		if d.Queues == nil {
			continue
		}
		for _, q := range v.QueueOrder {
			before := r.deserved[i][q]
			share, takes := d.Queues.Share(q)
			if before.Absent() || !takes || slices.Contains(own, q) {
				continue
			}
			loss := QueueLoss{Queue: q, Plugin: d.Name}
			for m := before.Has; m != 0; m = m.Rest() {
				at := m.First()
				if before.V[at]-share.Deserved.V[at] < resource.Threshold {
					continue
				}
				if loss.Before.Absent() {
					rows := resource.NewTable(3, v.Dims.Len())
					loss.Before, loss.After, loss.Allocated = rows[0], rows[1], rows[2]
				}
				loss.Before.Set(at, before.V[at])
				loss.After.Set(at, share.Deserved.V[at])
				loss.Allocated.Set(at, share.Allocated.V[at])
			}
			if !loss.Before.Absent() {
				found.Loses = append(found.Loses, loss)
			}
		}
	}
	found.Losing = len(found.Loses)
	slices.SortStableFunc(found.Loses, func(a, b QueueLoss) int { return cmp.Compare(size(&b), size(&a)) })
	found.Loses = found.Loses[:min(len(found.Loses), maxRemedyLosses)]
}
