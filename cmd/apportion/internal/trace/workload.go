//go:build !js

package trace

import (
	"io"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// ReadWorkloads reads the jobs that the finished Workloads of a cluster with Kueue tell, as kubectl prints them.
//
// A job arrives when its Workload was created, and takes the time from its last admission to its end: evictions before it are forgotten. A
// workload that was admitted with fewer pods took longer than it would have with all of them. Workloads that are not finished are left out,
// because it is not known how long they take. The notes count them.
func ReadWorkloads(source string, r io.Reader) (*Trace, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	history, err := kueue.ReadHistory([]objects.Source{{Name: source, Data: data}})
	if err != nil {
		return nil, err
	}
	t := &Trace{}
	count := func(n int, why string) {
		if n > 0 {
			t.Notes = append(t.Notes, text.Count(n, "workload")+" "+why)
		}
	}
	count(history.Unfinished, "not finished: left out")
	count(history.Unstarted, "finished and never admitted: left out")
	var lost, instant, large int
	for i := range history.Runs {
		run := &history.Runs[i]
		switch tasks := pods(run.Job); {
		case run.Job.GetQueue() == "":
			lost++
		case tasks == 0 || tasks > MaxTasks || len(t.Jobs) == MaxJobs:
			large++
		case run.Finished.Before(run.Admitted) || run.Job.GetCreateTime() == 0:
			instant++
		default:
			t.Jobs = append(t.Jobs, jobOfWorkload(run))
			if created := time.Unix(0, run.Job.GetCreateTime()).UTC(); t.Start.IsZero() || created.Before(t.Start) {
				t.Start = created
			}
		}
	}
	count(lost, "without a queue: left out")
	count(instant, "without a time of creation, or with an end before the admission: left out")
	count(large, "without pods, or beyond the bounds of a trace: left out")
	for i := range t.Jobs {
		t.Jobs[i].Arrival -= t.Start.Unix()
	}
	t.Sort()
	return t, nil
}

// pods returns the number of pods that a workload asks for.
func pods(j *apportionv1.Job) (n int) {
	for _, p := range j.GetKueue().GetPodSets() {
		n += int(max(p.GetCount(), 0))
	}
	return n
}

// jobOfWorkload makes a job of a finished workload. Its arrival is in seconds since 1970.
func jobOfWorkload(run *kueue.Run) Job {
	m, all := run.Job, pods(run.Job)
	job := Job{
		Name: strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/"), Queue: m.GetQueue(), Owner: m.GetOwner(),
		Priority: m.GetPriority(), Arrival: time.Unix(0, m.GetCreateTime()).Unix(), Min: all,
	}
	sets, admitted := m.GetKueue().GetPodSets(), 0
	for _, p := range sets {
		if len(sets) == 1 && p.MinCount != nil {
			job.Min = min(max(int(p.GetMinCount()), 1), all)
		}
		n := int(p.GetCount())
		if p.AdmittedCount != nil {
			n = int(p.GetAdmittedCount())
		}
		admitted += min(max(n, 0), int(p.GetCount()))
		if p.GetCount() <= 0 {
			continue
		}
		group := Group{Role: p.GetName(), Tasks: int(p.GetCount())}
		for k, d := range p.GetRequest().GetDimensions() {
			if amount := p.GetRequest().GetAmounts()[k]; amount > 0 && fits(amount) {
				group.Request = append(group.Request, Amount{run.Names[d], amount})
			}
		}
		job.Groups = append(job.Groups, group)
	}
	ran := run.Finished.Unix() - run.Admitted.Unix()
	job.Seconds = min(max((ran*int64(max(admitted, 1))+int64(all)-1)/int64(all), 1), maxSeconds)
	return job
}
