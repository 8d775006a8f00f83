package wire

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// A slot is a message that is filled again and again. fill resets it, reads the encoded fields and reports whether they are well formed.
// A field that occurs twice is merged, or the last one counts, as the protobuf library has it.

type resourceSlot struct {
	m    apportionv1.Resource
	seen bool
}

func (r *resourceSlot) reset() {
	r.m.Dimension, r.m.Amount, r.seen = r.m.Dimension[:0], r.m.Amount[:0], false
}

// message returns nil if the field did not occur.
func (r *resourceSlot) message() *apportionv1.Resource {
	if !r.seen {
		return nil
	}
	return &r.m
}

// amounts lends what was read.
func (r *resourceSlot) amounts() model.Amounts {
	return model.Amounts{Dimension: r.m.Dimension, Amount: r.m.Amount}
}

// fill adds to what is there.
func (r *resourceSlot) fill(data []byte) bool {
	r.seen = true
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch f.number {
		case 1:
			r.m.Dimension = s.uint32s(&f, r.m.Dimension)
		case 2:
			r.m.Amount = s.doubles(&f, r.m.Amount)
		}
	}
	return !s.bad
}

type nodeSlot struct {
	m                 apportionv1.Node
	allocatable, used resourceSlot
	group             string
	unschedulable     apportionv1.NodeUnschedulable
	// plain are the amounts of a node that is fed without a message.
	plain [2]model.Amounts
}

func (n *nodeSlot) fill(data []byte) bool {
	n.m.Name, n.m.Group, n.m.Unschedulable = "", nil, nil
	n.allocatable.reset()
	n.used.reset()
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		if f.kind != delimited {
			continue
		}
		switch f.number {
		case 1:
			n.m.Name = s.text(&f)
		case 2:
			s.check(n.allocatable.fill(f.data))
		case 3:
			s.check(n.used.fill(f.data))
		case 4:
			n.group = s.text(&f)
			n.m.Group = &n.group
		case 5:
			if n.m.Unschedulable == nil {
				n.m.Unschedulable = &n.unschedulable
				n.unschedulable.Cause, n.unschedulable.Detail = 0, ""
			}
			s.check(fillUnschedulable(n.m.Unschedulable, f.data))
		}
	}
	n.m.Allocatable, n.m.UsedByOthers = n.allocatable.message(), n.used.message()
	return !s.bad
}

// plainNode feeds the builder a node that is written in the usual way and takes tasks; false: it is not, and nothing was done.
func (d *Decoder) plainNode(b []byte) bool {
	var spec model.NodeSpec
	n := &d.node
	for i := 0; i < len(b); {
		tag, _, from, to := fieldAt(b, i)
		if to < 0 {
			return false
		}
		i = to
		var ok bool
		switch tag {
		case nodeNameTag:
			spec.Name, ok = lent(b[from:to]), d.c.isText(b[from:to])
		case nodeAllocatableTag:
			ok = spec.Allocatable == nil && n.allocatable.isPlain(b[from:to])
			spec.Allocatable, n.plain[0] = &n.plain[0], n.allocatable.amounts()
		case nodeUsedTag:
			ok = spec.UsedByOthers == nil && n.used.isPlain(b[from:to])
			spec.UsedByOthers, n.plain[1] = &n.plain[1], n.used.amounts()
		case nodeGroupTag:
			spec.Group, spec.Labelled, ok = lent(b[from:to]), true, d.c.isText(b[from:to])
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	d.c.b.Node(spec)
	return true
}

// fillUnschedulable adds to what is there.
func fillUnschedulable(m *apportionv1.NodeUnschedulable, data []byte) bool {
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.number == 1 && f.kind == varint:
			m.Cause = apportionv1.UnschedulableCause(int32(f.value))
		case f.number == 2 && f.kind == delimited:
			m.Detail = s.text(&f)
		}
	}
	return !s.bad
}

type queueSlot struct {
	m                               apportionv1.Queue
	capability, guarantee, deserved resourceSlot
	hierarchy                       apportionv1.FairShareHierarchy
	weight                          uint32
	reclaimable                     bool
}

