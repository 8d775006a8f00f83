package rehearsal

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/wire/kueue"
)

// Under the policy kueue a job is a workload: each of its groups is a pod set, a job of one group may be admitted with its minimum, and its
// pods run as long as it holds quota. Cycles follow each other in a moment until one changes nothing. A workload that does not fit is set
// aside until another one ends or is evicted, unless its queue is strict. Victims leave at once, lose their work as evicted tasks do, and
// wait until the next round. Admission checks and the times for which Kueue waits before it tries again are not simulated.

// admitting is what a run under the policy kueue knows beside its jobs.
type admitting struct {
	// cluster has no workloads.
	cluster  *kueue.Cluster
	settings kueue.Settings
	// covered are the resources of quotas. Others need none: no queue could ever admit a job that asks for them.
	covered map[string]bool
	// changed says that workloads which were set aside may fit now.
	changed bool
	// locals is nil if the usage of local queues does not count.
	locals *localQueues
}

// Covered returns the resources that quotas of a cluster of Kueue cover; nil if it has none.
func Covered(s *apportionv1.Snapshot) map[string]bool {
	var groups []*apportionv1.KueueResourceGroup
	for _, q := range s.GetQueues() {
		groups = append(groups, q.GetKueue().GetGroups()...)
	}
	for _, c := range s.GetKueue().GetCohorts() {
		groups = append(groups, c.GetGroups()...)
	}
	var covered map[string]bool
	for _, g := range groups {
		for _, name := range g.GetCoveredResources() {
			if covered == nil {
				covered = map[string]bool{}
			}
			covered[name] = true
		}
	}
	return covered
}

// admitting finds what Kueue knows of the cluster if the policy is kueue. The session is opened with the policy of the entitlement then: it
// only tells what queues are entitled to.
func (r *run) admitting() error {
	for _, tier := range r.policy.Tiers {
		for _, entry := range tier {
			plugin, ok := entry.Plugin.(kueue.Plugin)
			if !ok {
				continue
			}
			cluster, err := wirekueue.ClusterOf(r.base)
			if err != nil {
				return err
			}
			r.policy = r.entitlement
			r.kueue = &admitting{cluster: cluster, settings: plugin.Settings, covered: Covered(r.variant.Snapshot)}
			r.kueue.locals = r.sharingLocals(&plugin.Settings)
			return nil
		}
	}
	return nil
}

// freed notes that the quota of a job that is done became free.
func (a *admitting) freed(j *job, now int64) {
	if a != nil {
		a.changed = true
		a.locals.change(j.Queue, j.Owner, j.workload.Admission, now, -1)
	}
}

// workloadOf makes the workload of a job.
func (r *run) workloadOf(j *job) *kueue.Workload {
	w := &kueue.Workload{
		Name: j.Name, UID: j.Name, Queue: r.base.Queues[j.queue].Name, Priority: int64(j.Priority), Created: r.nanoseconds(j.Arrival),
	}
	for g := range j.Groups {
		group := &j.Groups[g]
		set := kueue.PodSet{Name: fmt.Sprintf("%d-%s", g, group.Role), Count: int32(group.Tasks)}
		if len(j.Groups) == 1 && j.Min < group.Tasks {
			set.Least = new(int32(max(j.Min, 1)))
		}
		for _, a := range group.Request {
			if r.kueue.covered[a.Resource] {
				set.Requests = append(set.Requests, kueue.Request{Resource: a.Resource, Amount: amountOf(a)})
			}
		}
		w.PodSets = append(w.PodSets, set)
	}
	return w
}

// amountOf converts an amount of a trace to Kueue's unit.
func amountOf(a trace.Amount) kueue.Amount {
	return kueue.Amount(math.Ceil(min(a.Amount/wirekueue.Unit(a.Resource), math.MaxInt64/2)))
}

