package odds

import (
	"math"
	"math/bits"
)

// Kin is a sample of jobs with the sample of which they are some.
type Kin struct{ Some, Like *Sample }

// alone reports whether there are no other jobs.
func (k *Kin) alone() bool { return len(k.Some.seconds) == len(k.Like.seconds) }

// likelihood is a product of chances: a part, from 1/2 below 1, times a power of two.
type likelihood struct {
	part  float64
	power int
}

// above reports whether a likelihood is higher than another.
func (l likelihood) above(other likelihood) bool {
	return l.power > other.power || l.power == other.power && l.part > other.part
}

// times multiplies by a chance.
func (l *likelihood) times(chance float64) {
	part, power := math.Frexp(l.part * chance)
	l.part, l.power = part, l.power+power
}

// trusts are the values of Sample.Trust among which Trust chooses, the usual one first.
var trusts = [...]int{usualTrust, 1, 10, 30, 100}

// Tried is how often Trust counts each runtime.
const Tried = len(trusts)

// Trust returns the Sample.Trust under which samples are the likeliest: the runtimes of each come from a Dirichlet process around those of
// the other jobs of which it is some (C. Antoniak, 1974). The more the samples differ from each other, the less of one is drawn from all.
// Runtimes count by their power of two, and only of jobs that have ended.
func Trust(kin []Kin) int {
	trust, _ := likeliest(kin)
	return trust
}

// Likelier reports whether samples are likelier as some of those of one list than of those of another, which has the same samples in the
// same places. One that is alone in a list does not count.
func Likelier(one, other []Kin) bool {
	var l, r []Kin
	for i := range one {
		if !one[i].alone() && !other[i].alone() {
			l, r = append(l, one[i]), append(r, other[i])
		}
	}
	_, chance := likeliest(l)
	_, than := likeliest(r)
	return chance.above(than)
}

// likeliest returns the best of trusts, and how likely the samples are then.
func likeliest(kin []Kin) (int, likelihood) {
	counts := map[*Sample]*octaves{}
	for _, k := range kin {
		for _, s := range []*Sample{k.Some, k.Like} {
			if counts[s] == nil {
				counts[s] = s.octaves()
			}
		}
	}
	trust, most := 0, likelihood{}
	for i, t := range trusts {
		l := likelihood{part: 1}
		for _, k := range kin {
			l.draws(counts[k.Some], counts[k.Like], float64(t))
		}
		if i == 0 || l.above(most) {
			trust, most = t, l
		}
	}
	return trust, most
}

// octaves counts the runtimes of jobs that have ended by the power of two at or below them.
type octaves [65]int

func (s *Sample) octaves() *octaves {
	n := &octaves{}
	for i, seconds := range s.seconds {
		if s.ended[i] {
			n[bits.Len64(uint64(seconds))]++
		}
	}
	return n
}

// draws multiplies by the chance of some runtimes, drawn one after the other from those drawn before and a number of the others of all. An
// octave that no other job has counts as half a job, so that no chance is 0.
func (l *likelihood) draws(some, all *octaves, trust float64) {
	low, high, others := len(all), 0, 0.0
	for o, n := range all {
		if n > 0 {
			low, high, others = min(low, o), o, others+float64(n-some[o])
		}
	}
	if others == 0 {
		return
	}
	others += float64(high-low+1) / 2
	drawn := 0.0
	for o, n := range some {
		part := float64(trust * (float64(all[o]-n) + 0.5) / others)
		for k := range n {
			l.times((part + float64(k)) / (trust + drawn))
			drawn++
		}
	}
}
