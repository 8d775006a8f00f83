package engine

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// victimOrder sorts candidates, the first to be evicted first. It ranks the queues and the jobs that occur once, so that comparisons among
// many candidates do not ask plugins again; the order is the one of compareVictims.
type victimOrder struct {
	keys, sorted []victimKey
	queues       []model.QueueID
	jobs         []model.JobID
	// rankOfQueue and rankOfJob are valid for what occurs.
	rankOfQueue, rankOfJob []int32
	// begins counts candidates by rank.
	begins []int32
}

// victimKey is a candidate with the ranks of its queue and of its job.
type victimKey struct {
	task       model.TaskID
	job        model.JobID
	queue      model.QueueID
	ofQ, ofJob int32
}

// sortVictims sorts candidates by who is evicted first for a claimant.
func sortVictims(v *policy.View, t *table, claimant model.TaskID, candidates []model.TaskID) {
	if len(candidates) < 2 {
		return
	}
	o := &t.victims
	queues, jobs := o.rank(v, t, v.QueueOf(claimant), candidates)
	o.keys, o.sorted = byRank(o, jobs, func(k *victimKey) int32 { return k.ofJob })
	o.keys, o.sorted = byRank(o, queues, func(k *victimKey) int32 { return k.ofQ })
	from := 0
	for i := range o.keys {
		k := &o.keys[i]
		candidates[i] = k.task
		if i+1 == len(o.keys) || o.keys[i+1].ofQ != k.ofQ || o.keys[i+1].ofJob != k.ofJob {
			sortPeers(v, t, candidates[from:i+1])
			from = i + 1
		}
	}
}

// byRank returns the candidates sorted by one of their ranks, of which there are so many, and those of equal rank as they were. It sorts by
// counting, because there are no more ranks than candidates. The second result is the memory that the first leaves free.
func byRank(o *victimOrder, ranks int32, rank func(*victimKey) int32) (sorted, free []victimKey) {
	if ranks < 2 {
		return o.keys, o.sorted
	}
	o.begins = slices.Grow(o.begins[:0], int(ranks)+1)[:ranks+1]
	clear(o.begins)
	for i := range o.keys {
		o.begins[rank(&o.keys[i])+1]++
	}
	for r := range ranks {
		o.begins[r+1] += o.begins[r]
	}
	for i := range o.keys {
		at := &o.begins[rank(&o.keys[i])]
		o.sorted[*at] = o.keys[i]
		*at++
	}
	return o.sorted, o.keys
}

// sortPeers sorts tasks of jobs with equal rank: the last in service first.
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
	slices.SortFunc(tasks, func(l, r model.TaskID) int { return v.CompareTasks(l, r) })
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
	return v.CompareTasks(r, l)
}

// rank ranks the queues and jobs of candidates, and returns how many ranks there are: a smaller rank loses tasks first. Jobs that compare
// equal under all plugins share a rank.
func (o *victimOrder) rank(v *policy.View, t *table, claimant model.QueueID, candidates []model.TaskID) (queues, jobs int32) {
	if len(o.rankOfQueue) != len(v.Queues) || len(o.rankOfJob) != v.Jobs.Len() {
		o.rankOfQueue, o.rankOfJob = make([]int32, len(v.Queues)), make([]int32, v.Jobs.Len())
	}
	o.keys = slices.Grow(o.keys[:0], len(candidates))[:len(candidates)]
	o.sorted = slices.Grow(o.sorted[:0], len(candidates))[:len(candidates)]
	o.queues, o.jobs = o.queues[:0], o.jobs[:0]
	for i, c := range candidates {
		v.Yield(i)
		j := v.Tasks.At(c).Job
		q := v.Jobs.At(j).Queue
		o.keys[i] = victimKey{task: c, job: j, queue: q}
		o.rankOfQueue[q] = unranked
	}
	for i := range o.keys {
		k := &o.keys[i]
		if o.rankOfQueue[k.queue] == unranked {
			o.rankOfQueue[k.queue] = 0
			o.queues = append(o.queues, k.queue)
		}
	}
	t.queues.sortVictims(v, t, o.queues, claimant)
	for rank, q := range o.queues {
		o.rankOfQueue[q] = int32(rank)
	}
	for i := range o.keys {
		k := &o.keys[i]
		k.ofQ = o.rankOfQueue[k.queue]
	}
	if len(t.jobOrder) == 0 {
		return int32(len(o.queues)), 1
	}
	return int32(len(o.queues)), o.rankJobs(v, t)
}

const unranked = -1

// rankJobs ranks the jobs of candidates, and returns how many ranks there are.
func (o *victimOrder) rankJobs(v *policy.View, t *table) int32 {
	for i := range o.keys {
		o.rankOfJob[o.keys[i].job] = unranked
	}
	for i := range o.keys {
		if j := o.keys[i].job; o.rankOfJob[j] == unranked {
			o.rankOfJob[j] = 0
			o.jobs = append(o.jobs, j)
		}
	}
	compared := 0
	slices.SortFunc(o.jobs, func(l, r model.JobID) int {
		v.Yield(compared)
		compared++
		return t.compareJobs(r, l)
	})
	rank := int32(0)
	for i, j := range o.jobs {
		if i > 0 && t.compareJobs(o.jobs[i-1], j) != 0 {
			rank++
		}
		o.rankOfJob[j] = rank
	}
	for i := range o.keys {
		o.keys[i].ofJob = o.rankOfJob[o.keys[i].job]
	}
	return rank + 1
}
