package wire

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// A batch of a session mostly holds small steps of a few kinds. What the protobuf library makes in nine pieces of memory for each of them
// is made here in one or two.

// DecodeBatch decodes an encoded batch of steps into an empty request, with the same result as the protobuf library except for unknown
// fields, which are dropped. For other requests, unusual encodings and invalid bytes it returns false and leaves the request unchanged; use
// the library for them.
func DecodeBatch(data []byte, request *apportionv1.RunSessionRequest) bool {
	var f field
	var body []byte
	s := scanner{rest: data}
	for s.next(&f) {
		if f.number != 3 || f.kind != delimited || body != nil {
			return false
		}
		body = f.data
	}
	if s.bad || body == nil {
		return false
	}
	made := &struct {
		member apportionv1.RunSessionRequest_Batch
		batch  apportionv1.StepBatch
		// one is room for the only step.
		one [1]*apportionv1.Step
	}{}
	made.member.Batch = &made.batch
	if !readBatch(body, &made.batch, made.one[:0]) {
		return false
	}
	request.Message = &made.member
	return true
}

// readBatch reads a batch whose list of steps lies in the given memory if it fits.
func readBatch(data []byte, batch *apportionv1.StepBatch, list []*apportionv1.Step) bool {
	var f field
	steps := 0
	s := scanner{rest: data}
	for s.next(&f) {
		if f.number == 2 && f.kind == delimited {
			steps++
		}
	}
	if s.bad {
		return false
	}
	if steps > 0 {
		batch.Steps = slices.Grow(list, steps)
	}
	for s = (scanner{rest: data}); s.next(&f); {
		switch {
		case f.number == 1 && f.kind == varint:
			batch.Id = f.value
		case f.number == 2 && f.kind == delimited:
			step := readStep(f.data)
			if step == nil {
				return false
			}
			batch.Steps = append(batch.Steps, step)
		}
	}
	return true
}

// readStep returns nil for what is left to the library.
func readStep(data []byte) *apportionv1.Step {
	var f, again field
	s := scanner{rest: data}
	if !s.next(&f) || f.kind != delimited || s.next(&again) || s.bad {
		return nil
	}
	if q := numbered(f.number); q != nil && q.read != nil {
		return q.read(f.data)
	}
	step := &apportionv1.Step{}
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, step) != nil {
		return nil
	}
	return step
}

// varints counts the numbers of a packed list.
func varints(data []byte) int {
	n := 0
	for _, b := range data {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// made is a step with all its parts in one piece of memory.
type made[M, B any] struct {
	step   apportionv1.Step
	member M
	body   B
	tasks  apportionv1.Tasks
	// one is room for the index of a selection of one task.
	one [1]uint32
}

// stepFields are the fields of steps about tasks or jobs: the selection in field 1, numbers in the others.
type stepFields struct {
	selected bool
	index    []uint32
	uid      []string
	numbers  [5]uint64
	// list is field 2 where that is a list.
	list   []uint32
	listed bool
}

// read reports whether all was read as usual.
func (r *stepFields) read(data []byte) bool {
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.number == 1 && f.kind == delimited:
			r.selection(&s, f.data)
		case f.number == 2 && r.listed:
			r.list = s.uint32s(&f, r.list)
		case f.number < 5 && f.kind == varint:
			r.numbers[f.number] = f.value
		}
	}
	return !s.bad
}

// selection reads a message Tasks or Jobs: both hold indices and uids. A second one would have to be merged, and fails.
func (r *stepFields) selection(s *scanner, data []byte) {
	if r.selected {
		s.fail()
		return
	}
	r.selected = true
	var f field
	list := scanner{rest: data}
	for list.next(&f) {
		switch f.number {
		case 1:
			if f.kind == delimited && len(r.index) == 0 {
				r.index = slices.Grow(r.index, varints(f.data))
			}
			r.index = list.uint32s(&f, r.index)
		case 2:
			if f.kind == delimited {
				r.uid = append(r.uid, strings.Clone(list.text(&f)))
			}
		}
	}
	if len(r.index) == 0 {
		r.index = nil
	}
	s.check(!list.bad)
}

// tasks fills in the selection of tasks.
func (r *stepFields) tasks(m *apportionv1.Tasks) *apportionv1.Tasks {
	if !r.selected {
		return nil
	}
	m.Index, m.Uid = r.index, r.uid
	return m
}
