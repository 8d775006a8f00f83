// Package buffer lends the memory of messages: what was given back is lent again, and large memory may lie outside Go's heap.
package buffer

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Messages holds the memory that requests are put together in. gRPC's own pool clears what it lends, up to a mebibyte for a message of
// some ten kilobytes, and throws away all above that; here the borrower writes every byte before any is read.
var Messages Pool

// Spoil is given all memory that is no longer read, which tests overwrite; nil: memory stays as it is.
var Spoil func([]byte)

// steps is the number of buffer sizes between two powers of two.
const steps = 8

// Pool lends memory, at most an eighth more than is asked for. It implements mem.BufferPool.
type Pool struct {
	classes [bits.UintSize * steps]Idle[*[]byte]
	// mapped lends large memory, if that may lie outside Go's heap.
	mapped atomic.Pointer[mapped]
}

// sizeOf returns the size of memory that holds n bytes, and which of all sizes it is.
func sizeOf(n int) (size, class int) {
	exponent := bits.Len(uint(max(n-1, 0)))
	shift := max(exponent-bits.Len(steps), 0)
	size = (n + 1<<shift - 1) >> shift << shift
	return size, exponent*steps + (size>>shift)%steps
}

// Get returns n bytes with arbitrary contents.
func (b *Pool) Get(n int) *[]byte {
	size, class := sizeOf(n)
	if m := b.mapped.Load(); m != nil && size >= m.least {
		if data := m.get(size); data != nil {
			*data = (*data)[:n]
			return data
		}
	}
	if data, ok := b.classes[class].Get(); ok {
		*data = (*data)[:n]
		return data
	}
	data := make([]byte, n, size)
	return &data
}

// Put returns bytes from Get to the pool.
func (b *Pool) Put(data *[]byte) {
	if Spoil != nil {
		Spoil((*data)[:cap(*data)])
	}
	if m := b.mapped.Load(); m != nil && m.put(data) {
		return
	}
	if size, class := sizeOf(cap(*data)); size == cap(*data) {
		b.classes[class].Put(data)
	}
}

// Size returns the size of the memory that is lent for so many bytes.
func Size(n int64) int64 {
	size, _ := sizeOf(int(n))
	return int64(size)
}

// Idle contains the unused buffers, of which the most recently used one is lent first. A sync.Pool keeps one for every processor, because
// none reaches what another put away for itself: twice the memory on two. Like a sync.Pool it drops what was not borrowed between two
// collections of garbage. The zero value is empty.
type Idle[T any] struct {
	mutex sync.Mutex
	kept  []aged[T]
	// watched is true if the next collection will be noticed.
	watched bool
	// dropped, if it is set, receives each value that is dropped.
	dropped func(T)
}

type aged[T any] struct {
	value       T
	collections int
}

// Get takes what was put away last.
func (i *Idle[T]) Get() (value T, ok bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if len(i.kept) == 0 {
		return value, false
	}
	last := len(i.kept) - 1
	value = i.kept[last].value
	i.kept = slices.Delete(i.kept, last, last+1)
	return value, true
}

// find takes what was put away last among the values that fit.
func (i *Idle[T]) find(fits func(T) bool) (value T, ok bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for k, a := range slices.Backward(i.kept) {
		if fits(a.value) {
			i.kept = slices.Delete(i.kept, k, k+1)
			return a.value, true
		}
	}
	return value, false
}

// Put keeps a value.
func (i *Idle[T]) Put(value T) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.kept = append(i.kept, aged[T]{value: value})
	i.watch()
}

// watch notices the next garbage collection, by an object without references.
func (i *Idle[T]) watch() {
	if i.watched {
		return
	}
	i.watched = true
	runtime.AddCleanup(new(sentinel), func(i *Idle[T]) { i.collected() }, i)
}

// sentinel is an object of its own: an object without pointers may share its memory with others.
type sentinel struct{ _ *sentinel }

// collected drops what was not wanted since the collection before this one.
func (i *Idle[T]) collected() {
	i.mutex.Lock()
	for k := range i.kept {
		i.kept[k].collections++
	}
	unwanted := i.take(func(a aged[T]) bool { return a.collections > 1 })
	i.watched = false
	if len(i.kept) > 0 {
		i.watch()
	}
	i.mutex.Unlock()
	i.drop(unwanted)
}

// take takes out the values that are unwanted, the oldest first.
func (i *Idle[T]) take(unwanted func(aged[T]) bool) (taken []T) {
	i.kept = slices.DeleteFunc(i.kept, func(a aged[T]) bool {
		if !unwanted(a) {
			return false
		}
		if i.dropped != nil {
			taken = append(taken, a.value)
		}
		return true
	})
	return taken
}

// drop drops values that were taken out. It may take milliseconds, so the lock is released meanwhile.
func (i *Idle[T]) drop(values []T) {
	for _, value := range values {
		i.dropped(value)
	}
}
