package service

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
)

// entryKey names a snapshot: knowledge of a digest must not give access to the snapshots of others.
type entryKey struct{ identity, digest string }

// entryBytes is about what a snapshot takes here beside its model: its entry, its names, and its places in maps and lists.
const entryBytes = 768

// entry is a compiled snapshot with pooled sessions, which wait for their next caller.
type entry struct {
	key   entryKey
	model *model.Model
	// cluster that the snapshot names.
	cluster string
	// bytes is the memory of the model and the idle sessions, own the memory of the model that it does not share with base. The bytes of a
	// version of a kept snapshot are not booked here, and do not change.
	bytes, own int64
	// base is the snapshot that this one was made of by a change: their models share memory, so that what the base takes stays booked as
	// long as this one is held. derived counts the snapshots that this one is the base of.
	base    *entry
	derived int
	// pinned counts, for a version of a kept snapshot, the snapshots of each identity that it is the base of.
	pinned map[string]int
	idle   map[string][]*pooledSession
	place  *list.Element
	gone   bool
	// viewed returns how old and complete it is, if it is a version of a kept snapshot; else it is nil.
	viewed func() *apportionv1.SnapshotView
	// data are its bytes, if it is a version of a kept snapshot; else they are nil.
	data []byte
	// kept is the name of the kept snapshot of which it is a version, or from which changes made it; else it is empty.
	kept string
	// held says that the program of the server gave it, not its callers.
	held atomic.Bool
}

// digest returns what names the snapshot, "" for none.
func (e *entry) digest() string {
	if e == nil {
		return ""
	}
	return e.key.digest
}

// view returns how old and complete the version of a kept snapshot is, nil for what a caller sent.
func (e *entry) view() *apportionv1.SnapshotView {
	if e == nil || e.viewed == nil {
		return nil
	}
	return e.viewed()
}

// ofOthers reports whether the snapshot is not the caller's own.
func (e *entry) ofOthers() bool { return e.held.Load() || e.viewed != nil }

// observed returns the description of the snapshot for observers.
func (e *entry) observed() Snapshot {
	return Snapshot{Digest: e.key.digest, Model: e.model, Named: e.cluster}
}

// pooledSession is an opened session between two callers.
type pooledSession struct {
	*wire.Session

	basis *apportionv1.Basis
	bytes int64
}

// cache holds compiled snapshots within a bound of bytes for all, and one for each identity. The least recently used go first.
type cache struct {
	limit, quota int64
	// perPolicy bounds the idle sessions of one snapshot and policy, policies those policies.
	perPolicy, policies int

	mutex      sync.Mutex
	bytes      int64
	snapshots  map[entryKey]*entry
	identities map[string]int64
	// recent holds *entry, the most recently used first.
	recent  *list.List
	evicted func()
}

func newCache(limit, quota int64, perPolicy int, evicted func()) *cache {
	return &cache{
		limit: limit, quota: min(quota, limit), perPolicy: perPolicy, policies: 16, evicted: evicted,
		snapshots: map[entryKey]*entry{}, identities: map[string]int64{}, recent: list.New(),
	}
}

// find returns a snapshot, or nil.
func (c *cache) find(key entryKey) *entry {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	e := c.snapshots[key]
	if e != nil {
		c.recent.MoveToFront(e.place)
	}
	return e
}

// hold notes that the program of the server gave a snapshot.
func (c *cache) hold(key entryKey) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if e := c.snapshots[key]; e != nil {
		e.held.Store(true)
	}
}

// size returns what a snapshot takes; 0 if it is not held.
func (c *cache) size(key entryKey) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if e := c.snapshots[key]; e != nil {
		return e.bytes
	}
	return 0
}

