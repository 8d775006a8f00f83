package service

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// A connection that was closed because its calls were reset could be opened again with full credit. So the address keeps a debt: each such
// closing halves the credit that its next connection begins with, and each forgiveAfter without one doubles it again. A connection gains
// credit at the usual rate, so other clients of the address are slowed down and not refused.

const (
	// forgiveAfter is how long it takes until a closing of a connection counts no more.
	forgiveAfter = 30 * time.Second
	// leastCredit is what any connection begins with.
	leastCredit = 16
	// mostClosings is from where on closings change nothing, mostOffenders how many addresses are remembered.
	mostClosings, mostOffenders = 16, 4096
)

// offenders remembers the addresses of connections that were closed because their calls were reset. The zero value is empty.
type offenders struct {
	mutex sync.Mutex
	of    map[netip.Addr]offence
}

// offence is how many closings count, as of a time.
type offence struct {
	closings int
	asOf     time.Time
}

// at returns the closings that count at a later time.
func (o offence) at(now time.Time) offence {
	forgiven := int(now.Sub(o.asOf) / forgiveAfter)
	return offence{max(o.closings-forgiven, 0), o.asOf.Add(time.Duration(forgiven) * forgiveAfter)}
}

// offenderOf returns the key of an offender: its IPv4 address, or the /64 network of its IPv6 address, since one host may have all of that
// network. It returns false for an address that is not IP.
func offenderOf(address net.Addr) (netip.Addr, bool) {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Addr{}, false
	}
	ip := parsed.Addr().Unmap()
	if ip.Is6() {
		prefix, err := ip.WithZone("").Prefix(64)
		return prefix.Addr(), err == nil
	}
	return ip, true
}

// note remembers a closing.
func (o *offenders) note(address net.Addr) {
	who, ok := offenderOf(address)
	if !ok {
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	if o.of == nil {
		o.of = map[netip.Addr]offence{}
	}
	offended, known := o.of[who]
	if !known && len(o.of) >= mostOffenders {
		o.forget(now)
	}
	if offended = offended.at(now); offended.closings == 0 {
		offended.asOf = now
	}
	offended.closings = min(offended.closings+1, mostClosings)
	o.of[who] = offended
}

// forget drops the addresses that are forgiven, or else one of those with the fewest closings.
func (o *offenders) forget(now time.Time) {
	var least netip.Addr
	fewest := mostClosings + 1
	for who, offended := range o.of {
		n := offended.at(now).closings
		if n == 0 {
			delete(o.of, who)
		}
		if n < fewest {
			least, fewest = who, n
		}
	}
	delete(o.of, least)
}

// credit returns how much of a credit a new connection from an address begins with.
func (o *offenders) credit(address net.Addr, most float64) float64 {
	who, ok := offenderOf(address)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !ok || len(o.of) == 0 {
		return most
	}
	offended := o.of[who].at(time.Now())
	if offended.closings == 0 {
		delete(o.of, who)
	}
	return max(most/float64(uint64(1)<<offended.closings), min(leastCredit, most))
}
