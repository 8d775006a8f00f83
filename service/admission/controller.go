package admission

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/setting"
)

// Rank is the priority class of waiting work.
type Rank uint8

// The ranks, the first one first.
const (
	Decision Rank = iota
	Simulation
	// Ranks is the number of ranks.
	Ranks
)

// String is the rank's name in metrics.
func (r Rank) String() string { return [...]string{"decision", "simulation", "unknown"}[min(r, Ranks)] }

// Work describes the work of a call.
type Work struct {
	Identity string
	Rank     Rank
	// Bytes estimates the memory that it takes.
	Bytes int64
}

// Controller admits work by its estimated memory, before any is allocated, and by the available processors. Work that does not fit waits
// for a bounded time. The tenant with the least CPU time so far comes first: an estimate is charged when its work begins, the actual time
// when it yields or ends. A tenant's decisions come before its simulations; the time of simulations counts four times.
//
// Long calls of one tenant do not block another: they yield whenever they check whether to stop, a tenant without running work may begin
// beyond the slots, and a tenant with running work takes no more memory than it leaves free. An eighth of the memory is reserved for small
// work.
type Controller struct {
	options Options
	// begun counts the calls whose headers have come.
	begun Counts

	mutex sync.Mutex
	// free slots, below 0 where some of the reserve is taken, and room for bytes of large and of small work.
	free int
	used usage
	room [pools]int64
	// tenants by identity; one without work or waiters is forgotten.
	tenants map[string]*tenantQueue
	// queued counts work that waits for its first turn, parked work that waits to go on.
	queued, parked int
	// crowded says that work under way must look at who waits; mixed that several tenants call.
	crowded atomic.Bool
	mixed   mix
	// coming counts calls whose messages are being received.
	coming int
	// meanService is the moving average of the time from the turn of work to its end, meanArrival that of the time in which a message
	// arrives.
	meanService, meanArrival time.Duration
	// clock is the service that the tenant served last had received.
	clock time.Duration
}

// pool is a part of the memory.
type pool uint8

const (
	largePool pool = iota
	smallPool
	pools
)

// Of the memory a part is for small work, which is at most a part of that.
const (
	smallShare = 8
	smallWork  = 8
)

// waiter is work that waits or is under way.
type waiter struct {
	bytes  int64
	pool   pool
	rank   Rank
	tenant *tenantQueue
	since  time.Time
	// admitted is closed when the work may begin or go on; nil if it could at once.
	admitted chan struct{}
	// running says that it has a slot.
	running bool
	// ran is the time for which it had a slot.
	ran time.Duration
	// charged is the time charged to its tenant in addition to ran.
	charged time.Duration
	// more is the memory of the large pool that it came to need beyond bytes.
	more int64
}

// estimate is the time that work of a size takes: about 2 GB of memory a second.
func estimate(bytes int64) time.Duration { return time.Duration(bytes / 2) }

// callCost is the charge for any work in addition to its time, so that tenants with the smallest work take turns, too.
const callCost = 50 * time.Microsecond

// charge replaces what is left of the estimate by the time that the work ran.
func (w *waiter) charge(ran time.Duration) {
	w.ran += ran
	if w.rank == Simulation {
		ran *= simulationWeight
	}
	kept := min(ran, w.charged)
	w.charged -= kept
	w.tenant.given += ran - kept
}

// New returns a controller without work.
func New(o Options) *Controller {
	complete(&o)
	memory := int64(o.Memory)
	small := memory / smallShare
	return &Controller{options: o, free: o.Running, room: [pools]int64{memory - small, small}, tenants: map[string]*tenantQueue{}}
}

// Begin counts a call whose headers have arrived, until end is called. It refuses the call while others of its identity wait for long, and
// while too many have begun.
func (c *Controller) Begin(identity string) (end func(), err error) {
	if err := c.Saturated(identity); err != nil {
		return nil, err
	}
	mine, all := c.begun.Add(identity, 1)
	end = func() { c.begun.Add(identity, -1) }
	// The last half is left to those who have less than a half.
	most := c.options.Calls
	if all > most || all > most/2 && mine > most/2 && c.begun.Others(identity) {
		end()
		return nil, c.busy("overload.calls", "too many calls have begun")
	}
	return end, nil
}

