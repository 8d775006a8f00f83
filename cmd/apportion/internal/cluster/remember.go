package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

// Memory is where a follower keeps what queues used, and what it states of it in snapshots.
type Memory struct {
	File    *file.File
	Budgets []ledger.Budget
	// Interval is the longest time until what is new is stored.
	Interval time.Duration
	// Entitled keeps what queues were entitled to. nil: snapshots do not state it.
	Entitled *Entitled
	// Copy is the file to which a copy is written whenever an epoch begins; empty: none.
	Copy   string
	failed prometheus.Counter

	// identified is true if the ledger is known to be about the followed cluster, or that cannot be known.
	identified bool
	epoch      int64
	// uncopied is true if the copy is of an epoch before. The goroutine that stores alone uses it.
	uncopied bool
	// storing is the goroutine that stores the ledger, if there is one.
	storing sync.WaitGroup

	mutex sync.Mutex
	// stored is when the ledger was stored last, tried when it was tried last, and fault why it could not be stored since; empty: it could.
	stored, tried time.Time
	fault         string
	// damaged is true once the file was found to be, busy while a goroutine stores, behind if a version came that it has yet to store, and
	// begun if an epoch began with it.
	damaged, busy, behind, begun bool
}

// NewMemory returns the memory of a follower.
func NewMemory(kept *file.File, budgets []ledger.Budget, interval time.Duration) *Memory {
	return &Memory{
		File: kept, Budgets: budgets, Interval: interval,
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_ledger_errors_total",
			Help: "Attempts to store the ledger that failed. What they would have stored is kept in memory.",
		}),
	}
}

// filling returns a function that states in the snapshots of a version what queues used; nil without a ledger. The first snapshot must
// have all tasks of the cluster, because those that it lacks have ended.
func (f *Follower) filling(ctx context.Context, now time.Time) func(*apportionv1.Snapshot) {
	if f.options.Memory == nil {
		return nil
	}
	followed := false
	return func(s *apportionv1.Snapshot) {
		if !followed && !lacksPods(s) {
			f.remember(ctx, s, f.seen(now), now)
			followed = true
			return
		}
		at := now.Add(-f.clock.ahead(now)).Unix()
		f.options.Memory.File.Change(func(l *ledger.Ledger) { l.Fill(s, at, f.options.Memory.Budgets) })
		f.options.Memory.Entitled.state(s, at)
	}
}

// lacksPods reports whether the pods of a snapshot were not read: that it has no tasks says nothing about them.
func lacksPods(s *apportionv1.Snapshot) bool {
	kinds, _ := lookup.Unread(s)
	return slices.ContainsFunc(kinds, func(l *apportionv1.LeftOut) bool { return l.GetKind() == "Pod" })
}

// remember takes in the tasks of a version, and states in it what queues used. seen is when the cluster was in this state: while it
// cannot be read, that stays. A goroutine stores it, so that no version waits for a disk.
func (f *Follower) remember(ctx context.Context, s *apportionv1.Snapshot, seen, now time.Time) {
	m := f.options.Memory
	ahead := f.clock.ahead(now)
	f.tellClock(ctx, ahead)
	begun := false
	m.File.Change(func(l *ledger.Ledger) {
		l.Follow(s, seen.Add(-ahead).Unix())
		l.Fill(s, now.Add(-ahead).Unix(), m.Budgets)
		begun = s.GetMemory().GetEpoch() != m.epoch
		m.epoch = s.GetMemory().GetEpoch()
	})
	m.Entitled.state(s, now.Add(-ahead).Unix())
	if m.due(begun) {
		m.storing.Go(func() { f.keepStored(ctx, now) })
	}
}

// Close releases the files.
func (m *Memory) Close() error { return errors.Join(m.Entitled.Close(), m.File.Close()) }

// due reports whether a goroutine must be started that stores the ledger. If there is one, it stores this version, too.
func (m *Memory) due(begun bool) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	free := !m.busy
	m.busy, m.behind, m.begun = true, true, m.begun || begun
	return free
}

// keepStored stores the ledger, not more often than once in an interval unless an epoch has begun, until all versions are stored, or it
// fails: then the next version tries it again. now is when the first version was made.
func (f *Follower) keepStored(ctx context.Context, now time.Time) {
	for m, left := f.options.Memory, true; left; now = time.Now() {
		select {
		case <-ctx.Done(): // Run stores what is left.
			return
		case <-time.After(m.wait(now)):
		}
		left = f.store(ctx, now, m.take(now))
	}
}

