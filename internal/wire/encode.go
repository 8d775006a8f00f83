package wire

import (
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
	text func(*apportionv1.Reason) string
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

func (e *encoder) reason(r *policy.Reason) *apportionv1.Reason {
	out := e.memory().reasons.one()
	out.Plugin, out.Code, out.Role, out.Detail = r.Plugin, apportionv1.ReasonCode(r.Code), r.Role, r.Detail
	if r.Code == policy.Reserved && e.audience != nil && !e.audience.Owns(r.Queue) {
		// It names a job.
		out.Detail = ""
	}
	out.Queue, out.Dimension = e.optional(int(r.Queue)), e.dimension(r.Dimension)
	out.Have, out.Need, out.Limit = r.Have, r.Need, r.Limit
	out.HierarchyFault = apportionv1.HierarchyFault(r.Fault)
	e.left -= reasonBytes + len(r.Plugin) + len(r.Role) + len(r.Detail)
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

func (e *encoder) reasonList(reasons []policy.Reason) []*apportionv1.Reason {
	if len(reasons) == 0 {
		return nil
	}
	list := e.memory().lists.take(len(reasons))
	for i := range reasons {
		list[i] = e.reason(&reasons[i])
	}
	return list
}

// nodeCounts returns nil for none.
func (e *encoder) nodeCounts(counts []place.NodeCount) []*apportionv1.NodeCount {
	list := make([]*apportionv1.NodeCount, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		out := &apportionv1.NodeCount{
			Count: uint32(c.N), Code: apportionv1.ReasonCode(c.Code), Detail: c.Detail, StartTime: c.From, EndTime: c.Until,
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
	v.Vote, v.Reasons = apportionv1.Vote_VOTE_REJECT, e.reasonList(reasons)
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
