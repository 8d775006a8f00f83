package odds

import "sort"

// weighDays gives each block of the past a weight: on which of the days that are to come will be like it the run has an opinion of its
// own, as it has of runtimes.
func (r *run) weighDays() {
	s, sum := streamOf(r.seed, r.number, sampled+1), 0.0
	r.days = make([]float64, r.blocks)
	for i := range r.days {
		sum += s.weight()
		r.days[i] = sum
	}
}

// arrival returns when the next job arrives.
func (r *run) arrival() int64 {
	for len(r.coming) == 0 {
		from := r.drawn * r.block
		if r.block == 0 || from > r.Horizon {
			return Never
		}
		s := streamOf(r.seed, r.number, -1-int(r.drawn))
		r.drawn++
		r.left--
		at := s.unit() * r.days[len(r.days)-1]
		shift := (int64(min(sort.SearchFloat64s(r.days, at), len(r.days)-1)) + 1) * r.block
		first := sort.Search(len(r.Past), func(i int) bool { return r.Past[i].Arrival >= -shift })
		for i := first; i < len(r.Past) && r.Past[i].Arrival < r.block-shift; i++ {
			p := &r.Past[i]
			seconds := p.Seconds
			if seconds == 0 || p.Drawn != nil && r.number%2 == 1 {
				draw := streamOf(r.seed, r.number, -1-int(r.drawn)<<24-i)
				seconds = r.law(r.pastOf[i]).draw(p.Elapsed, &draw)
			}
			r.coming = append(r.coming, coming{p.Arrival + shift + from, p.Kind, seconds})
		}
	}
	return r.coming[0].at
}
