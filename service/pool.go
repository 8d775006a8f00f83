package service

import (
	"math/bits"
	"sync"
)

// pool holds the memory that requests are put together in. gRPC's own pool clears what it lends, up to a mebibyte for a message of
// some ten kilobytes, and throws away all above that; here whoever borrows writes every byte before any is read.
var pool buffers

// spoil, if it is set, is given all memory that nobody reads any more. Tests overwrite it.
var spoil func([]byte)

// buffers lends memory in sizes of powers of two. It implements mem.BufferPool.
type buffers [bits.UintSize]sync.Pool

// Get returns n bytes that hold anything.
func (b *buffers) Get(n int) *[]byte {
	class := bits.Len(uint(max(n-1, 0)))
	if data, ok := b[class].Get().(*[]byte); ok {
		*data = (*data)[:n]
		return data
	}
	data := make([]byte, n, 1<<class)
	return &data
}

// Put takes back what Get lent.
func (b *buffers) Put(data *[]byte) {
	if spoil != nil {
		spoil((*data)[:cap(*data)])
	}
	if class := bits.Len(uint(cap(*data))) - 1; cap(*data) == 1<<class {
		b[class].Put(data)
	}
}

// pooled is how much is lent where so much is asked for.
func pooled(n int64) int64 { return 1 << bits.Len64(uint64(max(n-1, 0))) }
