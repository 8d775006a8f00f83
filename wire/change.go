package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// changeDomain keeps the digests of results apart from those of whole snapshots.
const changeDomain = "apportion.v1.Change\x00"

// ChangePrefix returns the bytes that precede those of a Change in the digest of its result.
func ChangePrefix(base string) []byte { return []byte(changeDomain + base + "\x00") }

// ChangeDigest returns the digest of the result of an encoded Change, given the digest of its base.
func ChangeDigest(base string, change []byte) string {
	h := sha256.New()
	h.Write(ChangePrefix(base))
	h.Write(change)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// The fields of a Change beside those that it shares with Snapshot, and those of a TaskUpdate.
const (
	changeRemoveNodes  = 9
	changeRemoveQueues = 10
	changeRemoveJobs   = 11
	changeTasks        = 12
	changeClearTotal   = 13
	changeRemoveSets   = 14

	updateUID    = 1
	updateNumber = 2
	updateStatus = 3
	updateNode   = 4
	updateNoNode = 5
)

// CompileChange returns the result of applying an encoded Change to a model, which is not modified. The result stays valid when the decoder
// is used again. It fails if the result exceeds the limits of g, or if the bytes are not a Change.
func (d *Decoder) CompileChange(base *model.Model, data []byte, g Guard) (*model.Model, error) {
	if g.Size == nil {
		size := Measure(data)
		g.Size = &size
	}
	if err := g.Size.Within(g.Limits); err != nil {
		return nil, err
	}
	return d.compileChange(base, data, g, partsOfChange(g.Size))
}

// compileChange reads the jobs in n parts.
func (d *Decoder) compileChange(base *model.Model, data []byte, g Guard, n int) (*model.Model, error) {
	own := d.c.b
	d.c.limits, d.c.longest, d.stop, d.asked = g.Limits, 0, g.Stop, 0
	defer func() {
		d.c.b, d.stop = own, nil
		for _, p := range d.parts[:min(n-1, len(d.parts))] {
			p.c.b = model.Loader{}
		}
	}()
	head, ok := d.changeHead(data, g.Size)
	if !ok {
		return nil, malformed("change")
	}
	b := base.Change(head.dimensions)
	first := g.Size.extents(n)[0]
	b.Loader().Expect(first.Jobs, first.Groups, first.Tasks, share(g.Size.TaskBytes, n))
	if err := d.feed(b, &head, n); err != nil {
		if n > 1 && !errors.Is(err, policy.ErrStopped) {
			return d.compileChange(base, data, g, 1)
		}
		return nil, err
	}
	if err := d.c.exceeded(); err != nil {
		return nil, err
	}
	m, err := d.build(nil, n)
	if err != nil && n > 1 {
		return d.compileChange(base, data, g, 1)
	}
	if err != nil {
		return nil, invalidChange(err)
	}
	if err := sizeOfModel(m).Within(g.Limits); err != nil {
		return nil, err
	}
	if g.Size.Queues == 0 {
		return m, nil
	}
	return m, Depth(m, g.Limits.QueueDepth)
}

func invalidChange(err error) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	return Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, prefixed(violations, "change."))
}

// sizeOfModel counts what a model holds, positions that hold nothing included: they take room as well.
func sizeOfModel(m *model.Model) Size {
	return Size{
		Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), NodeSets: int64(len(m.NodeSets)), Queues: int64(len(m.Queues)),
		Jobs: int64(m.Jobs.Len()), Groups: int64(m.Groups.Len()), Tasks: int64(m.Tasks.Len()),
	}
}

// changeHead contains the fields of a change that are needed for reading the others.
type changeHead struct {
	data []byte
	size *Size
	// rest contains the bytes before and after the jobs.
	rest       [2][]byte
	dimensions []string
	asOf       int64
	hasTime    bool
	clearTotal bool
}

// changeHead reads the time, the names of the dimensions, and the total, which stays in the decoder.
func (d *Decoder) changeHead(data []byte, size *Size) (head changeHead, ok bool) {
	head.data, head.size, head.rest = data, size, size.around(data)
	d.total.reset()
	for _, piece := range head.rest {
		if !d.changeHeadIn(piece, &head) {
			return head, false
		}
	}
	return head, true
}

