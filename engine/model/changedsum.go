package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// sumParts is in how many parts the sums that change are formed, which may be at the same time.
const sumParts = 2

// summed is a part of the sums that differ from those of the base.
type summed struct {
	// queues counts the sums.
	queues int
	// noted is that of the amounts added, more what the sums name in addition to those of the base.
	noted grain
	more  []float64
}

// sum forms the sums of the queues of which a job has changed. each does work that may be done at the same time.
func (r *result) sum(each func(n int, f func(int))) {
	m, base := r.Model, r.base
	if slices.Sort(r.touched); len(r.touched) > 0 || len(m.Queues) > len(base.sums) {
		m.sums = append(make([]*QueueSum, 0, len(m.Queues)), base.sums...)[:len(m.Queues)]
	}
	r.touched = slices.Compact(r.touched)
	var parts [sumParts]summed
	if base.exact {
		each(sumParts, func(i int) { parts[i] = r.sumDifference(i) })
	}
	if m.exact = base.exact && r.joined(parts[:]); m.exact {
		for _, part := range parts {
			r.summed += part.queues
		}
	} else {
		r.summed = r.sumAnew()
	}
	for q := len(base.sums); q < len(m.sums); q++ {
		if m.sums[q] == nil {
			m.sums[q] = newSum(m.Dims.Len())
		}
	}
}

// sumDifference takes what the base has of the touched jobs off the sums of their queues, and adds what the result has of them, for one
// part of the queues. That is right if joined returns true.
func (r *result) sumDifference(part int) summed {
	m, base := r.Model, r.base
	s, store := m.summing(), sumCopies{}
	var queues []QueueID
	of := func(job *Job) *QueueSum {
		if job.Queue == None || int(job.Queue)%sumParts != part {
			return nil
		}
		q := int(job.Queue)
		switch sum := m.sums[q]; {
		case sum == nil:
			m.sums[q] = newSum(m.Dims.Len())
		case q < len(base.sums) && sum == base.sums[q]:
			m.sums[q] = store.clone(sum)
		default:
			return sum
		}
		queues = append(queues, job.Queue)
		return m.sums[q]
	}
	for _, j := range r.touched {
		job, tasks := m.Jobs.At(j), m.Accounts.At(j)
		to := of(job)
		if int(j) < base.Jobs.Len() {
			was, before := base.Jobs.At(j), base.Accounts.At(j)
			if from := of(was); from != nil && from == to && s.nameTheSame(was, before, job, tasks) {
				s.addHeld(to, was, before, -1)
				s.addHeld(to, job, tasks, 1)
				continue
			} else if from != nil {
				s.add(from, was, before, -1)
			}
		}
		if to != nil {
			s.add(to, job, tasks, 1)
		}
	}
	more, none := make([]float64, m.Dims.Len()), make([]float64, m.Dims.Len())
	for _, q := range queues {
		was := none
		if int(q) < len(base.sums) {
			was = base.sums[q].Named.V
		}
		for d, x := range m.sums[q].Named.V {
			more[d] += x - was[d]
		}
	}
	return summed{len(queues), s.noted, more}
}

// nameTheSame reports whether a job adds as much to what its queue names as the one that it replaces.
func (s *summing) nameTheSame(was *Job, before *Account, job *Job, tasks *Account) bool {
	return same(before.Total, tasks.Total) && same(was.MinResources, job.MinResources) && s.requested(was) == s.requested(job)
}

// same reports whether two rows are the same bit for bit.
func same(l, r resource.Row) bool { return l.Has == r.Has && slices.Equal(l.V, r.V) }

// sumCopies is memory for copies of sums. A few lie in one piece, which is kept as long as any of them.
type sumCopies struct {
	sums  []QueueSum
	cells []float64
	named []int32
	next  int
}

// copiesTogether is how many copies lie in one piece at most.
const copiesTogether = 16

// clone returns a copy that shares nothing with a sum.
func (c *sumCopies) clone(sum *QueueSum) *QueueSum {
	n := len(sum.named)
	if len(c.sums) == 0 {
		c.next = min(max(2*c.next, 1), copiesTogether)
		c.sums, c.cells, c.named = make([]QueueSum, c.next), make([]float64, c.next*n), make([]int32, c.next*n)
	}
	out, cells := &c.sums[0], c.cells[:n]
	*out = *sum
	for i, row := range sum.rows() {
		copy(cells[i*len(row.V):], row.V)
	}
	out.lay(cells)
	out.named = c.named[:n:n]
	copy(out.named, sum.named)
	c.sums, c.cells, c.named = c.sums[1:], c.cells[n:], c.named[n:]
	return out
}

// joined sets the grain of the result, and returns whether the sums of all parts are the same in whatever order they were formed. No sum
// was ever larger than those of the base and the result together.
func (r *result) joined(parts []summed) bool {
	m, base := r.Model, r.base
	g := grain{bits: slices.Clone(base.grain.bits), total: slices.Clone(base.grain.total)}
	for _, request := range m.Requests[len(base.Requests):] {
		g.grind(request)
	}
	for _, p := range parts {
		g.rough = g.rough || p.noted.rough
		for d := range g.bits {
			g.bits[d] |= p.noted.bits[d]
			g.total[d] += p.more[d]
		}
	}
	m.grain = g
	return g.exact(g.total) && g.exact(base.grain.total)
}

// sumAnew forms the sums of the queues that have a touched job from their jobs in the order of their uids, and returns how many there are.
func (r *result) sumAnew() int {
	m, base, of := r.Model, r.base, map[QueueID]struct{}{}
	s := m.summing()
	for _, j := range r.touched {
		if int(j) < base.Jobs.Len() {
			of[base.Jobs.At(j).Queue] = struct{}{}
		}
		of[m.Jobs.At(j).Queue] = struct{}{}
	}
	delete(of, None)
	for q := range of {
		m.sums[q] = newSum(m.Dims.Len())
		s.fill(q, m.sums[q])
	}
	return len(of)
}
