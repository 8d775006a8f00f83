package extender

import (
	"bytes"
	"errors"
	"io"
)

// limitedBody is a body with a maximum size.
type limitedBody struct {
	from io.Reader
	left int64
}

// Read returns errTooLarge where io.LimitReader would pretend that the body ends.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		n, err := b.from.Read(one[:])
		if n > 0 {
			return 0, errTooLarge
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	return n, err
}

// drain reads the rest of a body, so that the connection can be reused.
func drain(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

// readAll reads a body of no more than most bytes, which takes its memory of a share as it grows. It drains a larger one and returns
// errTooLarge.
func readAll(body io.Reader, most int64, memory *share) ([]byte, error) {
	var read bytes.Buffer
	for first := int64(4 << 10); int64(read.Len()) < most; first = int64(read.Len()) {
		part := min(first, most-int64(read.Len()))
		if err := memory.take(int(part)); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(&read, body, part); errors.Is(err, io.EOF) {
			return read.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
	}
	n, err := io.Copy(io.Discard, body)
	if err == nil && n > 0 {
		err = errTooLarge
	}
	return read.Bytes(), err
}
