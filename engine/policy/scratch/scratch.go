// Package scratch is working memory of one question about many things of which only few are touched.
package scratch

// Values holds a value for each of the few ids that a question touches. It costs four bytes for every id there is, and what it holds is
// used again by the next question.
type Values[ID ~int32, T any] struct {
	// slot is the position in values plus one; 0: untouched.
	slot    []int32
	touched []ID
	values  []T
}

// New returns Values for ids 0 … n-1, none of them touched.
func New[ID ~int32, T any](n int) Values[ID, T] { return Values[ID, T]{slot: make([]int32, n)} }

// At returns the value of id, and whether this is the first time since Clear: the value is then whatever an earlier question left. The
// pointer is valid until the next call of At.
func (s *Values[ID, T]) At(id ID) (value *T, first bool) {
	if at := s.slot[id]; at > 0 {
		return &s.values[at-1], false
	}
	s.touched = append(s.touched, id)
	n := len(s.touched)
	if n > len(s.values) {
		var empty T
		s.values = append(s.values, empty)
	}
	s.slot[id] = int32(n)
	return &s.values[n-1], true
}

// Clear makes every id untouched.
func (s *Values[ID, T]) Clear() {
	for _, id := range s.touched {
		s.slot[id] = 0
	}
	s.touched = s.touched[:0]
}
