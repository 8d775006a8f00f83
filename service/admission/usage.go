package admission

import (
	"math"
	"time"
)

// usage is the part of the slots that is taken, as a mean in which older values weigh less. The zero value stands for free slots.
type usage struct {
	mean, now float64
	asOf      time.Time
}

// at returns the mean at a time, of which what is older than span weighs a third.
func (u *usage) at(now time.Time, span time.Duration) float64 {
	return u.now + (u.mean-u.now)*math.Exp(-float64(now.Sub(u.asOf))/float64(span))
}

// set notes the part of the slots that is taken from now on.
func (u *usage) set(part float64, span time.Duration) {
	now := time.Now()
	u.mean, u.now, u.asOf = u.at(now, span), part, now
}

// mostly reports whether more than half of the slots were taken lately.
func (u *usage) mostly(span time.Duration) bool { return u.at(time.Now(), span) > 0.5 }

// release adds free slots, or takes them where n is negative.
func (c *Controller) release(n int) {
	c.free += n
	taken := float64(c.options.Running-c.free) / float64(c.options.Running)
	c.used.set(min(taken, 1), c.options.Wait)
}
