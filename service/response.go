package service

import (
	"bytes"
	"sync"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/apportion/apportion/wire"
)

// codec is gRPC's own codec, but for the responses of the contract.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal encodes a response, those of the contract into memory that is used again.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok, err := marshal(v); ok || err != nil {
		return data, err
	}
	return c.CodecV2.Marshal(v)
}

// lent is memory that a response is encoded in, and that gRPC holds until the response is written to the connection.
type lent struct {
	memory []byte
	// out is what gRPC holds: the end of memory.
	out []byte
}

// lentPool keeps the memory of responses for the next ones.
var lentPool = sync.Pool{New: func() any { return new(lent) }}

const (
	// smallResponse is a size up to which a copy is cheaper than lending.
	smallResponse = 1 << 10
	// largeResponse is a size from which on memory is not kept.
	largeResponse = 8 << 20
)

// marshal returns an encoded response, or ok false for messages that are left to the protobuf library.
func marshal(response any) (data mem.BufferSlice, ok bool, err error) {
	l, _ := lentPool.Get().(*lent)
	encoded, memory, ok, err := wire.Encode(l.memory, response)
	l.memory = memory
	if !ok || err != nil || len(encoded) <= smallResponse {
		encoded = bytes.Clone(encoded)
		l.Put(nil)
		return mem.BufferSlice{mem.SliceBuffer(encoded)}, ok, err
	}
	l.out = encoded
	return mem.BufferSlice{mem.NewBuffer(&l.out, l)}, true, nil
}

// Put takes the memory back; with Get it makes of every lent a pool for itself, as gRPC wants it.
func (l *lent) Put(*[]byte) {
	l.out = nil
	if spoil != nil {
		spoil(l.memory[:cap(l.memory)])
	}
	if len(l.memory) <= largeResponse {
		lentPool.Put(l)
	}
}

// Get returns fresh memory. Nobody asks.
func (l *lent) Get(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}
