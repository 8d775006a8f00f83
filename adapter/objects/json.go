package objects

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// scanner builds values from valid JSON. Parts that the shape does not select, which is most of a cluster's dump, cost no memory.
type scanner struct {
	data []byte
	pos  int
	// names holds each name of a field once.
	names map[string]string
}

// document visits the object at the scanner's position, or the items of the list or array there. Items of a list of one kind have this kind
// if they do not say theirs.
func (s *scanner) document(doc *Document, sh *Shape, each visit) {
	s.names = make(map[string]string)
	s.space()
	switch s.data[s.pos] {
	case '[':
		s.elements(func(int) { each(doc, s.value(sh)) })
		return
	case '{':
	default:
		each(doc, s.value(sh))
		return
	}
	list, some := false, false
	start, root := *s, &Value{Type: Map, At: s.pos}
	var of *Kind
	s.members(func(name string, at int) {
		if name == itemsField && s.data[s.pos] == '[' {
			list = true
			s.elements(func(int) {
				some = true
				item := s.value(sh)
				if item.lacksKind() {
					if of == nil {
						of = new(start.kindOfItems())
					}
					item.take(*of)
				}
				each(doc, item)
			})
			return
		}
		s.member(root, name, at, sh)
	})
	if !list || !some && root.kindOfItems().Name != "" {
		each(doc, root)
	}
}

// kindOfItems returns the kind of the items of the list at the scanner's position, which a list often says at its end.
func (s *scanner) kindOfItems() Kind {
	list := &Value{Type: Map}
	s.members(func(name string, at int) { s.member(list, name, at, headShape) })
	return list.kindOfItems()
}

// kindOfItems returns the kind that a list says its items have, as `PodList` does; it has no name for any other list.
func (v *Value) kindOfItems() Kind {
	of, list := strings.CutSuffix(v.TextOf(KindField), "List")
	if !list || of == "" {
		return Kind{}
	}
	return Kind{Name: of, Version: v.TextOf(VersionField)}
}

// lacksKind reports whether a value is an object that does not say its kind.
func (v *Value) lacksKind() bool { return v.Type == Map && v.Field(KindField) == nil }

// take makes an object that does not say its kind one of a kind; one without a name is none.
func (v *Value) take(of Kind) {
	if !v.lacksKind() || of.Name == "" {
		return
	}
	v.Add(&Value{Type: Text, At: v.At, KeyAt: v.At, Key: KindField, Text: of.Name})
	if v.Field(VersionField) == nil && of.Version != "" {
		v.Add(&Value{Type: Text, At: v.At, KeyAt: v.At, Key: VersionField, Text: of.Version})
	}
}

// value builds the selected parts of the value at the scanner's position, and moves behind it.
func (s *scanner) value(sh *Shape) *Value {
	v := &Value{At: s.pos}
	switch s.data[s.pos] {
	case '{':
		v.Type = Map
		s.members(func(name string, at int) { s.member(v, name, at, sh) })
	case '[':
		v.Type = List
		s.elements(func(int) { v.Add(s.value(sh)) })
	case '"':
		v.Type, v.Text = Text, s.text()
	default:
		v.Text = string(s.word())
		switch v.Text[0] {
		case 'n':
			v.Type = Null
		case 't', 'f':
			v.Type = Boolean
		default:
			v.Type = Number
		}
	}
	return v
}

// member builds a field of v, or skips it.
func (s *scanner) member(v *Value, name string, at int, sh *Shape) {
	wanted := sh.of(name)
	if wanted == nil {
		if sh.Names {
			v.Add(&Value{Type: Skipped, At: s.pos, Key: name, KeyAt: at})
		}
		s.skip()
		return
	}
	child := s.value(wanted)
	child.Key, child.KeyAt = name, at
	v.Add(child)
}

// members calls each with the name of every field of an object, and its place; each must move behind the field's value.
func (s *scanner) members(each func(name string, at int)) {
	s.pos++
	for s.space(); s.data[s.pos] != '}'; s.space() {
		if s.data[s.pos] == ',' {
			s.pos++
			s.space()
		}
		at := s.pos
		name := s.name()
		s.space()
		s.pos++ // the colon
		s.space()
		each(name, at)
	}
	s.pos++
}

// elements calls each with the index of every element of an array; each must move behind the element.
func (s *scanner) elements(each func(int)) {
	s.pos++
	index := 0
	for s.space(); s.data[s.pos] != ']'; s.space() {
		if s.data[s.pos] == ',' {
			s.pos++
			s.space()
		}
		each(index)
		index++
	}
	s.pos++
}

// skip moves behind a value.
func (s *scanner) skip() {
	depth := 0
	for {
		switch s.data[s.pos] {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ' ', '\t', '\r', '\n', ',', ':':
			s.pos++
			continue
		default:
			s.word()
		}
		if depth == 0 {
			return
		}
	}
}

// space moves behind white space.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// word is the number or literal at the scanner's position.
func (s *scanner) word() []byte {
	start := s.pos
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return s.data[start:s.pos]
		}
		s.pos++
	}
	return s.data[start:]
}

// quoted is the text at the scanner's position, still quoted.
func (s *scanner) quoted() []byte {
	start := s.pos
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
	return s.data[start:s.pos]
}

// text returns the text at the scanner's position. It replaces invalid UTF-8, as encoding/json does.
func (s *scanner) text() string { return unquote(s.quoted()) }

// name is text for names of fields, of which there are few.
func (s *scanner) name() string {
	quoted := s.quoted()
	if name, ok := s.names[string(quoted)]; ok {
		return name
	}
	name := unquote(quoted)
	if len(s.names) < maxNames {
		s.names[string(quoted)] = name
	}
	return name
}

// maxNames bounds the number of cached field names.
const maxNames = 4096

func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var plain string
	if err := json.Unmarshal(quoted, &plain); err != nil {
		return "" // not reached: the text was found valid before
	}
	return plain
}
