package wire

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/setting"
)

// Limits limits the contents of a snapshot; 0 is no limit. Errors contain the names by which an operator sets them.
type Limits struct {
	Dimensions, Nodes, NodeSets, Queues, QueueDepth, Jobs, Groups, Tasks int64
	// TextBytes limits each name and uid. Below 128 it counts as 128.
	TextBytes int64
}

// LimitsOf returns those of the settings that limit one snapshot.
func LimitsOf(l *setting.Limit) Limits {
	return Limits{
		Dimensions: l.Dimensions, Nodes: l.Nodes, NodeSets: l.NodeSets, Queues: l.Queues, QueueDepth: l.QueueDepth,
		Jobs: l.Jobs, Groups: l.Groups, Tasks: l.Tasks, TextBytes: int64(l.TextBytes),
	}
}

// Guard contains the limits for compiling a snapshot. The zero value has none.
type Guard struct {
	Limits Limits
	// Size is the result of Measure for the snapshot, if it is already known.
	Size *Size
	// Sums is true if only sums of tasks are needed; see OnlySums. The model then need not have the tasks.
	Sums bool
	// Stop is called periodically; it returns true if the caller no longer waits. nil: never.
	Stop func() bool
}

// Exceeded returns the fault of a request that exceeds a limit: a retry fails again.
func Exceeded(limit string, value, maximum int64, text string) *Fault {
	return &Fault{
		Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, Text: text,
		Metadata: map[string]string{
			"limit": limit, "value": strconv.FormatInt(value, 10), "maximum": strconv.FormatInt(maximum, 10),
		},
	}
}

// Size counts the contents of an encoded Snapshot.
type Size struct {
	Bytes, Dimensions, Nodes, NodeSets, Queues, Jobs, Groups, Tasks int64
	// NodeSetBytes is the size of the node sets.
	NodeSetBytes int64
	// Updates counts the entities that a Change removes, and the tasks that it updates.
	Updates int64
	// Counts are the counts of tasks in groups, Terms the node groups that the affinities of queues list, and LeftOut what is left out.
	Counts, Terms, LeftOut int64
	// Usages counts what queues say of usage: their own, two for a budget, and one for each owner.
	Usages int64
	// ExtraBytes is the size of what only the policy kueue reads, and ExtraParts counts the fields in it.
	ExtraBytes, ExtraParts int64
	// TaskBytes is the size of the tasks that are listed one by one.
	TaskBytes int64

	layout layout
}

// layout contains the place of the jobs in a message, which a search for other fields skips.
type layout struct {
	// All jobs lie between from and to; if they take as much as that, the rest of the snapshot takes no more.
	from, to, taken int
	// cuts are those of cutsOf.
	cuts []partStart
}

// around returns what lies before the jobs of a message and behind them, or all of it in one piece.
func (z *Size) around(data []byte) [2][]byte {
	l := &z.layout
	if l.taken == 0 || l.taken != l.to-l.from || z.Bytes != int64(len(data)) {
		return [2][]byte{data, nil}
	}
	return [2][]byte{data[:l.from], data[l.to:]}
}

// Measure counts the contents of an encoded Snapshot without decoding it, in one step for each entity and without allocations. For invalid
// bytes it counts what precedes the error.
func Measure(data []byte) Size {
	return measureIn(data, min(len(data)/partBytes, processor.Count(), maxParts))
}

// measureIn counts what data holds, and where n parts of about the same length begin.
func measureIn(data []byte, n int) Size {
	if n < 2 || len(data) < besideBytes {
		return measureAlone(data, n)
	}
	return measureBeside(data, n)
}

// measureBeside is measureIn, and counts the parts at the same time.
func measureBeside(data []byte, n int) Size {
	cuts := cutsOf(data, n)
	sizes := make([]Size, n)
	atOnce(n, func(i int) { sizes[i] = measure(partOf(data, cuts, i)) })
	all := sizes[0]
	for i, cut := range cuts {
		cuts[i].before = all.extent()
		all.add(&sizes[i+1], cut.at)
	}
	all.layout.cuts = cuts
	return all
}

