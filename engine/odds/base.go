package odds

import (
	"cmp"
	"slices"
)

// Base is what all runs of a model have in common: the state at second 0.
type Base struct {
	*Model

	width int
	room  *room
	used  [][]float64
	// asked are the amounts that the jobs of each queue hold and wait for, and total what all nodes offer.
	asked [][]float64
	total []float64
	// asks are the amounts of the gang of each kind, whole those of all its tasks, and size is the number of these.
	asks, whole [][]float64
	size        []int
	// waiting are the jobs of each line in their order, and of the lines of each queue. Line 2k is that of gangs of kind k, line 2k+1 that
	// of jobs of the kind that run and want more tasks.
	waiting [][]int32
	lines   [][]int32
	// pending are the jobs of each kind that wait to be admitted, in their order, and kinds the kinds of each queue. booked is what counts
	// against the limits of each queue at admission, and promised what admitted jobs wait for, of all queues.
	pending  [][]int32
	kinds    [][]int32
	booked   [][]float64
	promised []float64
	held     []float64
	// samples are those that runtimes are drawn from, by number; drawnOf and pastOf are the numbers for the jobs of the present and the
	// past.
	samples         []*Sample
	numbers         map[*Sample]int32
	drawnOf, pastOf []int32
	// block is the time that is repeated of the past, blocks how many there are.
	block, blocks int64
	// opens are the seconds at which nodes take tasks again, in order.
	opens []int64
}

// arrivalsOf is the time that is repeated as a whole, so that arrivals keep their times of the day, and recent how many of them are
// drawn from.
const (
	day    = int64(24 * 3600)
	recent = 28
)

// MaxArrivals bounds how many jobs arrive in a run; one with more is cut short.
const MaxArrivals = 100_000

// NewBase prepares the runs of a model.
func NewBase(m *Model) *Base {
	b := &Base{Model: m, opens: m.opens()}
	if len(m.Nodes) > 0 {
		b.width = len(m.Nodes[0])
	}
	b.room = newRoom(m, b.width)
	b.room.left = new(int64)
	b.used = make([][]float64, len(m.Queues))
	b.asked, b.booked = make([][]float64, len(m.Queues)), make([][]float64, len(m.Queues))
	for q := range b.used {
		b.used[q], b.asked[q], b.booked[q] = make([]float64, b.width), make([]float64, b.width), make([]float64, b.width)
	}
	b.promised, b.held = make([]float64, b.width), make([]float64, b.width)
	b.total = make([]float64, b.width)
	for _, free := range m.Nodes {
		addTo(b.total, free, 1)
	}
	b.measureKinds()
	b.waiting, b.pending = make([][]int32, 2*len(m.Kinds)), make([][]int32, len(m.Kinds))
	b.numbers = map[*Sample]int32{}
	for i := range m.Past {
		b.pastOf = append(b.pastOf, b.enroll(m.Past[i].Drawn))
	}
	for i := range m.Jobs {
		b.drawnOf = append(b.drawnOf, b.enroll(m.Jobs[i].Drawn))
		b.enter(i)
	}
	for _, lines := range [][][]int32{b.waiting, b.pending} {
		for _, line := range lines {
			slices.SortStableFunc(line, func(l, r int32) int { return cmp.Compare(m.Jobs[l].Rank, m.Jobs[r].Rank) })
		}
	}
	if m.Arrivals && len(m.Past) > 0 {
		span := -m.Past[0].Arrival
		b.block = min(day, max(span, 1))
		b.blocks = min(max(span/b.block, 1), recent)
	}
	return b
}

func (b *Base) measureKinds() {
	b.lines, b.kinds = make([][]int32, len(b.Queues)), make([][]int32, len(b.Queues))
	for k := range b.Kinds {
		kind := &b.Kinds[k]
		asks := make([]float64, b.width)
		size := 0
		for _, t := range kind.Gang {
			size += t.N
			addTo(asks, t.Request, float64(t.N))
		}
		whole := slices.Clone(asks)
		for _, t := range kind.More {
			size += t.N
			addTo(whole, t.Request, float64(t.N))
		}
		b.asks, b.whole, b.size = append(b.asks, asks), append(b.whole, whole), append(b.size, max(size, 1))
		b.lines[kind.Queue] = append(b.lines[kind.Queue], int32(2*k), int32(2*k+1))
		b.kinds[kind.Queue] = append(b.kinds[kind.Queue], int32(k))
	}
}

// enter adds a job of the present.
func (b *Base) enter(i int) {
	job := &b.Jobs[i]
	queue := b.Kinds[job.Kind].Queue
	for _, h := range job.Held {
		b.room.add(h.Node, h.Amount, -1)
		addTo(b.asked[queue], h.Amount, 1)
		addTo(b.held, h.Amount, 1)
		for q := queue; q >= 0; q = b.Queues[q].Parent {
			addTo(b.used[q], h.Amount, 1)
		}
	}
	for q := queue; q >= 0 && job.Booked != nil; q = b.Queues[q].Parent {
		addTo(b.booked[q], job.Booked, 1)
	}
	if !job.Waits {
		return
	}
	addTo(b.asked[queue], b.whole[job.Kind], 1)
	if b.Admission && job.Pending {
		b.pending[job.Kind] = append(b.pending[job.Kind], int32(i))
		return
	}
	line := 2 * job.Kind
	if len(b.Kinds[job.Kind].Gang) == 0 {
		line++
	} else {
		addTo(b.promised, b.Kinds[job.Kind].Min, 1)
	}
	b.waiting[line] = append(b.waiting[line], int32(i))
}

func addTo(sum, amount []float64, times float64) {
	for d, a := range amount {
		sum[d] += float64(times * a)
	}
}
