package service

import (
	"container/list"
	"sync"

	"github.com/apportion/apportion/engine/model"
)

// heldKey names a snapshot: a digest is no secret that opens what others sent.
type heldKey struct{ identity, digest string }

// held is a compiled snapshot with sessions that wait for their next caller.
type held struct {
	key   heldKey
	model *model.Model
	// cluster that the snapshot names.
	cluster string
	// bytes is what the model and the idle sessions take.
	bytes int64
	idle  map[string][]*ready
	place *list.Element
	gone  bool
}

// cache holds compiled snapshots within a bound of bytes for all, and one for each identity. The least recently used go first.
type cache struct {
	limit, quota int64
	// perPolicy bounds the idle sessions of one snapshot and policy, policies those policies.
	perPolicy, policies int

	mutex      sync.Mutex
	bytes      int64
	snapshots  map[heldKey]*held
	identities map[string]int64
	// recent holds *held, the most recently used first.
	recent  *list.List
	evicted func()
}

func newCache(limit, quota int64, perPolicy int, evicted func()) *cache {
	return &cache{
		limit: limit, quota: min(quota, limit), perPolicy: perPolicy, policies: 16, evicted: evicted,
		snapshots: map[heldKey]*held{}, identities: map[string]int64{}, recent: list.New(),
	}
}

// find returns a snapshot, or nil.
func (c *cache) find(key heldKey) *held {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	h := c.snapshots[key]
	if h != nil {
		c.recent.MoveToFront(h.place)
	}
	return h
}

// size returns what a snapshot takes; 0 if it is not held.
func (c *cache) size(key heldKey) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if h := c.snapshots[key]; h != nil {
		return h.bytes
	}
	return 0
}

// put holds a snapshot, and returns false if it is larger than any may be. One that is held already stays.
func (c *cache) put(key heldKey, m *model.Model, cluster string, bytes int64) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if bytes > c.quota {
		return false
	}
	if c.snapshots[key] == nil {
		h := &held{key: key, model: m, cluster: cluster, idle: map[string][]*ready{}}
		h.place = c.recent.PushFront(h)
		c.snapshots[key] = h
		c.grow(h, bytes)
	}
	return true
}

// grow books bytes to a snapshot, and makes room for them.
func (c *cache) grow(h *held, bytes int64) {
	h.bytes += bytes
	c.bytes += bytes
	identity := h.key.identity
	c.identities[identity] += bytes
	for e := c.recent.Back(); e != nil && (c.identities[identity] > c.quota || c.bytes > c.limit); {
		h, _ := e.Value.(*held)
		e = e.Prev()
		if c.bytes > c.limit || h.key.identity == identity {
			c.drop(h)
			c.evicted()
		}
	}
}

func (c *cache) drop(h *held) {
	h.gone = true
	c.recent.Remove(h.place)
	delete(c.snapshots, h.key)
	c.bytes -= h.bytes
	if c.identities[h.key.identity] -= h.bytes; c.identities[h.key.identity] == 0 {
		delete(c.identities, h.key.identity)
	}
	h.idle = nil
}

// take returns a session that waits for a caller with this policy, or nil.
func (c *cache) take(h *held, policy string) *ready {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sessions := h.idle[policy]
	if len(sessions) == 0 {
		return nil
	}
	r := sessions[len(sessions)-1]
	h.idle[policy] = sessions[:len(sessions)-1]
	h.bytes -= r.bytes
	c.bytes -= r.bytes
	c.identities[h.key.identity] -= r.bytes
	return r
}

// give lets a session wait for its next caller, if there is room.
func (c *cache) give(h *held, policy string, r *ready) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sessions, known := h.idle[policy]
	if h.gone || len(sessions) >= c.perPolicy || !known && len(h.idle) >= c.policies || h.bytes+r.bytes > c.quota {
		return
	}
	h.idle[policy] = append(sessions, r)
	c.grow(h, r.bytes)
}

// usage returns how many snapshots are held, and what they take.
func (c *cache) usage() (snapshots int, bytes int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.snapshots), c.bytes
}