// extent returns how many jobs, groups and tasks there are.
func (z *Size) extent() model.Extent {
	return model.Extent{Jobs: int(z.Jobs), Groups: int(z.Groups), Tasks: int(z.Tasks)}
}

// add adds a part that begins at a place.
func (z *Size) add(s *Size, at int) {
	if l := &z.layout; s.layout.taken > 0 {
		if l.taken == 0 {
			l.from = at + s.layout.from
		}
		l.to, l.taken = at+s.layout.to, l.taken+s.layout.taken
	}
	z.Bytes += s.Bytes
	z.Dimensions += s.Dimensions
	z.Nodes += s.Nodes
	z.NodeSets += s.NodeSets
	z.NodeSetBytes += s.NodeSetBytes
	z.Queues += s.Queues
	z.Jobs += s.Jobs
	z.Groups += s.Groups
	z.Tasks += s.Tasks
	z.Updates += s.Updates
	z.Counts += s.Counts
	z.Terms += s.Terms
	z.Usages += s.Usages
	z.LeftOut += s.LeftOut
	z.TaskBytes += s.TaskBytes
	z.ExtraBytes += s.ExtraBytes
	z.ExtraParts += s.ExtraParts
}

func measure(data []byte) Size { return measureAlone(data, 1) }

// measureAlone is measureIn in one pass.
func measureAlone(data []byte, n int) Size {
	size := Size{Bytes: int64(len(data))}
	l, share := &size.layout, len(data)/max(n, 1)
	for at := 0; ; {
		for len(l.cuts) < n-1 && at >= (len(l.cuts)+1)*share {
			l.cuts = append(l.cuts, partStart{at, size.extent()})
		}
		if at >= len(data) {
			break
		}
		tag, _, from, to := field.At(data, at)
		if to < 0 {
			break
		}
		start := at
		at = to
		switch tag {
		case tagSnapshotDimension:
			size.Dimensions++
		case tagSnapshotKueue:
			size.extra(data[from:to])
		case tagSnapshotNode:
			size.Nodes++
		case tagSnapshotQueue:
			size.Queues++
			size.queue(data[from:to])
		case tagSnapshotLeftOut:
			size.LeftOut++
		case tagSnapshotNodeSet:
			size.NodeSets++
			size.NodeSetBytes += int64(to - from)
		case tagSnapshotJob:
			size.Jobs++
			size.job(data[from:to])
			if l.taken == 0 {
				l.from = start
			}
			l.to, l.taken = to, l.taken+to-start
		case tagChangeRemoveNode, tagChangeRemoveQueue, tagChangeRemoveJob, tagChangeTask, tagChangeRemoveSet:
			size.Updates++
		}
	}
	for len(l.cuts) < n-1 {
		l.cuts = append(l.cuts, partStart{len(data), size.extent()})
	}
	return size
}

func (z *Size) job(b []byte) {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			return
		}
		switch i = to; tag {
		case tagJobGroup:
			z.Groups++
			z.group(b[from:to])
		case tagJobKueue:
			z.extra(b[from:to])
		}
	}
}

// queue counts what a queue says of usage, and the terms of its affinity.
func (z *Size) queue(b []byte) {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			return
		}
		switch i = to; tag {
		case tagQueueAffinity:
			z.affinity(b[from:to])
		case tagQueueUsage, tagQueueOwner:
			z.Usages++
		case tagQueueBudget:
			z.Usages += 2
		case tagQueueKueue:
			z.extra(b[from:to])
		}
	}
}

// extra counts what only the policy kueue reads.
func (z *Size) extra(b []byte) {
	z.ExtraBytes += int64(len(b))
	for i := 0; i < len(b); {
		_, _, _, to := field.At(b, i)
		if to < 0 {
			return
		}
		z.ExtraParts++
		i = to
	}
}

