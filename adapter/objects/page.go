package objects

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
