package cluster

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// store holds the objects of a cluster as one adapter reads them.
type store interface {
	// Read reads one object in JSON, ReadList one page of a list.
	Read(kind objects.Kind, data []byte) (*objects.Object, error)
	ReadList(kind objects.Kind, data []byte) (read []*objects.Object, next, version string, err error)
	// Put, Remove and Replace report whether anything changes by them.
	Put(o *objects.Object) bool
	Remove(o *objects.Object) bool
	Replace(kind objects.Kind, list []*objects.Object) bool
	Count(kind objects.Kind) int
	// version makes a snapshot of all objects for a server on which one may take most bytes of memory. unread are the kinds that could not
	// be read, and why. fill completes each snapshot that is tried, before it is encoded; nil: it is complete.
	version(now time.Time, most int64, unread map[string]string, fill func(*apportionv1.Snapshot)) (*made, error)
}

// encode encodes a snapshot, without the owners, whose names tenants choose, if it takes more than most bytes of memory with them. It also
// returns what the snapshot takes.
func encode(s *apportionv1.Snapshot, most int64) (data []byte, takes int64, err error) {
	for {
		if data, err = proto.Marshal(s); err != nil {
			return nil, 0, err
		}
		size := decode.Measure(data)
		if takes = size.Memory(); takes <= most || !forgetOwners(s) {
			return data, takes, nil
		}
	}
}

// forgetOwners removes what owners used. It reports whether there were any.
func forgetOwners(s *apportionv1.Snapshot) bool {
	some := false
	for _, q := range s.GetQueues() {
		some = some || len(q.GetOwners()) > 0
		q.Owners = nil
	}
	return some
}

// made is a snapshot, and what it lacks.
type made struct {
	snapshot *apportionv1.Snapshot
	data     []byte
	// leftOut counts the objects that are left out by kind, and first names the first of them.
	leftOut map[string]uint32
	first   string
}

func (m *made) leaveOut(kind, fault string) {
	if m.leftOut == nil {
		m.leftOut, m.first = map[string]uint32{}, fault
	}
	m.leftOut[kind]++
}

func (m *made) leaveOutFaulty(list []*objects.Faulty) {
	for _, faulty := range list {
		m.leaveOut(faulty.Kind, fmt.Sprintf("the %s", faulty))
	}
}

func (m *made) total() int {
	total := 0
	for _, n := range m.leftOut {
		total += int(n)
	}
	return total
}

// volcanoStore holds Volcano's objects.
type volcanoStore struct {
	*volcano.Objects

	schedulers []string
}

// version leaves out jobs for which the server has no memory.
func (s *volcanoStore) version(
	now time.Time, most int64, unread map[string]string, fill func(*apportionv1.Snapshot),
) (*made, error) {
	options := []volcano.Option{volcano.WithAsOf(now), volcano.WithUnread(unread)}
	if len(s.schedulers) > 0 {
		options = append(options, volcano.WithSchedulers(s.schedulers...))
	}
	cluster, data, err := s.within(options, most, fill)
	if err != nil {
		return nil, err
	}
	m := &made{snapshot: cluster.Snapshot, data: data}
	m.leaveOutFaulty(cluster.Faulty)
	return m, nil
}

// within returns a cluster and its snapshot, which takes at most so much memory.
func (s *volcanoStore) within(
	options []volcano.Option, most int64, fill func(*apportionv1.Snapshot),
) (c *volcano.Cluster, data []byte, err error) {
	const tries = 8
	for room, tried := int64(0), 1; ; tried++ {
		if c, err = s.Cluster(append(options, volcano.WithMemory(room))...); err != nil {
			return nil, nil, err
		}
		if fill != nil {
			fill(c.Snapshot)
		}
		var takes int64
		if data, takes, err = encode(c.Snapshot, most); err != nil {
			return nil, nil, err
		}
		if takes <= most || tried == tries {
			return c, data, nil
		}
		// The bound of the jobs is about what they take: the next one is smaller by as much as this one is too large.
		if room == 0 {
			room = most
		} else {
			room = int64(0.95 * float64(room) * float64(most) / float64(takes))
		}
	}
}

// kueueStore holds Kueue's objects.
type kueueStore struct {
	*kueue.Objects

	limits decode.Limits
}
