package volcano

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// ReadPage reads one page of a list in JSON. Objects without a kind, as in lists of built-in kinds, have the kind of the list's items.
// ReadPage does not retain data.
func ReadPage(name string, data []byte) (*Page, error) {
	list, objects, err := readItems(name, data, objectShape)
	if err != nil {
		return nil, err
	}
	page := &Page{Source: Source{Name: name}}
	metadata := list.field(metadataField)
	page.Count, page.Continue, page.ResourceVersion = len(objects), metadata.textOf("continue"), metadata.textOf(resourceVersionField)
	kindName, version := strings.TrimSuffix(list.textOf(kindField), "List"), list.textOf(versionField)
	out := []byte{'['}
	for i, o := range objects {
		if o.kind != object {
			return nil, errors.New(name + ": an item is not an object")
		}
		if o.field(kindField) == nil {
			o.add(&value{kind: text, key: kindField, text: kindName})
			o.add(&value{kind: text, key: versionField, text: version})
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendJSON(out, o)
	}
	out = append(out, ']')
	if page.Source.Data = out; len(objects) == 0 && kindName != "" {
		// That there are none is part of what was read.
		page.Source.Data = fmt.Appendf(nil, `{"kind":%q,"items":[]}`, kindName+"List")
	}
	return page, nil
}

// readItems scans a list in JSON and returns its own fields and its items.
func readItems(name string, data []byte, of *shape) (list *value, items []*value, err error) {
	if !json.Valid(data) {
		return nil, nil, fmt.Errorf("%s: not JSON", name)
	}
	s := scanner{data: data}
	if s.space(); s.data[s.pos] != '{' {
		return nil, nil, fmt.Errorf("%s: not a list", name)
	}
	list = &value{kind: object}
	found := false
	s.names = make(map[string]string)
	s.members(func(key string, at int) {
		if key == "items" && s.data[s.pos] == '[' {
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
var listShape = &shape{fields: fields{
	kindField: leaf, versionField: leaf,
	metadataField: {fields: fields{"continue": leaf, "resourceVersion": leaf}},
}}
