package cluster

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
	"github.com/apportion/apportion/service/history"
)

// entitledSuffix is added to the name of the ledger's file for the file of what queues were entitled to.
const entitledSuffix = ".entitled"

// entitledStep is the time for which entitlements are entered together. What was not entered yet is lost if the process is killed.
const entitledStep = 10 * time.Minute

// Entitled keeps what queues were entitled to, and what room was kept idle for their gangs, which `fair` with turns compares with what they
// used: in a ledger of its own, with the same options, into which both are entered as if they were used. They are those that the history
// finds in its versions. The zero value keeps nothing.
type Entitled struct {
	path    string
	options ledger.Options

	mutex sync.Mutex
	// file is nil until it exists: it is made with the first version that a policy with turns decides about.
	file *file.File
	// used is what the newest snapshot states that queues used, and paths are those of its queues.
	used  map[string]map[string]int64
	paths map[string][]string
	// due is what queues are entitled to since the time of the newest version, and was in the time since began, which is entered together.
	// Times are in Unix seconds.
	due          map[string]*due
	began, since int64
}

// due is what a queue is entitled to now, and the sum of what it was entitled to, in amounts times seconds, by name of dimension.
type due struct{ now, sum map[string]float64 }

// OpenEntitled returns what queues were entitled to, which belongs to the ledger in a file.
func OpenEntitled(ledgerFile string, o ledger.Options) (*Entitled, error) {
	e := &Entitled{path: ledgerFile + entitledSuffix, options: o, due: map[string]*due{}}
	switch _, err := os.Stat(e.path); {
	case errors.Is(err, fs.ErrNotExist):
		return e, nil
	case err != nil:
		return nil, err
	}
	var err error
	e.file, err = file.Open(e.path, o)
	return e, err
}

// state states in a snapshot what queues were entitled to at a time, in Unix seconds, and notes what it says that they used.
func (e *Entitled) state(s *apportionv1.Snapshot, at int64) {
	if e == nil || e.path == "" {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.used, e.paths = ledger.UsageIn(s), ledger.PathsIn(s)
	if e.file != nil {
		e.file.Change(func(l *ledger.Ledger) { l.FillEntitled(s, at) })
	}
}

// take takes in a version of the history, and the policy that decided about it. One goroutine calls it.
func (e *Entitled) take(v *history.Version, p *apportionv1.Policy) error {
	if e == nil || e.path == "" || e.file == nil && !catalogue.HasTurns(p) {
		return nil
	}
	var made *file.File
	if e.file == nil {
		var err error
		if made, err = file.Open(e.path, e.options); err != nil {
			return err
		}
	}
	if !e.countUntil(v, p, made) {
		return nil
	}
	// The disk may hang: no version waits for it.
	return e.file.Update(func(*ledger.Ledger) error { return nil })
}

// countUntil counts what queues were entitled to until a version, and reports whether there is something to store. made is the file if it
// is new. What queues were entitled to before is not known: they begin with what they used, so that no queue has credit or debt of that
// time.
func (e *Entitled) countUntil(v *history.Version, p *apportionv1.Policy, made *file.File) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	at := time.Unix(0, v.At).Unix()
	if made != nil {
		e.file = made
		made.Change(func(l *ledger.Ledger) { l.Start(l.EpochOf(at), e.used, nil) })
	}
	entered := e.pass(at)
	for _, d := range e.due {
		d.now = nil
	}
	if catalogue.HasTurns(p) {
		for i := range v.Queues {
			e.entitle(&v.Queues[i], v.Dimensions)
		}
	}
	return entered || made != nil
}

// entitle notes what a queue without children is entitled to from now on, and what room is kept idle for its gangs.
func (e *Entitled) entitle(q *history.Queue, dimensions []string) {
	if e.paths[q.Name] == nil {
		return
	}
	of := e.due[q.Name]
	if of == nil {
		of = &due{sum: map[string]float64{}}
		e.due[q.Name] = of
	}
	of.now = map[string]float64{}
	for d, amount := range q.Deserved {
		if amount > 0 {
			of.now[dimensions[d]] = amount
		}
	}
	for d, amount := range q.Reserved {
		if amount > 0 {
			of.now[ledger.Reserved(dimensions[d])] = amount
		}
	}
}

// pass counts what queues were entitled to until a time, and enters it once it is a step's, or an epoch has begun. It reports whether it
// entered it.
func (e *Entitled) pass(at int64) bool {
	for _, d := range e.due {
		for name, amount := range d.now {
			d.sum[name] += amount * float64(max(at-e.since, 0))
		}
	}
	since := e.since
	if e.since = at; e.began == 0 || at < since {
		// The first version, or the clock was set back.
		e.began = at
		return false
	}
	begun := false
	e.file.View(func(l *ledger.Ledger) { begun = l.EpochOf(at) != l.EpochOf(e.began) })
	if !begun && at-e.began < int64(entitledStep/time.Second) {
		return false
	}
	e.enter(at)
	return true
}

// enter enters what queues were entitled to until a time.
func (e *Entitled) enter(until int64) {
	began := e.began
	if until <= began {
		return
	}
	e.file.Change(func(l *ledger.Ledger) {
		for name, of := range e.due {
			amounts := map[string]int64{}
			for dimension, sum := range of.sum {
				amounts[dimension] = int64(sum / float64(until-began))
			}
			if e.paths[name] == nil || len(amounts) == 0 {
				continue
			}
			// The ledger counts what it refuses.
			_ = l.Enter(&ledger.Evidence{
				Task: name + " " + strconv.FormatInt(began, 10), Start: began, Path: e.paths[name], Amounts: amounts,
				Seen: until, End: until, Ended: true,
			}, until)
		}
		if l.EpochOf(until) != l.EpochOf(began) {
			l.Seal()
		}
	})
	for name, of := range e.due {
		if clear(of.sum); of.now == nil {
			delete(e.due, name)
		}
	}
	e.began = until
}

// Close enters what was not entered yet, and releases the file.
func (e *Entitled) Close() error {
	if e == nil {
		return nil
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.file == nil {
		return nil
	}
	e.enter(e.since)
	return errors.Join(e.file.Update(func(*ledger.Ledger) error { return nil }), e.file.Close())
}
