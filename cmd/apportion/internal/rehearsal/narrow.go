package rehearsal

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Narrow is a limit of a queue under which gangs run one at a time, and have little time to spare.
type Narrow struct {
	Queue, Resource string
	// Limit is that of the queue; Most is what the largest gang needs, in the units of the contract.
	Limit, Most float64
	// Jobs is the number of gangs that need more than half of the limit. Load is the part of the time from the first arrival to the last
	// in which they run if they run one after the other, each with all its tasks: above 1 their line grows without end.
	Jobs int
	Load float64
}

const (
	// narrowLoad is the load above which waits are long: gaps between two gangs, and gangs that arrive together, leave no time to catch up.
	narrowLoad = .9
	// narrowJobs is the number of gangs from which on a load says something.
	narrowJobs = 10
)

// Narrows returns the limits of a cluster's queues under which gangs of a trace, of which no two fit at the same time, need more than
// nine tenths of the time from the first arrival to the last, if that is any. Of each queue it returns the resource in which they need
// most.
func Narrows(s *apportionv1.Snapshot, t *trace.Trace) []Narrow {
	if len(t.Jobs) == 0 {
		return nil
	}
	span := float64(t.Jobs[len(t.Jobs)-1].Arrival - t.Jobs[0].Arrival)
	if span == 0 {
		return nil
	}
	below, limits := treeOf(s), map[string][]*Narrow{}
	for _, q := range s.GetQueues() {
		for i, d := range q.GetCapability().GetDimensions() {
			if amount := q.GetCapability().GetAmounts(); int(d) < len(s.GetDimensions()) && i < len(amount) && amount[i] > 0 {
				n := &Narrow{Queue: q.GetName(), Resource: s.GetDimensions()[d], Limit: amount[i]}
				limits[n.Queue] = append(limits[n.Queue], n)
			}
		}
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Min < 2 {
			continue
		}
		need := j.Minimum()
		for _, queue := range below.path(j.Queue) {
			for _, n := range limits[queue] {
				if amount := need[n.Resource]; amount > n.Limit/2 && amount <= n.Limit {
					n.Jobs++
					n.Load += float64(j.Seconds) / span
					n.Most = max(n.Most, amount)
				}
			}
		}
	}
	var list []Narrow
	for _, q := range s.GetQueues() {
		of := slices.DeleteFunc(limits[q.GetName()], func(n *Narrow) bool { return n.Jobs < narrowJobs || !(n.Load > narrowLoad) })
		if len(of) > 0 {
			list = append(list, *slices.MaxFunc(of, func(l, r *Narrow) int { return cmp.Compare(l.Load, r.Load) }))
		}
	}
	return list
}
