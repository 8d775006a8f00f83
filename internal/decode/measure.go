package decode

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/field"
	"github.com/apportion/apportion/internal/processor"
)

// Size counts the contents of an encoded Snapshot.
type Size struct {
	Bytes, Dimensions, Nodes, NodeSets, Queues, Jobs, Groups, Tasks int64
	// NodeSetBytes is the size of the node sets, and of what nodes say of other pods.
	NodeSetBytes int64
	// Updates counts the entities that a Change removes, and the tasks that it updates.
	Updates int64
	// Counts are the counts of tasks in groups, Terms the node groups that the affinities of queues list, and LeftOut what is left out.
	Counts, Terms, LeftOut int64
	// Reservations are those of nodes.
	Reservations int64
	// Entries counts disruption budgets and quotas.
	Entries int64
	// Usages counts what queues say of usage: their own, two for a budget, and one for each owner.
	Usages int64
	// ExtraBytes is the size of what only the policy kueue reads and of the rules on other pods, and ExtraParts counts the fields in these
	// and the exclusions of node sets.
	ExtraBytes, ExtraParts int64
	// Flavors and Asked are those of Extent.
	Flavors, Asked int64
	// TaskBytes is the size of the tasks that are listed one by one.
	TaskBytes int64

	layout layout
}

// layout contains the place of the jobs in a message, which a search for other fields skips.
type layout struct {
	// All jobs lie between from and to; if they take as much as that, the rest of the snapshot takes no more.
	from, to, taken int
	// pods: there are rules on other pods.
	pods bool
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
	var z Size
	if n < 2 || len(data) < besideBytes {
		z = measureAlone(data, n)
	} else {
		z = measureBeside(data, n)
	}
	if z.layout.pods {
		field.Each(data, tagSnapshotNode, z.podsOfNode)
	}
	return z
}

// measureBeside is measureIn, and counts the parts at the same time.
func measureBeside(data []byte, n int) Size {
	cuts := cutsOf(data, n)
	sizes := make([]Size, n)
	processor.AtOnce(n, func(i int) { sizes[i] = MeasureChange(partOf(data, cuts, i)) })
	all := sizes[0]
	for i, cut := range cuts {
		cuts[i].before = all.extent()
		all.Add(&sizes[i+1], cut.at)
	}
	all.layout.cuts = cuts
	return all
}

// extent returns how many jobs, groups and tasks there are.
func (z *Size) extent() model.Extent {
	return model.Extent{Jobs: int(z.Jobs), Groups: int(z.Groups), Tasks: int(z.Tasks)}
}

// Add adds a part that begins at a place.
func (z *Size) Add(s *Size, at int) {
	if l := &z.layout; s.layout.taken > 0 {
		if l.taken == 0 {
			l.from = at + s.layout.from
		}
		l.to, l.taken = at+s.layout.to, l.taken+s.layout.taken
	}
	z.layout.pods = z.layout.pods || s.layout.pods
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
	z.Reservations += s.Reservations
	z.Entries += s.Entries
	z.LeftOut += s.LeftOut
	z.TaskBytes += s.TaskBytes
	z.ExtraBytes += s.ExtraBytes
	z.ExtraParts += s.ExtraParts
	z.Flavors, z.Asked = max(z.Flavors, s.Flavors), max(z.Asked, s.Asked)
}

// MeasureChange returns the size of an encoded change.
func MeasureChange(data []byte) Size { return measureAlone(data, 1) }

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
		case tagSnapshotPods:
			size.pods(data[from:to])
			l.pods = true
		case tagSnapshotNode:
			size.Nodes++
			field.Each(data[from:to], tagNodeReservation, func([]byte) bool { size.Reservations++; return true })
		case tagSnapshotQueue:
			size.Queues++
			size.queue(data[from:to])
		case tagSnapshotLeftOut:
			size.LeftOut++
		case tagSnapshotBudget, tagSnapshotQuota:
			size.Entries++
			size.extra(data[from:to])
		case tagSnapshotNodeSet:
			size.NodeSets++
			size.NodeSetBytes += int64(to - from)
			size.nodeSet(data[from:to])
		case tagSnapshotJob:
			size.Jobs++
			size.AddJob(data[from:to])
			if l.taken == 0 {
				l.from = start
			}
			l.to, l.taken = to, l.taken+to-start
		case tagChangeRemoveNode, tagChangeRemoveQueue, tagChangeRemoveJob, tagChangeTask, tagChangeRemoveSet,
			tagChangeRemoveBudget, tagChangeRemoveQuota:
			size.Updates++
		}
	}
	for len(l.cuts) < n-1 {
		l.cuts = append(l.cuts, partStart{len(data), size.extent()})
	}
	return size
}

