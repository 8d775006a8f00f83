package decode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
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
	return d.compileChange(base, data, g, cmp.Or(g.Parts, partsOfChange(g.Size)))
}

// compileChange reads the jobs in n parts.
func (d *Decoder) compileChange(base *model.Model, data []byte, g Guard, n int) (*model.Model, error) {
	own := d.c.b
	d.of, d.c.limits, d.c.longest, d.stop, d.asked = changeShape, g.Limits, 0, g.Stop, 0
	defer func() {
		d.c.b, d.stop = own, nil
		for _, p := range d.parts[:min(n-1, len(d.parts))] {
			p.c.b = model.Loader{}
		}
	}()
	head, ok := d.head(data, g.Size)
	if !ok {
		return nil, d.unread("change", data)
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

// ChangeReader has read the head of a Change of a state, which is not a stored snapshot.
type ChangeReader struct {
	decoder Decoder
	head    head
}

// ReadChange reads the head of an encoded Change whose result must be within limits; stop is asked during long work.
func ReadChange(data []byte, limits Limits, stop func() bool) (*ChangeReader, error) {
	r := &ChangeReader{decoder: Decoder{stop: stop, of: changeShape}}
	r.decoder.c.limits = limits
	size := Measure(data)
	head, ok := r.decoder.head(data, &size)
	if !ok {
		return nil, r.decoder.unread("change", data)
	}
	r.head = head
	return r, nil
}

// Dimensions are those that the change names.
func (r *ChangeReader) Dimensions() []string { return r.head.dimensions }

// Make makes the change.
func (r *ChangeReader) Make(b *model.ChangeBuilder) error {
	if err := r.decoder.feed(b, &r.head, 1); err != nil {
		return err
	}
	return r.decoder.c.exceeded()
}

func invalidChange(err error) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	return Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, Prefixed(violations, "change."))
}

// sizeOfModel counts what a model holds, positions that hold nothing included: they take room as well.
func sizeOfModel(m *model.Model) Size {
	return Size{
		Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), NodeSets: int64(len(m.NodeSets)), Queues: int64(len(m.Queues)),
		Jobs: int64(m.Jobs.Len()), Groups: int64(m.Groups.Len()), Tasks: int64(m.Tasks.Len()),
	}
}

// feed hands the change to its builder, with the jobs in n parts.
func (d *Decoder) feed(b *model.ChangeBuilder, head *head, n int) error {
	d.c.b = b.Loader()
	if head.hasTime {
		b.AsOf(head.asOf)
	}
	total := d.c.total.of(head.total)
	if head.clearTotal {
		if total != nil {
			d.c.b.Fault("clear_total", "a total is given too")
		}
		b.SumTotal()
	}
	b.Total(total)
	if head.clearMemory {
		if head.memory != nil {
			d.c.b.Fault("clear_memory", "a memory is given too")
		}
		b.Forget()
	}
	d.c.memory(head.memory)
	d.c.podRules(head.pods)
	rest := head.rest
	ok := d.names(rest, tagChangeRemoveNode, b.RemoveNode) && d.names(rest, tagChangeRemoveQueue, b.RemoveQueue) &&
		d.names(rest, tagChangeRemoveSet, b.RemoveNodeSet) && d.names(rest, tagChangeRemoveBudget, b.RemoveDisruptionBudget) &&
		d.names(rest, tagChangeRemoveQuota, b.RemoveQuota) && d.nodes(rest) && d.places(rest) && d.entries(rest) &&
		d.names(rest, tagChangeRemoveJob, b.RemoveJob) && d.jobs(head.data, head.size, n, false) &&
		d.each(rest, tagChangeTask, func(i int, data []byte) bool { return d.update(b, i, data) })
	switch {
	case ok:
		return nil
	case d.stop != nil && d.stop():
		return policy.ErrStopped
	}
	return d.unread("change", head.data)
}

// names hands every text of a field to remove.
func (d *Decoder) names(pieces [2][]byte, tag uint32, remove func(string)) bool {
	return d.each(pieces, tag, func(_ int, name []byte) bool {
		d.c.text(lent(name))
		ok := utf8.Valid(name)
		if ok {
			remove(string(name))
		}
		return ok
	})
}

// update reads the change of a task.
func (d *Decoder) update(b *model.ChangeBuilder, i int, data []byte) bool {
	var u model.TaskUpdate
	var uid []byte
	number, by := uint32(0), uint32(0)
	status := apportionv1.TaskStatus(0)
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		if to < 0 {
			return false
		}
		i = to
		switch tag {
		case tagUpdateUID:
			if uid, by = data[from:to], tag; !utf8.Valid(uid) {
				return false
			}
		case tagUpdateNumber:
			number, by = uint32(value), tag
		case tagUpdateStatus:
			status = apportionv1.TaskStatus(int32(value))
		case tagUpdateNode:
			u.Node, u.HasNode = model.NodeID(min(uint32(value), math.MaxInt32)), true
		case tagUpdateNoNode:
			u.Node, u.HasNode = model.None, value != 0
		default:
			if !updateShape.Has(tag) {
				return false
			}
		}
	}
	path := func(field string) string { return fmt.Sprintf("tasks[%d].%s", i, field) }
	u.HasStatus = status != apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED
	var known bool
	if u.Status, known = StatusOf(status); !known {
		d.c.b.Fault(path("status"), "no status %d", status)
		return true
	}
	t := model.TaskID(min(number, math.MaxInt32))
	switch by {
	case tagUpdateUID:
		var found bool
		if t, found = b.TaskOf(lent(uid)); !found {
			d.c.b.Fault(path("uid"), "no task %s", strconv.Quote(Cut(string(uid), MaxText)))
			return true
		}
	case 0:
		d.c.b.Fault(path("uid"), "a uid or a number is needed")
		return true
	}
	b.UpdateTask(i, t, u)
	return true
}

// ChangeMemory estimates, in advance, the memory for compiling an encoded change of a model and opening a session on the result.
func ChangeMemory(base *model.Model, data []byte, size *Size) int64 {
	const tablePage, largePage, page, pointer, indexBytes = 32, 64, 24, 8, 64
	bytes := size.Memory() + page*int64(len(base.QueueJobs)+base.Jobs.Len()/tablePage*2+(base.Tasks.Len()+base.Groups.Len())/largePage) +
		(size.Jobs+size.Updates)*(2*tablePage*pointer+BytesOf[model.Job](1)+BytesOf[model.Account](1)) +
		size.Updates*largePage*BytesOf[model.Task](1)
	if size.Nodes+size.Updates > 0 {
		bytes += BytesOf[model.Node](len(base.Nodes))
	}
	if size.Entries+size.Updates > 0 {
		bytes += BytesOf[model.DisruptionBudget](len(base.DisruptionBudgets)) + BytesOf[model.Quota](len(base.Quotas)) +
			indexBytes*int64(len(base.DisruptionBudgets)+len(base.Quotas))
	}
	if len(base.DisruptionBudgets) > 0 {
		bytes += taskEntryBytes * size.Tasks
	}
	if size.Queues+size.Updates > 0 {
		bytes += BytesOf[model.Queue](len(base.Queues))
	}
	head, _ := (&Decoder{of: changeShape}).head(data, size)
	for _, name := range head.dimensions {
		if _, known := base.Dims.Index(name); !known {
			return bytes + ModelBytes(base)
		}
	}
	return bytes
}
