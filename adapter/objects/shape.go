package objects

import (
	"slices"
	"strings"
)

// Shape selects the parts of an object that are read. The scanner skips everything else, which is most of a cluster's dump.
type Shape struct {
	Fields map[string]*Shape
	// Rest is the shape of all other fields; nil skips them.
	Rest *Shape
	// Names keeps the names of skipped fields, so that misspelt ones can be found.
	Names bool
}

// of returns the shape of a field, nil if it is skipped. A nil shape skips everything.
func (s *Shape) of(name string) *Shape {
	if f, ok := s.Fields[name]; ok {
		return f
	}
	return s.Rest
}

// Fields are shapes by the names of fields.
type Fields = map[string]*Shape

// Select returns the shape of some paths, such as spec.containers.name; lists are not part of a path. What a path names is a scalar, or a
// map or list of scalars; of any depth if the path ends in a star. One that ends in a question mark selects nothing but keeps the names of
// fields that are not selected.
func Select(paths ...string) *Shape {
	all := &Shape{Fields: Fields{}}
	for _, path := range paths {
		one := Leaf
		switch name := path[:len(path)-1]; path[len(name):] {
		case "*":
			one, path = Deep, name
		case "?":
			one, path = &Shape{Names: true}, name
		}
		steps := strings.Split(path, ".")
		for _, step := range slices.Backward(steps) {
			one = &Shape{Fields: Fields{step: one}}
		}
		all = Union(all, one)
	}
	return all
}

// Annotated is a shape with some annotations.
func Annotated(s *Shape, keys ...string) *Shape {
	annotations := Fields{}
	for _, key := range keys {
		annotations[key] = Leaf
	}
	return Union(s, &Shape{Fields: Fields{MetadataField: {Fields: Fields{AnnotationsField: {Fields: annotations}}}}})
}

// Union selects what either of two shapes selects.
func Union(a, b *Shape) *Shape {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a == Deep || b == Deep:
		return Deep
	}
	out := &Shape{Fields: make(Fields, len(a.Fields)+len(b.Fields)), Rest: Union(a.Rest, b.Rest), Names: a.Names || b.Names}
	for name := range a.Fields {
		out.Fields[name] = Union(a.of(name), b.of(name))
	}
	for name := range b.Fields {
		out.Fields[name] = Union(a.of(name), b.of(name))
	}
	return out
}

var (
	// Leaf is a scalar, or a map or list of scalars.
	Leaf = &Shape{Rest: &Shape{}}

	// Deep is the shape of a value of any depth.
	Deep = func() *Shape {
		s := &Shape{}
		s.Rest = s
		return s
	}()
)

// prune empties the lines of a YAML list's item that a shape does not select, and keeps all line numbers. Parsing dominates the cost of
// reading YAML, and most of a pod is not read.
//
// It cuts only the values of plain keys in a block mapping, which extend over all lines that are indented deeper. Any other line (part of a
// text, a flow collection, a quoted key) is kept together with the lines that are indented deeper. Anchors must not occur. A text that
// breaks these rules, as some parsers tolerate, no longer parses when pruned; the caller then parses the whole.
func prune(item []byte, sh *Shape) []byte {
	p := pruner{out: make([]byte, 0, len(item)), levels: []level{{indent: -1}}, below: sh, belowIndent: -1, kept: none, cut: none}
	for at := 0; at < len(item); {
		line := lineAt(item, at)
		at += len(line)
		if !p.line(line) {
			return item
		}
	}
	return p.out
}

// none is an indentation that no line exceeds.
const none = int(^uint(0) >> 1)

// level is a mapping that the current line may belong to.
type level struct {
	indent int
	shape  *Shape
}

type pruner struct {
	out []byte
	// levels are the mappings around the current line, outermost first.
	levels []level
	// below is the shape of the value that follows a key on the next lines, at belowIndent.
	below       *Shape
	belowIndent int
	// Lines indented deeper than kept are kept, those indented deeper than cut are emptied.
	kept, cut int
}

// line handles one line. It returns false if the text must not be pruned at all.
func (p *pruner) line(line []byte) bool {
	column, begins := indentation(line)
	if begins == '\t' {
		return false
	}
	dash := begins == '-' && endsWord(line, column+1)
	switch {
	case column > p.cut || column == p.cut && dash || p.cut != none && (begins == 0 || begins == '#'):
		p.out = append(p.out, '\n')
		return true
	case begins == 0 || begins == '#' || column > p.kept:
		p.out = append(p.out, line...)
		return true
	}
	p.kept, p.cut = none, none
	start := column
	for dash && len(line) > column+1 && line[column+1] == ' ' {
		deeper, next := indentation(line[column+1:])
		column += 1 + deeper
		dash = next == '-'
	}
	p.key(line, start, column)
	return true
}

// key handles a line that begins at start and may hold a key at column.
func (p *pruner) key(line []byte, start, column int) {
	for p.levels[len(p.levels)-1].indent > column {
		p.levels = p.levels[:len(p.levels)-1]
	}
	top := p.levels[len(p.levels)-1]
	if top.indent < column && top.indent == p.belowIndent {
		top = level{indent: column, shape: p.below}
		p.levels = append(p.levels, top)
	}
	colon := plainKey(line[column:])
	if colon < 0 || top.indent != column {
		p.out = append(p.out, line...)
		p.kept = start
		return
	}
	wanted := top.shape.of(string(line[column : column+colon]))
	if wanted == nil {
		end := start // the dashes before the first key of a list's element stay
		if top.shape.Names {
			end = column + colon + 1
		} else if column > start {
			end = column
		}
		p.out = append(append(p.out, line[:end]...), '\n')
		p.cut = column
		return
	}
	p.out = append(p.out, line...)
	if _, begins := indentation(line[column+colon+1:]); begins == 0 || begins == '#' {
		p.below, p.belowIndent = wanted, column
	} else {
		p.kept = column
	}
}

// plainKey returns the position of the colon after a plain key; -1 if the text does not begin with a value.
func plainKey(text []byte) int {
	for i, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.' || c == '/'):
		case i > 0 && c == ':' && endsWord(text, i+1):
			return i
		default:
			return -1
		}
	}
	return -1
}

// endsWord reports whether the text ends at i, or white space begins there.
func endsWord(text []byte, i int) bool {
	return i >= len(text) || strings.IndexByte(" \t\r\n", text[i]) >= 0
}
