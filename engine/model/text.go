package model

import (
	"slices"
	"strings"
)

// Pieces of memory for text grow from the one size to the other, so that small models stay small.
const (
	firstPiece = 512
	largePiece = 64 << 10
)

// text keeps copies of strings in few large pieces of memory: a hundred thousand uids cost some dozens of allocations, and the model
// holds on to nothing of what it was built from.
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

// keepAs is keep for a string that may equal one that is kept already.
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

// join returns namespace/name, or name alone if there is no namespace.
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

// room returns a builder that n more bytes fit into without moving what is in it: strings cut from it stay valid.
func (t *text) room(n int) *strings.Builder {
	if t.b == nil || t.b.Cap()-t.b.Len() < n {
		t.piece = min(max(2*t.piece, firstPiece), largePiece)
		t.b = &strings.Builder{}
		t.b.Grow(max(n, t.piece))
	}
	return t.b
}

// span is where a text of a task lies in Model.text. Equal texts may lie in different places.
type span struct{ from, to uint32 }

func (s span) empty() bool { return s.from == s.to }

// maxText bounds the text of all tasks of a model, so that a span fits into two halves of a word.
const maxText = 1<<32 - 1

// paper holds text in pages. A page begins where its number says and goes on to the end of the piece of memory it lies in, so that no text
// of one piece is cut.
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

// cut makes p the text given, whose memory it shares.
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

// longPaper is from how many pages on more text begins a page of its own, so that it need not be copied behind the last one.
const longPaper = 2

// begin returns where so much more text begins behind n bytes.
func (p *paper) begin(n, more int) int {
	if more >= longPaper<<paperShift {
		return (n + 1<<paperShift - 1) &^ (1<<paperShift - 1)
	}
	return n
}

// with returns p with more text behind it, which p shares all but its last page with. Long texts become its own.
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
