package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// itemList is a YAML list, cut into its items without parsing. A dump of a cluster is such a list; parsing it as a whole would take a
// hundred times its size in memory.
type itemList struct {
	doc *Document
	// items are the parts of the text with one item each, as a list of one; rest is the text around them.
	items []Document
	rest  []Document
}

// cutList cuts a document that has a top-level `items` in block style, as kubectl prints it. It is false for any other document, and for
// one with anchors, because an alias and its anchor may be in different items.
func cutList(doc *Document) (itemList, bool) {
	start, line := itemsBegin(doc.Data)
	if start < 0 || bytes.Contains(doc.Data, []byte(": &")) || bytes.Contains(doc.Data, []byte("- &")) {
		return itemList{}, false
	}
	list := itemList{doc: doc}
	list.rest = append(list.rest, Document{Name: doc.Name, Data: doc.Data[:start], First: doc.First, Lines: true})
	indent := -1
	from, fromLine := start, line
	end := len(doc.Data)
	for at := start; at < len(doc.Data); line++ {
		text := lineAt(doc.Data, at)
		column, begins := indentation(text)
		switch {
		case begins == 0 || begins == '#': // blank or comment: part of the current item
		case indent < 0 && begins != '-':
			return itemList{}, false // empty, or not in block style
		case indent < 0:
			indent = column
		case column < indent || column == indent && begins != '-':
			end = at
		case column == indent:
			list.cut(from, at, fromLine)
			from, fromLine = at, line
		}
		if end < len(doc.Data) {
			break
		}
		at += len(text)
	}
	if indent < 0 {
		return itemList{}, false
	}
	list.cut(from, end, fromLine)
	if end < len(doc.Data) {
		list.rest = append(list.rest, Document{Name: doc.Name, Data: doc.Data[end:], First: doc.First + line, Lines: true})
	}
	return list, true
}

// cut makes an item of a part of the text that begins after so many lines.
func (l *itemList) cut(from, to, lines int) {
	l.items = append(l.items, Document{Name: l.doc.Name, Data: l.doc.Data[from:to], First: l.doc.First + lines, Lines: true})
}

// itemsBegin returns the beginning of the line after a top-level `items:`, and the number of lines before it; -1 if there is none.
func itemsBegin(data []byte) (at, lines int) {
	for at < len(data) {
		text := lineAt(data, at)
		at += len(text)
		lines++
		if name, ok := bytes.CutPrefix(text, []byte("items:")); ok && len(bytes.TrimSpace(name)) == 0 {
			return at, lines
		}
	}
	return -1, 0
}

// indentation is the column of the first character of a line that is not a space, and that character: 0 for a blank line.
func indentation(line []byte) (int, byte) {
	for column, c := range line {
		switch c {
		case ' ':
		case '\r', '\n':
			return column, 0
		default:
			return column, c
		}
	}
	return len(line), 0
}

// parsedItem is the result of parsing an item.
type parsedItem struct {
	values []*Value
	found  Problems
}

// visit parses the items, several at a time, and visits them in their order.
func (l itemList) visit(sh *Shape, found *Problems, each visit) {
	const batch = 256
	head := &Value{Type: Map}
	for i, part := range l.rest {
		if at, line := itemsBegin(part.Data); i > 0 && at >= 0 {
			found.AddText(l.doc, part.First+line, twice, itemsField)
			continue
		}
		readYAML(&part, sh, found, func(v *Value) { head.Items = append(head.Items, v.Items...) })
	}
	of := head.kindOfItems()
	parsed := make([]parsedItem, batch)
	for now := range slices.Chunk(l.items, batch) {
		parseItems(now, sh, parsed)
		for i := range now {
			found.Append(&parsed[i].found)
			for _, v := range parsed[i].values {
				v.take(of)
				each(&now[i], v)
			}
			parsed[i] = parsedItem{}
		}
	}
}

// parseItems parses items[i] into parsed[i].
func parseItems(items []Document, sh *Shape, parsed []parsedItem) {
	workers := min(runtime.GOMAXPROCS(0), len(items))
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := worker; i < len(items); i += workers {
				parsed[i] = parseItem(&items[i], sh)
			}
		})
	}
	wait.Wait()
}

// parseItem parses an item, first without the parts that are not read.
func parseItem(item *Document, sh *Shape) (parsed parsedItem) {
	collect := func(v *Value) { parsed.values = append(parsed.values, v) }
	lean := *item
	lean.Data = prune(item.Data, sh)
	readYAML(&lean, sh, &parsed.found, collect)
	if parsed.found.Total > 0 {
		parsed = parsedItem{}
		readYAML(item, sh, &parsed.found, collect)
	}
	return parsed
}

