package connection

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// A connection that was closed because its calls were wasted could be opened again with full credit. So each such closing halves the credit
// that the offender's next connection begins with, and each forgiveAfter without one doubles it again. An offender is an identity, or the
// address of a peer that has shown none. Other clients of the address lose nothing while they waste no calls.

const (
	// forgiveAfter is the time after which a closing of a connection no longer counts.
	forgiveAfter = 30 * time.Second
	// leastCredit is the initial credit of every connection.
	leastCredit = 16
	// mostClosings is from where on closings change nothing, mostOffenders how many offenders are remembered.
	mostClosings, mostOffenders = 16, 4096
)

// offenders remembers who answers for connections that were closed because their calls were wasted. The zero value is empty.
type offenders struct {
	mutex sync.Mutex
	of    map[string]offence
}

// offence is the number of closings that count, as of a time.
type offence struct {
	closings int
	asOf     time.Time
}

// at returns the closings that count at a later time.
func (o offence) at(now time.Time) offence {
	forgiven := int(now.Sub(o.asOf) / forgiveAfter)
	return offence{max(o.closings-forgiven, 0), o.asOf.Add(time.Duration(forgiven) * forgiveAfter)}
}

// addressPrefix begins the names of offenders that are addresses. No identity begins with it.
const addressPrefix = "\x00"

// offenderAt returns the name of an address as an offender: its IPv4 address, or the /64 network of its IPv6 address, since one host may
// have all of that network. It is empty for an address that is not IP.
func offenderAt(address net.Addr) string {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return ""
	}
	ip := parsed.Addr().Unmap()
	if ip.Is6() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			ip = prefix.Addr()
		}
	}
	return addressPrefix + ip.String()
}

// note remembers a closing. An empty name is not remembered.
func (o *offenders) note(who string) {
	if who == "" {
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	if o.of == nil {
		o.of = map[string]offence{}
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

// forget drops the offenders that are forgiven, or else one of those with the fewest closings.
func (o *offenders) forget(now time.Time) {
	least, fewest := "", mostClosings+1
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

// credit returns how much of a credit a new connection of an offender begins with.
func (o *offenders) credit(who string, most float64) float64 {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if who == "" || len(o.of) == 0 {
		return most
	}
	offended := o.of[who].at(time.Now())
	if offended.closings == 0 {
		delete(o.of, who)
	}
	return max(most/float64(uint64(1)<<offended.closings), min(leastCredit, most))
}
