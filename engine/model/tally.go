package model

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// errTally means that the snapshot must be read again with all its tasks: it may be invalid, or sums depend on the order of tasks.
var errTally = errors.New("the snapshot cannot be built without its tasks")

// Extent counts jobs, and the groups and tasks in them.
type Extent struct{ Jobs, Groups, Tasks int }

// tally is the state of a builder that only counts tasks.
type tally struct {
	on bool
	// counts are the tasks without details in the newest group, by status.
	counts [NumStatus]int32
	// uids are the hashes of the uids of all tasks.
	uids []uint64
	// places and late are scratch memory for finding equal ones; repeated is true if there may be some.
	places, late []uint64
	repeated     bool
	// n is how many tasks were counted, nodes how many nodes there are.
	n, nodes int
	// all holds the jobs, groups and hashes of all parts. Each part fills its range, which begins at from, so that nothing is copied.
	all  tallied
	from Extent
}

// tallied is the memory that the parts of a tally share.
type tallied struct {
	jobs   []Job
	groups []Group
	uids   []uint64
}

// Tally prepares the builder for a snapshot of exactly this extent and number of nodes. The model keeps only the sums of its tasks. Jobs
// then come by OpenJob and CloseJob, groups by OpenGroup and CloseGroup, tasks by CountTask and CountDetailed.
//
// Build returns errTally for any fault, and if the model might be insufficient for questions about sums of tasks. The model has no Tasks
// and no Counts.
func (l Loader) Tally(extent Extent, nodes int) {
	b := l.Builder
	t := &b.tally
	t.on, t.nodes = true, nodes
	t.all = tallied{sized(b.jobs, extent.Jobs), sized(b.groups, extent.Groups), sized(t.uids, extent.Tasks)}
	b.store.size(extent.Jobs, extent.Groups, b.width)
	b.take(&t.all, Extent{}, extent)
}

// TallyTo sets the end of b's own range, before Parts are made.
func (l Loader) TallyTo(to Extent) { l.take(&l.tally.all, Extent{}, to) }

// TallyPart is Part for a builder that counts tasks: p fills the range of the snapshot between from and to.
func (l Loader) TallyPart(p Loader, from, to Extent) {
	l.Part(p)
	p.tally.nodes = l.tally.nodes
	p.take(&l.tally.all, from, to)
	p.store = l.store.part(from, to, l.width)
}

// take makes b fill a range of the shared memory.
func (b *Builder) take(all *tallied, from, to Extent) {
	b.tally.from = from
	b.jobs = all.jobs[from.Jobs:from.Jobs:to.Jobs]
	b.groups = all.groups[from.Groups:from.Groups:to.Groups]
	b.tally.uids = all.uids[from.Tasks:from.Tasks:to.Tasks]
}

// untake returns the shared memory to b.
func (b *Builder) untake() {
	if t := &b.tally; t.on {
		b.jobs, b.groups, t.uids = t.all.jobs, t.all.groups, t.all.uids
	}
}

// OpenJob begins a job. False: there are more than were expected.
func (l Loader) OpenJob() bool {
	b := l.Builder
	n := len(b.jobs)
	if n == cap(b.jobs) {
		return false
	}
	b.job++
	b.group, b.task = -1, -1
	b.jobs = b.jobs[:n+1]
	groups := len(b.groups)
	b.store.begin(n, groups, b.width)
	job := &b.jobs[n]
	*job = Job{Queue: None}
	job.FirstGroup = GroupID(b.tally.from.Groups + groups)
	return true
}

// CloseJob ends the newest job and sets its fields. The queue is given by its position.
func (l Loader) CloseJob(s *JobSpec, queue QueueID) {
	b := l.Builder
	n := len(b.jobs) - 1
	job := &b.jobs[n]
	b.describe(job, s, queue, &noJob)
	groups := len(b.groups)
	job.EndGroup = GroupID(b.tally.from.Groups + groups)
	b.store.end(n, int(job.FirstGroup)-b.tally.from.Groups, groups)
}

// OpenGroup begins a group of the newest job. False: there are more than were expected.
func (l Loader) OpenGroup() bool {
	b := l.Builder
	n := len(b.groups)
	if n == cap(b.groups) {
		return false
	}
	b.group++
	b.task = -1
	b.groups = b.groups[:n+1]
	b.store.counts[n], b.store.bestEffort[n] = [NumStatus]int32{}, 0
	return true
}