// Saturated returns the fault of a call that should not be received, because others of its identity wait for long, and nil for any other.
func (c *Controller) Saturated(identity string) error {
	c.mixed.call(identity)
	if c.saturated(identity) {
		return c.busy("overload.wait", "the calls before this one already wait too long for a turn")
	}
	return nil
}

// Receiving counts a call whose message is being received, until arrived is called. The time between moves meanArrival.
func (c *Controller) Receiving(identity string) (arrived func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	t := c.tenant(identity)
	t.coming++
	c.coming++
	began := time.Now()
	return sync.OnceFunc(func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		move(&c.meanArrival, time.Since(began))
		t.coming--
		c.coming--
		c.forget(t)
	})
}

// Most returns the largest memory of work that is ever admitted.
func (c *Controller) Most() int64 { return int64(c.options.Memory - c.options.Memory/smallShare) }

// Enter waits until work may begin, and returns its turn. It returns an OVERLOADED fault if the turn does not come in time, the error of
// ctx if that ends first, and a LIMIT_EXCEEDED fault at once for more memory than there is for large work.
func (c *Controller) Enter(ctx context.Context, work Work) (*Turn, error) {
	if most := c.Most(); work.Bytes > most {
		return nil, tooLarge(work.Bytes, most)
	}
	w, err := c.enqueue(work)
	if err != nil {
		return nil, err
	}
	if w.admitted == nil {
		return c.turn(w, w.since), nil
	}
	timer := time.NewTimer(c.options.Wait)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return c.turn(w, time.Now()), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = c.busy("overload.wait", "no capacity became free in time")
	}
	if !c.withdraw(w) {
		// It was admitted meanwhile.
		c.turn(w, time.Now()).Leave()
	}
	return nil, err
}

// turn is the turn of work that was admitted together.
func (c *Controller) turn(w *waiter, now time.Time) *Turn {
	t := &Turn{c: c, w: w, resumed: now, breathed: now, slice: slice}
	if c.small(w) {
		t.slice = smallSlice
	}
	return t
}

// Usage is the work admitted by a Controller.
type Usage struct {
	// Waiting counts work that waits for its first turn, Running work that has a slot, Begun calls.
	Waiting, Running, Begun int
	// Bytes is the estimated memory of running work.
	Bytes int64
}

// Usage returns the current usage.
func (c *Controller) Usage() Usage {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return Usage{c.queued, c.options.Running - c.free, c.begun.All(), int64(c.options.Memory) - c.room[largePool] - c.room[smallPool]}
}

// busy is the fault of work that must wait for longer than the limit of a name allows.
func (c *Controller) busy(limit, text string) error {
	return &decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED,
		Text: "the server is busy: " + text, Retry: max(c.options.Wait, shortestRetry), Metadata: map[string]string{"limit": limit},
	}
}

func (c *Controller) enqueue(work Work) (*waiter, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.queued >= c.options.Waiting && c.overShare(c.tenants[work.Identity]) {
		return nil, c.busy("overload.waiting", "too many calls wait")
	}
	t := c.tenant(work.Identity)
	w := &waiter{bytes: work.Bytes, rank: work.Rank, tenant: t, since: time.Now()}
	t.waiting[work.Rank] = append(t.waiting[work.Rank], w)
	t.queued++
	c.queued++
	if c.options.Running-c.free+c.parked+c.queued > t.running+len(t.parked)+t.queued {
		c.mixed.note()
	}
	if c.next(); !w.running {
		w.admitted = make(chan struct{})
	}
	return w, nil
}

// small reports whether work takes little memory, and is therefore likely to be short.
func (c *Controller) small(w *waiter) bool {
	return w.bytes <= int64(c.options.Memory)/smallShare/smallWork
}