func (d *Decoder) changeHeadIn(piece []byte, head *changeHead) bool {
	var f field
	s := scanner{rest: piece}
	for s.next(&f) {
		switch {
		case f.number == 1 && f.kind == varint:
			head.asOf, head.hasTime = int64(f.value), true
		case f.number == 3 && f.kind == delimited:
			name := strings.Clone(s.text(&f))
			d.c.text(name)
			head.dimensions = append(head.dimensions, name)
		case f.number == 7 && f.kind == delimited:
			s.check(d.total.fill(f.data))
		case f.number == changeClearTotal && f.kind == varint:
			head.clearTotal = f.value != 0
		}
	}
	return !s.bad
}

// feed hands the change to its builder, with the jobs in n parts.
func (d *Decoder) feed(b *model.ChangeBuilder, head *changeHead, n int) error {
	d.c.b = b.Loader()
	if head.hasTime {
		b.AsOf(head.asOf)
	}
	total := d.c.total.of(d.total.message())
	if head.clearTotal {
		if total != nil {
			d.c.b.Fault("clear_total", "a total is given too")
		}
		b.SumTotal()
	}
	b.Total(total)
	rest := head.rest
	ok := d.names(rest, changeRemoveNodes, b.RemoveNode) && d.names(rest, changeRemoveQueues, b.RemoveQueue) &&
		d.names(rest, changeRemoveSets, b.RemoveNodeSet) && d.nodes(rest) && d.queues(rest) && d.nodeSets(rest) &&
		d.names(rest, changeRemoveJobs, b.RemoveJob) && d.jobs(head.data, head.size, n, false) && d.updates(b, rest)
	switch {
	case ok:
		return nil
	case d.stop != nil && d.stop():
		return policy.ErrStopped
	}
	return malformed("change")
}

// names hands every text of a field to remove.
func (d *Decoder) names(pieces [2][]byte, number int32, remove func(string)) bool {
	var f field
	for _, piece := range pieces {
		for s := (scanner{rest: piece}); s.next(&f); {
			if f.number != number || f.kind != delimited {
				continue
			}
			name := s.text(&f)
			if s.bad || d.stopped() {
				return false
			}
			d.c.text(name)
			remove(strings.Clone(name))
		}
	}
	return true
}

// updates reads the changes of single tasks.
func (d *Decoder) updates(b *model.ChangeBuilder, pieces [2][]byte) bool {
	var f field
	n := 0
	for _, piece := range pieces {
		for s := (scanner{rest: piece}); s.next(&f); {
			if f.number != changeTasks || f.kind != delimited {
				continue
			}
			if d.stopped() || !d.update(b, n, f.data) {
				return false
			}
			n++
		}
	}
	return true
}

func (d *Decoder) update(b *model.ChangeBuilder, i int, data []byte) bool {
	var u model.TaskUpdate
	var f field
	var uid string
	number, by := uint64(0), 0
	status := apportionv1.TaskStatus(0)
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.number == updateUID && f.kind == delimited:
			uid, by = s.text(&f), updateUID
		case f.number == updateNumber && f.kind == varint:
			number, by = uint64(uint32(f.value)), updateNumber
		case f.number == updateStatus && f.kind == varint:
			status = apportionv1.TaskStatus(int32(f.value))
		case f.number == updateNode && f.kind == varint:
			u.Node, u.HasNode = model.NodeID(min(uint32(f.value), math.MaxInt32)), true
		case f.number == updateNoNode && f.kind == varint:
			u.Node, u.HasNode = model.None, f.value != 0
		}
	}
	if s.bad {
		return false
	}
	path := func(field string) string { return fmt.Sprintf("tasks[%d].%s", i, field) }
	u.HasStatus = status != apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED
	var known bool
	if u.Status, known = statusOf(status); !known {
		d.c.b.Fault(path("status"), "no status %d", status)
		return true
	}
	t := model.TaskID(min(number, math.MaxInt32))
	switch by {
	case updateUID:
		var found bool
		if t, found = b.TaskOf(uid); !found {
			d.c.b.Fault(path("uid"), "no task %s", strconv.Quote(cut(uid, maxText)))
			return true
		}
	case 0:
		d.c.b.Fault(path("uid"), "a uid or a number is needed")
		return true
	}
	b.UpdateTask(i, t, u)
	return true
}
