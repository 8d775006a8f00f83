package decode

import (
	"sync"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/field"
	"github.com/apportion/apportion/internal/processor"
)

// Reading jobs is most of the work on a large snapshot, and nothing in one job's bytes depends on another's. So their bytes are cut into
// parts, which are read at the same time into builders of their own, whose models are joined in order. The result is the same as in one go;
// if there is a fault, the jobs are read again in one go, because only then do positions count from the first job.

const (
	// partTasks is the minimum number of tasks in a part: about a millisecond of reading.
	partTasks = 8 << 10
	// partChanged is the size for a change, whose tasks are also looked up in the base. Waking another processor costs more than a smaller
	// part saves.
	partChanged = 2 << 10
)

// parts returns in how many parts the jobs of a snapshot are read.
func parts(size *Size) int { return partsOf(size, partTasks) }

// partsOfChange returns in how many parts the jobs of a change are read.
func partsOfChange(size *Size) int { return partsOf(size, partChanged) }

func partsOf(size *Size, tasks int64) int {
	return int(max(min(size.Tasks/tasks, int64(processor.Count()), maxParts), 1))
}

// jobsInParts does what allJobs does in n parts, or returns false.
func (d *Decoder) jobsInParts(data []byte, size *Size, n int) bool {
	d.enough(n)
	cuts, extents := size.layout.cuts, size.extents(n)
	if len(cuts) != n-1 || size.Bytes != int64(len(data)) {
		cuts = cutsOf(data, n)
	}
	stop := d.stop
	d.stop = oneByOne(stop)
	defer func() { d.stop = stop }()
	for i, p := range d.parts[:n-1] {
		d.begin(p)
		d.c.b.Part(p.c.b)
		e := extents[i+1]
		p.c.b.Expect(e.Jobs, e.Groups, e.Tasks, share(size.TaskBytes, n))
		p.first = cuts[i].before.Jobs
	}
	read := make([]bool, n)
	processor.AtOnce(n, func(i int) { read[i] = d.part(i).allJobs(partOf(data, cuts, i)) })
	return d.joined(read)
}

// enough makes decoders for n parts.
func (d *Decoder) enough(n int) {
	for len(d.parts) < n-1 {
		d.parts = append(d.parts, new(Decoder))
	}
}

// part returns the decoder that reads a part; d reads the first.
func (d *Decoder) part(i int) *Decoder {
	if i == 0 {
		return d
	}
	return d.parts[i-1]
}

// joined joins the parts; each reports whether it was read.
func (d *Decoder) joined(read []bool) bool {
	for i, ok := range read {
		if !ok || i > 0 && !d.join(d.parts[i-1]) {
			return false
		}
	}
	return true
}

// sums is jobsInParts for tasks that are only counted. Each part is counted beforehand, and fills its place among all. The first of several
// begins with the nodes if nodes says so.
func (d *Decoder) sums(data []byte, size *Size, n int, nodes bool) bool {
	cuts, all := size.layout.cuts, size.extent()
	if len(cuts) != n-1 || size.Bytes != int64(len(data)) {
		counted := measureIn(data, n)
		cuts = counted.layout.cuts
	}
	b := d.c.b
	b.Tally(all, int(size.Nodes))
	d.requests.reset()
	if n == 1 {
		return d.allJobs(data)
	}
	d.enough(n)
	stop := d.stop
	d.stop = oneByOne(stop)
	defer func() { d.stop = stop }()
	b.TallyTo(cuts[0].before)
	for i, p := range d.parts[:n-1] {
		to := all
		if i+1 < len(cuts) {
			to = cuts[i+1].before
		}
		d.begin(p)
		p.requests.reset()
		b.TallyPart(p.c.b, cuts[i].before, to)
	}
	read := make([]bool, n)
	processor.AtOnce(n, func(i int) {
		if i == 0 && nodes && !d.nodes(size.around(data)) {
			return
		}
		read[i] = d.part(i).allJobs(partOf(data, cuts, i))
	})
	return d.joined(read)
}

// begin makes p ready to read beside d.
func (d *Decoder) begin(p *Decoder) {
	if p.c.b.Builder == nil {
		p.c.b = new(model.Builder).Loader()
	}
	p.c.limits, p.c.longest, p.stop, p.asked, p.tally = d.c.limits, 0, d.stop, 0, d.tally
}

// extents returns what each of n parts holds, or about so much if the parts were not counted.
func (z *Size) extents(n int) []model.Extent {
	list, cuts := make([]model.Extent, n), z.layout.cuts
	if len(cuts) != n-1 {
		for i := range list {
			list[i] = model.Extent{Jobs: share(z.Jobs, n), Groups: share(z.Groups, n), Tasks: share(z.Tasks, n)}
		}
		return list
	}
	from := model.Extent{}
	for i := range list {
		to := z.extent()
		if i < len(cuts) {
			to = cuts[i].before
		}
		list[i] = model.Extent{Jobs: to.Jobs - from.Jobs, Groups: to.Groups - from.Groups, Tasks: to.Tasks - from.Tasks}
		from = to
	}
	return list
}

// share returns the size of one of n parts of a total, with a reserve if there are several.
func share(all int64, n int) int {
	if n == 1 {
		return int(all)
	}
	return int(all/int64(n) + all/16)
}

func (d *Decoder) join(p *Decoder) bool {
	p.stop = nil
	d.c.longest = max(d.c.longest, p.c.longest)
	return d.c.b.Join(p.c.b)
}

const (
	// partBytes is how many bytes are worth a part: about those of partChanged tasks. To note where a part begins while everything is
	// counted costs nothing.
	partBytes = 128 << 10
	// besideBytes is from how many bytes on parts are counted at the same time. One processor counts 7 MB in a millisecond, and it takes
	// 0.1 to 0.5 ms until a goroutine starts on another.
	besideBytes = 16 << 20
	// maxParts bounds what one snapshot may occupy of a machine with many cores.
	maxParts = 4
)

// partOf returns the i-th part of the data.
func partOf(data []byte, cuts []partStart, i int) []byte {
	if i < len(cuts) {
		data = data[:cuts[i].at]
	}
	if i > 0 {
		data = data[cuts[i-1].at:]
	}
	return data
}

// partStart is the beginning of a part, with the numbers of entities before it. Only Measure counts groups and tasks.
type partStart struct {
	at     int
	before model.Extent
}

// cutsOf returns where the second and each later of n parts of about the same length begin, fields being kept whole.
func cutsOf(data []byte, n int) []partStart {
	cuts := make([]partStart, 0, n-1)
	jobs, at := 0, 0
	for len(cuts) < n-1 {
		if at >= (len(cuts)+1)*(len(data)/n) || at >= len(data) {
			cuts = append(cuts, partStart{at, model.Extent{Jobs: jobs}})
			continue
		}
		tag, _, _, to := field.At(data, at)
		if to < 0 {
			to = len(data)
		}
		if at = to; tag == tagSnapshotJob {
			jobs++
		}
	}
	return cuts
}

// oneByOne returns stop as one that several may ask at the same time.
func oneByOne(stop func() bool) func() bool {
	if stop == nil {
		return nil
	}
	var asking sync.Mutex
	return func() bool {
		asking.Lock()
		defer asking.Unlock()
		return stop()
	}
}
