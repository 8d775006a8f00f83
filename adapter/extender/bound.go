package extender

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

// counting counts the bytes read.
type counting struct {
	from  io.Reader
	count *int64
}

func (c counting) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	*c.count += int64(n)
	return n, err
}

// bound limits the size of a push and the memory of its snapshot. The zero value is no limit.
type bound struct {
	decode.Limits

	memory int64
}

// within returns an error if a push of this size is too large. Its bytes are those that the decoder has read: nothing else is kept.
func (b *bound) within(z decode.Size) error {
	if err := z.Within(b.Limits); err != nil {
		return err
	}
	if needed := z.Memory(); b.memory > 0 && needed > b.memory {
		return decode.Exceeded("memory", needed, b.memory,
			fmt.Sprintf("the push needs %d bytes of memory, but the limit is %d", needed, b.memory))
	}
	return nil
}

// shortestText is a length that every limit permits, as for other snapshots.
const shortestText = 128

// short returns an error if one of the texts is too long.
func (b *bound) short(texts ...string) error {
	for _, s := range texts {
		if maximum := max(b.TextBytes, shortestText); b.TextBytes > 0 && int64(len(s)) > maximum {
			return decode.Exceeded("text_bytes", int64(len(s)), maximum,
				fmt.Sprintf("a name or uid has %d bytes, but the limit is %d", len(s), maximum))
		}
	}
	return nil
}

// size counts the entities read so far. A task on a node that no job has is kept like any other.
func (p *push) size() decode.Size {
	return decode.Size{
		Bytes: p.read, Dimensions: int64(len(p.vectors.names.list)), Nodes: int64(len(p.nodes)), Queues: int64(len(p.queues)),
		Jobs: int64(len(p.jobs)), Groups: p.groups, Tasks: int64(len(p.tasks) + len(p.strays)),
	}
}

// held returns an error if a model is too large. Unlike within it knows the groups and the depth of the queues.
func (b *bound) held(m *model.Model, read int64) error {
	err := b.within(decode.Size{
		Bytes: read, Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), Queues: int64(len(m.Queues)), Jobs: int64(m.Jobs.Len()),
		Groups: int64(m.Groups.Len()), Tasks: int64(m.Tasks.Len()),
	})
	if err != nil {
		return err
	}
	return decode.Depth(m, b.QueueDepth)
}

// allowance is memory that concurrent questions share.
type allowance struct {
	all   int64
	taken atomic.Int64
}

// share is one question's part of an allowance. A nil *share is unlimited.
type share struct {
	of    *allowance
	taken int64
}

// errBusy says that concurrent questions use the whole allowance.
var errBusy = errors.New("too many requests at once")

// take books memory that is kept until the question is answered.
func (s *share) take(n int) error {
	if s == nil {
		return nil
	}
	s.taken += int64(n)
	switch all := s.of.taken.Add(int64(n)); {
	case s.taken > s.of.all:
		return errTooLarge
	case all > s.of.all:
		return errBusy
	}
	return nil
}

// giveBack returns the share to the allowance.
func (s *share) giveBack() {
	s.of.taken.Add(-s.taken)
	s.taken = 0
}