// CloseGroup ends the newest group and sets its fields. The request is given by its position in Requests.
func (l Loader) CloseGroup(s *GroupSpec, request int32) {
	b := l.Builder
	t := &b.tally
	group := &b.groups[len(b.groups)-1]
	*group = Group{
		Job: JobID(t.from.Jobs + len(b.jobs) - 1), Role: b.text.again(&b.role, s.Role), MinAvailable: -1, Unjudged: s.Unjudged,
		NodeSet: b.nodeSet(s.NodeSet, b.groupPath), Request: request, PodClass: b.podClass(s.PodClass, b.groupPath),
		Unstated: s.Unstated,
	}
	if s.HasMin {
		group.MinAvailable = int32(min(s.MinAvailable, math.MaxInt32))
		if s.MinAvailable > math.MaxInt32 {
			b.faults.Total++
		}
	}
	if last := len(b.groups) - 1; b.group > 0 {
		b.checkRole(group.Role, b.groups[last-b.group:last])
	}
	for status, n := range t.counts {
		if n > 0 {
			b.book(Status(status), GateNone, n, request)
			t.counts[status] = 0
		}
	}
}

// CountTask adds a task without a detail to the newest group.
func (l Loader) CountTask(uid UIDHash, status Status, node NodeID) {
	l.tally.counts[status]++
	l.record(uid, node)
}

// CountDetailed adds a task whose request is at a position in Requests to the newest group.
func (l Loader) CountDetailed(uid UIDHash, status Status, gate Gate, node NodeID, request int32) {
	l.book(status, gate, 1, request)
	l.record(uid, node)
}

// CountEqual adds n equal tasks without identity to the newest group.
func (l Loader) CountEqual(status Status, gate Gate, n uint32, request int32) {
	b := l.Builder
	if b.counted += int64(n); b.counted+int64(b.tally.n) > maxCount {
		b.faults.Total++
		return
	}
	b.book(status, gate, int32(n), request)
}

// book adds tasks of the newest group to the account of its job.
func (b *Builder) book(status Status, gate Gate, n, request int32) {
	row := b.m.Requests[request]
	b.store.accounts[len(b.jobs)-1].put(row, status, gate, b.group, n, b.m.BestEffort(row))
}

// record records a task's uid, and whether its node exists.
func (b *Builder) record(uid UIDHash, node NodeID) {
	t := &b.tally
	t.n++
	if uid != NoUID {
		t.uids = append(t.uids, uint64(uid))
	}
	if node != None && uint32(node) >= uint32(t.nodes) {
		b.faults.Total++
	}
}

// joinTally is Join for builders that count tasks.
func (b *Builder) joinTally(p *Builder) bool {
	t, from := &b.tally, p.tally.from
	if len(b.jobs) != from.Jobs || len(b.groups) != from.Groups || len(p.jobs) < cap(p.jobs) || len(p.groups) < cap(p.groups) {
		return false
	}
	b.jobs, b.groups = t.all.jobs[:from.Jobs+len(p.jobs)], t.all.groups[:from.Groups+len(p.groups)]
	at := b.joinRequests(p)
	for g := range p.groups {
		group := &p.groups[g]
		group.Request = at[group.Request]
	}
	t.n += p.tally.n
	t.all.uids = append(t.all.uids[:len(t.uids)], p.tally.uids...)
	t.uids = t.all.uids
	b.counted += p.counted
	return b.counted+int64(t.n) <= maxCount
}

// findRepeated records whether tasks may have the same uid.
func (b *Builder) findClashes(func() bool) bool {
	b.tally.repeated = !b.tally.distinct()
	return true
}

// distinct reports whether no two uids have the same hash, so that none is given twice.
//
// Each hash sets one of at least 16 times as many bits. The few hashes that find their bit set are compared with the hashes that set it.
func (t *tally) distinct() bool {
	const least, spread = 10, 4
	exponent := max(bits.Len(uint(len(t.uids)))+spread, least)
	shift := 64 - exponent
	t.places = zeroed(t.places, 1<<(exponent-6))
	late := t.late[:0]
	for _, uid := range t.uids {
		word, bit := &t.places[uid>>shift>>6], uint64(1)<<(uid>>shift&63)
		if *word&bit != 0 {
			late = append(late, uid)
		}
		*word |= bit
	}
	t.late = late
	if len(late) == 0 {
		return true
	}
	clear(t.places)
	for _, uid := range late {
		t.places[uid>>shift>>6] |= 1 << (uid >> shift & 63)
	}
	met := late[:0]
	for _, uid := range t.uids {
		if t.places[uid>>shift>>6]>>(uid>>shift&63)&1 != 0 {
			met = append(met, uid)
		}
	}
	t.late = met
	slices.Sort(met)
	return len(slices.Compact(met)) == len(met)
}

