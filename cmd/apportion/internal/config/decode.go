package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/tree"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 4 << 20

// decoder sets fields from YAML and records where each value is written. Decoding into structs by the YAML library would lose lines, quote
// secrets in errors, and use the last of two equal keys.
type decoder struct{ origins map[string]string }

// document sets a struct from a document. A document of nothing but comments sets nothing.
func (d decoder) document(source string, data []byte, into reflect.Value) error {
	if len(data) > maxFile {
		return &tree.Fault{Source: source, Text: "more than " + setting.Bytes(maxFile).String() + " are not read"}
	}
	root, err := tree.Parse(source, data)
	if err != nil || root.IsNull() {
		return err
	}
	return d.structure(root, into)
}

// structure sets the fields of a struct from a mapping.
func (d decoder) structure(n tree.Node, into reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return n.Fault("settings by name are expected")
	}
	return n.Entries(func(name string, key, value tree.Node) error {
		var names []string
		for f, field := range into.Fields() {
			switch {
			case keyOf(f) != name:
				names = append(names, keyOf(f))
			case f.Type.Kind() == reflect.Struct && value.IsNull():
				return nil // All lines of the section are comments.
			default:
				return d.value(value, field)
			}
		}
		return key.Fault("there is no such setting%s", spelling.Suggestion(name, slices.Values(names)))
	})
}

// value sets a field of any type.
func (d decoder) value(n tree.Node, into reflect.Value) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return n.Fault("aliases are not read")
	case n.IsNull():
		return n.Fault("no value is given")
	}
	if into.Kind() != reflect.Struct || strings.HasSuffix(n.Path, "]") {
		// A section has no value of its own.
		d.origins[n.Path] = n.Source
		if n.Line > 0 {
			d.origins[n.Path] += ":" + strconv.Itoa(n.Line)
		}
	}
	switch form := setting.FormOf(into.Type()); {
	case into.Kind() == reflect.Struct:
		return d.structure(n, into)
	case into.Kind() == reflect.Slice:
		return d.list(n, into)
	case into.Kind() == reflect.Map:
		return d.mapping(n, into)
	case n.Kind != yaml.ScalarNode:
		return n.Fault("a single value is expected")
	case !slices.Contains(form.Tags, n.Tag):
		return n.Fault("%s", form.Fault)
	default:
		if err := form.Parse(n.Value, into); err != nil {
			return n.Fault("%v", err)
		}
		return nil
	}
}

func (d decoder) list(n tree.Node, into reflect.Value) error {
	items, err := n.Items()
	if into.SetZero(); err != nil || len(items) == 0 {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	var faults tree.Faults
	for i, item := range items {
		if into.Index(i).Kind() == reflect.Struct {
			setting.SetDefaults(into.Index(i))
		}
		faults.Add(d.value(item, into.Index(i)))
	}
	return faults.Err()
}

func (d decoder) mapping(n tree.Node, into reflect.Value) error {
	if into.SetZero(); n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		into.Set(reflect.MakeMap(into.Type()))
	}
	return n.Entries(func(name string, _, value tree.Node) error {
		v := reflect.New(into.Type().Elem()).Elem()
		err := d.value(value, v)
		into.SetMapIndex(reflect.ValueOf(name), v)
		return err
	})
}
