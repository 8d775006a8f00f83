package history

import (
	"encoding/binary"
	"math"
	"slices"
)

// series is what is known of a queue.
type series struct {
	// WaitingSince is since when jobs of the queue wait, and OverusedSince since when it is not served; 0: not now.
	WaitingSince  int64 `json:"waiting_since,omitempty"`
	OverusedSince int64 `json:"overused_since,omitempty"`
	// Seen is when the queue was in the cluster last.
	Seen int64 `json:"seen"`

	samples []sample
}

// sample is the mean of a queue's numbers in the versions of a time.
type sample struct {
	// From and Until are the times of the first and the last version.
	From, Until int64
	Versions    uint32
	Waiting     float64
	Amounts     []amount
}

// amount is the mean of a queue's amounts of a resource, which has a position in state.Dimensions.
type amount struct {
	Dimension                    int
	Deserved, Allocated, Request float64
}

// takeQueues takes in the numbers of the queues, and drops samples that are too old.
func (h *History) takeQueues(v *Version) {
	positions := make([]int, len(v.Dimensions))
	for i, name := range v.Dimensions {
		positions[i] = h.dimension(name)
	}
	for i := range v.Queues {
		h.takeQueue(&v.Queues[i], positions, v.At)
	}
	oldest := v.At - int64(h.options.Retain)
	for name, q := range h.queues {
		old := 0
		for old < len(q.samples) && q.samples[old].Until < oldest {
			h.drop(name, &q.samples[old])
			old++
		}
		q.samples = slices.Delete(q.samples, 0, old)
		if len(q.samples) == 0 {
			h.sampleBytes -= seriesBytes + 2*int64(len(name))
			delete(h.queues, name)
			h.changed[place{queueTable, name}] = true
		}
	}
	for h.tooMany() && h.state.Step < int64(h.options.Retain) {
		h.coarsen()
	}
}

// dimension returns the position of a resource, -1 if there are too many.
func (h *History) dimension(name string) int {
	i := slices.Index(h.state.Dimensions, name)
	if i < 0 && len(h.state.Dimensions) < mostDimensions {
		i = len(h.state.Dimensions)
		h.state.Dimensions = append(h.state.Dimensions, own(name))
	}
	return i
}

func (h *History) takeQueue(q *Queue, positions []int, at int64) {
	s := h.queues[q.Name]
	if s == nil {
		if h.sampleBytes > h.options.Bytes/2 {
			return
		}
		s = &series{}
		h.queues[own(q.Name)] = s
		h.sampleBytes += seriesBytes + 2*int64(len(q.Name))
	}
	one := sample{From: at, Until: at, Versions: 1, Waiting: float64(q.Waiting)}
	for i, d := range positions {
		a := amount{d, amountAt(q.Deserved, i), amountAt(q.Allocated, i), amountAt(q.Request, i)}
		if d >= 0 && (a.Deserved != 0 || a.Allocated != 0 || a.Request != 0) {
			one.Amounts = append(one.Amounts, a)
		}
	}
	slices.SortFunc(one.Amounts, func(a, b amount) int { return a.Dimension - b.Dimension })
	if n := len(s.samples); n > 0 && s.samples[n-1].From/h.state.Step == at/h.state.Step {
		last := &s.samples[n-1]
		h.sampleBytes -= last.bytes()
		one = joined(last, &one)
		s.samples[n-1] = one
	} else {
		s.samples = append(s.samples, one)
	}
	h.sampleBytes += one.bytes()
	s.Seen = at
	s.WaitingSince, s.OverusedSince = since(s.WaitingSince, q.Waiting > 0, at), since(s.OverusedSince, q.Overused, at)
	h.changed[place{queueTable, q.Name}] = true
	h.changed[place{sampleTable, sampleKey(q.Name, one.From)}] = true
}

// amountAt returns an amount; beyond those that are given it is 0. An infinite amount is a very large one.
func amountAt(list []float64, i int) float64 {
	if i >= len(list) {
		return 0
	}
	return min(list[i], math.MaxFloat64/1e6)
}

// since returns since when something is so: before is since when it was.
func since(before int64, is bool, at int64) int64 {
	switch {
	case !is:
		return 0
	case before != 0:
		return before
	}
	return at
}

