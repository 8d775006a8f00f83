package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// victimOrder sorts candidates by who is evicted first. It ranks the queues and the jobs that occur once, so that comparing two of many
// candidates asks no plugin again; the order is that of lessVictim.
type victimOrder struct {
	keys   []victimKey
	queues []model.QueueID
	jobs   []model.JobID
	// rankOfQueue and rankOfJob are valid for what occurs.
	rankOfQueue, rankOfJob []int32
}

// victimKey is the rank of a candidate's queue above that of its job.
type victimKey struct {
	rank uint64
	task model.TaskID
}

// sortVictims sorts candidates by who is evicted first for a claimant.
func sortVictims(v *policy.View, t *table, claimant model.TaskID, candidates []model.TaskID) {
	if len(candidates) < 2 {
		return
	}
	o := &t.victims
	o.rank(v, t, v.QueueOf(claimant), candidates)
	for i, c := range candidates {
		v.Yield(i)
		j := v.Tasks.At(c).Job
		o.keys[i] = victimKey{uint64(o.rankOfQueue[v.Jobs.At(j).Queue])<<32 | uint64(o.rankOfJob[j]), c}
	}
	compared := 0
	slices.SortFunc(o.keys, func(l, r victimKey) int {
		v.Yield(compared)
		compared++
		return cmp.Compare(l.rank, r.rank)
	})
	from := 0
	for i := range o.keys {
		candidates[i] = o.keys[i].task
		if i+1 == len(o.keys) || o.keys[i+1].rank != o.keys[i].rank {
			sortPeers(v, t, candidates[from:i+1])
			from = i + 1
		}
	}
}

// sortPeers sorts tasks of jobs that nothing tells apart: the last in service first.
func sortPeers(v *policy.View, t *table, tasks []model.TaskID) {
	if len(tasks) < 2 {
		return
	}
	known := 0
	for _, c := range tasks {
		if v.Tasks.At(c).Index >= 0 {
			known++
		}
	}
	compared := 0
	compare := func(l, r model.TaskID) int {
		v.Yield(compared)
		compared++
		return comparePeers(v, t, l, r)
	}
	if known == 0 || known == len(tasks) {
		slices.SortFunc(tasks, compare)
		return
	}
	// Where some tasks have an index and others do not, comparison is not transitive: begin in an order that names alone decide.
	slices.SortFunc(tasks, func(l, r model.TaskID) int { return compareNames(v, l, r) })
	slices.SortStableFunc(tasks, compare)
}

// comparePeers is negative if l is evicted before r; it reverses lessTask.
func comparePeers(v *policy.View, t *table, l, r model.TaskID) int {
	if c := t.compareTasks(l, r); c != 0 {
		return -c
	}
	lt, rt := v.Tasks.At(l), v.Tasks.At(r)
	switch {
	case lt.Index >= 0 && rt.Index >= 0 && lt.Index != rt.Index:
		return cmp.Compare(rt.Index, lt.Index)
	case lt.CreateTime != rt.CreateTime:
		return cmp.Compare(rt.CreateTime, lt.CreateTime)
	}
	return compareNames(v, r, l)
}

func compareNames(v *policy.View, l, r model.TaskID) int {
	return v.CompareTasks(l, r)
}

// rank ranks the queues and jobs of candidates: the smaller rank loses tasks first. Jobs that no plugin tells apart share a rank.
func (o *victimOrder) rank(v *policy.View, t *table, claimant model.QueueID, candidates []model.TaskID) {
	if len(o.rankOfQueue) != len(v.Queues) || len(o.rankOfJob) != v.Jobs.Len() {
		o.rankOfQueue, o.rankOfJob = make([]int32, len(v.Queues)), make([]int32, v.Jobs.Len())
	}
	const seen = -1
	o.queues, o.jobs = o.queues[:0], o.jobs[:0]
	for _, c := range candidates {
		j := v.Tasks.At(c).Job
		o.rankOfQueue[v.Jobs.At(j).Queue], o.rankOfJob[j] = 0, 0
	}
	for i, c := range candidates {
		v.Yield(i)
		j := v.Tasks.At(c).Job
		if o.rankOfJob[j] == seen {
			continue
		}
		o.rankOfJob[j] = seen
		o.jobs = append(o.jobs, j)
		if q := v.Jobs.At(j).Queue; o.rankOfQueue[q] != seen {
			o.rankOfQueue[q] = seen
			o.queues = append(o.queues, q)
		}
	}
	if len(o.queues) > 1 {
		Sort(o.queues,
			func(l, r model.QueueID) int { return strings.Compare(v.Queues[l].Name, v.Queues[r].Name) },
			func(l, r model.QueueID) bool { return t.lessVictimQueue(v, l, r, claimant) })
	}
	for rank, q := range o.queues {
		o.rankOfQueue[q] = int32(rank)
	}
	if len(o.jobs) > 1 {
		compared := 0
		slices.SortFunc(o.jobs, func(l, r model.JobID) int {
			v.Yield(compared)
			compared++
			return t.compareJobs(r, l)
		})
	}
	rank := int32(0)
	for i, j := range o.jobs {
		if i > 0 && t.compareJobs(o.jobs[i-1], j) != 0 {
			rank++
		}
		o.rankOfJob[j] = rank
	}
	o.keys = slices.Grow(o.keys[:0], len(candidates))[:len(candidates)]
}
