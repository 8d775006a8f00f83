package fair

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// owned is the order of the jobs of each leaf by the usage of their owners; nil unless the settings ask for it.
type owned struct {
	// leaves are by place; those of which a job or the division changed are sorted again when their order is next needed.
	leaves []ownedLeaf
	// rank is the position of a job within its leaf.
	rank []int32
	// division is that which the levels rest on.
	division uint64
}

// ownedLeaf are the jobs of one leaf.
type ownedLeaf struct {
	known, stale bool
	// unsorted: the blocks of the leaf are not in this order yet.
	unsorted bool
	jobs     []ownedJob
	at       map[model.JobID]int32
	owners   []owner
}

// ownedJob is a job with what its tasks hold, and what its waiting tasks ask for.
type ownedJob struct {
	job   model.JobID
	owner int32
	stale bool
	// held and asked have an amount for each dimension.
	held, asked []int64
}

// owner is one of a leaf.
type owner struct {
	weight int64
	// usage is decayed, in quantum-seconds; taken is what its jobs hold and, as jobs are served, what these ask for.
	usage, taken []int64
	level        wide
	// jobs are positions of those that are still to be served, of one priority.
	jobs []int32
}

// openOwners prepares the order, if the settings ask for it.
func (s *State) openOwners() {
	if s.memory != nil && s.plugin.Memory.Owners {
		s.owned = &owned{leaves: make([]ownedLeaf, s.tree.len()), rank: make([]int32, s.v.Jobs.Len())}
	}
}

// touch says that a task of a job of a leaf has changed.
func (o *owned) touch(j model.JobID, p place) {
	if o == nil || !o.leaves[p].known {
		return
	}
	leaf := &o.leaves[p]
	leaf.stale = true
	leaf.jobs[leaf.at[j]].stale = true
}

// rankOf returns the position of a job within its leaf; 0 if it takes no part.
func (s *State) rankOf(j model.JobID) int32 {
	if p := s.leafOf(j); p != none {
		s.sortOwned(p)
	}
	return s.owned.rank[j]
}

// sortWaits sorts the blocks of a leaf.
func (s *State) sortWaits(p place) {
	if s.sortOwned(p); !s.owned.leaves[p].unsorted {
		return
	}
	s.owned.leaves[p].unsorted = false
	slices.SortFunc(s.blocks.waits[p], func(l, r *wait) int { return cmp.Compare(s.owned.rank[l.job], s.owned.rank[r.job]) })
}

// sortOwned brings the order of a leaf up to date.
func (s *State) sortOwned(p place) {
	s.settle()
	o := s.owned
	if o.division != s.division.version {
		o.division = s.division.version
		for i := range o.leaves {
			o.leaves[i].stale = true
		}
	}
	leaf := &o.leaves[p]
	if leaf.known && !leaf.stale {
		return
	}
	if !leaf.known {
		s.openOwned(leaf, p)
	}
	s.v.Work.Use(len(leaf.jobs), s.width)
	leaf.stale, leaf.unsorted = false, true
	for i := range leaf.owners {
		clear(leaf.owners[i].taken)
	}
	for i := range leaf.jobs {
		if j := &leaf.jobs[i]; j.stale {
			s.bookOwned(j)
		}
		add(leaf.owners[leaf.jobs[i].owner].taken, leaf.jobs[i].held)
	}
	rank := int32(0)
	for from := 0; from < len(leaf.jobs); {
		to := from + 1
		for to < len(leaf.jobs) && s.v.Jobs.At(leaf.jobs[to].job).Priority == s.v.Jobs.At(leaf.jobs[from].job).Priority {
			to++
		}
		rank = s.serveOwners(leaf, from, to, rank)
		from = to
	}
}

