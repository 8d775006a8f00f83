package ledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
)

// Format names the form in which a ledger is stored.
const Format = "apportion-ledger/1"

// Table is a part of a stored ledger: a list of keys and values.
type Table string

// The tables of a stored ledger. docs/ledger.md describes the values.
const (
	TableHead   Table = "head"
	TableLine   Table = "line"
	TableRecord Table = "record"
	TableCell   Table = "cell"
	TableOffer  Table = "offer"
	TableQueue  Table = "queue"
	TableRow    Table = "row"
	TableJob    Table = "job"
)

// Tables lists the tables in the order in which they are read.
func Tables() []Table {
	return []Table{TableHead, TableLine, TableRecord, TableCell, TableOffer, TableQueue, TableRow, TableJob}
}

// Later lists those of Tables that a ledger lacks which an earlier program stored.
func Later() []Table { return []Table{TableJob} }

// Entry is a key and value of a table. A nil value removes the key.
type Entry struct {
	Table      Table
	Key, Value []byte
}

// dirty is what changed since the ledger was last stored.
type dirty struct {
	head                bool
	records, jobs       map[key]struct{}
	cells, offers, rows map[int64]struct{}
	queues              map[string]struct{}
}

func newDirty() dirty {
	return dirty{
		head: true, records: map[key]struct{}{}, jobs: map[key]struct{}{}, cells: map[int64]struct{}{},
		offers: map[int64]struct{}{}, rows: map[int64]struct{}{},
		queues: map[string]struct{}{},
	}
}

// Changes returns the entries that differ from what was stored last. Stored says that they were stored.
func (l *Ledger) Changes() []Entry {
	var out []Entry
	put := func(table Table, key []byte, w *writer) {
		e := Entry{Table: table, Key: key}
		if w != nil {
			// Not nil, which would remove the key.
			e.Value = append([]byte{}, w.data...)
		}
		out = append(out, e)
	}
	put(TableHead, []byte("head"), l.head())
	for n := range l.lines.changed {
		w := &writer{}
		w.list(l.lines.list[n].path)
		w.text(l.lines.list[n].owner)
		put(TableLine, binary.BigEndian.AppendUint32(nil, uint32(n)), w)
	}
	for k := range l.dirty.records {
		var w *writer
		if r := l.records[k]; r != nil {
			w = r.write()
		}
		put(TableRecord, append(numberKey(k.start), k.task...), w)
	}
	for n := range l.dirty.cells {
		var w *writer
		if b, is := l.cells[n]; is {
			w = &writer{data: b}
		}
		put(TableCell, numberKey(n), w)
	}
	for n := range l.dirty.offers {
		var w *writer
		if o, is := l.offers[n]; is {
			w = &writer{}
			w.signed(o.at)
			w.vector(o.amounts)
		}
		put(TableOffer, numberKey(n), w)
	}
	for name := range l.dirty.queues {
		w := &writer{}
		w.signed(l.queues[name])
		put(TableQueue, []byte(name), w)
	}
	for n := range l.dirty.rows {
		var w *writer
		if row := l.rows[n]; row != nil {
			w = row.write()
		}
		put(TableRow, numberKey(n), w)
	}
	for k := range l.dirty.jobs {
		var w *writer
		if r := l.jobs[k]; r != nil {
			w = r.write()
		}
		put(TableJob, append(numberKey(k.start), k.task...), w)
	}
	// In order of the keys: a B-tree that is written in another order moves the entries of a page for each of them, so that the time grows
	// with the square of what changed.
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(strings.Compare(string(a.Table), string(b.Table)), bytes.Compare(a.Key, b.Key))
	})
	return out
}

// Stored says that the changes are stored.
func (l *Ledger) Stored() {
	l.dirty, l.lines.changed = newDirty(), map[int32]struct{}{}
	l.dirty.head = false
}

// Take returns the changes as if they were stored. back makes them changes again, because they could not be stored.
func (l *Ledger) Take() (changes []Entry, back func()) {
	changes, taken, lines := l.Changes(), l.dirty, l.lines.changed
	l.Stored()
	return changes, func() {
		d := &l.dirty
		d.head = true
		maps.Copy(l.lines.changed, lines)
		maps.Copy(d.records, taken.records)
		maps.Copy(d.jobs, taken.jobs)
		maps.Copy(d.cells, taken.cells)
		maps.Copy(d.offers, taken.offers)
		maps.Copy(d.rows, taken.rows)
		maps.Copy(d.queues, taken.queues)
	}
}

// numberKey sorts as the number does.
func numberKey(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63) }

func keyNumber(k []byte) (int64, error) {
	if len(k) < 8 {
		return 0, errShort
	}
	return int64(binary.BigEndian.Uint64(k) ^ 1<<63), nil
}

