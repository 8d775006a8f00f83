package client

import (
	"context"

	"github.com/apportion/apportion/internal/wire/method"
)

// Answer answers a call in process.
func Answer[Q method.Request, A any](ctx context.Context, c *Client, m *method.Method[Q, A], request Q) (A, error) {
	return answered(ctx, c.engine, m, request)
}

// Encode returns the bytes of a State that is sent whole, and the positions of its entities.
func (s *State) Encode() ([]byte, *layout) { return s.encode() }

// Change returns the bytes of a State that is sent as a change of another one.
func (s *State) Change(base *State, at *layout) []byte {
	data, _, _ := s.change(base, at)
	return data
}