func (q *queueSlot) fill(data []byte) bool {
	m := &q.m
	m.Name, m.Parent, m.Weight, m.Priority, m.State, m.Reclaimable = "", "", nil, 0, 0, nil
	m.NodeGroupAffinity, m.FairShareHierarchy, m.CreateTime = nil, nil, 0
	q.capability.reset()
	q.guarantee.reset()
	q.deserved.reset()
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch f.kind {
		case varint:
			q.number(&f)
		case delimited:
			q.part(&s, &f)
		}
	}
	m.Capability, m.Guarantee, m.Deserved = q.capability.message(), q.guarantee.message(), q.deserved.message()
	return !s.bad
}

func (q *queueSlot) number(f *field) {
	switch f.number {
	case 3:
		q.weight = uint32(f.value)
		q.m.Weight = &q.weight
	case 4:
		q.m.Priority = int32(f.value)
	case 5:
		q.m.State = apportionv1.QueueState(int32(f.value))
	case 6:
		q.reclaimable = f.value != 0
		q.m.Reclaimable = &q.reclaimable
	case 12:
		q.m.CreateTime = int64(f.value)
	}
}

func (q *queueSlot) part(s *scanner, f *field) {
	switch f.number {
	case 1:
		q.m.Name = s.text(f)
	case 2:
		q.m.Parent = s.text(f)
	case 7:
		s.check(q.capability.fill(f.data))
	case 8:
		s.check(q.guarantee.fill(f.data))
	case 9:
		s.check(q.deserved.fill(f.data))
	case 10:
		if q.m.NodeGroupAffinity == nil {
			q.m.NodeGroupAffinity = &apportionv1.NodeGroupAffinity{}
		}
		s.merge(q.m.NodeGroupAffinity, f.data)
	case 11:
		if q.m.FairShareHierarchy == nil {
			q.m.FairShareHierarchy = &q.hierarchy
			q.hierarchy.Path, q.hierarchy.Weights = "", ""
		}
		s.check(fillHierarchy(q.m.FairShareHierarchy, f.data))
	}
}

// fillHierarchy adds to what is there.
func fillHierarchy(m *apportionv1.FairShareHierarchy, data []byte) bool {
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.kind != delimited:
		case f.number == 1:
			m.Path = s.text(&f)
		case f.number == 2:
			m.Weights = s.text(&f)
		}
	}
	return !s.bad
}

type jobSlot struct {
	m            apportionv1.Job
	minResources resourceSlot
}

// fill reads all of a job but its groups.
func (j *jobSlot) fill(data []byte) bool {
	m := &j.m
	m.Uid, m.Name, m.Namespace, m.Queue, m.Priority, m.Phase, m.MinAvailable, m.CreateTime = "", "", "", "", 0, 0, 0, 0
	m.Condition, m.ExpectedEnd, m.EndIsDeadline = "", 0, false
	j.minResources.reset()
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch f.kind {
		case varint:
			switch f.number {
			case 5:
				m.Priority = int32(f.value)
			case 6:
				m.Phase = apportionv1.JobPhase(int32(f.value))
			case 7:
				m.MinAvailable = uint32(f.value)
			case 9:
				m.CreateTime = int64(f.value)
			case 12:
				m.ExpectedEnd = int64(f.value)
			case 13:
				m.EndIsDeadline = f.value != 0
			}
		case delimited:
			j.part(&s, &f)
		}
	}
	m.MinResources = j.minResources.message()
	return !s.bad
}

func (j *jobSlot) part(s *scanner, f *field) {
	switch f.number {
	case 1:
		j.m.Uid = s.text(f)
	case 2:
		j.m.Name = s.text(f)
	case 3:
		j.m.Namespace = s.text(f)
	case 4:
		j.m.Queue = s.text(f)
	case 8:
		s.check(j.minResources.fill(f.data))
	case 11:
		j.m.Condition = s.text(f)
	}
}

type groupSlot struct {
	m            apportionv1.TaskGroup
	request      resourceSlot
	minAvailable uint32
}

