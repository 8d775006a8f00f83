package admission

import (
	"math"
	"slices"
	"sync"
	"time"
)

// tenantQueue is the waiting and running work of one tenant.
type tenantQueue struct {
	identity string
	waiting  [Ranks][]*waiter
	// parked is work that made way for others, the first to go on first.
	parked []*waiter
	// queued counts what waits for its first turn, coming the messages that are being received, running the work that has a slot.
	queued, coming, running int
	// resting counts work under way that waits for something other than a slot.
	resting int
	// bytes is the estimated memory of the running work.
	bytes [pools]int64
	// given is the time it was given, from what others had been given when it came.
	given time.Duration
}

// mayTake reports whether so much more would leave as much as the tenant has of a pool, of so much room. One call may take all.
func (t *tenantQueue) mayTake(bytes int64, p pool, room int64) bool {
	return t.running+t.resting == 0 && len(t.parked) == 0 || t.bytes[p]+bytes <= room-bytes
}

// head returns what goes first of what waits, and whether it was parked.
func (t *tenantQueue) head() (w *waiter, parked bool) {
	if len(t.parked) > 0 {
		return t.parked[0], true
	}
	for r := range t.waiting {
		if len(t.waiting[r]) > 0 {
			return t.waiting[r][0], false
		}
	}
	return nil, false
}

// takeParked takes parked work out, or returns false if it is not parked.
func (t *tenantQueue) takeParked(w *waiter) bool {
	i := slices.Index(t.parked, w)
	if i < 0 {
		return false
	}
	t.parked = slices.Delete(t.parked, i, i+1)
	return true
}

// remove takes a waiter out, or returns false if it does not wait.
func (t *tenantQueue) remove(w *waiter) bool {
	for r := range t.waiting {
		for i, other := range t.waiting[r] {
			if other == w {
				t.waiting[r] = append(t.waiting[r][:i:i], t.waiting[r][i+1:]...)
				t.queued--
				return true
			}
		}
	}
	return false
}

// tenant returns the queue of an identity, a new one where it has none.
func (c *Controller) tenant(identity string) *tenantQueue {
	t := c.tenants[identity]
	if t == nil {
		t = &tenantQueue{identity: identity, given: c.clock}
		c.tenants[identity] = t
	}
	return t
}

// forget drops a tenant that holds nothing, so that there are no more tenants than callers.
func (c *Controller) forget(t *tenantQueue) {
	if t.running+t.resting+t.queued+t.coming+len(t.parked) == 0 {
		delete(c.tenants, t.identity)
	}
}

// begins reports whether a tenant may begin or continue a call, if there is memory for it. The reserve is for small work: large work that
// began beyond the slots would compete with what has a slot, and small work with both.
func (c *Controller) begins(t *tenantQueue) bool {
	if c.free > 0 {
		return true
	}
	if t.running > 0 || c.free <= -c.options.Reserve {
		return false
	}
	w, parked := t.head()
	return !parked && c.small(w)
}

// first returns the tenant that is served next but for those passed over; nil if none may begin.
func (c *Controller) first(passed map[*tenantQueue]bool) *tenantQueue {
	var best *tenantQueue
	for _, t := range c.tenants {
		if t.queued == 0 && len(t.parked) == 0 || passed[t] || !c.begins(t) {
			continue
		}
		if best == nil || t.given < best.given || t.given == best.given && t.identity < best.identity {
			best = t
		}
	}
	return best
}

// overShare reports whether a tenant has at least its part of what waits.
func (c *Controller) overShare(t *tenantQueue) bool {
	if t == nil {
		return false
	}
	tenants := 0
	for _, other := range c.tenants {
		if other.queued+other.coming > 0 || other == t {
			tenants++
		}
	}
	return (t.queued+t.coming)*tenants >= c.queued+c.coming
}

// saturated reports whether another call of this identity should not be received: the waiting and arriving calls already take longer than
// half of the maximum waiting time, and the identity has its part of them. A slot that is free for a moment between two messages does not
// change that; slots that are mostly free do, because then senders are slow, and not the work.
func (c *Controller) saturated(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.queued == 0 && c.free > 0 && !c.used.mostly(c.options.Wait) || !c.overShare(c.tenants[identity]) {
		return false
	}
	if c.mixed.recent() {
		// How long the work of others takes says nothing of how long this tenant waits.
		return c.queued >= c.options.Waiting || c.waitsLong(c.tenants[identity])
	}
	if ahead := c.ahead(); ahead*float64(c.meanService)/float64(c.options.Running) > float64(c.options.Wait)/2 {
		return ahead > float64(c.options.Running)
	}
	for _, t := range c.tenants {
		if c.waitsLong(t) {
			return true
		}
	}
	return c.queued >= c.options.Waiting
}

// waitsLong reports whether a call of a tenant has waited for half of its maximum wait.
func (c *Controller) waitsLong(t *tenantQueue) bool {
	for _, waiting := range &t.waiting {
		if len(waiting) > 0 && time.Since(waiting[0].since) > c.options.Wait/2 {
			return true
		}
	}
	return false
}

// ahead returns how many calls a new one would find before it: the calls that wait, and of the calls whose messages are arriving as many as
// arrive within the maximum waiting time. Senders may be slow, and a call that waits for them does not wait for a processor.
func (c *Controller) ahead() float64 {
	coming := float64(c.coming)
	if c.meanArrival > c.options.Wait {
		coming *= float64(c.options.Wait) / float64(c.meanArrival)
	}
	return float64(c.queued) + coming
}

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

// Counts counts something by identity. It keeps no entry for a count of 0. The zero value is empty.
type Counts struct {
	mutex sync.Mutex
	of    map[string]int
	all   int
}

// Add adds n, which may be negative, to the count of an identity, and returns its new count and the count of all identities.
func (c *Counts) Add(identity string, n int) (mine, all int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[identity] += n
	c.all += n
	mine = c.of[identity]
	if mine == 0 {
		delete(c.of, identity)
	}
	return mine, c.all
}

// All returns the count of all identities.
func (c *Counts) All() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.all
}

// Others reports whether another identity has any.
func (c *Counts) Others(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, mine := c.of[identity]
	return len(c.of) > 1 || len(c.of) == 1 && !mine
}
