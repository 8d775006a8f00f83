package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// sumParts is the number of parts in which changed sums are computed concurrently.
const sumParts = 2

// summed is the result for one part of the changed sums.
type summed struct {
	// queues counts the sums.
	queues int
	// noted is the grain of the amounts added; more are the amounts by which the sums' totals exceed those of the base.
	noted grain
	more  []float64
}

// sum computes the sums of the queues with a changed job. each runs work concurrently.
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

// sumDifference subtracts the base's amounts of the touched jobs from the sums of their queues and adds the result's, for one part of the
// queues. This is correct only if joined returns true.
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

// sumCopies allocates copies of sums, a few in each piece of memory, which lives as long as any of them.
type sumCopies struct {
	sums  []QueueSum
	cells []float64
	named []int32
	next  int
}

// copiesTogether is the maximum number of copies in one piece.
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

// joined sets the grain of the result, and reports whether the sums of all parts do not depend on the order of summation. No intermediate
// sum exceeds those of the base and the result together.
func (r *result) joined(parts []summed) bool {
	m, base := r.Model, r.base
	g := grain{bits: slices.Clone(base.grain.bits), total: slices.Clone(base.grain.total)}
	for _, request := range m.Requests[len(base.Requests):] {
		g.include(request)
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

// sumAnew computes the sums of the queues with a touched job from all their jobs in the order of uids, and returns the number of these
// queues.
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