// head is what there is once: the length of an epoch, the first unsealed epoch, the last sight of all live tasks, counts, dimensions,
// cluster.
func (l *Ledger) head() *writer {
	w := &writer{}
	w.signed(l.seconds)
	w.signed(l.sealed)
	w.signed(l.sight)
	for _, n := range l.counts.list() {
		w.unsigned(*n)
	}
	w.list(l.dimensions)
	w.text(l.cluster)
	return w
}

func (c *Counts) list() []*uint64 {
	return []*uint64{&c.Evidence, &c.Refused, &c.Late, &c.Gaps, &c.Unseen}
}

const (
	flagEnded = 1
	flagLive  = 2
)

func (r *record) write() *writer {
	w := &writer{}
	flags := uint64(0)
	if r.ended {
		flags |= flagEnded
	}
	if r.live {
		flags |= flagLive
	}
	w.unsigned(flags)
	w.unsigned(uint64(r.line))
	w.vector(r.amounts)
	w.signed(r.seen)
	w.signed(r.end)
	return w
}

// Load adds a stored entry to a ledger that is being read. Tables come in the order of Tables.
func (l *Ledger) Load(e Entry) error {
	r := &reader{data: e.Value}
	var err error
	switch e.Table {
	case TableHead:
		err = l.loadHead(r)
	case TableLine:
		path, owner := r.list(), r.text()
		if r.err == nil && (len(e.Key) != 4 || !l.lines.load(binary.BigEndian.Uint32(e.Key), path, owner)) {
			err = errors.New("a line is missing, or there twice")
		}
	case TableRecord:
		err = l.loadRecord(e.Key, r)
	case TableJob:
		err = l.loadJob(e.Key, r)
	case TableQueue:
		l.queues[string(e.Key)] = r.signed()
	default:
		err = l.loadNumbered(e, r)
	}
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return fmt.Errorf("%s %x: %w", e.Table, e.Key, err)
	}
	return nil
}

// EpochIn returns the length of an epoch of the ledger with a head, the value of TableHead.
func EpochIn(head []byte) (time.Duration, error) {
	r := &reader{data: head}
	seconds := r.signed()
	if r.err == nil && (seconds <= 0 || seconds > int64(math.MaxInt64/time.Second)) {
		return 0, errShort
	}
	return time.Duration(seconds) * time.Second, r.err
}

func (l *Ledger) loadHead(r *reader) error {
	seconds := r.signed()
	if r.err == nil && seconds != l.seconds {
		return errEpoch(time.Duration(seconds)*time.Second, l.options.Epoch)
	}
	l.sealed, l.sight = r.signed(), r.signed()
	for _, n := range l.counts.list() {
		*n = r.unsigned()
	}
	for _, name := range r.list() {
		l.dimensionOf(name)
	}
	// A head that was written before ledgers knew their cluster ends here.
	if len(r.data) > 0 {
		l.cluster = r.text()
	}
	return nil
}

func (l *Ledger) loadRecord(k []byte, r *reader) error {
	start, err := keyNumber(k)
	if err != nil {
		return err
	}
	flags := r.unsigned()
	record := &record{line: int32(min(r.unsigned(), math.MaxInt32)), amounts: r.vector(), seen: r.signed(), end: r.signed()}
	record.ended, record.live = flags&flagEnded != 0, flags&flagLive != 0
	if r.err != nil || int(record.line) >= len(l.lines.list) || len(record.amounts) > len(l.dimensions) {
		return errShort
	}
	if record.live {
		record.seen = max(record.seen, l.sight)
	}
	l.records[key{start, string(k[8:])}] = record
	return nil
}

func (l *Ledger) loadNumbered(e Entry, r *reader) error {
	n, err := keyNumber(e.Key)
	if err != nil {
		return err
	}
	switch e.Table {
	case TableCell:
		b, wide := block(e.Value), false
		err := b.each(len(l.lines.list), func(_ int32, x []Amount) { wide = wide || len(x) > len(l.dimensions) })
		if err != nil || wide {
			return errShort
		}
		l.cells[n] = append(block{}, b...)
		r.data = nil
	case TableOffer:
		o := offer{r.signed(), r.vector()}
		if r.err != nil || len(o.amounts) > len(l.dimensions) {
			return errShort
		}
		l.offers[n] = o
	case TableRow:
		row := readRow(r)
		if r.err != nil || row.Epoch != n || row.widest() > len(l.dimensions) {
			return errShort
		}
		l.rows[n] = row
	default:
		return errors.New("there is no such table")
	}
	return nil
}

func errEpoch(a, b time.Duration) error {
	return fmt.Errorf("the ledger has epochs of %s, not of %s; another length begins a new ledger", duration.Format(a), duration.Format(b))
}
