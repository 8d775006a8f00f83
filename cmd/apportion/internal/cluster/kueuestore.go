package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// named is the number of objects that are listed where the list would take the memory that they are left out for.
const named = 10

// version leaves out what exceeds the limits of the server: queues at the end of the list, and waiting workloads, also those for which the
// server has no memory. Namespaces share what there is, so that those of one do not displace those of another.
func (s *kueueStore) version(
	now time.Time, most int64, unread map[string]string, fill func(*apportionv1.Snapshot),
) (*made, error) {
	cluster := s.Cluster(now, kueue.WithUnread(unread))
	m := &made{snapshot: cluster.Snapshot}
	m.leaveOutFaulty(cluster.Faulty)
	s.within(m)
	if fill != nil {
		fill(m.snapshot)
	}
	listed := min(len(m.snapshot.GetLeftOuts())+named, model.MaxLeftOut)
	const tries = 8
	for tried := 1; ; tried++ {
		var takes int64
		var err error
		if m.data, takes, err = encode(m.snapshot, most); err != nil {
			return nil, err
		}
		// What a workload takes is about its part of the bytes.
		excess := float64(takes-most) / float64(takes) * float64(len(m.data))
		if tried == tries {
			excess = float64(len(m.data))
		}
		size := func(j *apportionv1.Job) int { return proto.Size(j) }
		switch {
		case takes <= most:
			return m, nil
		case shorten(m, int(excess)+1, "no memory is left for it", listed, size):
		case listed > named:
			listed = named
			m.snapshot.LeftOuts = m.snapshot.GetLeftOuts()[:min(named, len(m.snapshot.GetLeftOuts()))]
		default:
			return m, nil
		}
	}
}

// within leaves out what exceeds the limits in number.
func (s *kueueStore) within(m *made) {
	size := func(*apportionv1.Job) int { return 1 }
	if excess := int64(len(m.snapshot.GetJobs())) - s.limits.Jobs; s.limits.Jobs > 0 && excess > 0 {
		shorten(m, int(excess), fmt.Sprintf("there are more than %d workloads", s.limits.Jobs), model.MaxLeftOut, size)
	}
	queues := m.snapshot.GetQueues()
	if s.limits.Queues <= 0 || int64(len(queues)) <= s.limits.Queues {
		return
	}
	gone := map[string]bool{}
	for _, q := range queues[s.limits.Queues:] {
		gone[q.GetName()] = true
		m.lack("ClusterQueue", "", q.GetName(), "", fmt.Sprintf("there are more than %d queues", s.limits.Queues), model.MaxLeftOut)
	}
	m.snapshot.Queues = queues[:s.limits.Queues]
	m.snapshot.Jobs = slices.DeleteFunc(m.snapshot.GetJobs(), func(j *apportionv1.Job) bool {
		if gone[j.GetQueue()] {
			m.lack("Workload", j.GetNamespace(), j.GetName(), "", "its ClusterQueue is left out", model.MaxLeftOut)
		}
		return gone[j.GetQueue()]
	})
}

// lack notes an object that the snapshot has no room for, and lists it unless most are listed.
func (m *made) lack(kind, namespace, name, queue, why string, most int) {
	in := ""
	if namespace != "" {
		in = namespace + "/"
	}
	m.leaveOut(kind, fmt.Sprintf("the %s %s%s: %s", kind, in, name, why))
	if len(m.snapshot.GetLeftOuts()) < most {
		m.snapshot.LeftOuts = append(m.snapshot.GetLeftOuts(), &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: kind, Namespace: namespace, Name: name, Queue: queue, Detail: why,
		})
	}
}

// shorten leaves out waiting workloads of as much as excess in all, of the namespaces with the most, so that each that loses some keeps as
// much as the others that do. At most so many objects are listed as left out. It reports whether there were any.
func shorten(m *made, excess int, why string, most int, size func(*apportionv1.Job) int) bool {
	sizes, total := map[string]int{}, 0
	for _, job := range m.snapshot.GetJobs() {
		if !job.GetKueue().GetAdmitted() {
			sizes[job.GetNamespace()] += size(job)
			total += size(job)
		}
	}
	if total == 0 {
		return false
	}
	// level is what a namespace keeps at most: of n namespaces, those with less than an n-th of what is left keep all.
	level, left := 0, max(0, total-excess)
	sorted := slices.Sorted(maps.Values(sizes))
	for i, n := range sorted {
		if level = left / (len(sorted) - i); n > level {
			break
		}
		left -= n
	}
	// The last of the list go first.
	jobs := m.snapshot.GetJobs()
	kept := make([]*apportionv1.Job, 0, len(jobs))
	for _, job := range slices.Backward(jobs) {
		if in := job.GetNamespace(); !job.GetKueue().GetAdmitted() && sizes[in] > level {
			sizes[in] -= size(job)
			m.lack("Workload", in, job.GetName(), job.GetQueue(), why, most)
			continue
		}
		kept = append(kept, job)
	}
	slices.Reverse(kept)
	m.snapshot.Jobs = kept
	return true
}
