package model

import "strings"

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

// span is where a text of a task lies in Model.text. Equal texts lie in different places.
type span struct{ from, to uint32 }

func (s span) empty() bool { return s.from == s.to }

// maxText bounds the text of all tasks of a model, so that a span fits into two halves of a word.
const maxText = 1<<32 - 1
