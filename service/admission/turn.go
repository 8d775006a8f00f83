package admission

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/apportion/apportion/internal/processor"
)

const (
	// slice is the time that work runs before it yields to work that has had less. Small work may run for longer at first: most of it ends
	// within that, even if the system gives its processor to another process meanwhile.
	slice, smallSlice = 2 * time.Millisecond, 5 * time.Millisecond
	// breath is the interval at which work of one tenant yields its processor while other tenants call. Without a spare processor it
	// pauses: the runtime looks at the network only when no goroutine is ready to run.
	breath = 700 * time.Microsecond
	pause  = 20 * time.Microsecond
	// mixedFor is how long after calls of two tenants followed each other both count as calling.
	mixedFor = time.Second
	// mostDebt is the maximum processor time by which a tenant may be ahead of others.
	mostDebt = 100 * time.Millisecond
	// simulationWeight is the factor by which the time of a simulation counts.
	simulationWeight = 4
)

// Turn is running work. Leave ends it; Yield is called frequently while it runs. Both must be called by one goroutine at a time.
type Turn struct {
	c *Controller
	w *waiter
	// resumed is when the work last got a slot, breathed when it last let go of its processor.
	resumed, breathed time.Time
	// slice is the time that it may run from then on.
	slice time.Duration
	left  bool
}

// Leave ends the work. Further calls do nothing.
func (t *Turn) Leave() {
	if t == nil || t.left {
		return
	}
	t.left = true
	t.c.leave(t.w, time.Since(t.resumed))
}

// Grow books memory that the work needs beyond its estimate, until it ends. It does not wait, because work that holds memory may not wait
// for that of others: the error is an OVERLOADED fault where there is none now, and a LIMIT_EXCEEDED fault for more than Controller.Most.
func (t *Turn) Grow(bytes int64) error {
	if t == nil || t.left {
		return nil
	}
	return t.c.grow(t.w, bytes)
}

// Yield passes the slot to work of tenants with less CPU time, and returns when this work may run again or ctx has ended. Without such work
// it returns at once and costs a few nanoseconds.
func (t *Turn) Yield(ctx context.Context) {
	if t == nil || t.left {
		return
	}
	crowded := t.c.crowded.Load()
	if !crowded && !t.c.mixed.recent() {
		return
	}
	now := time.Now()
	if crowded && now.Sub(t.resumed) >= t.slice {
		t.slice = slice
		if parked := t.c.park(t.w, now.Sub(t.resumed)); parked {
			t.await(ctx)
			return
		}
		t.resumed = now
	}
	if now.Sub(t.breathed) >= breath {
		breathe()
		t.breathed = time.Now()
	}
}

// Rest passes the slot to others while wait waits for something other than a processor, and returns the error of wait. The memory of the
// work stays booked. Work whose wait fails goes on without waiting for a slot: it will leave soon.
func (t *Turn) Rest(ctx context.Context, wait func() error) error {
	if t == nil || t.left {
		return wait()
	}
	t.c.rest(t.w, time.Since(t.resumed))
	err := wait()
	if t.c.rise(t.w); err != nil {
		t.c.unpark(t.w)
	}
	t.await(ctx)
	return err
}

// breathe lets others have the processor.
func breathe() {
	if processor.Spared() {
		// What comes over the network has a processor of the runtime, but no thread of the machine may be free for it.
		processor.Yield()
		return
	}
	time.Sleep(pause)
}

// await returns once parked work is admitted again, or beyond the slots if ctx ends first: it will stop soon.
func (t *Turn) await(ctx context.Context) {
	select {
	case <-t.w.admitted:
	case <-ctx.Done():
		t.c.unpark(t.w)
	}
	t.resumed = time.Now()
	t.breathed = t.resumed
}

// start is the origin of times that are kept as numbers. They do not depend on the clock of the machine, which may be set back.
var start = time.Now()

// mix notes when calls of different tenants last followed each other.
type mix struct {
	last  atomic.Pointer[string]
	since atomic.Int64
}

// call notes a call of a tenant.
func (m *mix) call(tenant string) {
	if last := m.last.Load(); last == nil || *last != tenant {
		if last != nil {
			m.note()
		}
		m.last.Store(&tenant)
	}
}

// note records that a tenant calls while others have work, which may last for longer than mixedFor.
func (m *mix) note() { m.since.Store(int64(time.Since(start))) }

func (m *mix) recent() bool {
	since := m.since.Load()
	return since != 0 && int64(time.Since(start))-since < int64(mixedFor)
}

// park charges work for the time since it got its slot and, if another tenant's work goes first, takes its slot away until it is admitted
// again. Its memory stays booked.
func (c *Controller) park(w *waiter, ran time.Duration) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w.charge(ran)
	c.forgive(w.tenant)
	if !c.owes(w) {
		return false
	}
	c.stop(w)
	c.queue(w)
	return true
}

// stop takes the slot of work away.
func (c *Controller) stop(w *waiter) {
	w.admitted, w.running = make(chan struct{}), false
	w.tenant.running--
	c.release(1)
}

// queue lets work whose memory is booked wait for a slot.
func (c *Controller) queue(w *waiter) {
	w.tenant.parked = append(w.tenant.parked, w)
	c.parked++
	c.next()
}

// rest charges work for the time since it got its slot, and takes the slot away until it rises.
func (c *Controller) rest(w *waiter, ran time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w.charge(ran)
	c.stop(w)
	w.tenant.resting++
	c.next()
}

// rise lets work that rested wait for a slot.
func (c *Controller) rise(w *waiter) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w.tenant.resting--
	c.queue(w)
}

// forgive bounds by how much a tenant had more than the one that had least of those with work: time that others left unused is no debt.
func (c *Controller) forgive(t *tenantQueue) {
	least := t.given
	for _, other := range c.tenants {
		if other.queued+other.running+len(other.parked) > 0 {
			least = min(least, other.given)
		}
	}
	t.given = min(t.given, least+mostDebt)
}

// owes reports whether work of another tenant that had less waits, or runs beyond the slots.
func (c *Controller) owes(w *waiter) bool {
	for _, t := range c.tenants {
		if t != w.tenant && t.given < w.tenant.given && (len(t.parked) > 0 || t.queued > 0 || c.free < 0 && t.running > 0) {
			return true
		}
	}
	return false
}

// unpark lets parked work go on beyond the slots, unless it was admitted already.
func (c *Controller) unpark(w *waiter) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if w.tenant.takeParked(w) {
		c.parked--
		c.release(-1)
		w.tenant.running++
		w.running = true
		close(w.admitted)
		c.notice()
	}
}

// notice sets whether running work has to check for waiting calls.
func (c *Controller) notice() { c.crowded.Store(c.queued+c.parked > 0 || c.free < 0) }
