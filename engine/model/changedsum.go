package model

import "slices"

// sumParts is in how many parts the sums that change are formed, which may be at the same time.
const sumParts = 2

// summed is a part of the sums that differ from those of the base.
type summed struct {
	of map[QueueID]*QueueSum
	// noted is that of the amounts added, more what the sums name in addition to those of the base.
	noted grain
	more  []float64
}

// sum forms the sums of the queues of which a job has changed. each does work that may be done at the same time.
func (r *result) sum(each func(n int, f func(int))) {
	m, base := r.Model, r.base
	m.sums = append(slices.Clip(base.sums), make([]*QueueSum, len(m.Queues)-len(base.sums))...)
	for q := len(base.sums); q < len(m.sums); q++ {
		m.sums[q] = newSum(m.Dims.Len())
	}
	if slices.Sort(r.touched); len(r.touched) > 0 && len(m.sums) == len(base.sums) {
		m.sums = slices.Clone(m.sums)
	}
	r.touched = slices.Compact(r.touched)
	var parts [sumParts]summed
	if base.exact {
		each(sumParts, func(i int) { parts[i] = r.sumDifference(i) })
	}
	if m.exact = base.exact && r.joined(parts[:]); !m.exact {
		parts = [sumParts]summed{{of: r.sumAnew()}}
	}
	for _, part := range parts {
		for q, sum := range part.of {
			m.sums[q] = sum
		}
		r.summed += len(part.of)
	}
}

// sumDifference takes what the base has of the touched jobs off the sums of their queues, and adds what the result has of them, for one
// part of the queues. That is right if joined returns true.
func (r *result) sumDifference(part int) summed {
	m, base := r.Model, r.base
	s, of := m.summing(), make(map[QueueID]*QueueSum, len(r.touched)/sumParts)
	book := func(job *Job, tasks *Account, n int32) {
		if job.Queue == None || int(job.Queue)%sumParts != part {
			return
		}
		sum := of[job.Queue]
		if sum == nil {
			sum = m.sums[job.Queue].clone()
			of[job.Queue] = sum
		}
		s.add(sum, job, tasks, n)
	}
	for _, j := range r.touched {
		if int(j) < base.Jobs.Len() {
			book(base.Jobs.At(j), base.Accounts.At(j), -1)
		}
		book(m.Jobs.At(j), m.Accounts.At(j), 1)
	}
	more := make([]float64, m.Dims.Len())
	for q, sum := range of {
		for d, x := range m.sums[q].Named.V {
			more[d] += sum.Named.V[d] - x
		}
	}
	return summed{of, s.noted, more}
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

// sumAnew forms the sums of the queues that have a touched job from their jobs in the order of their uids.
func (r *result) sumAnew() map[QueueID]*QueueSum {
	m, base, of := r.Model, r.base, map[QueueID]*QueueSum{}
	s := m.summing()
	for _, j := range r.touched {
		if int(j) < base.Jobs.Len() {
			of[base.Jobs.At(j).Queue] = nil
		}
		of[m.Jobs.At(j).Queue] = nil
	}
	delete(of, None)
	for q := range of {
		of[q] = newSum(m.Dims.Len())
		s.fill(q, of[q])
	}
	return of
}
