package extender

import (
	"context"
	"errors"
	"io"
)

// conveyor is a pipe with a buffer of a bounded number of boxes. Its context ends when the text is no longer needed.
type conveyor struct {
	ctx         context.Context //nolint:containedctx // Reading is bounded by it as filling is, and io.Reader has no argument for it.
	full, empty chan []byte
	// made is the number of boxes allocated so far.
	made, boxes int
	// err is the error after the last box. It is set before full is closed.
	err error

	// box is the one that was read last, rest what Read has left of it.
	box, rest []byte
}

// boxBytes is the size of a box.
const boxBytes = 256 << 10

func newConveyor(ctx context.Context, boxes int) *conveyor {
	return &conveyor{ctx: ctx, full: make(chan []byte, boxes), empty: make(chan []byte, boxes), boxes: boxes}
}

// fill copies a source into the pipe, followed by the error that ended it. It returns that error, or nil at the end of the source.
func (c *conveyor) fill(source io.Reader) error {
	err := error(nil)
	for err == nil {
		var box []byte
		if box, err = c.next(); err != nil {
			break
		}
		n := 0
		for n < len(box) && err == nil {
			var more int
			more, err = source.Read(box[n:])
			n += more
		}
		if failed := c.put(box[:n]); failed != nil {
			err = failed
		}
	}
	c.err = err
	close(c.full)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// next waits for an empty box and returns it.
func (c *conveyor) next() ([]byte, error) {
	select {
	case box := <-c.empty:
		return box, nil
	default:
	}
	if c.made < c.boxes {
		c.made++
		return make([]byte, boxBytes), nil
	}
	select {
	case box := <-c.empty:
		return box, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

func (c *conveyor) put(box []byte) error {
	select {
	case c.full <- box:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// part returns the next part of the text, valid until the next call, or the error that ended the text.
func (c *conveyor) part() ([]byte, error) {
	if c.box != nil {
		c.empty <- c.box[:cap(c.box)]
		c.box = nil
	}
	select {
	case box, more := <-c.full:
		if !more {
			return nil, c.err
		}
		c.box = box
		return box, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

// Read reads the text.
func (c *conveyor) Read(to []byte) (n int, err error) {
	for len(c.rest) == 0 {
		if c.rest, err = c.part(); err != nil {
			return 0, err
		}
	}
	n = copy(to, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
