package wire

import (
	"errors"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// CompileBytes returns the model of an encoded Snapshot: the result of Compile for the decoded message, without decoding the whole message.
// One message of each kind is reused, so that a task allocates only its strings. Bytes that are not a Snapshot are INVALID_ARGUMENT.
func CompileBytes(data []byte) (*model.Model, error) { return new(Decoder).Compile(data) }

// Decoder compiles one encoded Snapshot after the other in the same memory. It reuses messages and passes each to the compiler before it
// decodes the next. The zero value is ready for use.
type Decoder struct {
	c     compiler
	node  nodeSlot
	queue queueSlot
	set   nodeSetSlot
	job   jobSlot
	group groupSlot
	task  taskSlot
	count apportionv1.TaskCount
	total resourceSlot
	stop  func() bool
	asked int
	// tally says that tasks are only counted where nothing but their uids tells them apart.
	tally bool
	// parts read parts of the jobs of one snapshot.
	parts []*Decoder
	// first is how many jobs lie before those that this decoder reads.
	first int
	// requests and named are the requests and the queues that were read while tasks are only counted.
	requests, named memo
}

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
	return d.compile(data, g, parts(g.Size))
}

// compile reads the jobs in n parts.
func (d *Decoder) compile(data []byte, g Guard, n int) (*model.Model, error) {
	d.c.limits, d.c.longest, d.stop, d.asked, d.tally = g.Limits, 0, g.Stop, 0, g.Sums
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
		return nil, invalidSnapshot(err)
	}
	return m, Depth(m, g.Limits.QueueDepth)
}

func (d *Decoder) build(stop func() bool, parts int) (*model.Model, error) {
	if parts > 1 {
		return d.c.b.BuildUnless(oneByOne(stop), atOnce)
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
	around := size.around(data)
	asOf, dimensions, ok := d.head(around)
	if !ok {
		return malformed("snapshot")
	}
	if d.c.b.Builder == nil {
		d.c.b = model.NewBuilder(asOf).Loader()
	} else {
		d.c.b.Reset(asOf)
	}
	if d.stop != nil && d.stop() {
		return policy.ErrStopped
	}
	d.c.b.ExpectPlaces(int(size.Nodes), int(size.Queues))
	if !d.tally {
		d.c.b.Expect(int(size.Jobs), int(size.Groups), int(size.Tasks), int(size.TaskBytes))
	}
	d.c.b.Dimensions(dimensions)
	d.c.b.Total(d.c.total.of(d.total.message()))
	for _, name := range dimensions {
		d.c.text(name)
	}
	// Tasks that are only counted need no more of the nodes than their number.
	beside := d.tally && parts > 1 && size.NodeSets == 0
	if !beside && !d.nodes(around) || !d.queues(around) || !d.nodeSets(around) || !d.leftOut(around) ||
		!d.jobs(data, size, parts, beside) {
		if d.stop != nil && d.stop() {
			return policy.ErrStopped
		}
		return malformed("snapshot")
	}
	return nil
}

// head reads the time, the names of the dimensions, and the total.
func (d *Decoder) head(pieces [2][]byte) (asOf int64, dimensions []string, ok bool) {
	var f field
	d.total.reset()
	for _, piece := range pieces {
		s := scanner{rest: piece}
		for s.next(&f) {
			switch {
			case f.number == 1 && f.kind == varint:
				asOf = int64(f.value)
			case f.number == 2 && f.kind == delimited:
				s.text(&f)
			case f.number == 3 && f.kind == delimited:
				dimensions = append(dimensions, strings.Clone(s.text(&f)))
			case f.number == 7 && f.kind == delimited:
				s.check(d.total.fill(f.data))
			}
		}
		if s.bad {
			return 0, nil, false
		}
	}
	return asOf, dimensions, true
}

func malformed(path string) error {
	return InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, path, "%s", errMalformed)
}

