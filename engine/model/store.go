package model

import (
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/resource"
)

// slab allocates rows from large pieces of memory. A reset frees all of them.
type slab struct {
	pieces   [][]float64
	at, used int
}

// The sizes of the first and of the largest piece, in amounts. Each piece is twice as large as the one before, so that small models stay
// small.
const (
	firstCells = 512
	slabCells  = 8 << 10
)

// row returns a row of zeros with the given dimensions present.
func (s *slab) row(width int, has resource.Mask) resource.Row {
	if s.at < len(s.pieces) && s.used+width > len(s.pieces[s.at]) {
		s.at, s.used = s.at+1, 0
	}
	if s.at == len(s.pieces) {
		s.pieces = append(s.pieces, make([]float64, min(firstCells<<min(s.at, 8), slabCells)))
	}
	v := s.pieces[s.at][s.used : s.used+width : s.used+width]
	s.used += width
	clear(v)
	return resource.Row{V: v, Has: has}
}

// clone returns a copy of a row.
func (s *slab) clone(r resource.Row) resource.Row {
	c := s.row(len(r.V), r.Has)
	copy(c.V, r.V)
	return c
}

func (s *slab) reset() { s.at, s.used = 0, 0 }

// accountStore is the memory of accounts.
type accountStore struct {
	accounts   []Account
	cells      []float64
	counts     [][NumStatus]int32
	bestEffort []int32
}

// rowsOfAccount is the number of rows in an account.
const rowsOfAccount = 4

// open returns empty accounts of the given adjacent jobs.
func (s *accountStore) open(jobs []Job, groups, width int) []Account {
	s.accounts, s.cells = zeroed(s.accounts, len(jobs)), zeroed(s.cells, rowsOfAccount*len(jobs)*width)
	s.counts, s.bestEffort = zeroed(s.counts, groups), zeroed(s.bestEffort, groups)
	first := GroupID(0)
	if len(jobs) > 0 {
		first = jobs[0].FirstGroup
	}
	for i := range s.accounts {
		s.lay(&s.accounts[i], i, width)
		s.end(i, int(jobs[i].FirstGroup-first), int(jobs[i].EndGroup-first)) //nolint:gosec // G602: there is an account for each job.
	}
	return s.accounts
}

// zeroed returns n zero values, in the memory of list if it is large enough.
func zeroed[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

// The sizes of the first and of the largest piece of memory for text. Pieces grow, so that small models stay small.
const (
	firstPiece = 512
	largePiece = 64 << 10
)

// text copies strings into a few large pieces of memory: a hundred thousand uids need some dozens of allocations, and the model retains no
// part of its input.
type text struct {
	b     *strings.Builder
	piece int
}

// keep returns a copy of s.
func (t *text) keep(s string) string {
	if s == "" {
		return ""
	}
	room := t.room(len(s))
	room.WriteString(s)
	return room.String()[room.Len()-len(s):]
}

// keepAs is keep for a string that may equal kept, an earlier result.
func (t *text) keepAs(kept, s string) string {
	if s == kept {
		return kept
	}
	return t.keep(s)
}

// again is keep for strings that mostly equal the last one of their kind, such as namespaces.
func (t *text) again(last *string, s string) string {
	if s != *last {
		*last = t.keep(s)
	}
	return *last
}

// join returns namespace/name, or name if there is no namespace.
func (t *text) join(namespace, name string) string {
	if namespace == "" {
		return t.keep(name)
	}
	n := len(namespace) + 1 + len(name)
	room := t.room(n)
	room.WriteString(namespace)
	room.WriteByte('/')
	room.WriteString(name)
	return room.String()[room.Len()-n:]
}

// room returns a builder with capacity for n more bytes, so that strings cut from it stay valid.
func (t *text) room(n int) *strings.Builder {
	if t.b == nil || t.b.Cap()-t.b.Len() < n {
		t.piece = min(max(2*t.piece, firstPiece), largePiece)
		t.b = &strings.Builder{}
		t.b.Grow(max(n, t.piece))
	}
	return t.b
}

// span is the range of a task's text in Model.text. Equal texts may have different spans.
type span struct{ from, to uint32 }

func (s span) empty() bool { return s.from == s.to }

// maxText bounds the text of all tasks of a model, so that a span fits into two halves of a word.
const maxText = 1<<32 - 1

// paper holds text in pages. A page begins at the position given by its number and extends to the end of its piece of memory, so that no
// text is split.
type paper struct {
	pages [][]byte
	n     int
}

// paperShift is the binary logarithm of the length of a page.
const paperShift = 14

// at returns the text at a place.
func (p *paper) at(s span) []byte {
	if s.empty() {
		return nil
	}
	page := p.pages[s.from>>paperShift]
	from := s.from & (1<<paperShift - 1)
	return page[from : from+s.to-s.from]
}

// cut sets p to text and shares its memory.
func (p *paper) cut(text []byte) {
	p.pages, p.n = p.pages[:0], len(text)
	p.put(text)
}

func (p *paper) put(text []byte) {
	for len(text) > 0 {
		p.pages = append(p.pages, slices.Clip(text))
		text = text[min(len(text), 1<<paperShift):]
	}
}

// longPaper is the number of pages from which additional text begins its own page instead of being appended to a copy of the last one.
const longPaper = 2

// begin returns the position of more bytes of text after n bytes.
func (p *paper) begin(n, more int) int {
	if more >= longPaper<<paperShift {
		return (n + 1<<paperShift - 1) &^ (1<<paperShift - 1)
	}
	return n
}

// with returns p with text appended. It shares all pages but the last one with p, and the memory of long texts.
func (p *paper) with(text []byte) paper {
	if len(text) == 0 {
		return *p
	}
	from := p.begin(p.n, len(text))
	q := paper{pages: append(make([][]byte, 0, len(p.pages)+len(text)>>paperShift+2), p.pages...), n: from + len(text)}
	if rest := from & (1<<paperShift - 1); rest > 0 {
		last := len(q.pages) - 1
		text = slices.Concat(q.pages[last][:rest], text)
		q.pages = q.pages[:last]
	} else if len(text) < longPaper<<paperShift {
		text = slices.Clone(text)
	}
	q.put(text)
	return q
}