// runKueue runs cycles until one changes nothing. Kueue has no actions.
func (d *deciding) runKueue(...cycle.Action) error {
	for _, j := range d.live {
		if j.workload == nil {
			j.workload = d.workloadOf(j)
		}
		if d.kueue.changed {
			j.workload.Parked = false
		}
	}
	d.kueue.changed = false
	for {
		moved, err := d.cycles()
		if err != nil {
			return err
		}
		if !moved {
			d.kueue.changed = d.kueue.changed || d.evicted
			return nil
		}
	}
}

// cycles runs cycles until one changes what workloads hold, and reports whether one did.
func (d *deciding) cycles() (moved bool, err error) {
	cluster := *d.kueue.cluster
	cluster.Now, cluster.Workloads = d.nanoseconds(d.now), make([]kueue.Workload, len(d.live))
	for i, j := range d.live {
		cluster.Workloads[i] = *j.workload
		if d.kueue.locals != nil {
			cluster.Workloads[i].LocalQueue = &d.kueue.locals.of(j.Queue, j.Owner, cluster.Now).LocalQueue
		}
	}
	m, err := kueue.Compile(&cluster, d.kueue.settings)
	if err != nil {
		return false, err
	}
	s := m.NewSession()
	for aside := true; aside && !moved; {
		if d.stop() {
			return false, policy.ErrStopped
		}
		aside = false
		for _, decision := range s.Cycle() {
			j := d.live[decision.Workload]
			switch decision.Verdict {
			case kueue.Admitted:
				d.hold(j, s.Admission(decision.Workload, &decision.Assignment))
				moved = true
			case kueue.WaitsForVictims:
				for _, v := range decision.Evicts {
					d.release(d.live[v.Workload], v.Reason)
					moved = true
				}
			case kueue.NotNominated, kueue.DoesNotFit, kueue.NoVictims:
				if !cluster.Queues[decision.Queue].Strict {
					j.workload.Parked, cluster.Workloads[decision.Workload].Parked, aside = true, true, true
				}
			default:
				// Another head of this cycle took the room or the victims, so that another cycle follows.
			}
		}
	}
	return moved, nil
}

// hold lets a workload run with the pods that are admitted.
func (d *deciding) hold(j *job, a *kueue.Admission) {
	j.workload.Admission, j.workload.Reserved, j.workload.Reclaimed = a, new(d.nanoseconds(d.now)), nil
	d.kueue.locals.change(j.Queue, j.Owner, a, d.nanoseconds(d.now), 1)
	first := 0
	for g := range j.Groups {
		count := j.Groups[g].Tasks
		// Kueue admits the sets after one that needs no flavor as they are.
		if g < len(a.PodSets) {
			count = int(*a.PodSets[g].Count)
		}
		for task := first; task < first+count; task++ {
			j.place(task, d.now)
			j.nodes[task] = model.None
			d.meter.use(j, task, 1)
		}
		first += j.Groups[g].Tasks
	}
	d.commits++
	d.touched = append(d.touched, j)
}

// release stops a workload that is evicted. In this round it does not come again, and those that were set aside may fit.
func (d *deciding) release(j *job, reason kueue.VictimReason) {
	why := byReclaim
	if reason == kueue.InQueue {
		why = byPreempt
	}
	for task, start := range j.started {
		if start == idle {
			continue
		}
		lost := j.evict(task, d.now, d.options.Checkpoint)
		d.meter.use(j, task, -1)
		d.meter.evict(j, task, why, lost)
	}
	j.stop(d.now)
	for _, other := range d.live {
		other.workload.Parked = other.workload.Parked && other.evictedAt == d.rounds
	}
	d.kueue.locals.change(j.Queue, j.Owner, j.workload.Admission, d.nanoseconds(d.now), -1)
	j.workload.Admission, j.workload.Reserved, j.workload.Parked, j.evictedAt = nil, nil, true, d.rounds
	if reason == kueue.InCohortReclaimWhileBorrowing {
		j.workload.Reclaimed = new(d.nanoseconds(d.now))
	}
	d.touched, d.evicted = append(d.touched, j), true
}
