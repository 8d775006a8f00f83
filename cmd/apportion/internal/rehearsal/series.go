package rehearsal

// points bounds the points of a series.
const points = 256

// series sums values over time in steps of equal length, which double when there are too many.
type series struct {
	start, step int64
	steps       []sums
	queues      int
}

// sums are those of a step: values times seconds.
type sums struct {
	seconds, wanting int64
	fair             float64
	used, entitled   []float64
}

func newSeries(start int64, queues int) series { return series{start: start, step: 60, queues: queues} }

// add adds the time from one moment to another, in which nothing changes.
func (s *series) add(m *meter, from, to int64, index float64, wanted bool) {
	for to-s.start > s.step*points {
		s.halve()
	}
	for from < to {
		i := int((from - s.start) / s.step)
		for len(s.steps) <= i {
			s.steps = append(s.steps, sums{used: make([]float64, s.queues), entitled: make([]float64, s.queues)})
		}
		end := min(to, s.start+int64(i+1)*s.step)
		seconds := end - from
		step := &s.steps[i]
		step.seconds += seconds
		if wanted {
			step.wanting += seconds
			step.fair += float64(index * float64(seconds))
		}
		for q := range m.queues {
			meter := &m.queues[q]
			step.used[q] += float64(meter.used[m.measured] * float64(seconds))
			step.entitled[q] += float64(min(meter.entitled, meter.wanted) * float64(seconds))
		}
		from = end
	}
}

// halve makes one step of two.
func (s *series) halve() {
	s.step *= 2
	for i := range (len(s.steps) + 1) / 2 {
		merged := s.steps[2*i]
		if 2*i+1 < len(s.steps) {
			other := &s.steps[2*i+1]
			merged.seconds += other.seconds
			merged.wanting += other.wanting
			merged.fair += other.fair
			for q := range merged.used {
				merged.used[q] += other.used[q]
				merged.entitled[q] += other.entitled[q]
			}
		}
		s.steps[i] = merged
	}
	s.steps = s.steps[:(len(s.steps)+1)/2]
}