// put keeps a snapshot, and returns false if it exceeds the maximum size together with its base. One that is held already stays. base is
// the snapshot from which a change made it, nil if it was sent as a whole.
func (c *cache) put(key entryKey, m *model.Model, cluster string, bytes int64, base *entry) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := bytes
	for b := base; b != nil; b = b.base {
		all += b.own
	}
	if all > c.quota {
		return false
	}
	if c.snapshots[key] == nil {
		c.retain(base, key.identity)
		e := &entry{key: key, model: m, cluster: cluster, own: bytes, base: base, idle: map[string][]*pooledSession{}}
		if base != nil {
			e.kept = base.kept
			e.held.Store(base.ofOthers())
		}
		e.place = c.recent.PushFront(e)
		c.snapshots[key] = e
		c.grow(e, bytes)
	}
	return true
}

// retain keeps what a base takes booked until release, for an identity. A base that was dropped meanwhile is booked again.
func (c *cache) retain(base *entry, identity string) {
	for b := base; b != nil; b = b.base {
		if b.viewed != nil {
			c.pin(b, identity, 1)
			return
		}
		if b.derived++; !b.gone || b.derived > 1 {
			return
		}
		c.book(b, b.own)
	}
}

// release ends what retain began. The memory of a base is given back once the base is dropped and no snapshot depends on it.
func (c *cache) release(base *entry, identity string) {
	for b := base; b != nil; b = b.base {
		if b.viewed != nil {
			c.pin(b, identity, -1)
			return
		}
		if b.derived--; !b.gone || b.derived > 0 {
			return
		}
		c.book(b, -b.own)
	}
}

// pin counts the snapshots of an identity that were made of a version of a kept snapshot, and books the version to the identity while there
// are any: it would not be held otherwise.
func (c *cache) pin(version *entry, identity string, snapshots int) {
	if version.pinned == nil {
		version.pinned = map[string]int{}
	}
	before := version.pinned[identity]
	version.pinned[identity] += snapshots
	switch now := before + snapshots; {
	case before == 0:
		c.charge(identity, version.own)
	case now == 0:
		delete(version.pinned, identity)
		c.charge(identity, -version.own)
	}
}

// book books bytes to a snapshot.
func (c *cache) book(e *entry, bytes int64) {
	e.bytes += bytes
	c.charge(e.key.identity, bytes)
}

// charge books bytes to an identity.
func (c *cache) charge(identity string, bytes int64) {
	c.bytes += bytes
	if c.identities[identity] += bytes; c.identities[identity] == 0 {
		delete(c.identities, identity)
	}
}

// grow books bytes to a snapshot, and makes room for them.
func (c *cache) grow(e *entry, bytes int64) {
	c.book(e, bytes)
	identity := e.key.identity
	for at := c.recent.Back(); at != nil && (c.identities[identity] > c.quota || c.bytes > c.limit); {
		oldest, _ := at.Value.(*entry)
		at = at.Prev()
		if c.bytes > c.limit || oldest.key.identity == identity {
			c.drop(oldest)
			c.evicted()
		}
	}
}

func (c *cache) drop(e *entry) {
	e.gone = true
	c.recent.Remove(e.place)
	delete(c.snapshots, e.key)
	c.book(e, e.own-e.bytes)
	e.idle = nil
	if e.derived == 0 {
		c.book(e, -e.own)
		c.release(e.base, e.key.identity)
	}
}

// take returns a pooled session with this policy, or nil.
func (c *cache) take(e *entry, policy string) *pooledSession {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sessions := e.idle[policy]
	if len(sessions) == 0 {
		return nil
	}
	p := sessions[len(sessions)-1]
	e.idle[policy] = sessions[:len(sessions)-1]
	c.book(e, -p.bytes)
	return p
}

// give pools a session for its next caller, if there is room.
func (c *cache) give(e *entry, policy string, p *pooledSession) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sessions, known := e.idle[policy]
	if e.gone || len(sessions) >= c.perPolicy || !known && len(e.idle) >= c.policies || e.bytes+p.bytes > c.quota {
		return
	}
	e.idle[policy] = append(sessions, p)
	c.grow(e, p.bytes)
}

// usage returns how many snapshots are held, and what they take.
func (c *cache) usage() (snapshots int, bytes int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.snapshots), c.bytes
}
