package extender

import (
	"errors"
	"fmt"
)

// A push is read from its connection, pruned, and decoded by a goroutine each, so that the scheduler waits for the first alone: until its
// last byte has arrived. The second may lag behind by Options.BufferBytes, the third by prunedBoxes, which is more than what is left of a
// push of 10,000 pods.
const prunedBoxes = 32

// received is a push that has arrived, and may still be decoded.
type received struct {
	done chan struct{}
	read *push
	err  error
}

var errPanicked = errors.New("panic while reading the push")

// receive reads a push to its end. The error says that it did not arrive, or, if the whole is but one box, or is known already, that it
// cannot be read; no call waits for the push then.
func (h *Handler) receive(t *turn, body *limitedBody) (*received, error) {
	arrived, pruned := newConveyor(t.ctx, max(2, int(h.options.BufferBytes/boxBytes))), newConveyor(t.ctx, prunedBoxes)
	r := &received{done: make(chan struct{})}
	go func() {
		err := h.guarded(func() error { return pruned.fill(prune(arrived, pushShape)) })
		if errors.Is(err, errPanicked) {
			t.over(err)
		}
	}()
	go func() {
		defer close(r.done)
		r.err = h.guarded(func() (err error) {
			if r.read, err = readPruned(pruned, h.bound()); err != nil {
				return err
			}
			return drain(pruned)
		})
		if r.err != nil {
			t.over(r.err)
		}
	}()
	before := body.left
	err := arrived.fill(body)
	switch {
	case t.ctx.Err() != nil:
		// The answer is no longer needed, but Volcano reads only after it has sent all.
		err = drain(body)
	case err == nil && before-body.left > boxBytes:
		select {
		case <-r.done:
		default:
			return r, nil
		}
	}
	if err != nil {
		t.over(err)
	}
	<-r.done
	if err == nil {
		err = r.err
	}
	return r, err
}

// guarded returns errPanicked for a panic.
func (h *Handler) guarded(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.recovered(p)
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return work()
}