// joined returns the mean of two samples, the earlier one first.
func joined(a, b *sample) sample {
	n, m := float64(a.Versions), float64(b.Versions)
	mean := func(x, y float64) float64 { return (float64(x*n) + float64(y*m)) / (n + m) }
	out := sample{From: a.From, Until: b.Until, Versions: a.Versions + b.Versions, Waiting: mean(a.Waiting, b.Waiting)}
	for i, j := 0, 0; i < len(a.Amounts) || j < len(b.Amounts); {
		var x, y amount
		switch {
		case j == len(b.Amounts) || i < len(a.Amounts) && a.Amounts[i].Dimension < b.Amounts[j].Dimension:
			x = a.Amounts[i]
			i++
		case i == len(a.Amounts) || b.Amounts[j].Dimension < a.Amounts[i].Dimension:
			y, x.Dimension = b.Amounts[j], b.Amounts[j].Dimension
			j++
		default:
			x, y = a.Amounts[i], b.Amounts[j]
			i, j = i+1, j+1
		}
		out.Amounts = append(out.Amounts, amount{
			x.Dimension, mean(x.Deserved, y.Deserved), mean(x.Allocated, y.Allocated), mean(x.Request, y.Request),
		})
	}
	return out
}

// Sizes of values in memory.
const seriesBytes, sampleBytes, amountBytes = 240, 80, 32

func (s *sample) bytes() int64 { return sampleBytes + int64(len(s.Amounts))*amountBytes }

// tooMany reports whether samples take too much memory, or a queue has too many.
func (h *History) tooMany() bool {
	if h.sampleBytes > h.options.Bytes/2 {
		return true
	}
	for _, q := range h.queues {
		if len(q.samples) > mostSamples {
			return true
		}
	}
	return false
}

// coarsen doubles the length of all samples.
func (h *History) coarsen() {
	h.state.Step *= 2
	for name, q := range h.queues {
		kept := q.samples[:0]
		for i := range q.samples {
			s := &q.samples[i]
			n := len(kept)
			if n == 0 || kept[n-1].From/h.state.Step != s.From/h.state.Step {
				kept = append(kept, *s)
				continue
			}
			h.drop(name, s)
			h.sampleBytes -= kept[n-1].bytes()
			kept[n-1] = joined(&kept[n-1], s)
			h.sampleBytes += kept[n-1].bytes()
			h.changed[place{sampleTable, sampleKey(name, kept[n-1].From)}] = true
		}
		clear(q.samples[len(kept):])
		q.samples = kept
	}
}

// drop removes a sample from the sums and from the file.
func (h *History) drop(queue string, s *sample) {
	h.sampleBytes -= s.bytes()
	h.changed[place{sampleTable, sampleKey(queue, s.From)}] = true
}

// sampleKey is the key of a sample in its table: samples of a queue are together, in the order of time.
func sampleKey(queue string, from int64) string {
	return string(binary.BigEndian.AppendUint64([]byte(queue), uint64(from)))
}

// encode appends a sample without its first time, which its key has.
func (s *sample) encode() []byte {
	out := binary.AppendVarint(nil, s.Until-s.From)
	out = binary.AppendUvarint(out, uint64(s.Versions))
	out = binary.BigEndian.AppendUint64(out, math.Float64bits(s.Waiting))
	for _, a := range s.Amounts {
		out = binary.AppendUvarint(out, uint64(a.Dimension))
		for _, x := range []float64{a.Deserved, a.Allocated, a.Request} {
			out = binary.BigEndian.AppendUint64(out, math.Float64bits(x))
		}
	}
	return out
}

// decode is the inverse of encode. It reports whether the bytes are a sample of so many resources.
func (s *sample) decode(from int64, data []byte, dimensions int) bool {
	ok := true
	number := func(read func([]byte) (uint64, int)) uint64 {
		x, n := read(data)
		if ok = ok && n > 0; ok {
			data = data[n:]
		}
		return x
	}
	float := func() float64 {
		return math.Float64frombits(number(func(b []byte) (uint64, int) {
			if len(b) < 8 {
				return 0, 0
			}
			return binary.BigEndian.Uint64(b), 8
		}))
	}
	lasts, n := binary.Varint(data)
	if n <= 0 {
		return false
	}
	data = data[n:]
	s.From, s.Until = from, from+lasts
	s.Versions = uint32(number(binary.Uvarint))
	s.Waiting = float()
	for ok && len(data) > 0 {
		d := number(binary.Uvarint)
		s.Amounts = append(s.Amounts, amount{int(d), float(), float(), float()})
		ok = ok && d < uint64(dimensions)
	}
	return ok
}
