package cluster

import (
	"context"
	"sync"
	"time"
)

// pace limits the number of versions: at most one in each interval, and so that building them takes at most a quarter of the time.
type pace struct {
	interval time.Duration

	mutex sync.Mutex
	// making contains the arrival times of the changes in the version under construction, arrivals those of later changes.
	making, arrivals []time.Time
	wake             chan struct{}
}

const (
	// maxArrivals is the maximum number of stored arrival times. Only these changes count in the measured lag.
	maxArrivals = 4096
	// pauseFactor is the pause after a version, as a multiple of the time that it took.
	pauseFactor = 3
)

func newPace(interval time.Duration) *pace {
	return &pace{interval: interval, wake: make(chan struct{}, 1)}
}

// note records a change.
func (p *pace) note() {
	p.mutex.Lock()
	if len(p.arrivals) < maxArrivals {
		p.arrivals = append(p.arrivals, time.Now())
	}
	p.mutex.Unlock()
	p.call()
}

// call requests a version.
func (p *pace) call() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// since returns the arrival time of the first change that is in no version yet; false: there is none.
func (p *pace) since() (time.Time, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, list := range [][]time.Time{p.making, p.arrivals} {
		if len(list) > 0 {
			return list[0], true
		}
	}
	return time.Time{}, false
}

// take returns the arrival times of the changes in the next version.
func (p *pace) take() []time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.making = append(p.making, p.arrivals[:min(len(p.arrivals), maxArrivals-len(p.making))]...)
	p.arrivals = nil
	return p.making
}

// made records that the taken changes are in a version.
func (p *pace) made() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.making = nil
}

// run calls version after changes, and without changes at every refresh, until ctx ends. If version returns false, run calls it again after
// the interval. waited receives the times that changes waited for their version.
func (p *pace) run(ctx context.Context, refresh time.Duration, version func(context.Context) bool, waited func(time.Duration)) {
	timer := time.NewTimer(refresh)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		taken, began := p.take(), time.Now()
		made := version(ctx)
		if made {
			p.made()
			for _, at := range taken {
				waited(time.Since(at))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(p.interval, pauseFactor*time.Since(began))):
		}
		if !made {
			p.call()
		}
		timer.Reset(refresh)
	}
}
