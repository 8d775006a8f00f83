package service

import (
	"google.golang.org/protobuf/encoding/protowire"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// Most uploads are one chunk, which is hashed and compiled where it was received.

// lend makes a request the last chunk of an upload, whose bytes are those of the message, which the call keeps until it ends. False: the
// message is of another kind, or too small to gain, and nothing was done.
func (c *call) lend(m *message, request any) bool {
	upload, ok := request.(*apportionv1.UploadSnapshotRequest)
	if !ok || m.buffer == nil || m.buffer.Len() <= spareBytes || !c.server.forgets() {
		return false
	}
	data, ok := lastChunk(m.data())
	if !ok {
		return false
	}
	upload.Message = &apportionv1.UploadSnapshotRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true}}
	buffer := m.buffer
	m.buffer = nil
	c.chunk.Store(&buffer)
	return true
}

// endChunk gives back the memory of a chunk that was lent. A reader that is late leaves its own to the garbage collector.
func (c *call) endChunk() {
	if buffer := c.chunk.Swap(nil); buffer != nil {
		(*buffer).Free()
	}
}

// forgets reports whether no part of the embedding program may keep what is received.
func (s *Server) forgets() bool { return len(s.options.Observers) == 0 && len(s.options.Stream) == 0 }

// lastChunk returns the bytes of the last chunk of an upload, if a message is one that is written as protobuf libraries write it.
func lastChunk(message []byte) (data []byte, ok bool) {
	// The data are followed by the field `last`, which is true.
	const chunk, bytes = 2, 1
	chunked, rest, ok := leading(message, chunk)
	if !ok || len(rest) > 0 {
		return nil, false
	}
	if data, rest, ok = leading(chunked, bytes); !ok {
		return nil, false
	}
	return data, string(rest) == "\x10\x01"
}

// leading returns the bytes of the field that a message begins with, if that is this one, and what follows it.
func leading(message []byte, number protowire.Number) (value, rest []byte, ok bool) {
	if len(message) == 0 {
		return nil, nil, false
	}
	tag, _, from, to := field.At(message, 0)
	if tag != tagOf(number) || to < 0 {
		return nil, nil, false
	}
	return message[from:to], message[to:], true
}
