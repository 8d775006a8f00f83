package wire

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const (
	// messageBytes is at least what a message of a few numbers takes.
	messageBytes = 16
	// numberBytes is at least what a number in a list takes.
	numberBytes = 10
	reasonBytes = 64
	// textBytes is the memory of a text in addition to its bytes.
	textBytes = 4
)

// encoder makes the messages of an answer and keeps account of their size. Small messages come out of larger pieces of memory.
type encoder struct {
	// dims are numbered in an answer as the snapshot numbers them.
	dims          resource.Dimensions
	left, maximum int
	// limit is the setting that maximum is.
	limit string
	// text puts a reason into words; nil: answers carry no texts.
	text func(*apportionv1.Cause) string
	// audience is that of the session; nil: no restriction.
	audience *Audience
	// own is the memory of messages if there is no Room.
	own  Room
	lent *Room
}

// memory is the memory of messages.
func (e *encoder) memory() *Room {
	if e.lent != nil {
		return e.lent
	}
	return &e.own
}

// begin begins an answer of at most maximum bytes about a model of these dimensions.
func (e *encoder) begin(dims resource.Dimensions, maximum int) {
	e.dims, e.left, e.maximum, e.limit = dims, maximum, maximum, "answer_bytes"
}

// within limits the answers that are made until end is called to a maximum, if it is smaller than the present one.
func (e *encoder) within(maximum int, limit string) (end func()) {
	if maximum >= e.left {
		return func() {}
	}
	left, outer, outerLimit := e.left, e.maximum, e.limit
	e.left, e.maximum, e.limit = maximum, maximum, limit
	return func() { e.left, e.maximum, e.limit = left-(maximum-e.left), outer, outerLimit }
}

// room returns a *Fault unless a list of n things can be sent; narrow names the selection that a caller can reduce.
func (e *encoder) room(n int, narrow string) error {
	if n > e.left/messageBytes {
		return e.tooLarge(narrow)
	}
	return nil
}

// check returns a *Fault if the answers so far are too large to be sent.
func (e *encoder) check(narrow string) error {
	if e.left < 0 {
		return e.tooLarge(narrow)
	}
	return nil
}

func (e *encoder) tooLarge(narrow string) *decode.Fault {
	return &decode.Fault{
		Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, Field: narrow,
		Text:     "the answer would exceed " + strconv.Itoa(e.maximum) + " bytes; select less",
		Metadata: map[string]string{"limit": e.limit, "maximum": strconv.Itoa(e.maximum)},
	}
}

// optional returns nil for -1.
func (e *encoder) optional(n int) *uint32 {
	if n < 0 {
		return nil
	}
	p := e.memory().indices.one()
	*p = uint32(n)
	return p
}

// dimension returns the number of an engine's dimension in answers, and nil for -1.
func (e *encoder) dimension(d int) *uint32 {
	if d < 0 {
		return nil
	}
	return e.optional(e.dims.Position(d))
}

// resource returns nil for an absent row.
func (e *encoder) resource(row resource.Row) *apportionv1.Resource {
	if row.Absent() {
		return nil
	}
	n := row.Has.Len()
	r := e.memory().resources.one()
	r.Dimensions, r.Amounts = e.memory().indices.take(n), e.memory().amounts.take(n)
	i := 0
	for position, d := range e.dims.Order() {
		if row.Has.Has(d) {
			r.Dimensions[i], r.Amounts[i] = uint32(position), row.V[d]
			i++
		}
	}
	e.left -= messageBytes + n*numberBytes
	return r
}

func (e *encoder) reason(r *policy.Reason) *apportionv1.Cause {
	out := e.memory().reasons.one()
	out.Plugin, out.Code, out.Detail = r.Plugin, apportionv1.CauseCode(r.Code), r.Detail
	if r.Code == policy.Reserved && e.audience != nil && !e.audience.Owns(r.Queue) {
		// It names a job.
		out.Detail = ""
	}
	out.Queue = e.optional(int(r.Queue))
	if r.Dimension >= 0 {
		out.Dimensions = e.memory().indices.take(1)
		out.Dimensions[0] = uint32(e.dims.Position(r.Dimension))
	}
	out.Have, out.Need, out.Limit = r.Have, r.Need, r.Limit
	out.HierarchyFault = apportionv1.HierarchyFault(r.Fault)
	e.left -= reasonBytes + len(r.Plugin) + len(r.Detail)
	if e.text != nil && e.left >= 0 {
		out.Text = e.text(out)
		e.left -= len(out.Text) + textBytes
	}
	return out
}

// fraction returns nil for nil.
func (e *encoder) fraction(f *big.Rat) *apportionv1.Fraction {
	if f == nil {
		return nil
	}
	out := &apportionv1.Fraction{Numerator: f.Num().String(), Denominator: f.Denom().String()}
	e.left -= messageBytes + len(out.Numerator) + len(out.Denominator)
	return out
}

func (e *encoder) reasonList(reasons []policy.Reason) []*apportionv1.Cause {
	if len(reasons) == 0 {
		return nil
	}
	list := e.memory().lists.take(len(reasons))
	for i := range reasons {
		list[i] = e.reason(&reasons[i])
	}
	return list
}

// counted is reasonList with the number of nodes, candidates or tasks for each reason, if there is one.
func (e *encoder) counted(reasons []policy.Reason, counts []int) []*apportionv1.Cause {
	list := e.reasonList(reasons)
	for i := range min(len(list), len(counts)) {
		list[i].Count = uint32(counts[i])
	}
	return list
}

