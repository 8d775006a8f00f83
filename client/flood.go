package client

import (
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// A server may send frames without end that carry nothing, such as SETTINGS: gRPC answers each, which takes a processor for as long as the
// connection lasts, and no ping and no silence tells that it answers no call. So each connection has an allowance for such frames, many
// times what servers and proxies send, and one that exceeds it is closed: gRPC then ends its calls with UNAVAILABLE. The server is avoided
// as one that is silent is.
const (
	// flooded is the cost of frames at which a connection is closed, of which drained is forgiven each second.
	flooded, drained = 2_000_000, 200_000
	// Settings cost most, because a server sends them once or twice; pings may come with each round trip.
	settingsCost, pingCost, otherCost = 200, 10, 1
)

// errFlood is the error of a connection over which frames came without end.
var errFlood = errors.New("the server sends frames without end that carry nothing")

// flood counts the frames of HTTP/2 that come over a connection.
type flood struct {
	// header has the begin of a frame's header, of which got bytes have come; skip is what is left of the frame.
	header [9]byte
	got    int
	skip   int
	cost   int
	// since is when the cost was forgiven last, in the time of now.
	since time.Time
	now   func() time.Time
}

// takes reports whether the connection may go on after these bytes.
func (f *flood) takes(data []byte) bool {
	for len(data) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(data))
			f.skip -= n
			data = data[n:]
			continue
		}
		n := copy(f.header[f.got:], data)
		f.got += n
		if data = data[n:]; f.got == len(f.header) {
			f.got, f.skip = 0, int(binary.BigEndian.Uint32(f.header[:])>>8)
			f.cost += costOf(f.header[3], f.skip)
		}
	}
	if f.cost > flooded/2 {
		now := f.now()
		f.cost = max(0, f.cost-int(min(now.Sub(f.since).Seconds(), flooded/drained)*drained))
		f.since = now
	}
	return f.cost <= flooded
}

// costOf returns the cost of a frame of a type: nothing if it carries a part of an answer.
func costOf(kind byte, bytes int) int {
	const data, headers, settings, ping = 0, 1, 4, 6
	switch {
	case kind == headers || kind == data && bytes > 0:
		return 0
	case kind == settings:
		return settingsCost
	case kind == ping:
		return pingCost
	}
	return otherCost
}

// boundConn ends a connection that floods. gRPC reads it in one goroutine.
type boundConn struct {
	net.Conn

	flood flood
	// avoid is called when it floods, so that it is not made again at once; nil: it may be.
	avoid func()
}

func (c *boundConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	if !c.flood.takes(to[:n]) {
		if c.avoid != nil {
			c.avoid()
		}
		return 0, errFlood
	}
	return n, err
}
