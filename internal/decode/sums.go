package decode

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// A question about what tasks add up to needs no tasks. What is here keeps accounts in place of them, and gives up on whatever is faulty or
// written in an unusual way: the snapshot is then decoded as a whole, which names every fault.

// sumJob reads a job in one pass.
//
//nolint:cyclop // One case for each field that is looked at.
func (d *Decoder) sumJob(data []byte) bool {
	if !d.c.b.OpenJob() {
		return false
	}
	var spec model.JobSpec
	var uid, name, namespace, queue, condition, owner []byte
	grouped := false
	phase := apportionv1.JobPhase(0)
	d.namespace = nil
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return false
		}
		i = to
		// A text that is given twice is unusual: each would have to be UTF-8.
		ok := true
		switch tag {
		case tagJobUID:
			uid, ok = data[from:to], uid == nil && d.c.isText(data[from:to])
		case tagJobName:
			name, ok = data[from:to], name == nil && d.c.isText(data[from:to])
		case tagJobNamespace:
			// It comes before the groups, whose tasks name what the namespace has.
			namespace, ok = data[from:to], namespace == nil && !grouped && d.c.isText(data[from:to])
			d.namespace = namespace
		case tagJobQueue:
			queue, ok = data[from:to], queue == nil && d.c.isText(data[from:to])
		case tagJobPhase:
			phase = apportionv1.JobPhase(int32(value))
		case tagJobMinResources:
			ok = spec.MinResources == nil && d.total.fill(amountFields, data[from:to])
			spec.MinResources = d.c.one.of(&d.total.m)
		case tagJobGroup:
			grouped = true
			ok = d.sumGroup(data[from:to])
		case tagJobDetail:
			ok = spec.Detail == nil
			if ok {
				spec.Detail, ok = plainJobDetail(data[from:to])
			}
		case tagJobCondition:
			condition, ok = data[from:to], condition == nil && d.c.isText(data[from:to])
		case tagJobKueue:
			ok = false // Only a policy that reads single jobs needs it.
		case tagJobOwner:
			owner, ok = data[from:to], owner == nil && d.c.isText(data[from:to])
		default:
			jobNumber(&spec, tag, value)
			ok = jobShape.Has(tag)
		}
		if !ok {
			return false
		}
	}
	of := d.c.b.QueueID(lent(queue))
	var known bool
	if spec.Phase, known = PhaseOf(phase); !known || of == model.None {
		return false
	}
	spec.UID, spec.Name, spec.Namespace, spec.Condition = lent(uid), lent(name), lent(namespace), lent(condition)
	spec.Owner = lent(owner)
	d.c.b.CloseJob(&spec, of)
	return true
}

// jobNumber sets a number of a job that may be anything.
func jobNumber(spec *model.JobSpec, tag uint32, value uint64) {
	switch tag {
	case tagJobPriority:
		spec.Priority = int32(value)
	case tagJobMinAvailable:
		spec.MinAvailable = uint32(value)
	case tagJobCreateTime:
		spec.CreateTime = int64(value)
	case tagJobExpectedEnd:
		spec.ExpectedEnd = int64(value)
	case tagJobEndIsDeadline:
		spec.EndIsDeadline = value != 0
	case tagJobRuntime:
		spec.ExpectedRuntime = int64(value)
	}
}

// sumGroup reads a group, whose own fields are as many as its tasks: read into a slot they would make the whole call a twentieth slower.
func (d *Decoder) sumGroup(data []byte) bool {
	if !d.c.b.OpenGroup() {
		return false
	}
	var spec model.GroupSpec
	var role, set []byte
	request, begun := int32(0), false
	unjudged := d.unjudged[:0]
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return false
		}
		ok := true
		switch tag {
		case tagGroupTask:
			begun = true
			to = d.sumRun(data, from, to, request)
			ok = to >= 0
		case tagGroupRole:
			role, ok = data[from:to], role == nil && d.c.isText(data[from:to])
		case tagGroupRequest:
			// Tasks are booked as they come: their request comes before them.
			request = d.requestOf(data[from:to])
			ok, begun = !begun && request >= 0, true
		case tagGroupMinAvailable:
			spec.MinAvailable, spec.HasMin = uint32(value), true
		case tagGroupCount:
			begun = true
			ok = d.sumCount(data[from:to], request)
		case tagGroupNodeSet:
			set, ok = data[from:to], set == nil && d.c.isText(data[from:to])
		case tagGroupUnjudged | field.Varint, tagGroupUnjudged | field.Delimited:
			unjudged, ok = Numbers(unjudged, tag, value, data[from:to])
		case tagGroupPodClass:
			spec.PodClass = uint32(value)
		case tagGroupUnstated:
			spec.Unstated, ok = plainUnstated(data[from:to])
		default:
			ok = groupShape.Has(tag)
		}
		if !ok {
			return false
		}
		i = to
	}
	ok := true
	spec.Role, spec.NodeSet = lent(role), lent(set)
	if d.unjudged = unjudged; len(unjudged) > 0 {
		spec.Unjudged = constraints(unjudged, func(int, string, ...any) { ok = false })
	}
	d.c.b.CloseGroup(&spec, request)
	return ok
}

