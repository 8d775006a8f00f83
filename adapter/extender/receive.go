package extender

import (
	"errors"
	"fmt"
)

// Three goroutines read a push from its connection, prune it, and decode it, so that the scheduler waits only for the first one. The second
// may lag behind by Options.BufferBytes, the third by prunedBoxes, which hold the whole pruned push of 10,000 pods.
const prunedBoxes = 32

// received is a push that has arrived and may not be decoded yet.
type received struct {
	done chan struct{}
	read *push
	err  error
}

var errPanicked = errors.New("panic while reading the push")

// receive reads a push to its end. The error says that it did not arrive completely or, if decoding has already failed or the push fits one
// box, that it cannot be decoded.
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
		// The push is useless, but Volcano reads the answer only after it has sent all.
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

// guarded runs work and returns errPanicked if it panics.
func (h *Handler) guarded(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.recovered(p)
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return work()
}
