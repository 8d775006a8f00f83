package rehearsal

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Shares are the parts that queues have of what all of them used, decayed as a ledger does, at the beginning of every epoch.
type Shares struct {
	// Start and Step are in seconds of the trace; HalfLife is in seconds.
	Start    int64        `json:"start"`
	Step     int64        `json:"step"`
	HalfLife int64        `json:"halfLife"`
	Queues   []QueueShare `json:"queues"`
}

// QueueShare is the part of a queue. ByWeight is its part by its weight, and those of its ancestors, among the queues that have jobs.
type QueueShare struct {
	Name     string    `json:"name"`
	ByWeight float64   `json:"byWeight"`
	Share    []float64 `json:"share"`
}

// The epochs of runs without a memory.
const (
	defaultEpoch    = int64(6 * time.Hour / time.Second)
	defaultHalfLife = 28
)

// sharing sums up what queues use of the measured resource, decayed.
type sharing struct {
	// next is when the next epoch begins, in seconds of the trace.
	start, next, step int64
	halfLife          int
	decay             float64
	// used is decayed until the beginning of the epoch, now what was used since.
	used, now []float64
	rows      [][]float64
}

func (r *run) sharing(t *trace.Trace, first int64) sharing {
	s := sharing{step: defaultEpoch, halfLife: defaultHalfLife}
	s.used, s.now = make([]float64, len(r.base.Queues)), make([]float64, len(r.base.Queues))
	zero := int64(0)
	if !t.Start.IsZero() {
		zero = t.Start.Unix()
	}
	if r.memory != nil {
		s.step, s.halfLife, zero = int64(r.memory.of.Epoch/time.Second), r.memory.of.HalfLife, r.memory.zero
		r.memory.begin(&s, r)
	}
	s.decay = math.Exp2(-1 / float64(s.halfLife))
	s.next = ((zero+first)/s.step+1)*s.step - zero
	s.start = s.next
	return s
}

// begin adds what was used before the trace begins.
func (m *memory) begin(s *sharing, r *run) {
	options := m.ledger.Options()
	name := r.options.Resource
	for queue, used := range m.of.Used {
		if q, known := r.base.Queue(queue); known && used[name] > 0 {
			s.used[q] = float64(used[name]) * float64(options.Quantum(name))
		}
	}
}

// add adds a time in which nothing changes.
func (s *sharing) add(m *meter, from, to int64) {
	for from < to {
		until := min(to, s.next)
		for q := range m.queues {
			s.now[q] += float64(m.queues[q].used[m.measured] * float64(until-from))
		}
		if until == s.next {
			s.turn(m)
		}
		from = until
	}
}

// turn ends an epoch.
func (s *sharing) turn(m *meter) {
	s.next += s.step
	row, sum := make([]float64, len(s.used)), 0.0
	for q := range s.used {
		s.used[q] = float64(s.used[q]*s.decay) + s.now[q]
		s.now[q] = 0
		// An inner queue uses nothing itself.
		if m.queues[q].jobs > 0 {
			sum += s.used[q]
		}
	}
	for q := range row {
		if sum > 0 {
			row[q] = s.used[q] / sum
		}
	}
	s.rows = append(s.rows, row)
}

// sharesOf lists the queues that have jobs. Of more epochs than points of a series it shows every second, fourth and so on.
func (r *run) sharesOf() Shares {
	of := &r.meter.sharing
	every := 1
	for len(of.rows) > points*every {
		every *= 2
	}
	s := Shares{Start: of.start, Step: of.step * int64(every), HalfLife: int64(of.halfLife) * of.step}
	for _, q := range r.base.QueueOrder {
		if r.meter.queues[q].jobs == 0 {
			continue
		}
		share := QueueShare{Name: r.base.Queues[q].Name, ByWeight: r.byWeight(q), Share: []float64{}}
		for i := 0; i < len(of.rows); i += every {
			share.Share = append(share.Share, of.rows[i][q])
		}
		s.Queues = append(s.Queues, share)
	}
	return s
}

// byWeight returns the part of a queue by its weight, and those of its ancestors, among the queues that have jobs in them or below.
func (r *run) byWeight(q model.QueueID) float64 {
	busy := map[string]float64{}
	for i := range r.base.Queues {
		if r.meter.queues[i].jobs == 0 {
			continue
		}
		for _, name := range r.tree.path(r.base.Queues[i].Name) {
			if own, known := r.base.Queue(name); known {
				busy[name] = float64(r.base.Queues[own].Weight)
			}
		}
	}
	part := 1.0
	for _, name := range r.tree.path(r.base.Queues[q].Name) {
		siblings := 0.0
		for _, other := range slices.Sorted(maps.Keys(busy)) {
			if r.tree[other] == r.tree[name] {
				siblings += busy[other]
			}
		}
		if siblings > 0 {
			part *= busy[name] / siblings
		}
	}
	return part
}

// tree has the parent of each queue: "" is that of the root.
type tree map[string]string

const rootName = "root"

func treeOf(s *apportionv1.Snapshot) tree {
	t := tree{}
	for _, q := range s.GetQueues() {
		switch {
		case q.GetName() == rootName:
			t[rootName] = ""
		case q.GetParent() == "":
			t[q.GetName()] = rootName
		default:
			t[q.GetName()] = q.GetParent()
		}
	}
	return t
}

// path returns a queue and its ancestors, the root last; not all of them in a cycle.
func (t tree) path(queue string) []string {
	var path []string
	for at := queue; at != "" && !slices.Contains(path, at); at = t[at] {
		path = append(path, at)
	}
	return path
}