// sumRun counts the task between from and to, and the short ones that follow it at once, and returns where they end, or -1. request is that
// of their group.
func (d *Decoder) sumRun(b []byte, from, to int, request int32) (end int) {
	for {
		if d.stopped() || !d.countTask(b[from:to], request) {
			return -1
		}
		if from = to + 2; from > len(b) || uint32(b[to]) != tagGroupTask || b[to+1] >= 0x80 || int(b[to+1]) > len(b)-from {
			return to
		}
		to = from + int(b[to+1])
	}
}

func (d *Decoder) sumCount(data []byte, request int32) bool {
	if d.stopped() || !d.count.fill(countFields, data) {
		return false
	}
	m := &d.count.m
	status, known := StatusOf(m.Status)
	gate, gated := GateOf(m.Gate)
	if known && gated {
		d.c.b.CountEqual(status, gate, m.Count, request)
	}
	return known && gated
}

// requestOf returns the position in the model of an encoded request, or -1 if it is malformed.
func (d *Decoder) requestOf(data []byte) int32 {
	at := d.requests.at(data)
	if d.requests.is(at, data) {
		return at.id
	}
	if !d.request.fill(amountFields, data) {
		return -1
	}
	// c.one belongs to the job, which is closed later.
	id := d.c.b.RequestID(d.c.two.of(&d.request.m))
	d.requests.keep(at, data, id)
	return id
}

// sumDetail returns the gate of a task and its request, which is its group's if it has none of its own; -1: the task is faulty.
func (d *Decoder) sumDetail(data []byte, request int32) (model.Gate, int32) {
	const faulty = -1
	gate, own := apportionv1.TaskGate(0), false
	unjudged := d.taskUnjudged[:0]
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return 0, faulty
		}
		i = to
		ok := true
		switch tag {
		case tagDetailGate:
			gate = apportionv1.TaskGate(int32(value))
		case tagDetailPriorityClass, tagDetailCondition, tagDetailNominated, tagDetailZone:
			ok = d.c.isText(data[from:to])
		case tagDetailRequest:
			request = d.requestOf(data[from:to])
			ok, own = !own && request >= 0, true
		case tagDetailNodeSet:
			ok = d.c.isText(data[from:to]) && (from == to || d.c.b.HasNodeSet(lent(data[from:to])))
		case tagDetailUnjudged | field.Varint, tagDetailUnjudged | field.Delimited:
			unjudged, ok = Numbers(unjudged, tag, value, data[from:to])
		case tagDetailPodClass:
			ok = d.c.b.HasPodClass(uint32(value))
		case tagDetailBudgets:
			ok = d.isBudget(data[from:to])
		case tagDetailUnstated:
			_, ok = plainUnstated(data[from:to])
		default:
			ok = detailShape.Has(tag)
		}
		if !ok {
			return 0, faulty
		}
	}
	known, ok := GateOf(gate)
	if d.taskUnjudged = unjudged; len(unjudged) > 0 {
		constraints(unjudged, func(int, string, ...any) { ok = false })
	}
	if !ok {
		return 0, faulty
	}
	return known, request
}

// memo remembers the positions of requests in the model by the bytes that they were found by: jobs name few different ones. A few bytes
// that lie together are read faster than what the model has of each.
type memo struct {
	base  []byte
	known [512]known
}

// known is the place where bytes were kept, and their position.
type known struct{ from, to, id int32 }

func (m *memo) reset() {
	m.base = m.base[:0]
	// In place: a value to assign would make the frame of the caller so large that the stack has to grow for it.
	clear(m.known[:])
}

// at returns where bytes are remembered.
func (m *memo) at(b []byte) *known {
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	for _, c := range b {
		h = h<<8 ^ uint64(c)
	}
	return &m.known[h*0x9e3779b97f4a7c15>>55]
}

// is reports whether the memo holds these bytes.
func (m *memo) is(at *known, b []byte) bool {
	return at.to > at.from && bytes.Equal(m.base[at.from:at.to], b)
}

func (m *memo) keep(at *known, b []byte, id int32) {
	if from := len(m.base); from+len(b) <= math.MaxInt32 {
		m.base = append(m.base, b...)
		*at = known{int32(from), int32(from + len(b)), id}
	}
}
