package service

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// rank is who comes first where calls wait.
type rank uint8

const (
	decisionRank rank = iota
	simulationRank
	ranks
)

// gate admits work by the memory that it is estimated to take, before it takes any, and by the processors that there are. What does not
// fit waits for a bounded time. Decisions come before simulations, and among these the identity that was given least so far.
//
// Nobody waits for another's long calls alone: an identity that has nothing under way may begin beyond the slots, and one that has takes
// no more memory than it leaves.
type gate struct {
	slots int
	// reserve is how many may begin beyond the slots.
	reserve int
	memory  int64
	waiting int
	wait    time.Duration

	mutex sync.Mutex
	// free slots, below 0 where some of the reserve is taken, and room for bytes.
	free int
	room int64
	// lines by identity; one without work or waiters is forgotten.
	lines  map[string]*line
	queued int
	// coming counts calls whose messages are being received.
	coming int
	// service is how long work takes from its turn to its end, arrival how long a message takes to come: means in which what is newer
	// weighs more.
	service, arrival time.Duration
	// clock is what the line served last had been given.
	clock int64
}

// line is what one identity has waiting and under way.
type line struct {
	identity string
	queues   [ranks][]*waiter
	queued   int
	coming   int
	running  int
	// bytes is what those under way were estimated to take.
	bytes int64
	// given is the work it was given, from what others had been given when it came.
	given int64
}

type waiter struct {
	bytes    int64
	line     *line
	since    time.Time
	began    time.Time
	admitted chan struct{}
}

func newGate(o *Overload) *gate {
	slots := orDefault(o.Running, runtime.GOMAXPROCS(0))
	return &gate{
		slots: slots, reserve: orDefault(o.Reserve, slots), memory: o.Memory, waiting: o.Waiting, wait: o.Wait,
		free: slots, room: o.Memory, lines: map[string]*line{},
	}
}

// enter waits until work of about that many bytes may begin, and returns what to call when it has ended.
func (g *gate) enter(ctx context.Context, identity string, r rank, bytes int64) (leave func(), err error) {
	if bytes > g.memory {
		return nil, wire.Exceeded("overload.memory", bytes, g.memory,
			"the call would take about "+strconv.FormatInt(bytes, 10)+" bytes of memory, more than there is for all calls together")
	}
	w, err := g.enqueue(identity, r, bytes)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(func() { g.leave(w) })
	select {
	case <-w.admitted:
		return leave, nil
	default:
	}
	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = g.busy("overload.wait", "no turn came in time")
	}
	if !g.withdraw(w) {
		// It was admitted meanwhile.
		leave()
	}
	return nil, err
}

// busy is the fault of work that must wait for longer than the limit of a name allows.
func (g *gate) busy(limit, text string) error {
	return &wire.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED,
		Text: "the server is busy: " + text, Retry: max(g.wait, 10*time.Millisecond), Metadata: map[string]string{"limit": limit},
	}
}

func (g *gate) enqueue(identity string, r rank, bytes int64) (*waiter, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.queued >= g.waiting && g.overShare(g.lines[identity]) {
		return nil, g.busy("overload.waiting", "too many calls wait")
	}
	l := g.lineOf(identity)
	w := &waiter{bytes: bytes, line: l, admitted: make(chan struct{})}
	if g.queued == 0 && g.begins(l) && l.mayTake(bytes, g.room) && bytes <= g.room {
		g.admit(w)
		return w, nil
	}
	w.since = time.Now()
	l.queues[r] = append(l.queues[r], w)
	l.queued++
	g.queued++
	g.next()
	return w, nil
}

// begins reports whether a line may begin something, were there memory for it.
func (g *gate) begins(l *line) bool {
	return g.free > 0 || l.running == 0 && g.free > -g.reserve
}

// mayTake reports whether so much more would leave as much as the line has, of so much room. One call may take all.
func (l *line) mayTake(bytes, room int64) bool {
	return l.running == 0 || l.bytes+bytes <= room-bytes
}

// overShare reports whether a line has at least its part of what waits.
func (g *gate) overShare(l *line) bool {
	if l == nil {
		return false
	}
	lines := 0
	for _, other := range g.lines {
		if other.queued+other.coming > 0 || other == l {
			lines++
		}
	}
	return (l.queued+l.coming)*lines >= g.queued+g.coming
}

