package fair

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// limit holds the settings of a queue for one place, per dimension.
type limit struct {
	// capability is raw; unlimited where none is stated. A hard budget lowers it.
	capability []int64
	// limited are the dimensions in which capability limits anything.
	limited resource.Mask
}

// readLimits also fills the columns of the division with capabilities, guarantees and deserved amounts in quanta.
func (s *State) readLimits() []limit {
	n := s.tree.len()
	list, cells := make([]limit, n), make([]int64, n*s.width)
	for p := range list {
		l := &list[p]
		l.capability = cells[p*s.width : (p+1)*s.width : (p+1)*s.width]
		for d := range l.capability {
			l.capability[d] = unlimited
		}
		q := s.tree.queue[p]
		if q < 0 {
			continue
		}
		capability := s.v.Queues[q].Capability
		for m := capability.Has; m != 0; m = m.Rest() {
			d := m.First()
			if l.capability[d] = limitOf(capability.V[d]); l.capability[d] != unlimited {
				l.limited = l.limited.With(d)
			}
		}
	}
	if s.memory != nil {
		s.applyBudgets(list)
	}
	return list
}

// exceeded returns the nearest place of p's path, p first, in which what it holds and the amount exceed its capability, and the first such
// dimension; (none, -1) if there is none.
func (s *State) exceeded(p place, amount []int64, positive resource.Mask) (place, int) {
	for a := p; a != none; a = s.tree.parent[a] {
		l := &s.limits[a]
		if positive&l.limited == 0 {
			continue
		}
		held := s.row(s.accounts.held, a)
		for _, d := range s.dims {
			if positive.Has(d) && l.limited.Has(d) && held[d]+amount[d] > l.capability[d] {
				return a, d
			}
		}
	}
	return none, -1
}

// aboveLimits adds a reason for every capability on the way up that an amount would exceed.
func (s *State) aboveLimits(p place, amount []int64, positive resource.Mask, why *policy.Reasons) {
	for a := p; a != none; a = s.tree.parent[a] {
		held, limited := s.row(s.accounts.held, a), s.limits[a].limited&positive
		for _, d := range s.dims {
			if limited.Has(d) && held[d]+amount[d] > s.limits[a].capability[d] {
				why.Add(s.aboveLimit(a, d, held[d], amount[d]))
			}
		}
	}
}

// aboveLimit compares what a queue has and what it is asked for with its capability.
func (s *State) aboveLimit(a place, d int, have, need int64) policy.Reason {
	return policy.Reason{
		Plugin: name, Code: policy.AboveLimit, Queue: s.tree.queue[a], Dimension: d,
		Have: float64(have), Need: float64(need), Limit: float64(s.limits[a].capability[d]),
	}
}

// A job enters beyond a limit where eviction would serve it: there is no point in waiting for room that others hold beyond their part.

// takes reports whether a job that waits may take what it lacks of a limit: from jobs of lower priority of its own queue what they hold
// beyond their minimum, and below a limit above its queue what others hold beyond what they are entitled to, if its queue is entitled to
// the minimum of the job beside what it holds and has admitted. Where more is held than a limit, as after it was lowered, nothing enters.
func (s *State) takes(j model.JobID, p place, e excess, minimum int64) bool {
	account, d := s.v.Account(j), e.dimension
	waits := account.Tasks[model.Pending] > 0 || account.AllTasks() == 0
	if !waits || s.row(s.accounts.held, e.limited)[d] > s.limits[e.limited].capability[d] {
		return false
	}
	spare := s.spareBelow(j, p, d)
	lacks := e.over - spare
	if lacks <= 0 || e.limited == p {
		return lacks <= 0
	}
	wanted, demand := s.row(s.accounts.held, p)[d]-spare+s.row(s.inqueue.lacked, p)[d]+minimum, int64(0)
	if own := s.inqueue.jobs[j]; own != nil {
		wanted -= own.lack[d]
	}
	if account.AllTasks() == 0 {
		// The queue is entitled to what the tasks of the job will ask for once they are created.
		demand = wanted
	}
	taking, giving := s.supposedLines(p, d, demand)
	return wanted <= taking && s.lent(p, e.limited, d, giving) >= lacks
}

// lent sums what is held beyond lines below a place by queues beside the path to a leaf. What leaves hold beyond their lines within that of
// a queue above them they use in the place of their siblings, and keep. With memory places also stay beyond their lines, by the task of
// grace. The lines are those of supposedLines.
func (s *State) lent(leaf, limited place, d int, lines []int64) (sum int64) {
	t, beyond, least := &s.tree, s.scratch.supposed.beyond, int64(0)
	if s.memory != nil {
		least = 1
	}
	for p := place(t.len()) - 1; p > limited; p-- {
		below := int64(0)
		for k := t.first[p]; k < t.end[p]; k++ {
			below += beyond[k]
		}
		if beyond[p] = max(0, s.row(s.accounts.held, p)[d]-lines[p]-least); !t.isLeaf(p) {
			beyond[p] = min(beyond[p], below)
		}
	}
	for on := leaf; on != limited; on = t.parent[on] {
		for k := t.first[t.parent[on]]; k < t.end[t.parent[on]]; k++ {
			if k != on {
				sum += beyond[k]
			}
		}
	}
	return sum
}

// spare is what the jobs of a leaf hold beyond their minima in tasks that may be evicted, in one version of the accounts.
type spare struct {
	version uint64
	// priorities are those of the jobs, ascending, each once; sums has a row for each, of what jobs up to that priority have to spare.
	priorities []int32
	sums       [][]int64
}

// spareBelow sums what jobs of a leaf have to spare that are of lower priority than one.
func (s *State) spareBelow(j model.JobID, p place, d int) int64 {
	known := s.inqueue.spare[p]
	if known == nil || known.version != s.version {
		known = s.findSpare(p)
		s.inqueue.spare[p] = known
	}
	at, _ := slices.BinarySearch(known.priorities, s.v.Jobs.At(j).Priority)
	if at == 0 {
		return 0
	}
	return known.sums[at-1][d]
}

func (s *State) findSpare(p place) *spare {
	found, last := &spare{version: s.version}, make([]int64, s.width)
	jobs := slices.Clone(s.v.QueueJobs[s.tree.queue[p]])
	s.v.Work.Use(len(jobs), s.width)
	slices.SortStableFunc(jobs, func(a, b model.JobID) int { return cmp.Compare(s.v.Jobs.At(a).Priority, s.v.Jobs.At(b).Priority) })
	for i, j := range jobs {
		s.v.Yield(i)
		job := s.v.Jobs.At(j)
		left := s.v.Account(j).Ready() - job.MinAvailable
		if left <= 0 {
			continue
		}
		if n := len(found.priorities); n == 0 || found.priorities[n-1] != job.Priority {
			last = slices.Clone(last)
			found.priorities, found.sums = append(found.priorities, job.Priority), append(found.sums, last)
		}
		for t := job.FirstTask; t < job.EndTask && left > 0; t++ {
			if s.v.Status(t) == model.Running && s.v.Tasks.At(t).Preemptable {
				addTimes(last, s.requestOf(t), 1)
				left--
			}
		}
	}
	return found
}