// poolFor returns where work finds its memory: small work in the small pool first. False: in neither now.
func (c *Controller) poolFor(w *waiter) (pool, bool) {
	if c.small(w) && w.bytes <= c.room[smallPool] && w.tenant.mayTake(w.bytes, smallPool, c.room[smallPool]) {
		return smallPool, true
	}
	return largePool, w.bytes <= c.room[largePool] && w.tenant.mayTake(w.bytes, largePool, c.room[largePool])
}

func (c *Controller) admit(w *waiter) {
	c.room[w.pool] -= w.bytes
	w.tenant.bytes[w.pool] += w.bytes
	w.charged = estimate(w.bytes)
	if w.rank == Simulation {
		w.charged *= simulationWeight
	}
	c.resume(w)
	w.tenant.given += w.charged + callCost
}

// resume gives a slot to work whose memory is booked.
func (c *Controller) resume(w *waiter) {
	c.release(-1)
	w.tenant.running++
	c.clock = max(c.clock, w.tenant.given)
	w.running = true
	if w.admitted != nil {
		close(w.admitted)
	}
}

// next admits the work that may begin or go on now.
func (c *Controller) next() {
	defer c.notice()
	// large is set once large work waits for memory: nothing large overtakes it, otherwise it would never get its turn.
	large := false
	var passed map[*tenantQueue]bool
	for c.queued+c.parked > 0 {
		t := c.first(passed)
		if t == nil {
			return
		}
		w, parked := t.head()
		if parked {
			t.parked = t.parked[1:]
			c.parked--
			c.resume(w)
			continue
		}
		from, ok := c.poolFor(w)
		if !ok || large && from == largePool {
			if passed == nil {
				passed = map[*tenantQueue]bool{}
			}
			passed[t] = true
			large = large || w.bytes > c.room[largePool]
			continue
		}
		w.pool = from
		t.waiting[w.rank] = t.waiting[w.rank][1:]
		t.queued--
		c.queued--
		c.admit(w)
	}
}

// withdraw takes a waiter out, or returns false if it was admitted.
func (c *Controller) withdraw(w *waiter) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !w.tenant.remove(w) {
		return false
	}
	c.queued--
	c.forget(w.tenant)
	c.next()
	return true
}

// leave ends work that ran for so long since it got its slot.
func (c *Controller) leave(w *waiter, ran time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w.charge(ran)
	move(&c.meanService, w.ran)
	w.tenant.given -= w.charged
	c.release(1)
	c.room[w.pool] += w.bytes
	c.room[largePool] += w.more
	w.tenant.running--
	w.tenant.bytes[w.pool] -= w.bytes
	w.tenant.bytes[largePool] -= w.more
	c.next()
	c.forget(w.tenant)
}

// grow books memory that running work needs in addition, at once or not at all.
func (c *Controller) grow(w *waiter, bytes int64) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	t, room := w.tenant, c.room[largePool]
	alone := t.running+t.resting == 1 && len(t.parked) == 0
	switch all := w.bytes + w.more + bytes; {
	case all > c.Most():
		return tooLarge(all, c.Most())
	case bytes > room || !alone && t.bytes[largePool]+bytes > room-bytes:
		return c.busy("overload.memory", "the call came to need more memory than is free")
	}
	c.room[largePool] -= bytes
	t.bytes[largePool] += bytes
	w.more += bytes
	return nil
}

func tooLarge(bytes, most int64) error {
	return decode.Exceeded("overload.memory", bytes, most,
		"the call would take about "+strconv.FormatInt(bytes, 10)+" bytes of memory, more than there is for all calls together")
}

// move moves an exponential moving average towards a new value.
func move(mean *time.Duration, value time.Duration) {
	const weight = 16
	*mean += (value - *mean) / weight
}

// Options configure how much work a Controller admits. They are the settings overload.*.
type Options = setting.Overload

// complete replaces values that are not above zero by their defaults.
func complete(o *Options) {
	o.Wait = max(o.Wait, 0)
	setting.Complete(o)
	if o.Running <= 0 {
		o.Running = processor.Count()
	}
	if o.Reserve <= 0 {
		o.Reserve = 4 * o.Running
	}
}
