package odds

import (
	"slices"
	"sort"
)

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
		until := first + sort.Search(len(r.Past)-first, func(i int) bool { return r.Past[first+i].Arrival >= r.block-shift })
		r.coming = slices.Grow(r.coming[:0], until-first)
		r.left -= int64(until - first)
		for i := first; i < until; i++ {
			p := &r.Past[i]
			r.coming = append(r.coming, coming{p.Arrival + shift + from, p.Kind, i, -1 - int(r.drawn)<<24 - i})
		}
	}
	return r.coming[0].at
}

// seconds returns how long an arrival runs. It is drawn when the job arrives, because most runs end before a block does.
func (r *run) seconds(c *coming) int64 {
	p := &r.Past[c.past]
	if p.Seconds != 0 && (p.Drawn == nil || r.number%2 == 0) {
		return p.Seconds
	}
	draw := streamOf(r.seed, r.number, c.matter)
	return r.draw(r.pastOf[c.past], p.Elapsed, &draw)
}
