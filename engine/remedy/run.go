package remedy

import (
	"errors"
	"fmt"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
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
func (r *remedier) standing(edits []Edit) (*standing, error) {
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
func (r *remedier) key(edits []Edit) string { return fmt.Sprint(r.evicts, edits) }

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
func (r *remedier) runsWith(edits []Edit) (bool, error) {
	now, err := r.standing(edits)
	if err != nil {
		return false, err
	}
	return now.runs, nil
}

// under does something in a session on the cluster after edits, and undoes it. It does nothing if the edits do not result in a valid
// snapshot.
func (r *remedier) under(edits []Edit, do func() error) error {
	return r.Tried(func() error {
		if len(edits) > 0 {
			err := changeBy(r.Host, &editor{Model: r.base, job: r.job, edits: edits})
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
