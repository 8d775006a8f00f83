package rehearsal

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

// expected returns when a job will end if it runs, and how long it runs with the fewest tasks once it starts; 0 for what is not stated.
func (r *run) expected(j *job) (end, runtime int64) {
	if !r.timed {
		return 0, 0
	}
	if j.working {
		end = r.nanoseconds(j.end)
	}
	return end, r.nanoseconds(j.total / int64(max(1, j.Min)))
}

// noteEntitled notes what queues are entitled to from now on, and what room is kept idle for their gangs.
func (r *run) noteEntitled() {
	if r.memory == nil || r.memory.entitled == nil {
		return
	}
	v := r.session.View()
	for _, d := range r.session.Dividers() {
		if d.Queues == nil {
			continue
		}
		for _, q := range v.QueueOrder {
			share, divided := d.Queues.Share(q)
			if !divided || len(share.Children) > 0 {
				continue
			}
			amounts := map[string]int64{}
			for _, at := range v.Dims.Order() {
				amounts[v.Dims.Name(at)] = int64(share.Deserved.V[at])
			}
			if keeper, keeps := d.Queues.(policy.QueueReserver); keeps {
				for at, amount := range keeper.ReservedFor(q).V {
					if amount > 0 {
						amounts[ledger.Reserved(v.Dims.Name(at))] = int64(amount)
					}
				}
			}
			r.memory.entitle(v.Queues[q].Name, amounts, r.now)
		}
	}
}

// entitle notes what a queue is entitled to from now on.
func (m *memory) entitle(queue string, amounts map[string]int64, now int64) {
	s := m.due[queue]
	if s == nil {
		m.due[queue] = &segment{since: now, amounts: amounts}
		return
	}
	if !maps.Equal(s.amounts, amounts) {
		m.credit(queue, s, now)
		s.amounts = amounts
	}
}

// credit enters in the ledger of entitlements what a queue was entitled to until now.
func (m *memory) credit(queue string, s *segment, now int64) {
	since, until := m.zero+s.since, m.zero+now
	s.since = now
	if since == until {
		return
	}
	err := m.entitled.Enter(&ledger.Evidence{
		Task: fmt.Sprint(queue, since), Start: since, Path: m.tree.path(queue), Amounts: s.amounts, Seen: until, End: until, Ended: true,
	}, until)
	if err != nil && m.fault == nil {
		m.fault = fmt.Errorf("the entitlement of queue %s: %w", queue, err)
	}
}

// stateEntitled states in the snapshot what queues were entitled to until a time, and what room was kept idle for their gangs.
func (m *memory) stateEntitled(at int64) {
	if m.entitled == nil {
		return
	}
	row := m.entitled.Row(at, m.known, nil)
	for _, q := range m.snapshot.GetQueues() {
		q.Entitled, q.Reserved = nil, nil
		if stated := row.Queues[q.GetName()]; stated != nil {
			q.Entitled = m.usage(stated, func(name string) string { return name })
			q.Reserved = m.usage(stated, ledger.Reserved)
		}
	}
}

// usage returns what a row of the ledger of entitlements says of the dimensions of the snapshot, which it has under other names.
func (m *memory) usage(stated []int64, under func(name string) string) *apportionv1.Usage {
	out := &apportionv1.Usage{}
	dimensions := m.entitled.Dimensions()
	for d, name := range m.snapshot.GetDimensions() {
		if i := slices.Index(dimensions, under(name)); i >= 0 && i < len(stated) {
			out.Dimensions, out.QuantumSeconds = append(out.Dimensions, uint32(d)), append(out.QuantumSeconds, stated[i])
		}
	}
	return out
}