// Page is a part of a list as an API server writes it.
type Page struct {
	// Source holds the fields of the page's objects that are read: usually less than a tenth of the response.
	Source Source
	// Count is the number of its objects.
	Count int
	// Continue asks the server for the next page; empty: this is the last one.
	Continue string
	// ResourceVersion is the version of the list.
	ResourceVersion string
}

// ReadPage reads one page of a list in JSON, as far as a shape selects its objects. Objects without a kind, as in lists of built-in kinds,
// have the kind of the items of the list.
// It does not retain data.
func ReadPage(name string, data []byte, shape *Shape) (*Page, error) {
	list, objects, err := ReadItems(name, data, shape)
	if err != nil {
		return nil, err
	}
	page := &Page{Source: Source{Name: name}}
	metadata := list.Field(MetadataField)
	page.Count, page.Continue, page.ResourceVersion = len(objects), metadata.TextOf("continue"), metadata.TextOf(ResourceVersionField)
	of := list.kindOfItems()
	out := []byte{'['}
	for i, o := range objects {
		if o.Type != Map {
			return nil, errors.New(name + ": an item is not an object")
		}
		o.take(of)
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendJSON(out, o)
	}
	out = append(out, ']')
	if page.Source.Data = out; len(objects) == 0 && of.Name != "" {
		// That there are none is part of what was read.
		page.Source.Data = fmt.Appendf(nil, `{"kind":%q,"items":[]}`, of.Name+"List")
	}
	return page, nil
}

// Scan returns the value of a JSON text.
func Scan(name string, data []byte, of *Shape) (*Value, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s: not JSON", name)
	}
	s := scanner{data: data, names: map[string]string{}}
	s.space()
	return s.value(of), nil
}

// ReadItems scans a list in JSON and returns its own fields and its items.
func ReadItems(name string, data []byte, of *Shape) (list *Value, items []*Value, err error) {
	if !json.Valid(data) {
		return nil, nil, fmt.Errorf("%s: not JSON", name)
	}
	s := scanner{data: data}
	if s.space(); s.data[s.pos] != '{' {
		return nil, nil, fmt.Errorf("%s: not a list", name)
	}
	list = &Value{Type: Map}
	found := false
	s.names = make(map[string]string)
	s.members(func(key string, at int) {
		if key == itemsField && s.data[s.pos] == '[' {
			found = true
			s.elements(func(int) { items = append(items, s.value(of)) })
			return
		}
		s.member(list, key, at, listShape)
	})
	if !found {
		return nil, nil, fmt.Errorf("%s: a list without items", name)
	}
	return list, items, nil
}

// listShape selects the fields of a list without its items.
var listShape = &Shape{Fields: Fields{
	KindField: Leaf, VersionField: Leaf,
	MetadataField: {Fields: Fields{"continue": Leaf, "resourceVersion": Leaf}},
}}

// EachPart visits the parts of a source, of an object or a few, that contain what is sought.
func EachPart(source Source, sought func([]byte) bool, visit func(Document)) {
	if !sought(source.Data) {
		return
	}
	collect := func(part Document) {
		if sought(part.Data) {
			visit(part)
		}
	}
	first := 0
	for _, data := range splitDocuments(source.Data) {
		doc := &Document{Name: source.Name, Data: data, First: first}
		first += bytes.Count(data, []byte("\n"))
		if begins := firstByte(data); begins == '{' || begins == '[' {
			eachJSONText(doc, sought, collect)
		} else if list, ok := cutList(doc); ok {
			for _, item := range list.items {
				collect(item)
			}
		} else {
			collect(*doc)
		}
	}
}

// eachJSONText visits the texts of the objects of JSON documents, without parsing them. What is not JSON is a fault of whatever reads it.
func eachJSONText(doc *Document, sought func([]byte) bool, each func(Document)) {
	start := 0
	if isMarker(doc.Data) {
		start = len("---")
	}
	decoder := json.NewDecoder(bytes.NewReader(doc.Data[start:]))
	for {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return
		}
		end := start + int(decoder.InputOffset())
		s := scanner{data: doc.Data[:end], pos: end - len(raw), names: map[string]string{}}
		begin := s.pos
		whole := true
		item := func(int) {
			from := s.pos
			s.skip()
			if text := doc.Data[from:s.pos]; sought(text) {
				each(Document{Name: doc.Name, Data: text, First: doc.Line(from) - 1})
			}
		}
		switch doc.Data[begin] {
		case '[':
			s.elements(item)
			whole = false
		case '{':
			s.members(func(name string, _ int) {
				if name == "items" && s.data[s.pos] == '[' {
					s.elements(item)
					whole = false
					return
				}
				s.skip()
			})
		}
		if whole {
			each(Document{Name: doc.Name, Data: raw, First: doc.Line(begin) - 1})
		}
	}
}
