package decode

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// Tasks are most of a snapshot, and almost all of them are written alike: tags of one byte, nothing unknown. These are read in one loop
// almost without calls between their fields, whether a model keeps the tasks or only their sums. A slot reads every other one.

// task is a task as it is written. It belongs on the stack: to store a pointer elsewhere while the garbage collector works costs as much
// as reading a task.
type task struct {
	uid, name, detail []byte
	status            apportionv1.TaskStatus
	node              model.NodeID
	priority          int32
	index             int32
	createTime        int64
}

// read reads a task that is written in the usual way; false: the task is not read, and the results have no meaning. Each text is there
// once: whether it is UTF-8 is left to the caller.
func (t *task) read(b []byte) bool {
	t.priority, t.index, t.node = 1, -1, model.None
	i := 0
	for i+1 < len(b) {
		tag, x := uint32(b[i]), uint64(b[i+1])
		i += 2
		if x >= 0x80 {
			// Positions of nodes take two bytes.
			if i < len(b) && b[i] < 0x80 {
				x, i = x&0x7f|uint64(b[i])<<7, i+1
			} else if x, i = field.NumberAt(b, i-1); i < 0 {
				return false
			}
		}
		if tag&7 == field.Delimited {
			if x > uint64(len(b)-i) {
				return false
			}
			text := b[i : i+int(x)]
			i += int(x)
			if !t.setText(tag, text) {
				return false
			}
			continue
		}
		switch tag {
		case tagTaskStatus:
			t.status = apportionv1.TaskStatus(int32(x))
		case tagTaskNode:
			t.node = model.NodeID(min(uint32(x), math.MaxInt32))
		case tagTaskPriority:
			t.priority = int32(x)
		case tagTaskCreateTime:
			t.createTime = int64(x)
		case tagTaskIndex:
			if t.index = int32(uint32(x)); t.index < 0 {
				return false
			}
		default:
			return false
		}
	}
	return i == len(b)
}

// setText sets a field of bytes, once.
func (t *task) setText(tag uint32, text []byte) bool {
	switch {
	case tag == tagTaskUID && t.uid == nil:
		t.uid = text
	case tag == tagTaskName && t.name == nil:
		t.name = text
	case tag == tagTaskDetail && t.detail == nil:
		t.detail = text
	default:
		return false
	}
	return true
}

// oneTask keeps a task.
func (d *Decoder) oneTask(at position, data []byte) bool {
	var t task
	if !t.read(data) || t.detail != nil || !d.c.isText(t.uid) || !d.c.isText(t.name) {
		if !d.task.fill(taskFields, data) {
			return false
		}
		d.c.task(at, &d.task.m)
		return true
	}
	status, known := StatusOf(t.status)
	if !known {
		d.c.b.Fault(at.path("tasks", "status"), "no status %d", t.status)
	}
	d.c.b.Task(&model.TaskSpec{
		UID: lent(t.uid), Name: lent(t.name), Status: status, Node: t.node, Priority: t.priority, Index: t.index,
		CreateTime: t.createTime, Preemptable: true,
	})
	return true
}

// plainTask reads a task that has a uid, a status, a node and an index at most, written in this order; false: it is not read. Nine of ten
// tasks are such, and this takes a third of the time of read, which reads them all in the same way.
func plainTask(b []byte) (uid []byte, status apportionv1.TaskStatus, node model.NodeID, ok bool) {
	node = model.None
	if len(b) > 1 && uint32(b[0]) == tagTaskUID {
		n := int(b[1])
		if b = b[2:]; n >= 0x80 || n > len(b) {
			return nil, 0, 0, false
		}
		uid, b = b[:n], b[n:]
	}
	if len(b) > 1 && uint32(b[0]) == tagTaskStatus && b[1] < 0x80 {
		status, b = apportionv1.TaskStatus(b[1]), b[2:]
	}
	if len(b) > 1 && uint32(b[0]) == tagTaskNode {
		switch {
		case b[1] < 0x80:
			node, b = model.NodeID(b[1]), b[2:]
		case len(b) > 2 && b[2] < 0x80:
			node, b = model.NodeID(b[1]&0x7f)|model.NodeID(b[2])<<7, b[3:]
		}
	}
	if len(b) > 1 && uint32(b[0]) == tagTaskIndex && b[1] < 0x80 {
		b = b[2:]
	}
	return uid, status, node, len(b) == 0
}

// countTask counts a task whose group has a request. False: it is faulty, or written in an unusual way.
func (d *Decoder) countTask(data []byte, request int32) bool {
	if text, given, node, ok := plainTask(data); ok {
		uid, ascii := model.HashUID(text)
		if status, known := StatusOf(given); known && ascii {
			d.c.b.CountTask(uid, status, node)
			return true
		}
	}
	var t task
	if !t.read(data) || !d.c.isText(t.uid) || !d.c.isText(t.name) {
		return false
	}
	uid, _ := model.HashUID(t.uid)
	status, known := StatusOf(t.status)
	if !known {
		return false
	}
	if t.detail == nil {
		d.c.b.CountTask(uid, status, t.node)
		return true
	}
	gate, request := d.sumDetail(t.detail, request)
	if request < 0 {
		return false
	}
	d.c.b.CountDetailed(uid, status, gate, t.node, request)
	return true
}
