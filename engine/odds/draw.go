package odds

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

// unit draws a number above 0, at most 1.
func (s *stream) unit() float64 { return float64(s.next()>>11+1) / (1 << 53) }

// longest bounds a runtime, 100 years, so that sums of times do not overflow.
const longest = int64(100 * 366 * 24 * 3600)

// weight draws an exponentially distributed weight of mean 1 by comparisons alone (J. von Neumann, 1951): the last bit of a logarithm
// depends on the processor.
func (s *stream) weight() float64 {
	for whole := 0.0; ; whole++ {
		first, falls := s.unit(), true
		for last, length := first, 1; falls; length++ {
			next := s.unit()
			if falls = next < last; !falls && length%2 == 1 {
				return whole + first
			}
			last = next
		}
	}
}
