package service

import "math/bits"

// pool holds the memory that requests are put together in. gRPC's own pool clears what it lends, up to a mebibyte for a message of
// some ten kilobytes, and throws away all above that; here whoever borrows writes every byte before any is read.
var pool buffers

// spoil, if it is set, is given all memory that nobody reads any more. Tests overwrite it.
var spoil func([]byte)

// steps is how many sizes of memory there are from one power of two to the next.
const steps = 8

// buffers lends memory, at most an eighth more than is asked for. It implements mem.BufferPool.
type buffers [bits.UintSize * steps]idle[*[]byte]

// sizeOf returns the size of memory that holds n bytes, and which of all sizes it is.
func sizeOf(n int) (size, class int) {
	exponent := bits.Len(uint(max(n-1, 0)))
	shift := max(exponent-bits.Len(steps), 0)
	size = (n + 1<<shift - 1) >> shift << shift
	return size, exponent*steps + (size>>shift)%steps
}

// Get returns n bytes that hold anything.
func (b *buffers) Get(n int) *[]byte {
	size, class := sizeOf(n)
	if data, ok := b[class].get(); ok {
		*data = (*data)[:n]
		return data
	}
	data := make([]byte, n, size)
	return &data
}

// Put takes back what Get lent.
func (b *buffers) Put(data *[]byte) {
	if spoil != nil {
		spoil((*data)[:cap(*data)])
	}
	if size, class := sizeOf(cap(*data)); size == cap(*data) {
		b[class].put(data)
	}
}

// pooled is how much is lent where so much is asked for.
func pooled(n int64) int64 {
	size, _ := sizeOf(int(n))
	return int64(size)
}
