package policy

import "github.com/apportion/apportion/engine/resource"

// Journal remembers the old values of everything that changes, so that a what-if is undone exactly: bits are put back, not computed
// back. It records only while a mark stands.
type Journal struct {
	depth   int
	entries []entry
	cells   []float64
	// held is the memory of what functions to undo refer to.
	held int
	// rollbacks counts how often something may have been undone.
	rollbacks uint64
}

type entry struct {
	row    *resource.Row
	has    resource.Mask
	float  *float64
	int    *int32
	byte   *uint8
	undo   func()
	number float64
	// undoWith is called with has and more.
	undoWith func(a, b uint64)
	more     uint64
}

// entryBytes is the size of an entry on a machine of 64 bits.
const entryBytes = 72

// Position is a point in a journal.
type Position struct{ entries, cells int }

// Mark starts recording, or continues it, and returns the present point.
func (j *Journal) Mark() Position {
	j.depth++
	return Position{len(j.entries), len(j.cells)}
}

// Rollback restores the state at p. Recording continues: p may be rolled back to again.
func (j *Journal) Rollback(p Position) {
	j.rollbacks++
	for i := len(j.entries) - 1; i >= p.entries; i-- {
		e := &j.entries[i]
		switch {
		case e.row != nil:
			at := len(j.cells) - len(e.row.V)
			copy(e.row.V, j.cells[at:])
			e.row.Has = e.has
			j.cells = j.cells[:at]
		case e.float != nil:
			*e.float = e.number
		case e.int != nil:
			*e.int = int32(e.number)
		case e.byte != nil:
			*e.byte = uint8(e.number)
		case e.undoWith != nil:
			e.undoWith(uint64(e.has), e.more)
		default:
			e.undo()
			j.held -= int(e.more)
		}
		*e = entry{}
	}
	j.entries = j.entries[:p.entries]
}

// Release ends what Mark began at p without undoing anything; when no mark stands, nothing is recorded any more.
func (j *Journal) Release() {
	if j.depth--; j.depth == 0 {
		clear(j.entries)
		j.entries, j.cells, j.held = j.entries[:0], j.cells[:0], 0
	}
}

// Bytes returns how much memory the changes take that are remembered.
func (j *Journal) Bytes() int { return len(j.entries)*entryBytes + len(j.cells)*8 + j.held }

// Shrink gives memory back that an unusual number of changes took.
func (j *Journal) Shrink() {
	const usual = 1 << 12
	if len(j.entries) < usual && cap(j.entries) > 4*usual {
		j.entries = append(make([]entry, 0, usual), j.entries...)
		j.cells = append(make([]float64, 0, len(j.cells)), j.cells...)
	}
}

// Recording reports whether a mark stands.
func (j *Journal) Recording() bool { return j.depth > 0 }

// Row saves a row that is about to change.
func (j *Journal) Row(r *resource.Row) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{row: r, has: r.Has})
		j.cells = append(j.cells, r.V...)
	}
}

// Float saves a number that is about to change.
func (j *Journal) Float(f *float64) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{float: f, number: *f})
	}
}

// Int saves a count that is about to change.
func (j *Journal) Int(n *int32) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{int: n, number: float64(*n)})
	}
}

// byte saves a small value that is about to change.
func (j *Journal) byte(b *uint8) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{byte: b, number: float64(*b)})
	}
}

// UndoWith is Undo with two numbers that f is called with, so that f need not be a new function each time.
func (j *Journal) UndoWith(f func(a, b uint64), a, b uint64) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{undoWith: f, has: resource.Mask(a), more: b})
	}
}

// Undo remembers how to put something else back.
func (j *Journal) Undo(f func()) { j.UndoHolding(0, f) }

// UndoHolding is Undo with a function that refers to so many bytes of memory.
func (j *Journal) UndoHolding(bytes int, f func()) {
	if j.depth > 0 {
		j.entries = append(j.entries, entry{undo: f, more: uint64(bytes)})
		j.held += bytes
	}
}
