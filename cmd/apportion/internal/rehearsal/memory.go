package rehearsal

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

// Memory lets a variant state in its snapshots what queues used, as a ledger that follows the rehearsed cluster does.
type Memory struct {
	// Epoch and HalfLife are those of the ledger.
	Epoch    time.Duration
	HalfLife int
	// Used is what queues had used when the trace begins, decayed, in quantum-seconds by queue and resource. A queue that is not listed is
	// new, unless the map is nil: then nothing was used.
	Used map[string]map[string]int64
	// Owners is what the owners of jobs had used then, by queue and owner, if Used is known.
	Owners map[string]map[string]map[string]int64
	// Budgets have periods. A budget that the snapshot states has none, and is spent on top of what the snapshot says.
	Budgets []ledger.Budget
}

// memory is the Memory of a run under way.
type memory struct {
	of     *Memory
	ledger *ledger.Ledger
	// zero is second 0 of the trace in Unix seconds.
	zero int64
	// first is the epoch in which the trace begins, epoch the one that the snapshot states.
	first, epoch int64
	// last is when the last period of a budget begins, in seconds of the trace.
	last     int64
	snapshot *apportionv1.Snapshot
	// stated are the budgets of the snapshot.
	stated []*apportionv1.Budget
	tree   tree
	uses   map[use]*segment
	// entitled is a ledger of what queues were entitled to, nil without turns, due what they are entitled to, and known the queues.
	entitled *ledger.Ledger
	due      map[string]*segment
	known    []ledger.Queue
	// fault is the first thing that the ledger refused.
	fault error
}

// kept is how many epochs the ledger of a run keeps: all of them, for budgets may have periods that are longer than what counts as usage.
const kept = 1 << 20

// use is who uses something.
type use struct{ queue, owner string }

// segment is a time in which a use stays the same.
type segment struct {
	since int64
	// amounts are raw, by resource.
	amounts map[string]int64
}

// remember makes the memory of a run. The snapshot has no jobs; its queues are copied, because the memory states their usage in them.
func (m *Memory) remember(s *apportionv1.Snapshot, t *trace.Trace, turns bool) (*memory, error) {
	options := ledger.Options{Epoch: m.Epoch, HalfLife: m.HalfLife, Retain: kept}
	l, err := ledger.New(options)
	if err != nil {
		return nil, err
	}
	queues := make([]*apportionv1.Queue, len(s.GetQueues()))
	r := &memory{of: m, ledger: l, last: never, snapshot: s, tree: treeOf(s), uses: map[use]*segment{}, zero: m.zero(t)}
	for i, q := range s.GetQueues() {
		queues[i] = proto.CloneOf(q)
		r.stated = append(r.stated, q.GetBudget())
	}
	s.Queues = queues
	at := r.zero
	if len(t.Jobs) > 0 {
		at += t.Jobs[0].Arrival
	}
	r.first = l.EpochOf(at)
	l.Follow(s, at)
	if m.Used != nil {
		l.Start(r.first, m.Used, m.Owners)
	}
	if turns {
		if r.entitled, err = ledger.New(options); err != nil {
			return nil, err
		}
		r.due = map[string]*segment{}
		r.entitled.Follow(s, at)
		if m.Used != nil {
			// What queues were entitled to before is not known: no queue has credit or debt of that time.
			r.entitled.Start(r.first, m.Used, nil)
		}
	}
	var known []ledger.Queue
	for _, q := range queues {
		known = append(known, ledger.Queue{Name: q.GetName(), Parent: r.tree[q.GetName()], Weight: weightOf(q)})
	}
	l.Row(at, known, m.Budgets)
	r.known = known
	for i := range m.Budgets {
		if n := len(m.Budgets[i].Periods); n > 0 {
			begin := m.Budgets[i].Periods[n-1].Begin - r.zero
			if r.last == never || begin > r.last {
				r.last = begin
			}
		}
	}
	r.state(at - r.zero)
	return r, nil
}

