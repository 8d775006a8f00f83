package kueue

import (
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Run is a Workload that is finished.
type Run struct {
	// Job is the workload with its pod sets. Its queue is the ClusterQueue; "" if neither the workload nor its LocalQueue tells it.
	Job *apportionv1.Job
	// Names are the dimensions of the amounts of the job.
	Names []string
	// Admitted is the time of its last admission, Finished that of its end.
	Admitted, Finished time.Time
}

// History is the past of a cluster, as the Workloads tell it that are still there.
type History struct {
	// Runs are sorted by namespace and name.
	Runs []Run
	// Unfinished counts the Workloads that are not finished, Unstarted the finished ones that were never admitted.
	Unfinished, Unstarted int
}

// ReadHistory reads the finished Workloads of all sources. LocalQueues among the objects tell the queues of those whose admission is gone.
// An error is an *objects.Error.
func ReadHistory(sources []objects.Source) (*History, error) {
	r := newReader(time.Time{}, nil)
	r.past = map[string]*past{}
	kinds.Each(r, sources)
	if err := r.Found.Err(); err != nil {
		return nil, err
	}
	out := &History{Unfinished: len(r.workloads)}
	for _, key := range sortedKeys(r.past) {
		p := r.past[key]
		if p.run.Admitted.IsZero() {
			out.Unstarted++
			continue
		}
		if local := r.localQueues[p.localQueue]; p.run.Job.GetQueue() == "" && local != nil {
			p.run.Job.Queue = local.queue
		}
		out.Runs = append(out.Runs, p.run)
	}
	return out, nil
}

// past is a finished workload and its LocalQueue.
type past struct {
	run        Run
	localQueue string
}

// remember keeps a finished workload.
func (r *reader) remember(w *workload, o *workloadObject) {
	run := Run{Job: w.message}
	_, end := conditionOf(o.Status.Conditions, "Finished")
	run.Finished = end.Since
	for _, name := range []string{"QuotaReserved", "Admitted"} {
		if is, c := conditionOf(o.Status.Conditions, name); is {
			run.Admitted = c.Since
		}
	}
	if a := o.Status.Admission; a != nil {
		run.Job.Queue = a.ClusterQueue
		r.admission(a, run.Job.GetKueue())
	}
	run.Names = r.names
	r.past[w.message.GetNamespace()+"/"+w.message.GetName()] = &past{run, w.localQueue}
}
