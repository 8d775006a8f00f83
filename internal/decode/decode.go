package decode

import (
	"cmp"
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
	"github.com/apportion/apportion/internal/processor"
)

// A Snapshot is read in two passes over its bytes. The first, Measure, counts what is there, so that limits refuse it before memory is
// taken. The second hands each message to the compiler as soon as it is read, and uses its memory again for the next: nothing keeps a
// message. Whatever way is taken, in parts, with tallies or plain, the model is the same bit for bit, and so is the first fault that is
// reported: a way that meets a fault is given up, and the plain way reads the snapshot again to name it.

// errMalformed is returned for bytes that are no message of the contract, exactly where the protobuf library fails too.
var errMalformed = errors.New("the bytes are not a valid protobuf message")

// CompileBytes returns the model of an encoded Snapshot: the result of Compile for the decoded message, without decoding the whole message.
// One message of each kind is reused, so that a task allocates only its strings. Bytes that are not a Snapshot are INVALID_ARGUMENT.
func CompileBytes(data []byte) (*model.Model, error) { return new(Decoder).Compile(data) }

// Decoder compiles one encoded Snapshot after the other in the same memory. It reuses messages and passes each to the compiler before it
// decodes the next. The zero value is ready for use.
type Decoder struct {
	c     compiler
	node  slot[apportionv1.Node]
	queue slot[apportionv1.Queue]
	set   slot[apportionv1.NodeSet]
	out   slot[apportionv1.LeftOut]
	// budget is a disruption budget.
	budget slot[apportionv1.DisruptionBudget]
	job    slot[apportionv1.Job]
	group  slot[apportionv1.TaskGroup]
	count  slot[apportionv1.TaskCount]
	task   slot[apportionv1.Task]
	// total is the cluster's total or, if tasks are only counted, the least that a job needs; request is what they need.
	total, request slot[apportionv1.Resource]
	memory         slot[apportionv1.Memory]
	stop           func() bool
	asked          int
	// tally is true if tasks that differ only in their uids are counted.
	tally bool
	// of is the shape of what is read: a Snapshot, or a Change.
	of *Shape
	// parts read parts of the jobs of one snapshot.
	parts []*Decoder
	// first is how many jobs lie before those that this decoder reads.
	first int
	// requests are those that were read while tasks are only counted, unjudged the constraints of a group, and taskUnjudged those of a
	// task.
	requests               memo
	unjudged, taskUnjudged []apportionv1.PlacementConstraint
	// namespace is that of the job that is read while tasks are only counted.
	namespace []byte
}

// How slots read the messages of a snapshot.
var (
	nodeFields        = tableOf[apportionv1.Node]()
	queueFields       = tableOf[apportionv1.Queue]()
	nodeSetFields     = tableOf[apportionv1.NodeSet]()
	reservationFields = tableOf[apportionv1.NodeReservation]()
	exclusionFields   = tableOf[apportionv1.NodeExclusion]()
	preferenceFields  = tableOf[apportionv1.NodePreference]()
	budgetFields      = tableOf[apportionv1.DisruptionBudget]()
	leftOutFields     = tableOf[apportionv1.LeftOut]()
	jobFields         = tableOf[apportionv1.Job]()
	groupFields       = tableOf[apportionv1.TaskGroup]()
	countFields       = tableOf[apportionv1.TaskCount]()
	taskFields        = tableOf[apportionv1.Task]()
	amountFields      = tableOf[apportionv1.Resource]()
)

// Compile does what CompileBytes does. The model is valid until the next Compile of this decoder; strings taken from it stay valid.
func (d *Decoder) Compile(data []byte) (*model.Model, error) { return d.CompileWithin(data, Guard{}) }

// CompileWithin is Compile within limits; it returns policy.ErrStopped if it is stopped.
func (d *Decoder) CompileWithin(data []byte, g Guard) (*model.Model, error) {
	if g.Size == nil {
		size := Measure(data)
		g.Size = &size
	}
	if err := g.Size.Within(g.Limits); err != nil {
		return nil, err
	}
	return d.compile(data, g, cmp.Or(g.Parts, parts(g.Size)))
}

// compile reads the jobs in n parts.
func (d *Decoder) compile(data []byte, g Guard, n int) (*model.Model, error) {
	d.of, d.c.limits, d.c.longest, d.stop, d.asked, d.tally = snapshotShape, g.Limits, 0, g.Stop, 0, g.Sums
	defer func() { d.stop, d.tally = nil, false }()
	err := d.snapshot(data, g.Size, n)
	if g.Sums && err == nil && d.c.longest == 0 {
		m, err := d.build(g.Stop, n)
		if err == nil {
			return m, Depth(m, g.Limits.QueueDepth)
		}
		if errors.Is(err, policy.ErrStopped) {
			return nil, err
		}
	}
	if g.Sums && !errors.Is(err, policy.ErrStopped) {
		// Reading all of it names what is faulty, and compiles what is unusual.
		g.Sums = false
		return d.compile(data, g, n)
	}
	if n > 1 && err != nil && !errors.Is(err, policy.ErrStopped) {
		err = d.snapshot(data, g.Size, 1)
	}
	if err != nil {
		return nil, err
	}
	if err := d.c.exceeded(); err != nil {
		return nil, err
	}
	m, err := d.build(g.Stop, n)
	if err != nil {
		return nil, InvalidSnapshot(err)
	}
	return m, Depth(m, g.Limits.QueueDepth)
}

