package objects

import "strings"

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

// endsWord reports whether the text, or a word of it, ends at i.
func endsWord(text []byte, i int) bool {
	return i >= len(text) || strings.IndexByte(" \t\r\n", text[i]) >= 0
}
