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
	switch f.number {
	case 3:
		return readEnqueue(f.data)
	case 4:
		return readAllocatable(f.data)
	case 5:
		return readPreemptive(f.data)
	case 11:
		return readSetStatus(f.data)
	case 12:
		return readAllocate(f.data)
	case 13:
		return readDeallocate(f.data)
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

func readAllocatable(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_Allocatable, apportionv1.AllocatableStep]{}
	r := stepFields{index: m.one[:0]}
	if !r.read(data) {
		return nil
	}
	m.body.Tasks, m.body.Jointly = r.tasks(&m.tasks), r.numbers[2] != 0
	m.body.Mode, m.body.Explain = apportionv1.AccountingMode(int32(r.numbers[3])), r.numbers[4] != 0
	m.step.Step, m.member.Allocatable = &m.member, &m.body
	return &m.step
}

func readPreemptive(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_Preemptive, apportionv1.PreemptiveStep]{}
	r := stepFields{index: m.one[:0]}
	if !r.read(data) {
		return nil
	}
	m.body.Tasks, m.body.Jointly, m.body.Explain = r.tasks(&m.tasks), r.numbers[2] != 0, r.numbers[3] != 0
	m.step.Step, m.member.Preemptive = &m.member, &m.body
	return &m.step
}

func readEnqueue(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_Enqueue, apportionv1.EnqueueStep]{}
	r := stepFields{index: m.one[:0]}
	if !r.read(data) {
		return nil
	}
	if r.selected {
		m.body.Jobs = &apportionv1.Jobs{Index: r.index, Uid: r.uid}
	}
	m.body.Mode, m.body.OmitNames = apportionv1.EnqueueMode(int32(r.numbers[2])), r.numbers[3] != 0
	m.step.Step, m.member.Enqueue = &m.member, &m.body
	return &m.step
}

func readSetStatus(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_SetStatus, apportionv1.SetStatusStep]{}
	r := stepFields{index: m.one[:0]}
	if !r.read(data) {
		return nil
	}
	m.body.Tasks, m.body.Status = r.tasks(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
	m.step.Step, m.member.SetStatus = &m.member, &m.body
	return &m.step
}

func readAllocate(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_Allocate, apportionv1.AllocateStep]{}
	r := stepFields{index: m.one[:0], listed: true}
	if !r.read(data) {
		return nil
	}
	m.body.Tasks, m.body.Node = r.tasks(&m.tasks), r.list
	m.step.Step, m.member.Allocate = &m.member, &m.body
	return &m.step
}

func readDeallocate(data []byte) *apportionv1.Step {
	m := &made[apportionv1.Step_Deallocate, apportionv1.DeallocateStep]{}
	r := stepFields{index: m.one[:0]}
	if !r.read(data) {
		return nil
	}
	m.body.Tasks, m.body.Status = r.tasks(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
	m.step.Step, m.member.Deallocate = &m.member, &m.body
	return &m.step
}
