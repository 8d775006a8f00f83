package extender

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/wire"
)

// counting counts what is read.
type counting struct {
	from  io.Reader
	count *int64
}

func (c counting) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	*c.count += int64(n)
	return n, err
}

// bound is what a push may hold, and what it may take as a snapshot. The zero value bounds nothing.
type bound struct {
	wire.Limits

	memory int64
}

// within returns what is wrong with a push of a size. Its bytes are those that the decoder has read: nothing else can have been kept.
func (b *bound) within(z wire.Size) error {
	if err := z.Within(b.Limits); err != nil {
		return err
	}
	if needed := z.Memory(); b.memory > 0 && needed > b.memory {
		return wire.Exceeded("memory", needed, b.memory,
			fmt.Sprintf("the push would take %d bytes of memory, at most %d are there", needed, b.memory))
	}
	return nil
}

// shortestText is what limits may not forbid, here as in every snapshot.
const shortestText = 128

// short returns what is wrong with texts of which one is too long.
func (b *bound) short(texts ...string) error {
	for _, s := range texts {
		if maximum := max(b.TextBytes, shortestText); b.TextBytes > 0 && int64(len(s)) > maximum {
			return wire.Exceeded("text_bytes", int64(len(s)), maximum,
				fmt.Sprintf("a name or uid has %d bytes, at most %d are taken", len(s), maximum))
		}
	}
	return nil
}

// size is what has been read so far. A task on a node that no job has is kept like any other.
func (p *push) size() wire.Size {
	return wire.Size{
		Bytes: p.read, Dimensions: int64(len(p.vectors.names.list)), Nodes: int64(len(p.nodes)), Queues: int64(len(p.queues)),
		Jobs: int64(len(p.jobs)), Groups: p.groups, Tasks: int64(len(p.tasks) + len(p.strays)),
	}
}

// held returns what is wrong with a model by its size, groups and the depth of its queues included: these are known only now.
func (b *bound) held(m *model.Model, read int64) error {
	err := b.within(wire.Size{
		Bytes: read, Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), Queues: int64(len(m.Queues)), Jobs: int64(m.Jobs.Len()),
		Groups: int64(m.Groups.Len()), Tasks: int64(m.Tasks.Len()),
	})
	if err != nil {
		return err
	}
	return wire.Depth(m, b.QueueDepth)
}

// allowance is memory that the questions under way share.
type allowance struct {
	all   int64
	taken atomic.Int64
}

// share is what one question has of an allowance. A nil *share is without bound.
type share struct {
	of    *allowance
	taken int64
}

// errBusy says that others have taken what there is.
var errBusy = errors.New("too many requests at once")

// take takes memory for something that is kept until the question is answered.
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

// giveBack gives all of it back.
func (s *share) giveBack() {
	s.of.taken.Add(-s.taken)
	s.taken = 0
}
