package odds

import (
	"cmp"
	"slices"
	"sort"
)

// stream draws numbers by chance (SplitMix64, G. Steele, D. Lea and C. Flood, 2014). Every matter has a stream of its own, so that a draw
// does not depend on the order of events.
type stream uint64

// streamOf returns the stream of a matter in a run.
func streamOf(seed uint64, run, matter int) stream {
	s := stream(seed)
	for _, n := range []int{run, matter} {
		s = stream(s.next() ^ uint64(n))
	}
	return s
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below draws a number from 0 to n-1.
func (s *stream) below(n int) int { return int(s.next() >> 1 % uint64(n)) }

// unit draws a number above 0, at most 1.
func (s *stream) unit() float64 { return float64(s.next()>>11+1) / (1 << 53) }

// longest bounds a runtime, 100 years, so that sums of times do not overflow.
const longest = int64(100 * 366 * 24 * 3600)

// Sample is how long jobs of the past ran, those included that still run. The chance of a time is that of Kaplan and Meier (1958): what a
// job that still runs would count goes to the longer times.
type Sample struct {
	// seconds are in order, and beyond says what chance is left beyond each of them.
	seconds []int64
	beyond  []float64
}

// NewSample returns the sample of jobs that ran so long, and of jobs that have run so long and still run.
func NewSample(ended, running []int64) *Sample {
	type time struct {
		seconds int64
		ended   bool
	}
	all := make([]time, 0, len(ended)+len(running))
	for _, t := range ended {
		all = append(all, time{t, true})
	}
	for _, t := range running {
		all = append(all, time{t, false})
	}
	slices.SortFunc(all, func(l, r time) int {
		if l.seconds == r.seconds && l.ended != r.ended {
			if l.ended {
				return -1
			}
			return 1
		}
		return cmp.Compare(l.seconds, r.seconds)
	})
	s, left := &Sample{}, 1.0
	for i, t := range all {
		if !t.ended {
			continue
		}
		left *= 1 - 1/float64(len(all)-i)
		if n := len(s.seconds); n > 0 && s.seconds[n-1] == t.seconds {
			s.beyond[n-1] = left
			continue
		}
		s.seconds, s.beyond = append(s.seconds, t.seconds), append(s.beyond, left)
	}
	return s
}

// Longer returns how many different runtimes are above a time.
func (s *Sample) Longer(elapsed int64) int {
	if s == nil {
		return 0
	}
	return len(s.seconds) - s.after(elapsed)
}

// after returns the position of the first runtime above a time.
func (s *Sample) after(elapsed int64) int {
	return sort.Search(len(s.seconds), func(i int) bool { return s.seconds[i] > elapsed })
}

// draw draws how long a job runs in all that has run for a time. Beyond the longest runtime known a job runs as long again with the chance
// of one half (J. Gott, 1993); one that has not begun and of which nothing is known, as if it had run for an hour.
func (s *Sample) draw(elapsed int64, r stream) int64 {
	last, from := elapsed, 0
	if s != nil && len(s.seconds) > 0 {
		last, from = max(last, s.seconds[len(s.seconds)-1]), s.after(elapsed)
		chance := 1.0
		if from > 0 {
			chance = s.beyond[from-1]
		}
		left := chance * (1 - r.unit())
		if at := sort.Search(len(s.seconds)-from, func(i int) bool { return s.beyond[from+i] <= left }); from+at < len(s.seconds) {
			return s.seconds[from+at]
		}
	}
	const hour = 3600
	if last == 0 {
		return max(1, int64(min(hour/r.unit(), float64(longest)))-hour)
	}
	return int64(min(float64(last)/r.unit(), float64(longest)))
}

// runtime draws how long a job runs in all, within its limit.
func (j *Job) runtime(r stream) int64 {
	total := j.Drawn.draw(j.Elapsed, r)
	if j.Limit > 0 {
		total = min(total, j.Limit)
	}
	return min(max(total, j.Elapsed+1), longest)
}
