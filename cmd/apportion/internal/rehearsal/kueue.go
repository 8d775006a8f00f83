package rehearsal

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Under the policy kueue a job is a workload: each of its groups is a pod set, a job of one group may be admitted with its minimum, and its
// pods run as long as it holds quota. Victims lose their work as evicted tasks do.

// admitting is what a run under the policy kueue knows beside its jobs. Its cluster has no workloads, and its cycle those of live jobs.
type admitting struct {
	cycle.Kueue

	run *run
	// covered are the resources of quotas. Others need none: no queue could ever admit a job that asks for them.
	covered map[string]bool
	// locals is nil if the usage of local queues does not count.
	locals *localQueues
}

// Covered returns the resources that quotas of a cluster of Kueue cover; nil if it has none.
func Covered(s *apportionv1.Snapshot) map[string]bool {
	var covered map[string]bool
	for _, q := range s.GetQueues() {
		for _, o := range q.GetKueue().GetQuotas() {
			for _, d := range o.GetNominal().GetDimensions() {
				if covered == nil {
					covered = map[string]bool{}
				}
				covered[s.GetDimensions()[d]] = true
			}
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
			r.kueue = &admitting{run: r, covered: Covered(r.variant.Snapshot), locals: r.sharingLocals(&plugin.Settings)}
			r.kueue.Cluster, r.kueue.Settings = cluster, plugin.Settings
			if r.kueue.locals != nil {
				r.kueue.LocalQueue = func(w *cycle.Workload) *kueue.LocalQueue {
					j := r.byID[w.Job]
					return &r.kueue.locals.of(j.Queue, j.Owner, r.kueue.Now).LocalQueue
				}
			}
			r.cycle = r.kueue
			return nil
		}
	}
	return nil
}

// freed notes that the quota of a job that is done became free.
func (a *admitting) freed(j *job, now int64) {
	if a != nil {
		a.Changed = true
		a.locals.change(j.Queue, j.Owner, j.workload.Admission, now, -1)
	}
}

// workloadOf makes the workload of a job.
func (r *run) workloadOf(j *job) *cycle.Workload {
	w := &cycle.Workload{Workload: kueue.Workload{
		Name: j.Name, UID: j.Name, Queue: r.base.Queues[j.queue].Name, Priority: int64(j.Priority), Created: r.nanoseconds(j.Arrival),
	}}
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

// Run decides about the workloads of the jobs that have arrived and are not done, in the order of their arrival.
func (a *admitting) Run(s *cycle.State) error {
	a.Now, a.Workloads = a.run.nanoseconds(a.run.now), a.Workloads[:0]
	for _, j := range a.run.live {
		if j.workload == nil {
			j.workload = a.run.workloadOf(j)
		}
		j.workload.Job = j.id
		a.Workloads = append(a.Workloads, j.workload)
	}
	return a.Kueue.Run(s)
}

// booked notes that a workload holds its quota from now on, or with -1 no longer.
func (a *admitting) booked(j *job, sign float64) {
	if a != nil {
		a.locals.change(j.Queue, j.Owner, j.workload.Admission, a.Now, sign)
	}
}
