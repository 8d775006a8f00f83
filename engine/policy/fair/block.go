package fair

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// wait lists the waiting tasks of one job: the rest of its gang, whose tasks can only be placed together, and then single tasks.
type wait struct {
	job model.JobID
	// tasks are those that count and that no gate of others holds, as they are served; only pending ones wait.
	tasks []model.TaskID
	// kinds are the distinct requests of tasks.
	kinds   []kind
	pending int32
	// unsure: the nodes of some task depend on other pods, or on constraints that the snapshot does not express.
	unsure bool
	// from: no task before tasks[from] is pending.
	from int32
	// The following is valid unless stale. gang is the number of tasks that the gang still needs, the first pending ones; -1 if there are
	// too few, so that the job waits for nothing.
	stale    bool
	gang     int32
	need     []int64
	positive resource.Mask
}

// kind is a request, restricted to a node set, with how many tasks ask for it.
type kind struct {
	restricted
	// pending tasks, of which some belong to the gang's rest.
	pending, ganged int32
}

// blocks are the waiting tasks of all jobs, by leaf; filled in when they are first needed.
type blocks struct {
	known bool
	// waits are those of a leaf, as its jobs are served.
	waits [][]*wait
	// of is the wait of a job; nil if it never waits.
	of []*wait
}

// waitsOf returns what the jobs of a leaf wait for, in order; none if the queue is not open.
func (s *State) waitsOf(p place) []*wait {
	if !s.blocks.known {
		s.openBlocks()
	}
	if s.owned != nil {
		s.sortWaits(p)
	}
	return s.blocks.waits[p]
}

// openBlocks lists what all jobs wait for.
func (s *State) openBlocks() {
	b, v := &s.blocks, s.v
	b.known, b.waits, b.of = true, make([][]*wait, s.tree.len()), make([]*wait, v.Jobs.Len())
	for i, j := range v.Present() {
		v.Yield(i)
		if p := s.leafOf(j); p != none && s.tree.open[p] {
			if w := s.newWait(j); w != nil {
				b.of[j] = w
				b.waits[p] = append(b.waits[p], w)
			}
		}
	}
	for _, p := range s.tree.leaves {
		if list := b.waits[p]; !slices.IsSortedFunc(list, s.compareWaits) {
			slices.SortFunc(list, s.compareWaits)
		}
	}
}

// newWait returns what a job waits for; nil if it has no task that could wait.
func (s *State) newWait(j model.JobID) *wait {
	v, job := s.v, s.v.Jobs.At(j)
	w := &wait{job: j, stale: true}
	for t := job.FirstTask; t < job.EndTask; t++ {
		if s.waits(t) {
			if w.tasks == nil {
				w.tasks = make([]model.TaskID, 0, job.EndTask-t)
			}
			w.tasks = append(w.tasks, t)
			w.unsure = w.unsure || v.Unjudged(t) != 0 || v.PodKind(t) != 0
		}
	}
	if len(w.tasks) == 0 {
		return nil
	}
	if !slices.IsSortedFunc(w.tasks, s.compareTasks) {
		slices.SortFunc(w.tasks, s.compareTasks)
	}
	for _, t := range w.tasks {
		if k := s.restricted(t); len(w.kinds) == 0 || w.kinds[len(w.kinds)-1].restricted != k {
			w.kinds = append(w.kinds, kind{restricted: k})
		}
	}
	slices.SortFunc(w.kinds, func(l, r kind) int { return l.compare(r.restricted) })
	w.kinds = slices.CompactFunc(w.kinds, func(l, r kind) bool { return l.restricted == r.restricted })
	for _, t := range w.tasks {
		if v.Status(t) == model.Pending {
			w.pending++
			w.kindOf(s.restricted(t)).pending++
		}
	}
	return w
}

// waits reports whether a task waits while it is pending: it counts, and no gate of others holds it.
func (s *State) waits(t model.TaskID) bool {
	return s.v.Tasks.At(t).Gate != model.GateOther && s.fitsTask(t)
}

// restricted returns what a task asks for, and on which nodes.
func (s *State) restricted(t model.TaskID) restricted {
	return restricted{s.v.Tasks.At(t).Request, s.setOf(t)}
}

func (r restricted) compare(o restricted) int {
	return cmp.Or(cmp.Compare(r.request, o.request), cmp.Compare(r.set, o.set))
}

func (w *wait) kindOf(r restricted) *kind { return &w.kinds[w.indexOf(r)] }

func (w *wait) indexOf(r restricted) int {
	i, _ := slices.BinarySearchFunc(w.kinds, r, func(k kind, r restricted) int { return k.compare(r) })
	return i
}

