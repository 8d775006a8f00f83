package objects

import (
	"bytes"
	"encoding/json"
)

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