// nodeSet counts the exclusions of a node set, and what it has as a flavor.
func (z *Size) nodeSet(b []byte) {
	field.Each(b, tagSetExclusion, func([]byte) bool { z.ExtraParts++; return true })
	field.Each(b, tagSetPreference, func([]byte) bool { z.ExtraParts++; return true })
	field.Each(b, tagSetFlavor, func(flavor []byte) bool { z.extra(flavor); return true })
}

// AddJob adds an encoded job.
func (z *Size) AddJob(b []byte) {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			return
		}
		switch i = to; tag {
		case tagJobGroup:
			z.Groups++
			z.group(b[from:to])
		case tagJobDetail:
			z.ExtraParts++
			z.extra(b[from:to])
		case tagJobKueue:
			z.extra(b[from:to])
			const podSet, request = 7<<3 | field.Delimited, 5<<3 | field.Delimited
			asked := int64(0)
			field.Each(b[from:to], podSet, func(set []byte) bool {
				asked++
				field.Each(set, request, func(amounts []byte) bool { asked += int64(len(amounts) / 9); return true })
				return true
			})
			z.Asked = max(z.Asked, asked)
		}
	}
}

// queue counts what a queue says of usage, the terms of its affinity, and its limits for groups of nodes.
func (z *Size) queue(b []byte) {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			return
		}
		switch i = to; tag {
		case tagQueueAffinity:
			z.affinity(b[from:to])
		case tagQueueUsage, tagQueueOwner, tagQueueEntitled, tagQueueReserved:
			z.Usages++
		case tagQueueBudget:
			z.Usages += 2
		case tagQueueLimits:
			before := z.ExtraParts
			z.extra(b[from:to])
			z.limits(z.ExtraParts - before)
		case tagQueueKueue:
			z.extra(b[from:to])
			const quota = 3<<3 | field.Delimited
			flavors := int64(0)
			field.Each(b[from:to], quota, func([]byte) bool { flavors++; return true })
			z.Flavors = max(z.Flavors, flavors)
		}
	}
}

// limits counts n limits for groups of nodes: each has a row in the model and another one in node_group, and names a group.
func (z *Size) limits(n int64) {
	z.Usages += 2 * n
	z.Terms += n
}

// extra counts what is decoded by the library: what only the policy kueue reads, and limits for groups of nodes.
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
			if to-from > longestShort {
				z.longTask(b[from:to])
			}
			z.Tasks += int64(1 + more)
			z.TaskBytes += int64(end - from)
		}
	}
}

// longestShort is the length up to which a task cannot name many disruption budgets.
const longestShort = 127

// longTask counts the disruption budgets that a task names.
func (z *Size) longTask(b []byte) {
	field.Each(b, tagTaskDetail, func(detail []byte) bool {
		field.Each(detail, tagDetailBudgets, func(list []byte) bool {
			field.Each(list, 1<<3|field.Delimited, func([]byte) bool { z.ExtraParts++; return true })
			return true
		})
		return true
	})
}

// Memory estimates, in advance, the memory for compiling a snapshot of this size and opening a session on it.
func (z Size) Memory() int64 {
	// cpu and memory are dimensions of every model.
	row := RowBytes(int(z.Dimensions) + 2)
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
	// A reservation has a row in the model and three in a session; the decoder keeps its message and what reads it.
	const reservationBytes = 2 << 10
	// A budget or a quota is also found by name, in its index and among those that were set. Where there are any, each task may name some.
	entries := int64(0)
	if z.Entries > 0 {
		const entryBytes = 512
		entries = entryBytes*z.Entries + taskEntryBytes*z.Tasks
	}
	// A node of a set is written in a byte at least; it is kept in 4 bytes here and as many in the decoder.
	return z.Bytes + rows*row + (BytesOf[model.NodeSet](1)+64)*z.NodeSets + 8*z.NodeSetBytes +
		(BytesOf[model.Node](1)+indexEntry)*z.Nodes + (BytesOf[model.Queue](1)+indexEntry)*z.Queues +
		(BytesOf[model.Job](1)+2*BytesOf[model.Account](1)+256)*z.Jobs + (BytesOf[model.Group](1)+128)*z.Groups +
		(BytesOf[model.Task](1)+BytesOf[model.Detail](1)+40)*z.Tasks +
		growing*(BytesOf[model.Count](1)*z.Counts+BytesOf[model.LeftOut](1)*z.LeftOut) + termBytes*z.Terms +
		(row+BytesOf[model.OwnerUsage](1)+usageBytes)*z.Usages + (4*row+reservationBytes)*z.Reservations +
		extraBytes*z.ExtraBytes + extraParts*z.ExtraParts + entries
}

