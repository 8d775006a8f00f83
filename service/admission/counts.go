package admission

import "sync"

// Counts counts something by identity. It keeps no entry for a count of 0. The zero value is empty.
type Counts struct {
	mutex sync.Mutex
	of    map[string]int
	all   int
}

// Add adds n, which may be negative, to the count of an identity, and returns its new count and the count of all identities.
func (c *Counts) Add(identity string, n int) (mine, all int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[identity] += n
	c.all += n
	mine = c.of[identity]
	if mine == 0 {
		delete(c.of, identity)
	}
	return mine, c.all
}

// All returns the count of all identities.
func (c *Counts) All() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.all
}

// Others reports whether another identity has any.
func (c *Counts) Others(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, mine := c.of[identity]
	return len(c.of) > 1 || len(c.of) == 1 && !mine
}