// await follows a task that begins (n = 1) or ceases (n = -1) to be pending.
func (s *State) await(w *wait, t model.TaskID, n int32) {
	w.pending += n
	w.kindOf(s.restricted(t)).pending += n
	if n > 0 {
		i, _ := slices.BinarySearchFunc(w.tasks, t, s.compareTasks)
		w.from = min(w.from, int32(i))
	}
}

// refresh brings a wait up to date.
func (s *State) refresh(w *wait) {
	if !w.stale {
		return
	}
	w.stale = false
	for i := range w.kinds {
		w.kinds[i].ganged = 0
	}
	tasks := s.v.Account(w.job)
	w.gang = max(0, s.v.Jobs.At(w.job).MinAvailable-tasks.Holding()-tasks.Tasks[model.Pipelined])
	if w.gang > w.pending || w.pending == 0 {
		w.gang = -1
		return
	}
	if w.gang == 0 {
		return
	}
	if w.need == nil {
		w.need = make([]int64, s.width)
	}
	clear(w.need)
	w.positive = 0
	if len(w.kinds) == 1 {
		w.kinds[0].ganged = w.gang
	} else {
		for t := range s.first(w, w.gang) {
			w.kindOf(s.restricted(t)).ganged++
		}
	}
	for _, k := range w.kinds {
		if r := &s.requests[k.request]; k.ganged > 0 {
			addTimes(w.need, r, int64(k.ganged))
			w.positive |= r.positive
		}
	}
}

// first yields the first n pending tasks of a wait.
func (s *State) first(w *wait, n int32) func(yield func(model.TaskID) bool) {
	return func(yield func(model.TaskID) bool) {
		for s.v.Status(w.tasks[w.from]) != model.Pending && int(w.from) < len(w.tasks)-1 {
			w.from++
		}
		for _, t := range w.tasks[w.from:] {
			if n == 0 {
				return
			}
			if s.v.Status(t) == model.Pending {
				n--
				if !yield(t) {
					return
				}
			}
		}
	}
}

// Block lists the waiting tasks of one job of a queue: the rest of its gang, and then single tasks.
type Block struct{ Gang, Loose []model.TaskID }

// Blocks returns what the jobs of a queue wait for, in the order in which they are served.
func (s *State) Blocks(q model.QueueID) []Block {
	p := s.tree.at[q]
	if p == none || !s.tree.isLeaf(p) {
		return nil
	}
	var list []Block
	for _, w := range s.waitsOf(p) {
		if s.refresh(w); w.gang < 0 {
			continue
		}
		tasks := make([]model.TaskID, 0, w.pending)
		for t := range s.first(w, w.pending) {
			tasks = append(tasks, t)
		}
		list = append(list, Block{tasks[:w.gang:w.gang], tasks[w.gang:]})
	}
	return list
}

// CompareTasks puts the task of higher priority first, then the older one, where a time that is not known is the oldest. The frame breaks
// other ties by names: numbers of tasks depend on the order of jobs.
func (s *State) CompareTasks(l, r model.TaskID) int {
	lt, rt := s.v.Tasks.At(l), s.v.Tasks.At(r)
	return cmp.Or(cmp.Compare(rt.Priority, lt.Priority), cmp.Compare(lt.CreateTime, rt.CreateTime))
}

// CompareJobs puts the job of higher priority first. Among equals the frame's own order is that of blocks, unless they are ordered by the
// usage of owners: then jobs of several queues are ordered by their places in these.
func (s *State) CompareJobs(l, r model.JobID) int {
	c := cmp.Compare(s.v.Jobs.At(r).Priority, s.v.Jobs.At(l).Priority)
	if c == 0 && s.owned != nil {
		c = cmp.Compare(s.rankOf(l), s.rankOf(r))
	}
	return c
}

// compareTasks orders the tasks of one job as they are served: by CompareTasks, then by their numbers, the order in which the job lists
// them.
func (s *State) compareTasks(l, r model.TaskID) int {
	return cmp.Or(s.CompareTasks(l, r), cmp.Compare(l, r))
}

// compareWaits puts first what is served first of one queue: higher priority of the job, then the older one, where a time that is not
// known is the oldest, then the smaller uid.
func (s *State) compareWaits(l, r *wait) int { return s.compareByAge(l.job, r.job) }

func (s *State) compareByAge(l, r model.JobID) int {
	lj, rj := s.v.Jobs.At(l), s.v.Jobs.At(r)
	return cmp.Or(cmp.Compare(rj.Priority, lj.Priority), cmp.Compare(lj.CreateTime, rj.CreateTime), cmp.Compare(lj.UID, rj.UID))
}
