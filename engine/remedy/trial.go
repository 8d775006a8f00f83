package remedy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// standing is how a job stands in a cluster: it runs, or a check holds it back.
type standing struct {
	runs    bool
	check   judge.CheckKind
	reasons []policy.Reason
	// blind: no node states what it offers.
	blind bool
	// plan serves the job, if it runs by evictions.
	plan *plan.Plan
}

// runs reports whether a job could start at once, whatever other jobs wait, and which check holds it back if not: it is admitted or may be,
// its queue is served and may use what the gang needs, and the nodes have room for it, where needed once tasks are gone that are being
// released. For a job that waits for admission and has no tasks yet it reports whether the job may be admitted. Nothing changes.
func runs(h engine.Host, j model.JobID) (standing, error) {
	w := h.NeedOf(j)
	if err := spendOnRun(h, w); err != nil {
		return standing{}, err
	}
	d, err := judge.Once(h, j, w, true)
	if err != nil {
		return standing{}, err
	}
	against := d.Against()
	switch {
	case against == nil:
		return standing{runs: true}, nil
	case d.Blind && against.Outcome != judge.Failed:
		return standing{check: judge.CheckNodes, reasons: against.Reasons, blind: true}, nil
	case against.Check == judge.CheckNodes:
		return standing{check: judge.CheckNodes}, nil
	}
	return standing{check: against.Check, reasons: against.Reasons}, nil
}

// spendOnRun spends what asking whether a job runs costs: each task and node is looked at, and tasks of several kinds may call for a
// search.
func spendOnRun(h engine.Host, w *engine.Need) error {
	v := h.View()
	if err := v.Work.Spend(v.Tasks.Len()+(2+len(w.Kinds))*len(v.Nodes)+4*len(w.Needed), v.Dims.Len()); err != nil {
		return err
	}
	if len(w.Kinds) < 2 {
		return nil
	}
	return v.Work.Spend(place.Trials, 1)
}

// standing returns how the job stands in the cluster after edits. errSpent says that no tries are left.
func (r *remedier) standing(edits []edit.Edit) (*standing, error) {
	key := r.key(edits)
	if known := r.asked[key]; known != nil {
		return known, nil
	}
	if r.out.Tries == remedyTries {
		return nil, errSpent
	}
	if r.View().Stop != nil && r.View().Stop() {
		return nil, policy.ErrStopped
	}
	r.out.Tries++
	found := &standing{}
	err := r.under(edits, func() (err error) {
		*found, err = runs(r.Host, r.job)
		if err != nil || found.runs || !r.evicts {
			return err
		}
		return r.evict(found)
	})
	if _, spent := errors.AsType[*policy.WorkError](err); spent && len(edits) > 0 {
		r.out.Tries = remedyTries
		return nil, errSpent
	}
	if err != nil {
		return nil, err
	}
	r.asked[key] = found
	return found, nil
}

// key identifies what was asked about edits.
func (r *remedier) key(edits []edit.Edit) string { return fmt.Sprint(r.evicts, edits) }

// evict asks for a plan for the job in the present state. If there is one, the job runs by it.
func (r *remedier) evict(found *standing) error {
	if err := plan.Spend(r.Host); err != nil {
		return err
	}
	made, err := plan.For(r.Session, &plan.Question{Job: r.job, Means: plan.ByAny})
	if err == nil && made.Outcome == plan.Made {
		*found = standing{runs: true, plan: made}
	}
	return err
}

// runsWith reports whether the job runs in the cluster after edits.
func (r *remedier) runsWith(edits []edit.Edit) (bool, error) {
	now, err := r.standing(edits)
	if err != nil {
		return false, err
	}
	return now.runs, nil
}

// under does something in a session on the cluster after edits, and undoes it. It does nothing if the edits do not result in a valid
// snapshot.
func (r *remedier) under(edits []edit.Edit, do func() error) error {
	return r.Tried(func() error {
		if len(edits) > 0 {
			err := changeBy(r.Host, r.base, r.job, edits)
			if _, faulty := errors.AsType[*model.Error](err); faulty {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return do()
	})
}

// maxRemedyLosses bounds the queues that are listed as losing by one remedy.
const maxRemedyLosses = 8

// add lists a remedy with what it costs others, unless the same edits are listed already or the changed cluster has a setting that the
// policy warns of and does not warn of now.
func (r *remedier) add(found Remedy) (bool, error) {
	// Waiting for jobs to end is another remedy than ending them.
	same := func(other Remedy) bool { return slices.Equal(other.Edits, complete(r.base, r.job, found.Edits)) }
	if found.Kind != Wait && slices.ContainsFunc(r.out.List, same) {
		return false, nil
	}
	sound := true
	ends := !slices.ContainsFunc(found.Edits, func(e edit.Edit) bool { return e.Kind != edit.End })
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
	found.Edits = complete(r.base, r.job, found.Edits)
	for i := range found.Edits {
		if e := &found.Edits[i]; e.Kind == edit.End {
			account := r.View().Account(e.Job)
			found.Ended += int(account.Holding() + account.Tasks[model.Releasing])
			if found.Freed.Absent() {
				found.Freed = resource.NewRow(r.base.Dims.Len())
			}
			found.Freed.Add(occupied(r.Host, e.Job))
			if found.Kind == Wait {
				found.At = max(found.At, r.base.Jobs.At(e.Job).ExpectedEnd)
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
		if e := &found.Edits[i]; e.Kind == edit.End {
			own = append(own, r.pathOf(r.base.Jobs.At(e.Job).Queue)...)
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
