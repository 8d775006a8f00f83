package wire

import (
	"math"
	"unicode/utf8"
	"unsafe"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Tasks are most of a snapshot, and almost all of them are written alike: tags of one byte, texts below 128 bytes, nothing unknown. What is
// here reads those in one tight loop and gives everything else back to the scanner, which reads all that protobuf allows.

// The tags of a task's fields as protobuf libraries write them.
const (
	taskUIDTag        = 1<<3 | delimited
	taskStatusTag     = 2<<3 | varint
	taskNodeTag       = 3<<3 | varint
	taskPriorityTag   = 4<<3 | varint
	taskNameTag       = 5<<3 | delimited
	taskCreateTimeTag = 6<<3 | varint
	taskIndexTag      = 7<<3 | varint

	groupTaskTag = 4<<3 | delimited
)

// fast reads an encoded task that is written in the usual way. False: it is not, and the slot has to begin again.
func (t *taskSlot) fast(b []byte) bool {
	for i := 0; i+1 < len(b); {
		tag, x := b[i], b[i+1]
		if tag == taskUIDTag || tag == taskNameTag {
			end := i + 2 + int(x)
			if x >= 0x80 || end > len(b) || !utf8.Valid(b[i+2:end]) {
				return false
			}
			text := unsafe.String(unsafe.SliceData(b[i+2:end]), int(x)) //nolint:gosec // G103: lent as scanner.text lends.
			if tag == taskUIDTag {
				t.spec.UID = text
			} else {
				t.spec.Name = text
			}
			if i = end; i == len(b) {
				return true
			}
			continue
		}
		v := uint64(x)
		i += 2
		if x >= 0x80 {
			v &= 0x7f
			for shift := uint(7); ; shift += 7 {
				if i == len(b) || shift > 56 {
					return false
				}
				c := b[i]
				i++
				v |= uint64(c&0x7f) << shift
				if c < 0x80 {
					break
				}
			}
		}
		if !t.fastNumber(tag, v) {
			return false
		}
		if i == len(b) {
			return true
		}
	}
	return len(b) == 0
}

func (t *taskSlot) fastNumber(tag byte, v uint64) bool {
	switch tag {
	case taskStatusTag:
		t.status = apportionv1.TaskStatus(int32(v))
	case taskNodeTag:
		t.spec.Node = model.NodeID(min(uint32(v), math.MaxInt32))
	case taskPriorityTag:
		t.spec.Priority = int32(v)
	case taskCreateTimeTag:
		t.spec.CreateTime = int64(v)
	case taskIndexTag:
		t.spec.Index = int32(v)
		return v <= math.MaxInt32
	default:
		return false
	}
	return true
}

// afterTasks returns where the run of tasks ends that begins at from, and how many there are; tasks that are written in an unusual way end
// it.
func afterTasks(b []byte, from int) (end, tasks int) {
	i := from
	for i+1 < len(b) && b[i] == groupTaskTag && b[i+1] < 0x80 {
		next := i + 2 + int(b[i+1])
		if next > len(b) {
			break
		}
		i = next
		tasks++
	}
	return i, tasks
}

// task returns the next task of a group that has one more.
func (s *scanner) task() []byte {
	if len(s.rest) > 1 && s.rest[0] == groupTaskTag && s.rest[1] < 0x80 {
		if end := 2 + int(s.rest[1]); end <= len(s.rest) {
			data := s.rest[2:end]
			s.rest = s.rest[end:]
			return data
		}
	}
	for f := (field{}); s.next(&f); {
		if f.number == 4 && f.kind == delimited {
			return f.data
		}
	}
	return nil
}