// taskEntryBytes is what the disruption budgets of a task may take while they are read.
const taskEntryBytes = 768

// SizeOf is Measure for a decoded snapshot.
func SizeOf(s *apportionv1.Snapshot, bytes int64) Size {
	z := Size{
		Bytes: bytes, Dimensions: int64(len(s.GetDimensions())), Nodes: int64(len(s.GetNodes())), NodeSets: int64(len(s.GetNodeSets())),
		Queues: int64(len(s.GetQueues())), Jobs: int64(len(s.GetJobs())), LeftOut: int64(len(s.GetLeftOuts())),
	}
	for _, set := range s.GetNodeSets() {
		z.NodeSetBytes += 5 * int64(len(set.GetNodes()))
		for _, e := range set.GetExclusions() {
			z.NodeSetBytes += int64(len(e.GetRule())) + 5*int64(1+len(e.GetNodes()))
			z.ExtraParts++
		}
		for _, p := range set.GetPreferences() {
			z.NodeSetBytes += 5 * int64(2+len(p.GetNodes()))
			z.ExtraParts++
		}
		z.decoded(set.GetFlavor())
	}
	z.Entries = int64(len(s.GetDisruptionBudgets()) + len(s.GetQuotas()))
	for _, b := range s.GetDisruptionBudgets() {
		z.decoded(b)
		z.ExtraParts += 3
	}
	for _, q := range s.GetQuotas() {
		z.decoded(q)
		z.ExtraParts += int64(2 + len(q.GetHardAmounts()) + len(q.GetUsedAmounts()))
	}
	z.decoded(s.GetPods())
	for _, n := range s.GetNodes() {
		z.NodeSetBytes += 5 * int64(len(n.GetDomains())+len(n.GetOtherPods())+len(n.GetLeavingPods()))
		z.Reservations += int64(len(n.GetReservations()))
	}
	for _, queue := range s.GetQueues() {
		z.decoded(queue.GetKueue())
		z.Flavors = max(z.Flavors, int64(wirekueue.Parts(queue.GetKueue())))
		z.Usages += int64(len(queue.GetOwners()))
		if queue.GetUsage() != nil {
			z.Usages++
		}
		if queue.GetEntitled() != nil {
			z.Usages++
		}
		if queue.GetReserved() != nil {
			z.Usages++
		}
		if queue.GetBudget() != nil {
			z.Usages += 2
		}
		a := queue.GetNodeGroupAffinity()
		for _, terms := range []*apportionv1.NodeGroupTerms{a.GetAffinity(), a.GetAntiAffinity()} {
			z.Terms += int64(len(terms.GetRequiredGroups()) + len(terms.GetPreferredGroups()))
		}
		z.decoded(queue.GetNodeGroupLimits())
		z.limits(int64(len(queue.GetNodeGroupLimits().GetGroups())))
	}
	for _, job := range s.GetJobs() {
		z.decoded(job.GetKueue())
		if job.Detail != nil {
			z.ExtraParts += int64(5 + len(job.Detail.GetQuotaRequests()))
			z.decoded(job.Detail)
		}
		z.Asked = max(z.Asked, int64(wirekueue.Parts(job.GetKueue())))
		z.Groups += int64(len(job.GetGroups()))
		for _, group := range job.GetGroups() {
			z.Tasks += int64(len(group.GetTasks()))
			z.Counts += int64(len(group.GetCounts()))
		}
	}
	return z
}

// decoded is extra for a decoded message, which counts all bytes as fields.
func (z *Size) decoded(m interface{ SizeVT() int }) {
	n := int64(m.SizeVT())
	z.ExtraBytes += n
	z.ExtraParts += n / 16
}
