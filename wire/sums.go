package wire

import (
	"encoding/binary"
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// A question about what tasks add up to needs no tasks. What is here reads jobs in one pass over their bytes, checks all that the decoder
// checks, and keeps accounts in place of tasks. It gives up on whatever is faulty or written in an unusual way: the snapshot is then
// decoded as a whole, which names every fault.
//
// Places are kept as positions, not as slices: a pointer that is stored while the garbage collector works costs as much as reading a task.

// The tags of fields as protobuf libraries write them.
const (
	snapshotJobTag = 6<<3 | delimited

	nodeNameTag        = 1<<3 | delimited
	nodeAllocatableTag = 2<<3 | delimited
	nodeUsedTag        = 3<<3 | delimited
	nodeGroupTag       = 4<<3 | delimited

	jobUIDTag          = 1<<3 | delimited
	jobNameTag         = 2<<3 | delimited
	jobNamespaceTag    = 3<<3 | delimited
	jobQueueTag        = 4<<3 | delimited
	jobPriorityTag     = 5<<3 | varint
	jobPhaseTag        = 6<<3 | varint
	jobMinAvailableTag = 7<<3 | varint
	jobMinResourcesTag = 8<<3 | delimited
	jobCreateTimeTag   = 9<<3 | varint
	jobGroupTag        = 10<<3 | delimited
	jobConditionTag    = 11<<3 | delimited
	jobExpectedEndTag  = 12<<3 | varint
	jobDeadlineTag     = 13<<3 | varint

	groupRoleTag         = 1<<3 | delimited
	groupRequestTag      = 2<<3 | delimited
	groupMinAvailableTag = 3<<3 | varint
	groupCountTag        = 5<<3 | delimited
	groupNodeSetTag      = 6<<3 | delimited
	groupUnjudgedTag     = 7<<3 | delimited

	taskDetailTag = 8<<3 | delimited

	detailGateTag          = 2<<3 | varint
	detailPriorityClassTag = 3<<3 | delimited
	detailRequestTag       = 6<<3 | delimited
	detailNodeSetTag       = 7<<3 | delimited
	detailUnjudgedTag      = 8<<3 | delimited
	detailConditionTag     = 9<<3 | delimited

	resourceDimensionTag = 1<<3 | delimited
	resourceAmountTag    = 2<<3 | delimited
)

// sumJobs reads the jobs of a snapshot, or of a part of it.
func (d *Decoder) sumJobs(data []byte) bool {
	for i := 0; i < len(data); {
		tag, _, from, to := fieldAt(data, i)
		if to < 0 || tag == snapshotJobTag && !d.sumJob(data[from:to]) {
			return false
		}
		i = to
	}
	return true
}

func (d *Decoder) sumJob(b []byte) bool {
	if d.stopped() || !d.c.b.OpenJob() {
		return false
	}
	var spec model.JobSpec
	var uid, name, namespace, queue, condition, minimum []byte
	phase, minima := uint64(0), 0
	for i := 0; i < len(b); {
		tag, value, from, to := fieldAt(b, i)
		if to < 0 {
			return false
		}
		i = to
		switch tag {
		case jobUIDTag:
			uid = b[from:to]
		case jobNameTag:
			name = b[from:to]
		case jobNamespaceTag:
			namespace = b[from:to]
		case jobQueueTag:
			queue = b[from:to]
		case jobPhaseTag:
			phase = value
		case jobMinResourcesTag:
			minimum, minima = b[from:to], minima+1
		case jobGroupTag:
			if !d.sumGroup(b[from:to]) {
				return false
			}
		case jobConditionTag:
			condition = b[from:to]
		default:
			jobNumber(&spec, tag, value)
		}
	}
	if !d.c.areTexts(uid, name, namespace, queue, condition) {
		return false
	}
	var known bool
	if spec.Phase, known = PhaseOf(apportionv1.JobPhase(int32(phase))); !known || !d.minimum(&spec, minimum, minima) {
		return false
	}
	spec.UID, spec.Name, spec.Namespace, spec.Condition = lent(uid), lent(name), lent(namespace), lent(condition)
	of := d.queueID(queue)
	if of == model.None {
		return false
	}
	d.c.b.CloseJob(&spec, of)
	return true
}

// minimum sets what a job needs at least, which may occur once; false: it is faulty.
func (d *Decoder) minimum(spec *model.JobSpec, data []byte, occurs int) bool {
	if occurs == 0 {
		return true
	}
	spec.MinResources = d.amountsOf(data)
	return occurs == 1 && spec.MinResources != nil
}

// jobNumber sets a number of a job that may be anything.
func jobNumber(spec *model.JobSpec, tag byte, value uint64) {
	switch tag {
	case jobPriorityTag:
		spec.Priority = int32(value)
	case jobMinAvailableTag:
		spec.MinAvailable = uint32(value)
	case jobCreateTimeTag:
		spec.CreateTime = int64(value)
	case jobExpectedEndTag:
		spec.ExpectedEnd = int64(value)
	case jobDeadlineTag:
		spec.EndIsDeadline = value != 0
	}
}

func (d *Decoder) sumGroup(b []byte) bool {
	if !d.c.b.OpenGroup() {
		return false
	}
	var spec model.GroupSpec
	var role, set []byte
	request, begun := int32(0), false
	d.group.m.Unjudged = d.group.m.Unjudged[:0]
	for i := 0; i < len(b); {
		tag, value, from, to := fieldAt(b, i)
		if to < 0 {
			return false
		}
		i = to
		switch tag {
		case groupTaskTag:
			begun = true
			if i = d.sumRun(b, from, to, request); i < 0 {
				return false
			}
		case groupRoleTag:
			role = b[from:to]
		case groupRequestTag:
			// Tasks are booked as they come: their request comes before them.
			if request = d.requestID(b[from:to]); begun || request < 0 {
				return false
			}
			begun = true
		case groupMinAvailableTag:
			spec.MinAvailable, spec.HasMin = uint32(value), true
		case groupCountTag:
			begun = true
			if !d.sumCount(b[from:to], request) {
				return false
			}
		case groupNodeSetTag:
			set = b[from:to]
		case groupUnjudgedTag, groupUnjudgedTag - delimited:
			if !d.unjudged(&d.group.m.Unjudged, tag, value, b[from:to]) {
				return false
			}
		}
	}
	if !d.c.areTexts(role, set) || !d.constraints(&spec.Unjudged, d.group.m.Unjudged) {
		return false
	}
	spec.Role, spec.NodeSet = lent(role), lent(set)
	d.c.b.CloseGroup(&spec, request)
	return true
}

// unjudged appends constraints, packed or not, to a list.
func (d *Decoder) unjudged(to *[]apportionv1.PlacementConstraint, tag byte, value uint64, data []byte) bool {
	s := scanner{}
	*to = s.constraints(&field{kind: tag & 7, value: value, data: data}, *to)
	return !s.bad
}

// constraints sets the set of a list; false: it is faulty.
func (d *Decoder) constraints(set *model.Constraints, list []apportionv1.PlacementConstraint) (ok bool) {
	if len(list) == 0 {
		return true
	}
	ok = true
	*set = constraints(list, func(int, string, ...any) { ok = false })
	return ok
}

func (d *Decoder) sumCount(b []byte, request int32) bool {
	if d.stopped() || !fillCount(&d.count, b) {
		return false
	}
	status, known := statusOf(d.count.GetStatus())
	gate, gated := GateOf(d.count.GetGate())
	if known && gated {
		d.c.b.CountEqual(status, gate, d.count.GetCount(), request)
	}
	return known && gated
}

// amountsOf returns an encoded resource until the next one is asked for, or nil.
func (d *Decoder) amountsOf(b []byte) *model.Amounts {
	if !d.total.isPlain(b) {
		d.total.reset()
		if !d.total.fill(b) {
			return nil
		}
	}
	return d.c.one.of(&d.total.m)
}

// isPlain reads a resource that is written in the usual way; false: it is not, and nothing is known of it.
func (r *resourceSlot) isPlain(b []byte) bool {
	if len(b) < 2 || b[0] != resourceDimensionTag || int(b[1]) > len(b)-2 {
		return false
	}
	n := int(b[1])
	dimensions, amounts := b[2:2+n], b[2+n:]
	if len(amounts) != 2+8*n || amounts[0] != resourceAmountTag || int(amounts[1]) != 8*n || 8*n >= 0x80 {
		return false
	}
	r.seen = true
	r.m.Dimension, r.m.Amount = r.m.Dimension[:0], r.m.Amount[:0]
	for i, d := range dimensions {
		if d >= 0x80 {
			return false
		}
		r.m.Dimension = append(r.m.Dimension, uint32(d))
		r.m.Amount = append(r.m.Amount, math.Float64frombits(binary.LittleEndian.Uint64(amounts[2+8*i:])))
	}
	return true
}
