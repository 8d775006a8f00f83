package generate

import (
	"encoding/hex"
	"math/bits"
)

// source is SplitMix64 (Steele, Lea and Flood 2014): short, and the same for ever, which math/rand/v2 does not promise of its methods.
type source uint64

// newSource returns a source of its own for each pair of seed and part.
func newSource(seed, part uint64) *source {
	s := source(seed)
	s = source(s.next() ^ part)
	return &s
}

func (s *source) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1, or 0 if there is none.
func (s *source) below(n int) int {
	high, _ := bits.Mul64(s.next(), uint64(max(n, 1)))
	return int(high)
}

// between returns a number from low to high.
func (s *source) between(low, high int) int { return low + s.below(high-low+1) }

// chance is true so many times in a thousand.
func (s *source) chance(perMille int) bool { return s.below(1000) < perMille }

// uuid returns a random UUID (RFC 9562, version 4).
func (s *source) uuid() string {
	var raw [16]byte
	for i := 0; i < len(raw); i += 8 {
		x := s.next()
		for k := range 8 {
			raw[i+k] = byte(x >> (8 * k))
		}
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	var text [36]byte
	at := 0
	for i, part := range [][]byte{raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]} {
		if i > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], part)
	}
	return string(text[:])
}