// wait returns how long to wait before the ledger is stored.
func (m *Memory) wait(now time.Time) time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.begun {
		return 0
	}
	return m.Interval - now.Sub(m.tried).Abs() // A clock that was set back must not put it off.
}

// take takes over all versions until now to be stored, and reports whether an epoch began with them.
func (m *Memory) take(now time.Time) (begun bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	begun = m.begun
	m.tried, m.behind, m.begun = now, false, false
	return begun
}

// store stores what is new in the ledger, and a copy if one is due. It reports whether versions are left that are not stored; if it fails,
// the next call stores them.
func (f *Follower) store(ctx context.Context, now time.Time, begun bool) (left bool) {
	m := f.options.Memory
	err := m.File.Update(func(*ledger.Ledger) error { return nil })
	if m.uncopied = m.uncopied || begun; err == nil && m.Copy != "" && m.uncopied {
		err = m.File.Copy(m.Copy)
		m.uncopied = err != nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.busy = m.behind && err == nil
	before := m.fault
	if err == nil {
		m.stored, m.fault = now, ""
		if before != "" {
			f.options.Logger.InfoContext(ctx, "the ledger is stored again")
		}
		return m.busy
	}
	m.failed.Inc()
	damaged := m.damaged
	m.damaged = errors.Is(err, file.ErrDamaged)
	switch m.fault = err.Error(); {
	case m.damaged && !damaged:
		f.options.Logger.ErrorContext(ctx, "the ledger could not be stored; it goes on in memory and is lost when the server ends",
			"error", m.fault)
	case !m.damaged && m.fault != before:
		f.options.Logger.ErrorContext(ctx, "the ledger could not be stored; it goes on in memory and is stored as soon as that works",
			"error", m.fault)
	}
	return false
}

// tellClock logs once that the own clock is wrong, and once that it is right again.
func (f *Follower) tellClock(ctx context.Context, ahead time.Duration) {
	wrong := ahead != 0
	if before := f.clock.told; wrong == before {
		return
	}
	f.clock.told = wrong
	if wrong {
		f.options.Logger.ErrorContext(ctx, "the clock of this machine differs from the API server's; the ledger uses that one",
			"ahead", duration.Format(ahead.Round(time.Second)))
		return
	}
	f.options.Logger.InfoContext(ctx, "the clock of this machine agrees with the API server's again")
}

// collectors are the metrics of the ledger.
func (m *Memory) collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value func(ledger.Counts) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() (n float64) {
			m.File.View(func(l *ledger.Ledger) { n = float64(value(l.Counts())) })
			return n
		})
	}
	return []prometheus.Collector{
		m.failed,
		gauge("apportion_ledger_age_seconds", "Time since the ledger was stored; -1 if it was not yet.", func() float64 {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			if m.stored.IsZero() {
				return -1
			}
			return time.Since(m.stored).Seconds()
		}),
		gauge("apportion_ledger_bytes", "Size of the ledger's file.", func() float64 { return float64(m.File.Size()) }),
		gauge("apportion_ledger_records", "Tasks whose use may still change.", func() (n float64) {
			m.File.View(func(l *ledger.Ledger) { n = float64(l.Records()) })
			return n
		}),
		gauge("apportion_ledger_unseen", "Tasks of the newest snapshot that use something and leave no evidence.", func() (n float64) {
			m.File.View(func(l *ledger.Ledger) { n = float64(l.Counts().Unseen) })
			return n
		}),
		counter("apportion_ledger_evidence_total", "Sights of tasks.", func(c ledger.Counts) uint64 { return c.Evidence }),
		counter("apportion_ledger_refused_total", "Sights that lie more than an hour in the future, or are invalid.",
			func(c ledger.Counts) uint64 { return c.Refused }),
		counter("apportion_ledger_late_total", "Sights of tasks in epochs that were closed already.",
			func(c ledger.Counts) uint64 { return c.Late }),
		counter("apportion_ledger_gaps_total", "Epochs in which no task was seen.", func(c ledger.Counts) uint64 { return c.Gaps }),
	}
}
