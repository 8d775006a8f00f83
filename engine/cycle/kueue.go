package cycle

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
)

// Kueue is Kueue's cycle. It decides about workloads, whose pods run as long as they hold quota, in place of the tasks of the session: of
// the state it takes only which tasks a job has. Cycles follow each other until one changes nothing. A workload that does not fit is set
// aside until another one ends or is evicted, unless its queue is strict. Victims leave at once, and wait until the next run. Admission
// checks and the times for which Kueue waits before it tries again are not part of it.
type Kueue struct {
	// Cluster has no workloads, and no time.
	Cluster  *kueue.Cluster
	Settings kueue.Settings
	// Now is in Unix nanoseconds.
	Now int64
	// Workloads are those that wait or hold quota, the first to be decided about first among equals.
	Workloads []*Workload
	// Changed says that workloads which were set aside may fit now. After a run it says whether something was evicted.
	Changed bool
	// LocalQueue, if not nil, returns the local queue of a workload, with what it has used.
	LocalQueue func(*Workload) *kueue.LocalQueue
}

// Workload is a job as Kueue sees it: each group is a pod set.
type Workload struct {
	kueue.Workload

	Job model.JobID
	// evicted says that this run has evicted it.
	evicted bool
}

// Run decides, and notes in the workloads what they hold. A decision is told while its victims still have their admissions.
func (k *Kueue) Run(s *State) error {
	for _, w := range k.Workloads {
		w.Parked, w.evicted = w.Parked && !k.Changed, false
	}
	k.Changed = false
	for {
		if moved, err := k.cycles(s); err != nil || !moved {
			return err
		}
	}
}

// cycles runs cycles until one changes what workloads hold, and reports whether one did.
func (k *Kueue) cycles(s *State) (moved bool, err error) {
	cluster := *k.Cluster
	cluster.Now, cluster.Workloads = k.Now, make([]kueue.Workload, len(k.Workloads))
	for i, w := range k.Workloads {
		cluster.Workloads[i] = w.Workload
		if k.LocalQueue != nil {
			cluster.Workloads[i].LocalQueue = k.LocalQueue(w)
		}
	}
	m, err := kueue.Compile(&cluster, k.Settings)
	if err != nil {
		return false, err
	}
	session := m.NewSession()
	for aside := true; aside && !moved; {
		if v := s.View(); v.Stop != nil && v.Stop() {
			return false, policy.ErrStopped
		}
		aside = false
		for _, d := range session.Cycle() {
			w := k.Workloads[d.Workload]
			switch d.Verdict {
			case kueue.Admitted:
				w.Admission, w.Reserved, w.Reclaimed = session.Admission(d.Workload, &d.Assignment), new(k.Now), nil
				s.keep(&Decision{Action: Allocate, Job: w.Job, Tasks: s.tasksOf(w)})
				moved = true
			case kueue.WaitsForVictims:
				if len(d.Evicts) > 0 {
					k.evict(s, w, d.Evicts)
					moved = true
				}
			case kueue.NotNominated, kueue.DoesNotFit, kueue.NoVictims:
				if !cluster.Queues[d.Queue].Strict {
					w.Parked, cluster.Workloads[d.Workload].Parked, aside = true, true, true
				}
			default:
				// Another head of this cycle took the room or the victims, so that another cycle follows.
			}
		}
	}
	return moved, nil
}

// evict stops workloads for another one. They do not come again in this run, and those that were set aside may fit.
func (k *Kueue) evict(s *State, claimant *Workload, victims []kueue.Victim) {
	d := &Decision{Action: Reclaim, Job: claimant.Job}
	for _, v := range victims {
		for _, t := range s.tasksOf(k.Workloads[v.Workload]) {
			d.Victims = append(d.Victims, Victim{Task: t, Own: v.Reason == kueue.InQueue})
		}
	}
	s.keep(d)
	for _, v := range victims {
		w := k.Workloads[v.Workload]
		w.Admission, w.Reserved, w.Parked, w.evicted = nil, nil, true, true
		if v.Reason == kueue.InCohortReclaimWhileBorrowing {
			w.Reclaimed = new(k.Now)
		}
	}
	k.Changed = true
	for _, other := range k.Workloads {
		other.Parked = other.Parked && other.evicted
	}
}

// tasksOf lists the tasks of a workload that its admission lets run. Kueue admits the sets after one that needs no flavor as they are.
func (s *State) tasksOf(w *Workload) []model.TaskID {
	job := s.View().Jobs.At(w.Job)
	var tasks []model.TaskID
	counted := make([]int32, job.EndGroup-job.FirstGroup)
	for t := job.FirstTask; t < job.EndTask; t++ {
		set := int(s.View().Tasks.At(t).Group - job.FirstGroup)
		if set < len(w.Admission.PodSets) {
			if most := w.Admission.PodSets[set].Count; most != nil && counted[set] >= *most {
				continue
			}
		}
		counted[set]++
		tasks = append(tasks, t)
	}
	return tasks
}
