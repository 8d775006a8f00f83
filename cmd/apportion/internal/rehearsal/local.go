package rehearsal

import (
	"slices"

	"github.com/apportion/apportion/engine/policy/kueue"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// localQueues are the local queues of a run under a policy with usage sharing. Their usage decays as Kueue's does: after a time in which so
// much was held, and by the entry penalty of each admission. The owner of a job stands for its local queue.
type localQueues struct {
	sharing kueue.UsageSharing
	byKey   map[localKey]*localQueue
	stated  map[localKey]kueue.LocalQueue
}

// localKey names a local queue: its ClusterQueue, and the owner of its jobs.
type localKey struct{ queue, owner string }

// localQueue is the usage of a local queue at a time, with what its workloads hold since then.
type localQueue struct {
	kueue.LocalQueue

	held []kueue.Usage
	// at is in nanoseconds.
	at int64
}

// sharingLocals returns the local queues of a run, nil if their usage does not count.
func (r *run) sharingLocals(settings *kueue.Settings) *localQueues {
	if settings.Usage == nil || r.variant.LocalHalfLife == 0 {
		return nil
	}
	l := &localQueues{sharing: *settings.Usage, byKey: map[localKey]*localQueue{}, stated: map[localKey]kueue.LocalQueue{}}
	for _, q := range r.variant.Snapshot.GetQueues() {
		for _, m := range q.GetKueue().GetLocalQueues() {
			l.stated[localKey{q.GetName(), m.GetOwner()}] = wirekueue.LocalQueue(m, r.variant.Snapshot.GetDimensions())
		}
	}
	l.sharing.HalfLife = int64(r.variant.LocalHalfLife)
	return l
}

// of returns the local queue of a job at a time. One that the snapshot states begins with what it has used.
func (l *localQueues) of(queue, owner string, now int64) *localQueue {
	key := localKey{queue, owner}
	q := l.byKey[key]
	if q == nil {
		q = &localQueue{LocalQueue: kueue.LocalQueue{Name: owner, Weight: 1}, at: now}
		if stated, ok := l.stated[key]; ok {
			q.Weight = stated.Weight
			for _, u := range slices.Concat(stated.Consumed, stated.Penalty) {
				q.Consumed = added(q.Consumed, u.Resource, u.Amount)
			}
		}
		l.byKey[key] = q
	}
	for _, u := range q.held {
		q.Consumed = added(q.Consumed, u.Resource, 0)
	}
	for i := range q.Consumed {
		u := &q.Consumed[i]
		u.Amount = l.sharing.Decay(u.Amount, amountIn(q.held, u.Resource), now-q.at)
	}
	q.at = now
	return q
}

// change books what a workload holds from now on, or with -1 no longer. An admission has its penalty.
func (l *localQueues) change(queue, owner string, a *kueue.Admission, now int64, sign float64) {
	if l == nil || a == nil {
		return
	}
	q := l.of(queue, owner, now)
	for i := range a.PodSets {
		for _, u := range a.PodSets[i].Usage {
			amount := kueue.Standard(u.Resource, u.Amount)
			if q.held = added(q.held, u.Resource, sign*amount); sign > 0 {
				q.Consumed = added(q.Consumed, u.Resource, l.sharing.EntryPenalty(amount))
			}
		}
	}
}

// added adds an amount to a list of usage.
func added(list []kueue.Usage, resource string, amount float64) []kueue.Usage {
	for i := range list {
		if list[i].Resource == resource {
			list[i].Amount += amount
			return list
		}
	}
	return append(list, kueue.Usage{Resource: resource, Amount: amount})
}

func amountIn(list []kueue.Usage, resource string) float64 {
	for _, u := range list {
		if u.Resource == resource {
			return u.Amount
		}
	}
	return 0
}
