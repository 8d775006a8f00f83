package odds

import "slices"

// Correct moves each start, of those of all runs in order, to one of another run: towards the run that came true for jobs of the past as
// often as the start is stated to. Those up to the median move a quarter of the way, because forecasts for jobs of the past know less than
// one for the present: not where jobs ran, which were admitted, nor the policy's order. Later ones are promises, so that they move two
// thirds of the way, and only to later runs. It returns false, and changes nothing, if too few moments were asked about.
func (h *Hindcasts) Correct(starts []int64) bool {
	if h.Times < leastTimes || len(starts) == 0 {
		return false
	}
	n := float64(len(starts))
	raw, shares := slices.Clone(starts), h.shares(starts[(len(starts)-1)/2])
	for i := range starts {
		chance := (float64(i) + 0.5) / n
		off := shares.place(chance) - chance
		if chance <= 0.5 {
			off /= 4
		} else {
			off = max(off*2/3, 0)
		}
		starts[i] = raw[min(int((chance+off)*n), len(raw)-1)]
	}
	return true
}

// shares say for each place between the runs of a hindcast, from 0 before all of them to 1 after all, which part of the jobs of the past
// had started by then. From one to the next they rise evenly.
type shares [hindcastRuns + 2]float64

// shares finds the share of each place, for a forecast with a median. Where it is only known that a job started later, it counts as Kaplan
// and Meier count it.
func (h *Hindcasts) shares(median int64) *shares {
	var started, open [hindcastRuns + 1]float64
	sum := 0.0
	for i := range h.list {
		c := &h.list[i]
		weight := c.weight * h.alike(c.starts[(hindcastRuns-1)/2], median)
		before := 0
		for before < hindcastRuns && c.starts[before] <= c.wait {
			before++
		}
		if sum += weight; c.open {
			open[before] += weight
		} else {
			started[before] += weight
		}
	}
	s, left := &shares{}, 1.0
	for i := range started {
		if started[i] > 0 {
			left *= max(1-started[i]/sum, 0)
		}
		sum -= started[i] + open[i]
		s[i+1] = 1 - left
	}
	return s
}

// alike is how much a forecast with a median says of one with another: the part that the shorter is of the longer.
func (h *Hindcasts) alike(one, other int64) float64 {
	one, other = min(max(one, h.pause), h.horizon), min(max(other, h.pause), h.horizon)
	return float64(min(one, other)) / float64(max(one, other))
}

// place returns where a share has started, 1 if it never has.
func (s *shares) place(share float64) float64 {
	for i := 1; i < len(s); i++ {
		if s[i] >= share {
			return (float64(i-1) + (share-s[i-1])/(s[i]-s[i-1])) / (hindcastRuns + 1)
		}
	}
	return 1
}