// fill reads all of a group but its tasks and counts, of which it returns the numbers.
func (g *groupSlot) fill(data []byte) (tasks, counts int, ok bool) {
	g.m.Role, g.m.MinAvailable, g.m.NodeSet, g.m.Unjudged = "", nil, "", g.m.Unjudged[:0]
	g.request.reset()
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.kind == varint && f.number == 3:
			g.minAvailable = uint32(f.value)
			g.m.MinAvailable = &g.minAvailable
		case f.number == 7:
			g.m.Unjudged = s.constraints(&f, g.m.Unjudged)
		case f.kind != delimited:
		case f.number == 1:
			g.m.Role = s.text(&f)
		case f.number == 2:
			s.check(g.request.fill(f.data))
		case f.number == 4:
			end, more := afterTasks(s.rest, 0)
			s.rest = s.rest[end:]
			tasks += 1 + more
		case f.number == 5:
			counts++
		case f.number == 6:
			g.m.NodeSet = s.text(&f)
		}
	}
	g.m.Request = g.request.message()
	return tasks, counts, !s.bad
}

// taskSlot is a task as the builder takes it, and what of it is not checked yet.
type taskSlot struct {
	spec   model.TaskSpec
	status apportionv1.TaskStatus
	// farIndex is an index beyond what there can be.
	farIndex uint32
	detailed bool
	detail   detailSlot
}

func (t *taskSlot) begin() {
	// Field by field: a whole value would be put together elsewhere and copied.
	s := &t.spec
	s.UID, s.Name, s.NodeSet, s.Detail, s.Request = "", "", "", nil, nil
	s.Status, s.Gate, s.Node, s.Priority, s.Index, s.CreateTime, s.Preemptable = 0, 0, model.None, 1, -1, 0, true
	t.status, t.farIndex, t.detailed = 0, 0, false
}

// fill reads a task however it is written.
func (t *taskSlot) fill(data []byte) bool {
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch f.kind {
		case varint:
			t.number(&f)
		case delimited:
			t.part(&s, &f)
		}
	}
	return !s.bad
}

func (t *taskSlot) number(f *field) {
	switch f.number {
	case 2:
		t.status = apportionv1.TaskStatus(int32(f.value))
	case 3:
		t.spec.Node = model.NodeID(min(uint32(f.value), math.MaxInt32))
	case 4:
		t.spec.Priority = int32(f.value)
	case 6:
		t.spec.CreateTime = int64(f.value)
	case 7:
		t.farIndex = 0
		if index := uint32(f.value); index > math.MaxInt32 {
			t.farIndex = index
		}
		t.spec.Index = int32(min(uint32(f.value), math.MaxInt32))
	}
}

func (t *taskSlot) part(s *scanner, f *field) {
	switch f.number {
	case 1:
		t.spec.UID = s.text(f)
	case 5:
		t.spec.Name = s.text(f)
	case 8:
		if !t.detailed {
			t.detail.reset()
			t.detailed = true
		}
		s.check(t.detail.fill(f.data))
	}
}

type detailSlot struct {
	m                      apportionv1.TaskDetail
	request                resourceSlot
	preemptable            bool
	scheduleTime, cooldown int64
}

func (d *detailSlot) reset() {
	m := &d.m
	m.Preemptable, m.Gate, m.PriorityClass, m.ScheduleTime, m.Cooldown, m.Request = nil, 0, "", nil, nil, nil
	m.NodeSet, m.Unjudged, m.Condition = "", m.Unjudged[:0], ""
	d.request.reset()
}

// fill adds to what is there.
func (d *detailSlot) fill(data []byte) bool {
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.number == 8:
			d.m.Unjudged = s.constraints(&f, d.m.Unjudged)
		case f.kind == varint:
			d.number(&f)
		case f.kind == delimited:
			d.part(&s, &f)
		}
	}
	d.m.Request = d.request.message()
	return !s.bad
}

func (d *detailSlot) part(s *scanner, f *field) {
	switch f.number {
	case 3:
		d.m.PriorityClass = s.text(f)
	case 6:
		s.check(d.request.fill(f.data))
	case 7:
		d.m.NodeSet = s.text(f)
	case 9:
		d.m.Condition = s.text(f)
	}
}

func (d *detailSlot) number(f *field) {
	switch f.number {
	case 1:
		d.preemptable = f.value != 0
		d.m.Preemptable = &d.preemptable
	case 2:
		d.m.Gate = apportionv1.TaskGate(int32(f.value))
	case 4:
		d.scheduleTime = int64(f.value)
		d.m.ScheduleTime = &d.scheduleTime
	case 5:
		d.cooldown = int64(f.value)
		d.m.Cooldown = &d.cooldown
	}
}
