package admission

import (
	"context"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Rank says which work comes first where work waits.
type Rank uint8

// The ranks, the first one first.
const (
	Decision Rank = iota
	Simulation
	// Ranks is how many there are.
	Ranks
)

// String is the rank's name in metrics.
func (r Rank) String() string { return [...]string{"decision", "simulation", "unknown"}[min(r, Ranks)] }

// Work is what a call wants to begin.
type Work struct {
	Identity string
	Rank     Rank
	// Bytes estimates the memory that it takes.
	Bytes int64
}

// Controller admits work by the memory that it is estimated to take, before it takes any, and by the processors that there are. What does
// not fit waits for a bounded time. Decisions come before simulations, and among these the identity that was given least so far.
//
// Long calls of one identity do not block another: an identity that has nothing under way may begin beyond the slots, and one that has
// takes no more memory than it leaves.
type Controller struct {
	options Options
	// begun counts the calls whose headers have come.
	begun Counts

	mutex sync.Mutex
	// free slots, below 0 where some of the reserve is taken, and room for bytes.
	free int
	room int64
	// tenants by identity; one without work or waiters is forgotten.
	tenants map[string]*tenantQueue
	queued  int
	// coming counts calls whose messages are being received.
	coming int
	// service is how long work takes from its turn to its end, arrival how long a message takes to come: means in which what is newer
	// weighs more.
	service, arrival time.Duration
	// clock is what the tenant served last had been given.
	clock int64
}

// waiter is work that waits or is under way.
type waiter struct {
	bytes    int64
	tenant   *tenantQueue
	since    time.Time
	began    time.Time
	admitted chan struct{}
}

// New returns a controller that nothing has entered.
func New(o Options) *Controller {
	o.Complete()
	return &Controller{options: o, free: o.Running, room: o.Memory, tenants: map[string]*tenantQueue{}}
}

// Begin counts a call whose headers have come, until end is called. It refuses the call while others of its identity wait for long, and
// while too many have begun.
func (c *Controller) Begin(identity string) (end func(), err error) {
	if c.saturated(identity) {
		return nil, c.busy("overload.wait", "others wait for long already")
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

// Expect counts a call that is about to be received, until arrived is called.
func (c *Controller) Expect(identity string) (arrived func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	t := c.tenant(identity)
	t.coming++
	c.coming++
	began := time.Now()
	return sync.OnceFunc(func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.arrival += newer(c.arrival, time.Since(began))
		t.coming--
		c.coming--
		c.forget(t)
	})
}

// Enter waits until work may begin, and returns what to call when it has ended. It returns an OVERLOADED fault if the turn does not come
// in time, the error of ctx if that ends first, and a LIMIT_EXCEEDED fault at once for more memory than there is.
func (c *Controller) Enter(ctx context.Context, work Work) (leave func(), err error) {
	if work.Bytes > c.options.Memory {
		return nil, wire.Exceeded("overload.memory", work.Bytes, c.options.Memory,
			"the call would take about "+strconv.FormatInt(work.Bytes, 10)+" bytes of memory, more than there is for all calls together")
	}
	w, err := c.enqueue(work)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(func() { c.leave(w) })
	select {
	case <-w.admitted:
		return leave, nil
	default:
	}
	timer := time.NewTimer(c.options.Wait)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = c.busy("overload.wait", "no turn came in time")
	}
	if !c.withdraw(w) {
		// It was admitted meanwhile.
		leave()
	}
	return nil, err
}

// Usage is what a Controller has admitted.
type Usage struct {
	// Waiting and Running count work, Begun calls.
	Waiting, Running, Begun int
	// Bytes is the memory that work under way was estimated to take.
	Bytes int64
}

// Usage returns what is admitted now.
func (c *Controller) Usage() Usage {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return Usage{c.queued, c.options.Running - c.free, c.begun.All(), c.options.Memory - c.room}
}

// busy is the fault of work that must wait for longer than the limit of a name allows.
func (c *Controller) busy(limit, text string) error {
	return &wire.Fault{
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
	w := &waiter{bytes: work.Bytes, tenant: t, admitted: make(chan struct{})}
	if c.queued == 0 && c.begins(t) && t.mayTake(work.Bytes, c.room) && work.Bytes <= c.room {
		c.admit(w)
		return w, nil
	}
	w.since = time.Now()
	t.waiting[work.Rank] = append(t.waiting[work.Rank], w)
	t.queued++
	c.queued++
	c.next()
	return w, nil
}

func (c *Controller) admit(w *waiter) {
	w.began = time.Now()
	c.free--
	c.room -= w.bytes
	w.tenant.running++
	w.tenant.bytes += w.bytes
	c.clock = max(c.clock, w.tenant.given)
	// Even the smallest call takes a turn.
	w.tenant.given += w.bytes + 4<<10
	close(w.admitted)
}

// next admits the work that may begin now.
func (c *Controller) next() {
	for c.queued > 0 {
		t, r := c.first()
		if t == nil {
			return
		}
		w := t.waiting[r][0]
		if w.bytes > c.room {
			// Nothing overtakes: otherwise large work would never get its turn.
			return
		}
		t.waiting[r] = t.waiting[r][1:]
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

func (c *Controller) leave(w *waiter) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.service += newer(c.service, time.Since(w.began))
	c.free++
	c.room += w.bytes
	w.tenant.running--
	w.tenant.bytes -= w.bytes
	c.next()
	c.forget(w.tenant)
}

// newer is what a new value moves a mean by.
func newer(mean, value time.Duration) time.Duration {
	const weight = 16
	return (value - mean) / weight
}