// nodeCounts returns nil for none.
func (e *encoder) nodeCounts(counts []place.NodeCount) []*apportionv1.Cause {
	list := make([]*apportionv1.Cause, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		out := &apportionv1.Cause{
			Count: uint32(c.N), Code: apportionv1.CauseCode(c.Code), Detail: c.Detail, StartTime: c.From, EndTime: c.Until,
			Free: uint32(c.Free),
		}
		if e.audience == nil || c.HolderQueue != model.None && e.audience.Owns(c.HolderQueue) {
			out.Holder = c.Holder
		}
		for position, d := range e.dims.Order() {
			if c.Dimensions.Has(d) {
				out.Dimensions = append(out.Dimensions, uint32(position))
			}
		}
		e.left -= messageBytes + len(c.Detail) + len(c.Holder) + len(out.GetDimensions())*numberBytes
		list = append(list, out)
	}
	return slices.Clip(list)
}

// verdict returns PERMIT or REJECT, with the reasons.
func (e *encoder) verdict(permitted bool, reasons []policy.Reason) *apportionv1.Verdict {
	e.left -= messageBytes
	v := e.memory().verdicts.one()
	v.Vote, v.Causes = apportionv1.Vote_VOTE_REJECT, e.reasonList(reasons)
	if permitted {
		v.Vote = apportionv1.Vote_VOTE_PERMIT
	}
	return v
}

func wireVote(v policy.Vote) apportionv1.Vote {
	switch v {
	case policy.Permit:
		return apportionv1.Vote_VOTE_PERMIT
	case policy.Reject:
		return apportionv1.Vote_VOTE_REJECT
	case policy.Abstain:
	}
	return apportionv1.Vote_VOTE_ABSTAIN
}

// indices returns ids as the contract refers to them.
func indices[ID ~int32](e *encoder, ids []ID) []uint32 {
	if len(ids) == 0 {
		return nil
	}
	out := e.memory().indices.take(len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	e.left -= len(ids) * numberBytes
	return out
}

// Use makes messages of the next answers in a Room, until it is called again; nil: in memory of their own. They must be encoded, and no
// longer referenced, before the Room is emptied.
func (s *Session) Use(room *Room) { s.out.lent = room }

// many returns n zero values in a row: of a chunk, if the answer is made in a Room.
func many[T any](e *encoder, of *chunk[T], n int) []T {
	if e.lent == nil {
		return make([]T, n)
	}
	return of.take(n)
}

// single is many for one value.
func single[T any](e *encoder, of *chunk[T]) *T { return &many(e, of, 1)[0] }

// Room is memory for the messages of answers, which is used again after Empty. The zero value is empty.
type Room struct {
	answers         chunk[*apportionv1.Answer]
	allocatables    chunk[whole[apportionv1.Answer_Allocatable, apportionv1.AllocatableAnswer]]
	resources       chunk[apportionv1.Resource]
	reasons         chunk[apportionv1.Cause]
	verdicts        chunk[apportionv1.Verdict]
	lists           chunk[*apportionv1.Cause]
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

// explained returns the queues whose derivation is wanted; nil: all.
func (s *Session) explained(e *apportionv1.Explain, faults *model.Error) []model.QueueID {
	if e.GetQueues() == nil {
		return nil
	}
	return s.selectQueues(e.GetQueues(), "explain.queues", faults)
}

// derivation is the part of an answer in which plugins tell how they came by their shares; see catalogue.Answer.
type derivation struct{ session *Session }

// View returns the state of the session.
func (d derivation) View() *policy.View { return d.session.engine.View() }

// Resource returns the amounts of a row.
func (d derivation) Resource(row resource.Row) *apportionv1.Resource {
	return d.session.out.resource(row)
}

// Optional returns a number, nil below 0.
func (d derivation) Optional(n int) *uint32 { return d.session.out.optional(n) }

// Fraction returns a ratio in its exact form.
func (d derivation) Fraction(f *big.Rat) *apportionv1.Fraction { return d.session.out.fraction(f) }

// Room returns an error if n more messages exceed the size of an answer.
func (d derivation) Room(n int) error { return d.session.out.room(n, "explain.queues") }

// Count counts n messages of the answer.
func (d derivation) Count(n int) { d.session.out.left -= n * messageBytes }

// Check returns an error if the answer is too large.
func (d derivation) Check() error { return d.session.out.check("explain.queues") }

// Stopped reports at step i of a loop whether the answer is no longer needed.
func (d derivation) Stopped(i int) bool { return d.session.stopped(i) }

// Reservation returns the room that is kept for a gang; nil if the reader may not see its queue.
func (d derivation) Reservation(r policy.Reservation) *apportionv1.Reservation {
	s := d.session
	queue := s.engine.View().Jobs.At(r.Job).Queue
	if !s.audience.Owns(queue) {
		return nil
	}
	d.Count(1)
	out := &apportionv1.Reservation{
		Job: uint32(r.Job), Queue: uint32(queue), StartTime: r.From, Tasks: indices(&s.out, r.Tasks), Nodes: indices(&s.out, r.Nodes),
	}
	if r.Until != math.MaxInt64 {
		out.EndTime = &r.Until
	}
	return out
}
