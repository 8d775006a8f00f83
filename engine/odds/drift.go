package odds

import (
	"cmp"
	"math"
)

// Drift says how the load of the past changes over time: how many times as many jobs arrive a day, and how many times as long they run, in
// the last third of the days that were looked at as in the first; 0: no change can be told from chance. Draws from the past lag behind such
// a change.
type Drift struct{ Arrivals, Runtimes float64 }

const (
	// mostDays is how many days are looked at, and leastDays of how many a change may be told.
	mostDays, leastDays = 28, 7
	// farOff is how many standard deviations of chance a trend is away from none, of days that do not depend on each other: the larger of
	// two series is so far off once in two hundred times.
	farOff = 3
	// leastChange is what a change is that matters.
	leastChange = 1.25
	// leastBegun is of how many jobs that began on a day their runtimes say something.
	leastBegun = 4
)

// Drift looks for a change in the days of the past: by a trend of what they have, compared pair by pair (the test of Mann, 1945, and
// Kendall), which no single day decides.
func (m *Model) Drift() Drift {
	first, last := m.observed()
	days := min(mostDays, int((last-first)/day))
	if days >= 14 {
		// Days of the week differ.
		days -= days % 7
	}
	if days < leastDays {
		return Drift{}
	}
	from := last - int64(days)*day
	return Drift{Arrivals: m.arrivalDrift(from, days), Runtimes: m.runtimeDrift(from, days)}
}

// observed returns since when and until when the past is known: from the first end, because what ended before may not have been kept, to
// the last arrival or end.
func (m *Model) observed() (first, last int64) {
	first, last = 0, -math.MaxInt64
	for i := range m.Past {
		p := &m.Past[i]
		if last = max(last, p.Arrival); !p.Waits && p.Seconds > 0 {
			end := min(p.began()+p.Seconds, 0)
			first, last = min(first, end), max(last, end)
		}
	}
	return first, last
}

// arrivalDrift compares how many jobs arrive a day.
func (m *Model) arrivalDrift(from int64, days int) float64 {
	series := make([]float64, days)
	for i := range m.Past {
		if d, on := dayOf(m.Past[i].Arrival, from, days); on {
			series[d]++
		}
	}
	if !trends(series) {
		return 0
	}
	third := days / 3
	return change(mean(series[:third]), mean(series[days-third:]))
}

// runtimeDrift compares which part of the jobs that begin on a day run longer than half of the jobs like them. That is known of each that
// began as long ago, whether it has ended or not, so that long jobs are not missing among those of the last days.
func (m *Model) runtimeDrift(from int64, days int) float64 {
	begun, longer := make([]float64, days), make([]float64, days)
	third := days / 3
	var early, late []Observed
	for i := range m.Past {
		p := &m.Past[i]
		usual := p.Drawn.middle()
		d, on := dayOf(p.began(), from, days)
		if usual == 0 || !on {
			continue
		}
		ran := Observed{Seconds: max(p.Seconds, p.Elapsed), Ended: p.Seconds > 0}
		// In thousandths of what is usual.
		scaled := Observed{Seconds: int64(min(1e15, 1000*float64(ran.Seconds)/float64(usual))), Ended: ran.Ended}
		switch {
		case d < third:
			early = append(early, scaled)
		case d >= days-third:
			late = append(late, scaled)
		}
		if p.began() > -usual || !ran.Ended && ran.Seconds <= usual {
			continue
		}
		if begun[d]++; ran.Seconds > usual {
			longer[d]++
		}
	}
	var series []float64
	for d, n := range begun {
		if n >= leastBegun {
			series = append(series, longer[d]/n)
		}
	}
	if len(series) < leastDays || !trends(series) {
		return 0
	}
	return change(float64(NewSample(early).half()), float64(NewSample(late).half()))
}

// dayOf returns the day of a time.
func dayOf(at, from int64, days int) (int, bool) {
	d := (at - from) / day
	return int(d), at >= from && d < int64(days)
}

// middle returns the median of what the jobs of a sample ran so far; 0: there are too few.
func (s *Sample) middle() int64 {
	if s == nil || len(s.seconds) < leastBegun {
		return 0
	}
	return s.seconds[(len(s.seconds)-1)/2]
}

// half returns the median of the runtimes by the estimate of Kaplan and Meier, the longest if it is beyond; 0: there are none.
func (s *Sample) half() int64 {
	left, n := 1.0, len(s.seconds)
	for i, seconds := range s.seconds {
		if s.ended[i] {
			left *= float64(n-i-1) / float64(n-i)
		}
		if left <= 0.5 || i == n-1 {
			return seconds
		}
	}
	return 0
}

// trends reports whether a series rises or falls by more than chance.
func trends(series []float64) bool {
	sum, n := 0, float64(len(series))
	for i, l := range series {
		for _, r := range series[i+1:] {
			sum += cmp.Compare(r, l)
		}
	}
	return math.Abs(float64(sum))-1 >= farOff*math.Sqrt(n*(n-1)*(2*n+5)/18)
}

func mean(series []float64) float64 {
	sum := 0.0
	for _, x := range series {
		sum += x
	}
	return sum / float64(len(series))
}

// change returns how many times as large the later amount is, 0 if that hardly differs, and at most a thousand times.
func change(before, after float64) float64 {
	const most = 1000
	ratio := min(max(after, before/most), before*most) / before
	if before <= 0 || after <= 0 || ratio < leastChange && ratio > 1/leastChange {
		return 0
	}
	return ratio
}
