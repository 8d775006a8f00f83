package service

import (
	"sync"
	"sync/atomic"
)

// counts keeps count of something by identity, and forgets who has none.
type counts struct {
	mutex sync.Mutex
	of    map[string]int
	all   atomic.Int64
}

// others reports whether anybody else has any.
func (c *counts) others(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, mine := c.of[identity]
	return len(c.of) > 1 || len(c.of) == 1 && !mine
}

// add returns the new count.
func (c *counts) add(identity string, n int) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[identity] += n
	left := c.of[identity]
	if left == 0 {
		delete(c.of, identity)
	}
	return left
}