// openOwned lists the jobs and the owners of a leaf.
func (s *State) openOwned(leaf *ownedLeaf, p place) {
	leaf.known, leaf.at = true, map[model.JobID]int32{}
	q := s.tree.queue[p]
	for _, j := range s.v.QueueJobs[q] {
		leaf.jobs = append(leaf.jobs, ownedJob{job: j, stale: true})
	}
	slices.SortFunc(leaf.jobs, func(l, r ownedJob) int { return s.compareByAge(l.job, r.job) })
	known := map[string]int32{}
	fresh := func(name string) *owner {
		known[name] = int32(len(leaf.owners))
		leaf.owners = append(leaf.owners, owner{weight: 1, usage: make([]int64, s.width), taken: make([]int64, s.width)})
		return &leaf.owners[len(leaf.owners)-1]
	}
	average, weights := make([]wide, s.width), int64(0)
	if of := s.memoryOf(p); of != nil {
		for i := range of.Owners {
			o := fresh(of.Owners[i].Owner)
			o.weight = of.Owners[i].Weight
			weights += o.weight
			for d := range o.usage {
				o.usage[d] = of.Owners[i].Usage.At(d)
				average[d] = average[d].plus(wideOf(o.usage[d]))
			}
		}
	}
	cells := make([]int64, 2*len(leaf.jobs)*s.width)
	for i := range leaf.jobs {
		j := &leaf.jobs[i]
		leaf.at[j.job] = int32(i)
		j.held, j.asked, cells = cells[:s.width:s.width], cells[s.width:2*s.width:2*s.width], cells[2*s.width:]
		name := s.v.Jobs.At(j.job).Owner
		if _, listed := known[name]; !listed {
			o := fresh(name)
			for d := range o.usage {
				if weights > 0 {
					o.usage[d] = int64(average[d].over(weights)[0])
				}
			}
		}
		j.owner = known[name]
	}
}

// bookOwned sums what the tasks of a job hold, and what those ask for that wait.
func (s *State) bookOwned(j *ownedJob) {
	j.stale = false
	clear(j.held)
	clear(j.asked)
	v, job := s.v, s.v.Jobs.At(j.job)
	for t := job.FirstTask; t < job.EndTask; t++ {
		switch status := v.Status(t); {
		case status.Granted():
			addTimes(j.held, s.requestOf(t), 1)
		case status == model.Pending && s.waits(t):
			addTimes(j.asked, s.requestOf(t), 1)
		}
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		for c := range v.CountsOf(g) {
			if c.Status.Granted() {
				addTimes(j.held, &s.requests[v.Groups.At(g).Request], int64(c.N))
			}
		}
	}
}

// serveOwners ranks the jobs of one priority from … to-1: each time the first job of the owner with the lowest level. What a job asks for
// then counts as taken.
func (s *State) serveOwners(leaf *ownedLeaf, from, to int, rank int32) int32 {
	h := ownerHeap{leaf: leaf}
	for i := from; i < to; i++ {
		o := &leaf.owners[leaf.jobs[i].owner]
		if len(o.jobs) == 0 {
			o.level = s.level(o)
			h.list = append(h.list, leaf.jobs[i].owner)
		}
		o.jobs = append(o.jobs, int32(i))
	}
	heap.Init(&h)
	for len(h.list) > 0 {
		o := &leaf.owners[h.list[0]]
		j := &leaf.jobs[o.jobs[0]]
		s.owned.rank[j.job] = rank
		rank++
		add(o.taken, j.asked)
		if o.jobs = o.jobs[1:]; len(o.jobs) == 0 {
			heap.Pop(&h)
			continue
		}
		o.level = s.level(o)
		heap.Fix(&h, 0)
	}
	return rank
}

// level returns what an owner used and has now, for all dimensions together and not yet divided by its weight.
func (s *State) level(o *owner) wide {
	sum := wide{}
	for d, used := range o.usage {
		quanta := s.division.columns[d].Total
		if s.memory.prices == nil && quanta == 0 {
			continue
		}
		now := wideOf(o.taken[d]).times(s.memory.EpochSeconds).over(s.quantum[d]).plus(wideOf(used))
		if s.memory.prices != nil {
			sum = sum.plus(now.times(s.memory.prices[d]))
		} else {
			sum = sum.plus(now.times(1 << 20).over(quanta))
		}
	}
	return sum
}

// ownerHeap is a heap of owners with jobs to serve: the lowest level first, among equals the one with the first job.
type ownerHeap struct {
	leaf *ownedLeaf
	list []int32
}

func (h *ownerHeap) Len() int { return len(h.list) }

func (h *ownerHeap) Less(l, r int) bool {
	lo, ro := &h.leaf.owners[h.list[l]], &h.leaf.owners[h.list[r]]
	if c := lo.level.times(ro.weight).compare(ro.level.times(lo.weight)); c != 0 {
		return c < 0
	}
	return lo.jobs[0] < ro.jobs[0]
}

func (h *ownerHeap) Swap(l, r int) { h.list[l], h.list[r] = h.list[r], h.list[l] }

// Push is never called: owners are only taken from the heap.
func (h *ownerHeap) Push(any) {}

// Pop removes the last owner.
func (h *ownerHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
