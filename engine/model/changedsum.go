package model

import "slices"

// sum forms the sums of the queues of which a job has changed.
func (r *result) sum() {
	m, base := r.Model, r.base
	m.sums = append(slices.Clip(base.sums), make([]*QueueSum, len(m.Queues)-len(base.sums))...)
	for q := len(base.sums); q < len(m.sums); q++ {
		m.sums[q] = newSum(m.Dims.Len())
	}
	if slices.Sort(r.touched); len(r.touched) > 0 && len(m.sums) == len(base.sums) {
		m.sums = slices.Clone(m.sums)
	}
	r.touched = slices.Compact(r.touched)
	touched := make(map[QueueID]*QueueSum, len(r.touched))
	if m.exact = base.exact && r.sumDifference(touched); !m.exact {
		r.sumAnew(touched)
	}
	for q, sum := range touched {
		m.sums[q] = sum
	}
	r.summed = len(touched)
}

// sumDifference takes what the base has of the touched jobs off the sums of their queues, and adds what the result has of them, which is
// right if it returns true: all sums are exact.
func (r *result) sumDifference(touched map[QueueID]*QueueSum) bool {
	m, base := r.Model, r.base
	s := m.summing()
	copy(s.noted.bits, base.grain.bits)
	book := func(job *Job, tasks *Account, n int32) {
		if job.Queue == None {
			return
		}
		sum := touched[job.Queue]
		if sum == nil {
			sum = m.sums[job.Queue].clone()
			touched[job.Queue] = sum
		}
		s.add(sum, job, tasks, n)
	}
	for _, j := range r.touched {
		if int(j) < base.Jobs.Len() {
			book(base.Jobs.At(j), base.Accounts.At(j), -1)
		}
		book(m.Jobs.At(j), m.Accounts.At(j), 1)
	}
	for _, request := range m.Requests[len(base.Requests):] {
		s.noted.grind(request)
	}
	sums := slices.Clone(m.sums)
	for q, sum := range touched {
		sums[q] = sum
	}
	m.grain = s.noted
	return m.grain.exact(sums)
}

// sumAnew forms the sums of the queues that have a touched job from their jobs in the order of their uids.
func (r *result) sumAnew(touched map[QueueID]*QueueSum) {
	m, base := r.Model, r.base
	s := m.summing()
	for _, j := range r.touched {
		if int(j) < base.Jobs.Len() {
			touched[base.Jobs.At(j).Queue] = nil
		}
		touched[m.Jobs.At(j).Queue] = nil
	}
	delete(touched, None)
	for q := range touched {
		touched[q] = newSum(m.Dims.Len())
		s.fill(q, touched[q])
	}
}