// reset empties t and keeps its memory.
func (t *tally) reset() { *t = tally{uids: t.uids[:0], places: t.places, late: t.late} }

// forget drops b's references to the memory of the builder whose part it was.
func (b *Builder) forget() {
	if b.change != nil {
		*b = Builder{}
	}
	if b.tally.on {
		b.jobs, b.groups, b.tally.uids, b.store = nil, nil, nil, accountStore{}
	}
}

// sized returns n entries, in the memory of list if it is large enough.
func sized[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	return list[:n]
}

// size allocates the accounts of this many jobs and groups.
func (s *accountStore) size(jobs, groups, width int) {
	s.accounts, s.cells = sized(s.accounts, jobs), sized(s.cells, rowsOfAccount*jobs*width)
	s.counts, s.bestEffort = sized(s.counts, groups), sized(s.bestEffort, groups)
}

// part returns the memory of the accounts between from and to.
func (s *accountStore) part(from, to Extent, width int) accountStore {
	cells := rowsOfAccount * width
	return accountStore{
		accounts: s.accounts[from.Jobs:to.Jobs], cells: s.cells[from.Jobs*cells : to.Jobs*cells],
		counts: s.counts[from.Groups:to.Groups], bestEffort: s.bestEffort[from.Groups:to.Groups],
	}
}

// begin empties the account of a job whose groups begin at groups.
func (s *accountStore) begin(job, groups, width int) {
	a := &s.accounts[job]
	clear(s.cells[rowsOfAccount*job*width : rowsOfAccount*(job+1)*width])
	*a = Account{GroupTasks: s.counts[groups:], GroupPendingBestEffort: s.bestEffort[groups:]}
	s.lay(a, job, width)
}

// end sets the end of a job's groups in its account.
func (s *accountStore) end(job, from, to int) {
	a := &s.accounts[job]
	a.GroupTasks, a.GroupPendingBestEffort = s.counts[from:to:to], s.bestEffort[from:to:to]
}

// lay makes the job's cells the memory of an account's rows.
func (s *accountStore) lay(a *Account, job, width int) {
	for i, row := range [rowsOfAccount]*resource.Row{&a.Allocated, &a.Pending, &a.Gated, &a.Total} {
		from := (rowsOfAccount*job + i) * width
		*row = resource.Row{V: s.cells[from : from+width : from+width], Has: resource.Base}
	}
}

// keys are random per process, so that a client cannot construct texts with equal hashes.
var keys = func() (k [4]uint64) {
	for i := range k {
		k[i] = maphash.Comparable(seed, i) | 1
	}
	return k
}()

// UIDHash is the hash of a task's uid, or NoUID. It differs from process to process.
type UIDHash uint64

// NoUID is the hash of an absent uid.
const NoUID UIDHash = 0

// HashUID returns the hash of a uid, and whether all of its bytes are ASCII: one pass over the uids of all tasks takes half the time of one
// for each. The library hashes uids below 16 bytes, which are rare.
//
// The hash is like wyhash: it reads sixteen bytes at a time, the last ones overlapping those before, and folds the halves of each product.
func HashUID(b []byte) (hash UIDHash, ascii bool) {
	if len(b) < 16 {
		return hashShort(b)
	}
	const highest = 0x8080808080808080
	last := b[len(b)-16:]
	x, y := binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:])
	all, h := x|y, keys[0]^uint64(len(b))
	for ; len(b) > 16; b = b[16:] {
		u, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		all |= u | v
		h = fold(u^keys[1], v^h)
	}
	h = fold(x^keys[2], y^h)
	return max(UIDHash(fold(h^keys[3], keys[0])), NoUID+1), all&highest == 0
}

func hashShort(b []byte) (hash UIDHash, ascii bool) {
	if len(b) == 0 {
		return NoUID, true
	}
	all := byte(0)
	for _, c := range b {
		all |= c
	}
	return max(UIDHash(maphash.Bytes(seed, b)), NoUID+1), all < 0x80
}

// fold multiplies two numbers and folds the halves of the product.
func fold(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return high ^ low
}
