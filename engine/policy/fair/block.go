package fair

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// jobBlocks are the blocks of one job: the gang's rest, whose tasks can only be placed together, and then single tasks.
type jobBlocks struct {
	job   model.JobID
	gang  []model.TaskID
	loose []model.TaskID
}

// leafBlocks are the blocks of a leaf.
type leafBlocks struct {
	// order are the jobs of the leaf that have tasks with numbers, as they are served; known says that it is filled in.
	order []model.JobID
	known bool
	// jobs are valid unless stale.
	jobs  []jobBlocks
	valid bool
	tasks []model.TaskID
}

// blocksOf returns the blocks of a leaf in order; none if the queue is not open.
func (s *State) blocksOf(p place) []jobBlocks {
	b := &s.blocks[p]
	if !s.tree.open[p] {
		return nil
	}
	if b.valid {
		return b.jobs
	}
	s.listJobs()
	b.jobs, b.tasks, b.valid = b.jobs[:0], b.tasks[:0], true
	for _, j := range b.order {
		from := len(b.tasks)
		b.tasks = s.waiting(j, b.tasks)
		list := b.tasks[from:len(b.tasks):len(b.tasks)]
		gang := max(0, int(s.v.Jobs.At(j).MinAvailable-s.accounts.holding[j]))
		if len(list) == 0 || gang > len(list) {
			b.tasks = b.tasks[:from]
			continue
		}
		b.jobs = append(b.jobs, jobBlocks{j, list[:gang:gang], list[gang:]})
	}
	return b.jobs
}

// Block is what one job of a queue waits for: the rest of its gang, whose tasks can only be placed together, and then single tasks.
type Block struct{ Gang, Loose []model.TaskID }

// Blocks returns what the jobs of a queue wait for, in the order in which they are served. The lists are valid until the next event.
func (s *State) Blocks(q model.QueueID) []Block {
	p := s.tree.at[q]
	if p == none || !s.tree.isLeaf(p) {
		return nil
	}
	var list []Block
	for _, b := range s.blocksOf(p) {
		list = append(list, Block{b.gang, b.loose})
	}
	return list
}

// waiting appends the pending tasks of a job that count and that no gate of others holds, as they are served.
func (s *State) waiting(j model.JobID, dst []model.TaskID) []model.TaskID {
	v, job, from := s.v, s.v.Jobs.At(j), len(dst)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if v.Status(t) == model.Pending && v.Tasks.At(t).Gate != model.GateOther && s.fitsTask(t) {
			dst = append(dst, t)
		}
	}
	if list := dst[from:]; !slices.IsSortedFunc(list, s.compareTasks) {
		slices.SortFunc(list, s.compareTasks)
	}
	return dst
}

// CompareTasks compares tasks of one job by the order in which blocks are made of them.
func (s *State) CompareTasks(l, r model.TaskID) int { return s.compareTasks(l, r) }

// CompareJobs puts the job of higher priority first. Among equals the frame's own order is that of blocks.
func (s *State) CompareJobs(l, r model.JobID) int {
	return cmp.Compare(s.v.Jobs.At(r).Priority, s.v.Jobs.At(l).Priority)
}

// compareTasks puts first what is served first of one job: higher priority, then the older one, where a time that is not known is the
// oldest, then the smaller number.
func (s *State) compareTasks(l, r model.TaskID) int {
	lt, rt := s.v.Tasks.At(l), s.v.Tasks.At(r)
	return cmp.Or(cmp.Compare(rt.Priority, lt.Priority), cmp.Compare(lt.CreateTime, rt.CreateTime), cmp.Compare(l, r))
}

// compareJobs puts first what is served first of one queue: higher priority, then the older one, where a time that is not known is the
// oldest, then the smaller uid.
func (s *State) compareJobs(l, r model.JobID) int {
	lj, rj := s.v.Jobs.At(l), s.v.Jobs.At(r)
	return cmp.Or(cmp.Compare(rj.Priority, lj.Priority), cmp.Compare(lj.CreateTime, rj.CreateTime), cmp.Compare(lj.UID, rj.UID))
}

// listJobs gives every leaf its jobs in order, once.
func (s *State) listJobs() {
	if s.blocks[0].known {
		return
	}
	s.blocks[0].known = true
	for _, j := range s.v.Present() {
		if p := s.leafOf(j); p != none && s.v.Jobs.At(j).FirstTask < s.v.Jobs.At(j).EndTask {
			s.blocks[p].order = append(s.blocks[p].order, j)
		}
	}
	for _, p := range s.tree.leaves {
		if list := s.blocks[p].order; !slices.IsSortedFunc(list, s.compareJobs) {
			slices.SortFunc(list, s.compareJobs)
		}
	}
}
