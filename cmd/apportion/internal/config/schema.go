package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/apportion/apportion/internal/setting"
)

// object is a JSON object.
type object = map[string]any

// typeKey is the key of a type in a schema.
const typeKey = "type"

// Schema returns the JSON Schema of a configuration file, for editors and validators.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[Config]())
	delete(root, "description")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of apportion serve"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return out.Bytes(), err
}

// schemaOf returns the schema of a struct.
func schemaOf(t reflect.Type) object {
	properties := object{}
	for f := range t.Fields() {
		if f.Type.Kind() == reflect.Struct {
			section := schemaOf(f.Type)
			section[typeKey] = []string{"object", "null"} // All lines of the section may be comments.
			properties[keyOf(f)] = section
			continue
		}
		property := schemaOfField(f)
		property["description"] = comments()[t.Name()+"."+f.Name].help
		properties[keyOf(f)] = property
	}
	return object{"description": comments()[t.Name()].help, typeKey: "object", "additionalProperties": false, "properties": properties}
}

func schemaOfField(f reflect.StructField) object {
	text, given := f.Tag.Lookup("default")
	form := setting.FormOf(f.Type)
	if form == nil {
		o := object{typeKey: "array", "items": object{typeKey: "string"}}
		if element, ok := listed(f.Type); ok {
			o["items"] = schemaOf(element)
		} else if f.Type.Kind() == reflect.Map {
			o = object{typeKey: "object", "additionalProperties": object{typeKey: "string"}}
		}
		if given {
			o["default"] = strings.Split(text, ",")
		}
		return o
	}
	var o object
	if err := json.Unmarshal([]byte(form.Schema), &o); err != nil {
		return object{} // Not reached: a test reads every form.
	}
	if allowed, ok := f.Tag.Lookup("oneof"); ok {
		o["enum"] = strings.Split(allowed, ",")
	}
	if o[typeKey] == "integer" {
		o["minimum"] = json.Number(cmp.Or(f.Tag.Get("min"), "0"))
		if limit, ok := f.Tag.Lookup("max"); ok {
			o["maximum"] = json.Number(limit)
		}
	}
	switch {
	case given && o[typeKey] == "integer":
		o["default"] = json.Number(text)
	case given && o[typeKey] == "boolean":
		o["default"] = text == setting.True
	case given:
		o["default"] = text
	}
	return o
}