// zero returns second 0 of a trace in Unix seconds. A trace that does not say when it was begins with the first period of a budget.
func (m *Memory) zero(t *trace.Trace) int64 {
	if !t.Start.IsZero() {
		return t.Start.Unix()
	}
	first := int64(math.MaxInt64)
	for i := range m.Budgets {
		for _, p := range m.Budgets[i].Periods {
			first = min(first, p.Begin)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first
}

func weightOf(q *apportionv1.Queue) uint32 {
	if q.Weight == nil {
		return 1
	}
	return q.GetWeight()
}

// use adds a task to what its queue uses from now on, or with -1 takes it away.
func (m *memory) use(j *job, task int, now, sign int64) {
	by := use{j.Queue, j.Owner}
	s := m.uses[by]
	if s == nil {
		s = &segment{since: now, amounts: map[string]int64{}}
		m.uses[by] = s
	}
	m.charge(by, s, now)
	for _, a := range j.Groups[j.group(task)].Request {
		s.amounts[a.Resource] += sign * int64(a.Amount)
	}
}

// charge enters in the ledger what was used until now.
func (m *memory) charge(by use, s *segment, now int64) {
	since, until := m.zero+s.since, m.zero+now
	s.since = now
	if since == until {
		return
	}
	err := m.ledger.Enter(&ledger.Evidence{
		Task: fmt.Sprint(by, since), Start: since, Path: m.tree.path(by.queue), Owner: by.owner, Amounts: s.amounts,
		Seen: until, End: until, Ended: true,
	}, until)
	if err != nil && m.fault == nil {
		m.fault = fmt.Errorf("the usage of queue %s: %w", by.queue, err)
	}
}

// next returns when the next epoch begins, in seconds of the trace.
func (m *memory) next() int64 { return (m.epoch+1)*int64(m.of.Epoch/time.Second) - m.zero }

// turn states the usage of a new epoch, and reports whether there is one.
func (m *memory) turn(now int64) (bool, error) {
	if now < m.next() {
		return false, nil
	}
	for by, s := range m.uses {
		m.charge(by, s, now)
	}
	for queue, s := range m.due {
		m.credit(queue, s, now)
	}
	m.ledger.Seal()
	if m.entitled != nil {
		m.entitled.Seal()
	}
	m.state(now)
	return true, m.fault
}

// state states in the snapshot the usage at the beginning of the epoch that contains a time.
func (m *memory) state(now int64) {
	at := m.zero + now
	m.epoch = m.ledger.EpochOf(at)
	m.ledger.Fill(m.snapshot, at, m.of.Budgets)
	m.stateEntitled(at)
	spent := m.ledger.Spent(m.first, m.epoch)
	dimensions := m.ledger.Dimensions()
	for i, q := range m.snapshot.GetQueues() {
		if m.stated[i] == nil || q.GetBudget() == nil || m.budgeted(q.GetName()) {
			continue
		}
		q.Budget = proto.CloneOf(m.stated[i])
		m.spend(q.GetBudget(), spent[ledger.Line{Queue: q.GetName()}], dimensions)
	}
}

// budgeted reports whether a queue has a budget with periods.
func (m *memory) budgeted(queue string) bool {
	return slices.ContainsFunc(m.of.Budgets, func(b ledger.Budget) bool { return b.Queue == queue })
}

// spend adds to a budget what was spent of its dimensions, by dimension of the ledger.
func (m *memory) spend(b *apportionv1.Budget, spent []int64, dimensions []string) {
	before := map[uint32]int64{}
	for i, d := range b.GetSpent().GetDimensions() {
		before[d] = b.GetSpent().GetQuantumSeconds()[i]
	}
	b.Spent = &apportionv1.Usage{}
	for _, d := range b.GetAmount().GetDimensions() {
		n := before[d]
		if at := slices.Index(dimensions, m.snapshot.GetDimensions()[d]); at >= 0 && at < len(spent) {
			n += min(spent[at], math.MaxInt64-n)
		}
		b.Spent.Dimensions, b.Spent.QuantumSeconds = append(b.Spent.Dimensions, d), append(b.Spent.QuantumSeconds, n)
	}
}
