package kueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
)

// Page is a part of a list as an API server writes it.
type Page struct {
	// Source has the page's objects, without their managed fields.
	Source objects.Source
	// Count is the number of its objects.
	Count int
	// Continue asks the server for the next page; empty: this is the last one.
	Continue string
}

// pruned is an object with the parts that may be read.
type pruned struct {
	Version  string          `json:"apiVersion"`
	Kind     string          `json:"kind"`
	Metadata map[string]any  `json:"metadata"`
	Spec     json.RawMessage `json:"spec,omitempty"`
	Status   json.RawMessage `json:"status,omitempty"`
}

// ReadPage reads one page of a list in JSON. Objects without a kind, as in lists of built-in kinds, have the kind of the list's items.
func ReadPage(name string, data []byte) (*Page, error) {
	var list struct {
		Version  string `json:"apiVersion"`
		Kind     string `json:"kind"`
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items *[]pruned `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if list.Items == nil {
		return nil, errors.New(name + ": a list without items")
	}
	items := *list.Items
	for i := range items {
		if items[i].Kind == "" {
			items[i].Kind, items[i].Version = strings.TrimSuffix(list.Kind, "List"), list.Version
		}
		delete(items[i].Metadata, "managedFields")
	}
	out, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(items) == 0 {
		// That there are none is part of what was read.
		out = fmt.Appendf(nil, `{"kind":%q,"items":[]}`, list.Kind)
	}
	return &Page{Source: objects.Source{Name: name, Data: out}, Count: len(items), Continue: list.Metadata.Continue}, nil
}
