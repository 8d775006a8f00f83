package odds

import (
	"cmp"
	"math/bits"
	"slices"
)

// Sample is how long jobs of the past ran, those included that still run.
type Sample struct {
	// Like are jobs of which these are some, nil for none. A part of what is drawn is drawn from them: the larger, the smaller this sample.
	// Trust is how many jobs of the sample count as much as those that they are like; 0: 3.
	Like  *Sample
	Trust int

	// seconds are in order; ended says of which jobs they are the whole runtime, and began when these jobs began.
	seconds []int64
	ended   []bool
	began   []int64
}

// usualTrust is Sample.Trust where nothing is known of it.
const usualTrust = 3

// trust returns Trust, or what stands for it.
func (s *Sample) trust() int {
	if s.Trust > 0 {
		return s.Trust
	}
	return usualTrust
}

// Observed is how long a job of the past has run since it began, and whether it has ended. Began is in seconds after second 0.
type Observed struct {
	Began, Seconds int64
	Ended          bool
}

// NewSample returns the sample of jobs that ended or still run.
func NewSample(past []Observed) *Sample {
	past = slices.Clone(past)
	slices.SortFunc(past, func(l, r Observed) int {
		if l.Seconds == r.Seconds && l.Ended != r.Ended {
			if l.Ended {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(l.Seconds, r.Seconds), cmp.Compare(l.Began, r.Began))
	})
	s := &Sample{seconds: make([]int64, len(past)), ended: make([]bool, len(past)), began: make([]int64, len(past))}
	for i, o := range past {
		s.seconds[i], s.ended[i], s.began[i] = o.Seconds, o.Ended, o.Began
	}
	return s
}

// asOf returns the sample as it was at an earlier second.
func (s *Sample) asOf(at int64) *Sample {
	var past []Observed
	for i, seconds := range s.seconds {
		switch began := s.began[i]; {
		case began >= at:
		case s.ended[i] && began+seconds <= at:
			past = append(past, Observed{began - at, seconds, true})
		default:
			past = append(past, Observed{began - at, at - began, false})
		}
	}
	return NewSample(past)
}

// Longer returns how many jobs that have ended ran longer than a time, at most so many.
func (s *Sample) Longer(elapsed int64, most int) int {
	n := 0
	for i := s.after(elapsed); s != nil && i < len(s.seconds) && n < most; i++ {
		if s.ended[i] {
			n++
		}
	}
	return n
}

// after returns the position of the first runtime above a time.
func (s *Sample) after(elapsed int64) int {
	if s == nil || len(s.seconds) == 0 || elapsed < s.seconds[0] {
		// So it is of all jobs that have not begun.
		return 0
	}
	at, _ := slices.BinarySearch(s.seconds, elapsed+1)
	return at
}

// law is what a run takes a sample to say of the jobs that will be: the past is one of many that were possible. It is the Bayesian
// bootstrap (D. Rubin, 1981) of the estimate by Kaplan and Meier (1958), by which what a job that still runs would count goes to the longer
// times, mixed with the law of the jobs that the sample is like (a Dirichlet process, T. Ferguson, 1973).
type law struct {
	*Sample

	// beyond is the chance left beyond each of the sample's times, without the part of the law of like.
	beyond []float64
	part   float64
	like   *law
}

// newLaw draws a law.
func newLaw(s *Sample, like *law, r stream) *law {
	l := &law{Sample: s, like: like, beyond: make([]float64, len(s.seconds))}
	sum := 0.0
	// The weights of the jobs that ran at least as long come first, then chances.
	for i := range slices.Backward(l.beyond) {
		sum += r.weight()
		l.beyond[i] = sum
	}
	prior := 0.0
	for range s.trust() {
		prior += r.weight()
		if like == nil {
			// All that is not in the largest sample are times beyond its longest.
			break
		}
	}
	l.part = prior / (sum + prior)
	left := 1.0
	for i, at := range l.beyond {
		next := 0.0
		if i+1 < len(l.beyond) {
			next = l.beyond[i+1]
		}
		if s.ended[i] {
			left *= next / at
		}
		l.beyond[i] = left
	}
	return l
}

// left returns the chance that a job runs longer than a time: by the sample itself, and by the law that it is like or the times beyond
// the longest.
func (l *law) left(elapsed int64) (own, like float64) {
	own = 1
	if at := l.after(elapsed); at > 0 {
		own = l.beyond[at-1]
	}
	return float64(own * (1 - l.part)), float64(l.part * l.likeLeft(elapsed))
}

func (l *law) likeLeft(elapsed int64) float64 {
	if l.like != nil {
		own, like := l.like.left(elapsed)
		return own + like
	}
	n := len(l.seconds)
	if n == 0 || elapsed <= l.seconds[n-1] {
		return 1
	}
	return float64(l.seconds[n-1]) / float64(elapsed)
}

// draw draws how long a job runs in all that has run for a time.
func (l *law) draw(elapsed int64, r *stream) int64 {
	own, like := l.left(elapsed)
	if r.unit()*(own+like) > own {
		return l.drawLike(elapsed, r)
	}
	from, chance := l.after(elapsed), 1.0
	if from > 0 {
		chance = l.beyond[from-1]
	}
	left := chance * (1 - r.unit())
	for until := len(l.seconds); from < until; {
		if middle := (from + until) / 2; l.beyond[middle] <= left {
			until = middle
		} else {
			from = middle + 1
		}
	}
	if from < len(l.seconds) {
		return l.seconds[from]
	}
	return l.drawLike(max(elapsed, l.seconds[len(l.seconds)-1]), r)
}

// drawLike draws from the law of like. Beyond the longest runtime known a job runs as long again with the chance of one half (J. Gott,
// 1993); one that has not begun and of which nothing is known, as if it had run for an hour.
func (l *law) drawLike(elapsed int64, r *stream) int64 {
	if l.like != nil {
		return l.like.draw(elapsed, r)
	}
	if n := len(l.seconds); n > 0 {
		elapsed = max(elapsed, l.seconds[n-1])
	}
	const hour = 3600
	if elapsed == 0 {
		return max(1, int64(min(hour/r.unit(), float64(longest)))-hour)
	}
	return int64(min(float64(elapsed)/r.unit(), float64(longest)))
}

// nothing is the sample of which nothing is known.
var nothing = &Sample{}

// law returns the law of a sample in a run.
func (r *run) law(number int32) *law {
	if r.laws[number] == nil {
		s := r.samples[number]
		var like *law
		if s.Like != nil {
			like = r.law(r.numbers[s.Like])
		}
		r.laws[number] = newLaw(s, like, streamOf(r.seed, r.number, sampled-int(number)))
		r.left -= weighing * int64(len(s.seconds)+s.trust())
	}
	return r.laws[number]
}

// weighing is the work of a weight and what is done with it.
const weighing = 8

// draw draws from the law of a sample how long a job runs in all that has run for a time.
func (r *run) draw(number int32, elapsed int64, from *stream) int64 {
	l := r.law(number)
	for of := l; of != nil; of = of.like {
		// It searches twice.
		r.left -= 2 * int64(bits.Len(uint(len(of.seconds))))
	}
	return l.draw(elapsed, from)
}

// sampled is the first of the matters of samples, which are numbered down from it.
const sampled = -1 << 60

// enroll numbers a sample and those that it is like.
func (b *Base) enroll(s *Sample) int32 {
	if s == nil {
		s = nothing
	}
	number, known := b.numbers[s]
	if !known {
		if s.Like != nil {
			b.enroll(s.Like)
		}
		number = int32(len(b.samples))
		b.numbers[s], b.samples = number, append(b.samples, s)
	}
	return number
}

// runtime draws how long a job runs in all, within its limit.
func (r *run) runtime(i int) int64 {
	job, s := &r.Jobs[i], streamOf(r.seed, r.number, i)
	total := r.draw(r.drawnOf[i], job.Elapsed, &s)
	if job.Limit > 0 {
		total = min(total, job.Limit)
	}
	return min(max(total, job.Elapsed+1), longest)
}
