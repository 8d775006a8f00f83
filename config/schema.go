package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Schema returns the JSON Schema of a configuration file, for editors and checkers.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[Config](), "")
	root.set("$schema", "https://json-schema.org/draft/2020-12/schema")
	root.set("title", "Configuration of apportion serve")
	slices.SortStableFunc(root.entries, func(a, b entry) int { return rank(a.key) - rank(b.key) })
	data, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// rank puts what a schema says of itself before the rest.
func rank(key string) int {
	if i := slices.Index([]string{"$schema", "title"}, key); i >= 0 {
		return i
	}
	return len("$schema")
}

// object is a JSON object that keeps its order.
type object struct{ entries []entry }

type entry struct {
	key   string
	value any
}

func (o *object) set(key string, value any) { o.entries = append(o.entries, entry{key, value}) }

// MarshalJSON writes the entries in the order in which they were set.
func (o *object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, e := range o.entries {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Quote(e.key))
		out.WriteByte(':')
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// schemaOf is the schema of a struct.
func schemaOf(t reflect.Type, description string) *object {
	o, properties := &object{}, &object{}
	if description != "" {
		o.set("description", description)
	}
	o.set("type", "object")
	o.set("additionalProperties", false)
	for _, f := range fieldsOf(t) {
		properties.set(keyOf(f), schemaOfField(t, f))
	}
	o.set("properties", properties)
	return o
}

func schemaOfField(parent reflect.Type, f reflect.StructField) *object {
	if f.Type.Kind() == reflect.Struct {
		section := schemaOf(f.Type, help[f.Type.Name()])
		// A section whose lines are all comments.
		section.entries[1].value = []string{"object", "null"}
		return section
	}
	o := &object{}
	o.set("description", help[parent.Name()+"."+f.Name])
	text, given := defaultOf(parent, f)
	switch kind := f.Type.Kind(); {
	case f.Type == bytesType:
		o.set("oneOf", []any{
			map[string]any{"type": "string", "pattern": bytesPattern}, map[string]any{"type": "integer", "minimum": 0},
		})
	case f.Type == durationType:
		o.set("type", "string")
		o.set("pattern", durationPattern)
	case kind == reflect.Bool:
		o.set("type", "boolean")
	case kind == reflect.Int:
		o.set("type", "integer")
		o.set("minimum", json.Number(cmp.Or(f.Tag.Get("min"), "0")))
		if limit, ok := f.Tag.Lookup("max"); ok {
			o.set("maximum", json.Number(limit))
		}
	case kind == reflect.String:
		o.set("type", "string")
		if allowed, ok := f.Tag.Lookup("oneof"); ok {
			o.set("enum", strings.Split(allowed, ","))
		}
	case kind == reflect.Map:
		o.set("type", "object")
		o.set("additionalProperties", map[string]any{"type": "string"})
	default:
		o.set("type", "array")
		if element, ok := listed(f.Type); ok {
			o.set("items", schemaOf(element, help[element.Name()]))
		} else {
			o.set("items", map[string]any{"type": "string"})
		}
	}
	if given {
		o.set("default", defaultInJSON(f, text))
	}
	return o
}

// defaultInJSON is a default as JSON has it.
func defaultInJSON(f reflect.StructField, text string) any {
	switch f.Type.Kind() {
	case reflect.Slice:
		return strings.Split(text, ",")
	case reflect.Bool:
		return text == yes
	case reflect.Int:
		return json.Number(text)
	default:
		return text
	}
}
