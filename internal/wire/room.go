package wire

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Room is memory for the messages of answers, which is used again after Empty. The zero value is empty.
type Room struct {
	answers         chunk[*apportionv1.Answer]
	allocatables    chunk[whole[apportionv1.Answer_Allocatable, apportionv1.AllocatableAnswer]]
	resources       chunk[apportionv1.Resource]
	reasons         chunk[apportionv1.Reason]
	verdicts        chunk[apportionv1.Verdict]
	lists           chunk[*apportionv1.Reason]
	indices         chunk[uint32]
	amounts         chunk[float64]
	taskVerdicts    chunk[apportionv1.TaskVerdict]
	taskLists       chunk[*apportionv1.TaskVerdict]
	enqueueVerdicts chunk[apportionv1.EnqueueVerdict]
	enqueueLists    chunk[*apportionv1.EnqueueVerdict]
	queueShares     chunk[apportionv1.QueueShare]
	queueLists      chunk[*apportionv1.QueueShare]
	standings       chunk[apportionv1.QueueStanding]
	standingLists   chunk[*apportionv1.QueueStanding]
	// shares holds shares of queues that are encoded at once, and queue the message of the one that is being encoded.
	shares []byte
	queue  *Room
}

// Empty makes the memory of the Room available again, except for lists that are too large to keep.
func (r *Room) Empty() {
	r.answers.empty()
	r.allocatables.empty()
	r.reasons.empty()
	r.verdicts.empty()
	r.lists.empty()
	r.taskVerdicts.empty()
	r.taskLists.empty()
	r.enqueueVerdicts.empty()
	r.enqueueLists.empty()
	r.emptyShares()
	r.queueLists.empty()
	r.standings.empty()
	r.standingLists.empty()
	if r.shares = r.shares[:0]; cap(r.shares) > mostBytes {
		r.shares = nil
	}
}

// emptyShares makes the memory of shares of queues available again.
func (r *Room) emptyShares() {
	r.queueShares.empty()
	r.resources.empty()
	r.indices.empty()
	r.amounts.empty()
}

// mostKept is the maximum number of values of a kind in an empty Room, and mostBytes the maximum number of encoded bytes.
const mostKept, mostBytes = 4096, 1 << 20

// chunk allocates pieces of memory. Each piece is used once until the chunk is emptied.
type chunk[T any] struct {
	free []T
	next int
	// taken counts what was handed out since block was empty. With within, all of it is in block.
	taken  int
	within bool
	block  []T
}

// take returns n zero values in a row.
func (c *chunk[T]) take(n int) []T {
	c.taken += n
	if n > len(c.free) {
		c.within = false
		c.next = max(min(2*c.next, 1024), 16)
		if n > c.next/4 {
			return make([]T, n)
		}
		c.free = make([]T, c.next)
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	return out
}

func (c *chunk[T]) one() *T { return &c.take(1)[0] }

// empty takes back what was handed out. As much as that was fits into one block then, unless it was very much.
func (c *chunk[T]) empty() {
	switch {
	case c.taken == 0:
		return
	case c.within:
		clear(c.block[:c.taken])
	case c.taken <= mostKept:
		c.block = make([]T, c.taken+c.taken/4)
	default:
		c.block = nil
	}
	c.free, c.taken, c.within = c.block, 0, true
}

// whole is an answer of one kind with its parts, in one allocation. It is not part of a larger allocation: every answer in it, and
// everything that it refers to, would be kept as long as any of them.
type whole[M, B any] struct {
	answer apportionv1.Answer
	member M
	body   B
}