func (d *Decoder) build(stop func() bool, parts int) (*model.Model, error) {
	if parts > 1 {
		return d.c.b.BuildUnless(oneByOne(stop), processor.AtOnce)
	}
	return d.c.b.BuildUnless(stop, nil)
}

// stopped is meant to be called for everything that is read, and asks once in 1,024 calls.
func (d *Decoder) stopped() bool {
	d.asked++
	return d.asked&1023 == 0 && d.stop != nil && d.stop()
}

// snapshot makes three passes over the top level, because a message may hold its fields in any order: the few numbers and names, then
// nodes, queues and node sets, then the jobs that refer to them, in that many parts.
func (d *Decoder) snapshot(data []byte, size *Size, parts int) error {
	head, ok := d.head(data, size)
	if !ok {
		return d.unread("snapshot", data)
	}
	if d.c.b.Builder == nil {
		d.c.b = model.NewBuilder(head.asOf).Loader()
	} else {
		d.c.b.Reset(head.asOf)
	}
	if d.stop != nil && d.stop() {
		return policy.ErrStopped
	}
	d.c.b.ExpectPlaces(int(size.Nodes), int(size.Queues))
	if !d.tally {
		d.c.b.Expect(int(size.Jobs), int(size.Groups), int(size.Tasks), int(size.TaskBytes))
	}
	d.c.b.Dimensions(head.dimensions)
	d.c.b.Total(d.c.total.of(head.total))
	d.c.podRules(head.pods)
	d.c.memory(head.memory)
	// Tasks that are only counted need no more of the nodes than their number.
	beside := d.tally && parts > 1 && size.NodeSets == 0
	if !beside && !d.nodes(head.rest) || !d.places(head.rest) || !d.entries(head.rest) ||
		!all(d, head.rest, tagSnapshotLeftOut, &d.out, leftOutFields, d.c.leftOut) || !d.jobs(data, size, parts, beside) {
		if d.stop != nil && d.stop() {
			return policy.ErrStopped
		}
		return d.unread("snapshot", data)
	}
	return nil
}

// head holds the parts of a snapshot or a change that must be known before the rest is read.
type head struct {
	data []byte
	size *Size
	// rest contains the bytes before and after the jobs.
	rest       [2][]byte
	dimensions []string
	total      *apportionv1.Resource
	asOf       int64
	hasTime    bool
	clearTotal bool
	// memory stays in the decoder, as total does.
	memory      *apportionv1.Memory
	pods        *apportionv1.PodRules
	clearMemory bool
}

// head reads the time, the names of the dimensions, and the total, which stays in the decoder.
func (d *Decoder) head(data []byte, size *Size) (h head, ok bool) {
	h.data, h.size, h.rest = data, size, size.around(data)
	d.total.empty(amountFields)
	d.memory.empty(memoryFields)
	for _, piece := range h.rest {
		for i := 0; i < len(piece); {
			tag, value, from, to := field.At(piece, i)
			if to < 0 {
				return h, false
			}
			text := piece[from:to]
			i, ok = to, true
			switch tag {
			case tagSnapshotAsOf:
				h.asOf, h.hasTime = int64(value), true
			case tagSnapshotCluster:
				ok = utf8.Valid(text)
			case tagSnapshotDimension:
				ok = utf8.Valid(text)
				h.dimensions = append(h.dimensions, string(text))
				d.c.text(lent(text))
			case tagSnapshotTotal:
				ok = d.total.merge(text)
				h.total = &d.total.m
			case tagChangeClearTotal:
				h.clearTotal = value != 0
			case tagSnapshotMemory:
				ok = d.memory.merge(text)
				h.memory = &d.memory.m
			case tagSnapshotPods:
				if h.pods == nil {
					h.pods = &apportionv1.PodRules{}
				}
				ok = podsShape.Knows(text) && proto.UnmarshalOptions{Merge: true}.Unmarshal(text, h.pods) == nil
			case tagChangeClearMemory:
				h.clearMemory = value != 0
			}
			ok = ok && d.of.Has(tag)
			if !ok {
				return h, false
			}
		}
	}
	return h, true
}

// unread returns the fault of bytes that were not read: the fields that are not known, or else that they are malformed.
func (d *Decoder) unread(path string, data []byte) error {
	if err := d.of.fault(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, data, path+"."); err != nil {
		return err
	}
	return InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, path, "%s", errMalformed)
}

// each calls do with every field of a tag and with how many precede it, until it returns false or the decoder is stopped.
func (d *Decoder) each(pieces [2][]byte, tag uint32, do func(i int, data []byte) bool) bool {
	n := -1
	next := func(data []byte) bool {
		n++
		return !d.stopped() && do(n, data)
	}
	return field.Each(pieces[0], tag, next) && field.Each(pieces[1], tag, next)
}

