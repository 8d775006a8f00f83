package buffer

import (
	"runtime"
	"sync"
)

// Map makes this process put together messages from 8 MiB on in memory outside Go's heap from now on, where the
// system has such memory. The garbage collector lets a heap grow to twice what is alive, and what lies outside is not part of that. Go's
// memory limit does not count it either, so a program with a limit has to subtract it: changed is called with the bytes that are mapped
// whenever they change, one call at a time. It must be fast, and may be nil. Only the first Map of a process has an effect.
func Map(changed func(bytes int64)) {
	Messages.mapped.CompareAndSwap(nil, newMapped(leastMapped, changed))
}

const (
	// leastMapped is the least memory that is mapped. What lies outside the heap no longer makes it grow, so that a small heap is collected
	// more often: with 1 MiB here, a call about 100,000 tasks saw twice as many collections and took 4 % longer.
	leastMapped = 8 << 20
	// spareMapped is the maximum number of unused mapped bytes that are kept for later messages.
	spareMapped = 32 << 20
)

// mapped lends memory outside Go's heap. At most as much is mapped as was lent at one time, plus spareMapped: these allocations do not
// start the garbage collector, so idle regions are unmapped before new ones are mapped.
type mapped struct {
	least   int
	changed func(bytes int64)
	idle    Idle[*[]byte]
	// once is true if memory is lent only once. Tests protect it from being read.
	once bool

	mutex sync.Mutex
	// regions holds the mapped regions by their first byte.
	regions map[*byte]region

	counting sync.Mutex
	bytes    int64
}

// region is mapped memory.
type region struct {
	memory []byte
	// lost unmaps it once nothing refers to the lent memory: a call that panics does not give its message back.
	lost runtime.Cleanup
}

func newMapped(least int, changed func(bytes int64)) *mapped {
	m := &mapped{least: least, changed: changed, regions: map[*byte]region{}}
	m.idle.dropped = m.drop
	return m
}

// get returns memory of a size with arbitrary contents, or nil if there is none.
func (m *mapped) get(size int) *[]byte {
	if data, ok := m.idle.find(func(data *[]byte) bool { return cap(*data) == size }); ok {
		return data
	}
	m.spare()
	memory, err := mapMemory(size)
	if err != nil {
		return nil
	}
	data := &memory
	first := firstOf(data)
	m.mutex.Lock()
	m.regions[first] = region{memory, runtime.AddCleanup(data, m.unmap, first)}
	m.mutex.Unlock()
	m.count(size)
	return data
}

// put takes memory back, unless it is not from here.
func (m *mapped) put(data *[]byte) bool {
	if cap(*data) < m.least {
		return false
	}
	m.mutex.Lock()
	_, ok := m.regions[firstOf(data)]
	m.mutex.Unlock()
	if ok && !m.once {
		m.idle.Put(data)
	}
	return ok
}

// spare unmaps what is idle beyond spareMapped.
func (m *mapped) spare() {
	m.idle.mutex.Lock()
	bytes := 0
	for _, a := range m.idle.kept {
		bytes += cap(*a.value)
	}
	unwanted := m.idle.take(func(a aged[*[]byte]) bool {
		if bytes <= spareMapped {
			return false
		}
		bytes -= cap(*a.value)
		return true
	})
	m.idle.mutex.Unlock()
	m.idle.drop(unwanted)
}

// drop unmaps memory that was taken back.
func (m *mapped) drop(data *[]byte) {
	first := firstOf(data)
	m.mutex.Lock()
	lost := m.regions[first].lost
	m.mutex.Unlock()
	lost.Stop()
	runtime.KeepAlive(data)
	m.unmap(first)
}

// unmap returns a region to the system.
func (m *mapped) unmap(first *byte) {
	m.mutex.Lock()
	memory := m.regions[first].memory
	delete(m.regions, first)
	m.mutex.Unlock()
	// The address may be mapped again from here on.
	if unmapMemory(memory) == nil {
		m.count(-len(memory))
	}
}

// count notes that so much more is mapped.
func (m *mapped) count(bytes int) {
	m.counting.Lock()
	defer m.counting.Unlock()
	m.bytes += int64(bytes)
	if m.changed != nil {
		m.changed(m.bytes)
	}
}

// Mapped returns how many bytes are mapped.
func Mapped() int64 {
	m := Messages.mapped.Load()
	if m == nil {
		return 0
	}
	m.counting.Lock()
	defer m.counting.Unlock()
	return m.bytes
}

func firstOf(data *[]byte) *byte { return &(*data)[:1][0] }