// saturated reports whether another call of this identity had better not be received: what waits and what comes already takes longer than
// half of the time that anything may wait, and the identity has its part of that.
func (g *gate) saturated(identity string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.queued == 0 && g.free > 0 || !g.overShare(g.lines[identity]) {
		return false
	}
	if ahead := g.ahead(); ahead*float64(g.service)/float64(g.slots) > float64(g.wait)/2 {
		return ahead > float64(g.slots)
	}
	for _, l := range g.lines {
		for _, queue := range &l.queues {
			if len(queue) > 0 && time.Since(queue[0].since) > g.wait/2 {
				return true
			}
		}
	}
	return g.queued >= g.waiting
}

// ahead returns how many calls a new one would find before it: those that wait, and of those whose messages come as many as come within
// the time that anything may wait. Senders may be slow, and whoever waits for them does not wait for a processor.
func (g *gate) ahead() float64 {
	coming := float64(g.coming)
	if g.arrival > g.wait {
		coming *= float64(g.wait) / float64(g.arrival)
	}
	return float64(g.queued) + coming
}

// newer is what a new value moves a mean by.
func newer(mean, value time.Duration) time.Duration {
	const weight = 16
	return (value - mean) / weight
}

// expect counts a call that is about to be received, until arrived is called.
func (g *gate) expect(identity string) (arrived func()) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	l := g.lineOf(identity)
	l.coming++
	g.coming++
	began := time.Now()
	return sync.OnceFunc(func() {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.arrival += newer(g.arrival, time.Since(began))
		l.coming--
		g.coming--
		g.forget(l)
	})
}

// lineOf returns the line of an identity, a new one where it has none.
func (g *gate) lineOf(identity string) *line {
	l := g.lines[identity]
	if l == nil {
		l = &line{identity: identity, given: g.clock}
		g.lines[identity] = l
	}
	return l
}

func (g *gate) admit(w *waiter) {
	w.began = time.Now()
	g.free--
	g.room -= w.bytes
	w.line.running++
	w.line.bytes += w.bytes
	g.clock = max(g.clock, w.line.given)
	// Even the smallest call takes a turn.
	w.line.given += w.bytes + 4<<10
	close(w.admitted)
}

// next admits whoever may begin now.
func (g *gate) next() {
	for g.queued > 0 {
		l, r := g.first()
		if l == nil {
			return
		}
		w := l.queues[r][0]
		if w.bytes > g.room {
			// Nobody overtakes: what is large would never get its turn.
			return
		}
		l.queues[r] = l.queues[r][1:]
		l.queued--
		g.queued--
		g.admit(w)
	}
}

// first returns the line that is served next, and whom of it; nil if none may begin.
func (g *gate) first() (*line, rank) {
	for r := range ranks {
		var best *line
		for _, l := range g.lines {
			if len(l.queues[r]) == 0 || !g.begins(l) || !l.mayTake(l.queues[r][0].bytes, g.room) {
				continue
			}
			if best == nil || l.given < best.given || l.given == best.given && l.identity < best.identity {
				best = l
			}
		}
		if best != nil {
			return best, r
		}
	}
	return nil, 0
}

// withdraw takes a waiter out, or returns false if it was admitted.
func (g *gate) withdraw(w *waiter) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for r := range w.line.queues {
		for i, other := range w.line.queues[r] {
			if other == w {
				w.line.queues[r] = append(w.line.queues[r][:i:i], w.line.queues[r][i+1:]...)
				w.line.queued--
				g.queued--
				g.forget(w.line)
				g.next()
				return true
			}
		}
	}
	return false
}

func (g *gate) leave(w *waiter) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.service += newer(g.service, time.Since(w.began))
	g.free++
	g.room += w.bytes
	w.line.running--
	w.line.bytes -= w.bytes
	g.next()
	g.forget(w.line)
}

// forget drops a line that has nothing, so that there are no more than callers.
func (g *gate) forget(l *line) {
	if l.running == 0 && l.queued == 0 && l.coming == 0 {
		delete(g.lines, l.identity)
	}
}

// usage returns the calls that wait and those under way, and the memory that these are estimated to take.
func (g *gate) usage() (waiting, running int, bytes int64) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.queued, g.slots - g.free, g.memory - g.room
}