// affinity counts the terms of an affinity, which lie in two lists of it and two of the anti-affinity.
func (z *Size) affinity(b []byte) {
	const required, preferred = 1<<3 | field.Delimited, 2<<3 | field.Delimited
	for _, sign := range [...]uint32{required, preferred} {
		field.Each(b, sign, func(terms []byte) bool {
			for _, list := range [...]uint32{required, preferred} {
				field.Each(terms, list, func([]byte) bool { z.Terms++; return true })
			}
			return true
		})
	}
}

func (z *Size) group(b []byte) {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			return
		}
		switch i = to; tag {
		case tagGroupCount:
			z.Counts++
		case tagGroupTask:
			end, more := afterShort(b, to, tagGroupTask)
			i = end
			z.Tasks += int64(1 + more)
			z.TaskBytes += int64(end - from)
		}
	}
}

// Within returns a *Fault with the first exceeded limit.
func (z Size) Within(l Limits) error {
	for _, one := range [...]struct {
		limit          string
		value, maximum int64
	}{
		{"dimensions", z.Dimensions, l.Dimensions},
		{"nodes", z.Nodes, l.Nodes},
		{"node_sets", z.NodeSets, l.NodeSets},
		{"queues", z.Queues, l.Queues},
		{"jobs", z.Jobs, l.Jobs},
		{"groups", z.Groups, l.Groups},
		{"tasks", z.Tasks, l.Tasks},
	} {
		if one.maximum > 0 && one.value > one.maximum {
			return Exceeded(one.limit, one.value, one.maximum,
				"the snapshot has "+strconv.FormatInt(one.value, 10)+" "+one.limit+
					", at most "+strconv.FormatInt(one.maximum, 10)+" are taken")
		}
	}
	return nil
}

// Memory estimates, in advance, the memory for compiling a snapshot of this size and opening a session on it.
func (z Size) Memory() int64 {
	// cpu and memory are dimensions of every model.
	row := rowBytes(int(z.Dimensions) + 2)
	// A queue has about 16 rows in each of the plugins that divide, of which there are two at most; a job has accounts, and rows in drf.
	// A node has its amounts, what its tasks use, and what they leave.
	rows := 4*z.Nodes + 40*z.Queues + 10*z.Jobs + z.Groups
	const indexEntry = 32
	// Lists that grow as they are read take several times what they hold at the end.
	// A term is also kept in the tables of node_group.
	// A usage is kept in the decoder too, and an owner also in a map while it is read.
	const growing, termBytes, usageBytes = 6, 320, 256
	// A message of two bytes within a field is kept in 90 at most, a field in two structs.
	const extraBytes, extraParts = 48, 512
	// A node of a set is written in a byte at least; it is kept in 4 bytes here and as many in the decoder.
	return z.Bytes + rows*row + (sizeOf[model.NodeSet](1)+64)*z.NodeSets + 8*z.NodeSetBytes +
		(sizeOf[model.Node](1)+indexEntry)*z.Nodes + (sizeOf[model.Queue](1)+indexEntry)*z.Queues +
		(sizeOf[model.Job](1)+2*sizeOf[model.Account](1)+256)*z.Jobs + (sizeOf[model.Group](1)+128)*z.Groups +
		(sizeOf[model.Task](1)+sizeOf[model.Detail](1)+40)*z.Tasks +
		growing*(sizeOf[model.Count](1)*z.Counts+sizeOf[model.LeftOut](1)*z.LeftOut) + termBytes*z.Terms +
		(row+sizeOf[model.OwnerUsage](1)+usageBytes)*z.Usages + extraBytes*z.ExtraBytes + extraParts*z.ExtraParts
}

// MeasureSteps counts the steps in the field with this number of an encoded message, and the contents of the jobs that they add, without
// decoding them.
func MeasureSteps(data []byte, number int32) (steps int64, added Size) {
	field.Each(data, uint32(number)<<3|field.Delimited, func(step []byte) bool {
		steps++
		added.step(step)
		return true
	})
	return steps, added
}