// nodes reads all nodes, and queues all queues, one after the other whatever their order, so that violations are listed in one order too.
func (d *Decoder) nodes(pieces [2][]byte) bool {
	var f field
	nodes := 0
	for _, piece := range pieces {
		for s := (scanner{rest: piece}); s.next(&f); {
			if f.number != 4 || f.kind != delimited {
				continue
			}
			if d.stopped() {
				return false
			}
			if !d.plainNode(f.data) {
				if !d.node.fill(f.data) {
					return false
				}
				d.c.node(nodes, &d.node.m)
			}
			nodes++
		}
	}
	return true
}

func (d *Decoder) queues(pieces [2][]byte) bool {
	var f field
	queues := 0
	for _, piece := range pieces {
		for s := (scanner{rest: piece}); s.next(&f); {
			if f.number != 5 || f.kind != delimited {
				continue
			}
			if d.stopped() || !d.queue.fill(f.data) {
				return false
			}
			d.c.queue(queues, &d.queue.m)
			queues++
		}
	}
	return true
}

// jobs reads all jobs, and the nodes beside them if it is asked to.
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
	var f field
	jobs := d.first
	for s := (scanner{rest: data}); s.next(&f); {
		if f.number == 6 && f.kind == delimited {
			if !d.oneJob(jobs, f.data) {
				return false
			}
			jobs++
		}
	}
	return true
}

// oneJob reads a job's own fields first and its groups after them, whatever their order.
func (d *Decoder) oneJob(i int, data []byte) bool {
	if d.stopped() || !d.job.fill(data) {
		return false
	}
	d.c.jobHead(i, &d.job.m)
	var f field
	group := 0
	for s := (scanner{rest: data}); s.next(&f); {
		if f.number == 10 && f.kind == delimited {
			if !d.oneGroup(i, group, f.data) {
				return false
			}
			group++
		}
	}
	return true
}

func (d *Decoder) oneGroup(job, group int, data []byte) bool {
	tasks, counts, ok := d.group.fill(data)
	if !ok || d.stopped() {
		return false
	}
	d.c.groupHead(job, group, &d.group.m)
	s := scanner{rest: data}
	for k := range tasks {
		if d.stopped() || !d.oneTask(place{job, group, k}, s.task()) {
			return false
		}
	}
	var f field
	for s, k := (scanner{rest: data}), 0; counts > 0 && s.next(&f); {
		if f.number == 5 && f.kind == delimited {
			if d.stopped() || !fillCount(&d.count, f.data) {
				return false
			}
			d.c.count(place{job, group, k}, &d.count)
			k++
		}
	}
	return true
}

// oneTask reads a task straight into what the builder takes: compiler.task without the message in between.
func (d *Decoder) oneTask(at place, data []byte) bool {
	spec := &d.task.spec
	d.task.begin()
	if !d.task.fast(data) {
		d.task.begin()
		if !d.task.fill(data) {
			return false
		}
		d.c.text(spec.UID)
		d.c.text(spec.Name)
	}
	var known bool
	if spec.Status, known = statusOf(d.task.status); !known {
		d.c.b.Fault(at.path("tasks", "status"), "no status %d", d.task.status)
	}
	if d.task.farIndex > 0 {
		d.c.b.Fault(at.path("tasks", "index"), "%d is above %d", d.task.farIndex, math.MaxInt32)
	}
	if d.task.detailed {
		d.c.details(at, spec, &d.task.detail.m)
	}
	d.c.b.Task(spec)
	return true
}

func fillCount(m *apportionv1.TaskCount, data []byte) bool {
	m.Status, m.Gate, m.Count = 0, 0, 0
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		if f.kind != varint {
			continue
		}
		switch f.number {
		case 1:
			m.Status = apportionv1.TaskStatus(int32(f.value))
		case 2:
			m.Gate = apportionv1.TaskGate(int32(f.value))
		case 3:
			m.Count = uint32(f.value)
		}
	}
	return !s.bad
}

// check fails the scanner if a part of the message failed.
func (s *scanner) check(ok bool) {
	if !ok {
		s.fail()
	}
}

// merge adds an encoded message to m, as a second occurrence of a field does.
func (s *scanner) merge(m proto.Message, data []byte) {
	s.check(proto.UnmarshalOptions{Merge: true}.Unmarshal(data, m) == nil)
}