// all reads all messages in a field, one after the other, and hands each to do.
func all[M any](d *Decoder, pieces [2][]byte, tag uint32, s *slot[M], of *table, do func(int, *M)) bool {
	return d.each(pieces, tag, func(i int, data []byte) bool {
		ok := s.fill(of, data)
		if ok {
			do(i, &s.m)
		}
		return ok
	})
}

// nodes reads all nodes, and places all queues and node sets, which refer to nodes, whatever the order of the fields.
func (d *Decoder) nodes(pieces [2][]byte) bool {
	return d.each(pieces, tagSnapshotNode, func(i int, data []byte) (ok bool) {
		if !d.node.fill(nodeFields, data) {
			return false
		}
		d.node.m.Reservations, ok = messages[apportionv1.NodeReservation](d, data, d.node.runs, tagNodeReservation, reservationFields)
		d.c.node(i, &d.node.m)
		return ok
	})
}

func (d *Decoder) places(pieces [2][]byte) bool {
	queue := func(i int, data []byte) (ok bool) {
		if !d.queue.fill(queueFields, data) {
			return false
		}
		d.queue.m.Owners, ok = messages[apportionv1.OwnerUsage](d, data, d.queue.runs, tagQueueOwner, ownerFields)
		d.c.queue(i, &d.queue.m)
		return ok
	}
	set := func(_ int, data []byte) (ok bool) {
		if !d.set.fill(nodeSetFields, data) {
			return false
		}
		if d.set.m.Exclusions, ok = messages[apportionv1.NodeExclusion](d, data, d.set.runs, tagSetExclusion, exclusionFields); !ok {
			return false
		}
		d.set.m.Preferences, ok = messages[apportionv1.NodePreference](d, data, d.set.runs, tagSetPreference, preferenceFields)
		d.c.nodeSet(&d.set.m)
		return ok
	}
	return d.each(pieces, tagSnapshotQueue, queue) && d.each(pieces, tagSnapshotNodeSet, set)
}

// messages reads one of the lists of messages that a slot left to the caller.
func messages[M any](d *Decoder, data []byte, runs []run, tag uint32, of *table) (list []*M, ok bool) {
	for _, run := range runs {
		if run.tag != tag {
			continue
		}
		ok := field.Each(data[run.from:run.to], run.tag, func(data []byte) bool {
			s := new(slot[M])
			list = append(list, &s.m)
			return !d.stopped() && s.fill(of, data)
		})
		if !ok {
			return nil, false
		}
	}
	return list, true
}

// jobs reads all jobs and, if asked to, the nodes at the same time.
func (d *Decoder) jobs(data []byte, size *Size, parts int, nodes bool) bool {
	switch {
	case d.tally:
		return d.sums(data, size, parts, nodes)
	case parts > 1:
		return d.jobsInParts(data, size, parts)
	}
	return d.allJobs(data)
}

func (d *Decoder) allJobs(data []byte) bool {
	return d.each([2][]byte{data}, tagSnapshotJob, func(i int, data []byte) bool { return d.oneJob(d.first+i, data) })
}

// oneJob reads a job's own fields first and its groups after them, whatever their order.
func (d *Decoder) oneJob(i int, data []byte) bool {
	if d.tally {
		return d.sumJob(data)
	}
	if !d.job.fill(jobFields, data) {
		return false
	}
	d.c.b.Job(d.c.jobSpec(i, &d.job.m))
	group := 0
	for _, run := range d.job.runs {
		ok := field.Each(data[run.from:run.to], tagJobGroup, func(data []byte) bool {
			group++
			return !d.stopped() && d.oneGroup(i, group-1, data)
		})
		if !ok {
			return false
		}
	}
	return true
}

// oneGroup reads a group's own fields first, then its tasks, then its counts.
func (d *Decoder) oneGroup(job, group int, data []byte) bool {
	if !d.group.fill(groupFields, data) {
		return false
	}
	d.c.b.Group(d.c.groupSpec(job, group, &d.group.m))
	tasks, counts := 0, 0
	for _, run := range d.group.runs {
		for i := run.from; run.tag == tagGroupTask && i < run.to; tasks++ {
			_, _, from, to := field.At(data, i)
			if d.stopped() || !d.oneTask(position{job, group, tasks}, data[from:to]) {
				return false
			}
			i = to
		}
	}
	for _, run := range d.group.runs {
		for i := run.from; run.tag == tagGroupCount && i < run.to; counts++ {
			_, _, from, to := field.At(data, i)
			if d.stopped() || !d.count.fill(countFields, data[from:to]) {
				return false
			}
			d.c.count(position{job, group, counts}, &d.count.m)
			i = to
		}
	}
	return true
}

// ClusterOf returns the cluster's name in an encoded Snapshot, reading only its top level; "" if the bytes are not a Snapshot, which is
// reported when they are compiled.
func ClusterOf(data []byte) string {
	cluster := ""
	ok := field.Each(data, tagSnapshotCluster, func(name []byte) bool {
		cluster = string(name)
		return utf8.Valid(name)
	})
	if !ok {
		return ""
	}
	return cluster
}
