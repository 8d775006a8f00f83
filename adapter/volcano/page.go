package volcano

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Page is a part of a list as an API server writes it.
type Page struct {
	// Source holds the objects of the page as far as they are read: usually less than a tenth of what the server wrote.
	Source Source
	// Count is the number of its objects.
	Count int
	// Continue asks the server for the next page; empty: this is the last one.
	Continue string
	// ResourceVersion is that of the list.
	ResourceVersion string
}

// ReadPage reads one page of a list in JSON. Objects that do not name their kind, as in lists of built-in kinds, have that of the list.
// data is not needed afterwards.
func ReadPage(name string, data []byte) (*Page, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s: not JSON", name)
	}
	s := scanner{data: data}
	if s.space(); s.data[s.pos] != '{' {
		return nil, fmt.Errorf("%s: not a list", name)
	}
	page, list := &Page{Source: Source{Name: name}}, &value{kind: object}
	var objects []*value
	found := false
	s.names = make(map[string]string)
	s.members(func(key string, at int) {
		if key == "items" && s.data[s.pos] == '[' {
			found = true
			s.elements(func(int) { objects = append(objects, s.value(objectShape)) })
			return
		}
		s.member(list, key, at, listShape)
	})
	if !found {
		return nil, fmt.Errorf("%s: a list without items", name)
	}
	metadata := list.field("metadata")
	page.Count, page.Continue, page.ResourceVersion = len(objects), metadata.textOf("continue"), metadata.textOf("resourceVersion")
	kindName, version := strings.TrimSuffix(list.textOf("kind"), "List"), list.textOf("apiVersion")
	out := []byte{'['}
	for i, o := range objects {
		if o.kind != object {
			return nil, errors.New(name + ": an item that is no object")
		}
		if o.field("kind") == nil {
			o.add(&value{kind: text, key: "kind", text: kindName})
			o.add(&value{kind: text, key: "apiVersion", text: version})
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendJSON(out, o)
	}
	out = append(out, ']')
	page.Source.Data = out
	return page, nil
}

// listShape is what is read of a list beside its items.
var listShape = &shape{fields: fields{
	"kind": leaf, "apiVersion": leaf,
	"metadata": {fields: fields{"continue": leaf, "resourceVersion": leaf}},
}}
