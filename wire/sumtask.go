package wire

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plainTask counts a task that is written in the usual way: texts short and in ASCII, no detail. False: it is not, and nothing was done.
// Tasks are most of a snapshot. Read without calls between their fields they take two thirds of the time.
func (d *Decoder) plainTask(b []byte) bool {
	uid, status, node := model.NoUID, uint64(0), model.NodeID(model.None)
	i := 0
	for i+1 < len(b) {
		tag, x := b[i], uint64(b[i+1])
		i += 2
		if tag&7 == delimited {
			if x >= 0x80 || x > uint64(len(b)-i) {
				return false
			}
			text, ascii := b[i:i+int(x)], false
			i += int(x)
			switch tag {
			case taskUIDTag:
				uid, ascii = model.HashUID(text)
			case taskNameTag:
				ascii = isASCII(text)
			}
			if !ascii {
				return false
			}
			continue
		}
		if x >= 0x80 {
			// Positions of nodes take two bytes.
			if i < len(b) && b[i] < 0x80 {
				x, i = x&0x7f|uint64(b[i])<<7, i+1
			} else if x, i = numberAt(b, i-1); i < 0 {
				return false
			}
		}
		switch tag {
		case taskStatusTag:
			status = x
		case taskNodeTag:
			node = model.NodeID(min(uint32(x), math.MaxInt32))
		case taskIndexTag:
			if int32(uint32(x)) < 0 {
				return false
			}
		case taskPriorityTag, taskCreateTimeTag:
		default:
			return false
		}
	}
	known, ok := statusOf(apportionv1.TaskStatus(int32(status)))
	if !ok || i != len(b) {
		return false
	}
	d.c.b.CountTask(uid, known, node)
	return true
}

// sumRun counts the task between from and to, and those that follow it at once in the usual way, and returns where they end, or -1. request
// is that of their group.
func (d *Decoder) sumRun(b []byte, from, to int, request int32) (end int) {
	for {
		if task := b[from:to]; d.stopped() || !d.plainTask(task) && !d.sumTask(task, request) {
			return -1
		}
		if from = to + 2; from > len(b) || b[to] != groupTaskTag || b[to+1] >= 0x80 || int(b[to+1]) > len(b)-from {
			return to
		}
		to = from + int(b[to+1])
	}
}

// sumTask does what plainTask does for every task; request is that of its group.
func (d *Decoder) sumTask(b []byte, request int32) bool {
	var uid, detail []byte
	status, node := uint64(0), model.NodeID(model.None)
	for i := 0; i < len(b); {
		tag, value, at := shortNumberAt(b, i)
		if at < 0 {
			return false
		}
		i = at
		switch tag {
		case taskUIDTag, taskNameTag:
			if value > uint64(len(b)-at) {
				return false
			}
			i += int(value)
			text := b[at:i]
			if !d.c.isText(text) {
				return false
			}
			if tag == taskUIDTag {
				uid = text
			}
		case taskStatusTag:
			status = value
		case taskNodeTag:
			node = model.NodeID(min(uint32(value), math.MaxInt32))
		case taskIndexTag:
			if int32(uint32(value)) < 0 {
				return false
			}
		case taskPriorityTag, taskCreateTimeTag:
		case taskDetailTag:
			if detail != nil || value > uint64(len(b)-at) {
				return false
			}
			i += int(value)
			detail = b[at:i]
		default:
			return false
		}
	}
	hash, _ := model.HashUID(uid)
	known, ok := statusOf(apportionv1.TaskStatus(int32(status)))
	switch {
	case !ok:
		return false
	case detail == nil:
		d.c.b.CountTask(hash, known, node)
		return true
	}
	gate, request := d.sumDetail(detail, request)
	if request < 0 {
		return false
	}
	d.c.b.CountDetailed(hash, known, gate, node, request)
	return true
}

// sumDetail returns the gate of a task and its request, which is that of its group if it has none of its own; -1: something is wrong.
func (d *Decoder) sumDetail(b []byte, request int32) (model.Gate, int32) {
	const faulty = -1
	gate, own := uint64(0), false
	d.task.detail.m.Unjudged = d.task.detail.m.Unjudged[:0]
	for i := 0; i < len(b); {
		tag, value, from, to := fieldAt(b, i)
		if to < 0 {
			return 0, faulty
		}
		i = to
		ok := true
		switch tag {
		case detailGateTag:
			gate = value
		case detailPriorityClassTag, detailConditionTag:
			ok = d.c.isText(b[from:to])
		case detailRequestTag:
			ok, own = !own, true
			if request = d.requestID(b[from:to]); request < 0 {
				return 0, faulty
			}
		case detailNodeSetTag:
			ok = d.c.isText(b[from:to]) && (from == to || d.c.b.HasNodeSet(lent(b[from:to])))
		case detailUnjudgedTag, detailUnjudgedTag - delimited:
			ok = d.unjudged(&d.task.detail.m.Unjudged, tag, value, b[from:to])
		}
		if !ok {
			return 0, faulty
		}
	}
	var set model.Constraints
	known, ok := GateOf(apportionv1.TaskGate(int32(gate)))
	if !ok || !d.constraints(&set, d.task.detail.m.Unjudged) {
		return 0, faulty
	}
	return known, request
}
