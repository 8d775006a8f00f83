package cluster

import (
	"net/http"
	"sync"
	"time"
)

// clockTolerance is by how much the own clock may differ from the API server's.
const clockTolerance = time.Hour

// clock is the clock of an API server, as its responses tell the time. A ledger that once took in a time of the far future counts each
// task that ran then for as long, so that the own clock alone must not be trusted.
type clock struct {
	// told is true if the log says that the own clock is wrong.
	told bool

	mutex sync.Mutex
	// date is the time that the last response told, and at when it came.
	date, at time.Time
}

// note reads the time of a response that came at a time of the own clock.
func (c *clock) note(response *http.Response, at time.Time) {
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.date, c.at = date, at
}

// ahead returns by how much a time of the own clock is ahead of the API server's, negative if it is behind; 0 if the difference is small,
// or not known. The time since the last response is that of the monotonic clock, which does not jump.
func (c *clock) ahead(now time.Time) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.date.IsZero() {
		return 0
	}
	ahead := now.Round(0).Sub(c.date.Add(now.Sub(c.at)))
	if ahead.Abs() <= clockTolerance {
		return 0
	}
	return ahead
}

// dating notes the time that responses tell.
type dating struct {
	http.RoundTripper

	clock *clock
}

// RoundTrip sends a request.
func (d dating) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if err == nil {
		d.clock.note(response, time.Now())
	}
	return response, err
}