// step adds the objects that a step adds, which are in field 1 of its message.
func (z *Size) step(data []byte) {
	for i := 0; i < len(data); {
		tag, _, from, to := field.At(data, i)
		if to < 0 {
			return
		}
		if q := numbered(int32(tag >> 3)); tag&7 == field.Delimited && q != nil && q.added != nil {
			field.Each(data[from:to], 1<<3|field.Delimited, func(added []byte) bool {
				q.added(z, added)
				return true
			})
		}
		i = to
	}
}

// shortestText is a bound below which texts are never refused, so that the tasks read in one loop need no look.
const shortestText = 128

// text notes a text that is longer than allowed.
func (c *compiler) text(s string) {
	if limit := c.limits.TextBytes; limit > 0 && int64(len(s)) > max(limit, shortestText) {
		c.longest = max(c.longest, int64(len(s)))
	}
}

// isText reports whether bytes are a text that is not too long.
func (c *compiler) isText(b []byte) bool {
	if limit := c.limits.TextBytes; len(b) > shortestText && limit > 0 && int64(len(b)) > limit {
		return false
	}
	return isASCII(b) || utf8.Valid(b)
}

// areTexts reports whether all are valid texts within the maximum length.
func (c *compiler) areTexts(list ...[]byte) bool {
	for _, b := range list {
		if len(b) > 0 && !c.isText(b) {
			return false
		}
	}
	return true
}

func (c *compiler) termTexts(t *apportionv1.NodeGroupTerms) {
	for _, s := range t.GetRequired() {
		c.text(s)
	}
	for _, s := range t.GetPreferred() {
		c.text(s)
	}
}

// exceeded returns a *Fault if a text was too long.
func (c *compiler) exceeded() error {
	if c.longest == 0 {
		return nil
	}
	maximum := max(c.limits.TextBytes, shortestText)
	return Exceeded("text_bytes", c.longest, maximum,
		"a name or uid has "+strconv.FormatInt(c.longest, 10)+" bytes, at most "+strconv.FormatInt(maximum, 10)+" are taken")
}

// Depth returns a *Fault if queues are nested too deeply. A queue that is its own ancestor has no depth.
func Depth(m *model.Model, maximum int64) error {
	if maximum <= 0 || int64(len(m.Queues)) <= maximum {
		return nil
	}
	if level := levelsOf(m); level > maximum {
		return Exceeded("queue_depth", level, maximum,
			"queues are nested "+strconv.FormatInt(level, 10)+" deep, at most "+strconv.FormatInt(maximum, 10)+" levels are taken")
	}
	return nil
}

// levelsOf returns how many levels of queues there are. The parent of the root counts for nothing, as in every policy.
func levelsOf(m *model.Model) int64 {
	levels := Levels(len(m.Queues), func(q int) (int, bool) {
		if m.Queues[q].Name == hierarchy.Root {
			return 0, false
		}
		parent, ok := m.Queue(m.Queues[q].Parent)
		return int(parent), ok
	})
	return int64(slices.Max(append(levels, 0)))
}

// Levels returns the level of each of n queues, 1 for one without a parent. It is negative for a queue that is its own ancestor, and for
// those below it.
func Levels(n int, parent func(int) (int, bool)) []int {
	// Each queue is visited about twice. The level is 0 until it is known.
	const circular = -1
	levels := make([]int, n)
	var path []int
	for q := range levels {
		path = path[:0]
		at, ok := q, true
		for ok && levels[at] == 0 {
			levels[at] = circular
			path = append(path, at)
			at, ok = parent(at)
		}
		level := 0
		if ok && levels[at] == circular {
			continue
		}
		if ok {
			level = levels[at]
		}
		for _, q := range slices.Backward(path) {
			level++
			levels[q] = level
		}
	}
	return levels
}
