package objects

import (
	"bytes"
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
