package cluster

import (
	"context"
	"sync"
	"time"
)

// pace makes many changes few versions: at most one in each interval, and none while making them takes more than a quarter of the time.
type pace struct {
	interval time.Duration

	mutex sync.Mutex
	// making are when changes came that the version has which is being made, arrivals when later ones came: the first of each.
	making, arrivals []time.Time
	wake             chan struct{}
}

const (
	// maxArrivals bounds how many changes are known by their time. Only the lag of those is measured.
	maxArrivals = 4096
	// pauseFactor is how many times as long as a version took no next one is made.
	pauseFactor = 3
)

func newPace(interval time.Duration) *pace {
	return &pace{interval: interval, wake: make(chan struct{}, 1)}
}

// note notes a change.
func (p *pace) note() {
	p.mutex.Lock()
	if len(p.arrivals) < maxArrivals {
		p.arrivals = append(p.arrivals, time.Now())
	}
	p.mutex.Unlock()
	p.call()
}

// call asks for a version.
func (p *pace) call() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// since returns when the first change came that is in no version yet; false: all are.
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

// take returns when the changes came that the next version has.
func (p *pace) take() []time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.making = append(p.making, p.arrivals[:min(len(p.arrivals), maxArrivals-len(p.making))]...)
	p.arrivals = nil
	return p.making
}

// made notes that the changes that were taken are in a version.
func (p *pace) made() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.making = nil
}

// run calls version after changes, and every refresh without one, until ctx ends. Version returns false if it made none, and is called
// again after the interval. waited receives how long changes waited for their version.
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
