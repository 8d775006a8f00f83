package config

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFile bounds a configuration file, in bytes.
	maxFile = 4 << 20
	// maxFaults bounds the faults of one source that are reported.
	maxFaults = 100
)

// decoder sets fields from YAML, and notes where each value stands. The library's own way into structs would tell less: it forgets
// lines, quotes values that are secret, and takes the last of two equal keys.
type decoder struct {
	// name of the source: a file, a variable or a flag.
	name string
	// lined says that the lines of the source mean something.
	lined   bool
	faults  Faults
	origins map[string]string
}

func (d *decoder) origin(n *yaml.Node) string {
	if !d.lined || n.Line == 0 {
		return d.name
	}
	return d.name + ":" + strconv.Itoa(n.Line)
}

func (d *decoder) fail(n *yaml.Node, path, text string) {
	if len(d.faults) < maxFaults {
		d.faults.add(d.origin(n), path, text)
	}
}

// parse returns the root of the only document; nil if there is nothing but comments.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.faults.add(d.name, "", "more than "+Bytes(maxFile).String()+" are not read")
		return nil
	}
	var root, more yaml.Node
	source := yaml.NewDecoder(bytes.NewReader(data))
	if err := source.Decode(&root); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err)
		}
		return nil
	}
	if err := source.Decode(&more); err == nil {
		d.fail(&more, "", "a second document; one is expected")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	if len(root.Content) != 1 || isNull(root.Content[0]) {
		return nil
	}
	return root.Content[0]
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax tells what the YAML library says of a text that is no YAML.
func (d *decoder) syntax(err error) {
	origin, text := d.name, err.Error()
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		text = match[2]
		if d.lined && match[1] != "" {
			origin += ":" + match[1]
		}
	}
	if strings.Contains(text, "anchor") {
		// The library would quote its name.
		text = "an alias without its anchor"
	}
	d.faults.add(origin, "", "not YAML: "+text)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// structure sets the fields of a struct from a mapping.
func (d *decoder) structure(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "settings by name are expected")
		return
	}
	fields := fieldsOf(into.Type())
	d.entries(n, path, func(key, value *yaml.Node, at string) {
		for i, f := range fields {
			if keyOf(f) != key.Value {
				continue
			}
			if f.Type.Kind() == reflect.Struct && isNull(value) {
				// A section whose lines are all comments.
				return
			}
			d.value(value, into.Field(i), at)
			return
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = keyOf(f)
		}
		d.fail(key, at, "there is no such setting"+meant(key.Value, names))
	})
}

// entries calls do for each entry of a mapping whose key is a text that comes once.
func (d *decoder) entries(n *yaml.Node, path string, do func(key, value *yaml.Node, at string)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, printable(key.Value))
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			d.fail(key, path, "a name is expected")
		case seen[key.Value]:
			d.fail(key, at, "is set twice")
		default:
			seen[key.Value] = true
			do(key, value, at)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// printable shortens a text given as a name.
func printable(key string) string {
	const longest = 64
	if len(key) > longest {
		key = strings.ToValidUTF8(key[:longest], "") + "…"
	}
	if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// value sets one field, whatever its type.
func (d *decoder) value(n *yaml.Node, into reflect.Value, path string) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, path, "aliases are not read")
		return
	case isNull(n):
		d.fail(n, path, "no value is given")
		return
	}
	if into.Kind() != reflect.Struct || strings.HasSuffix(path, "]") {
		// A section has no value of its own.
		d.origins[path] = d.origin(n)
	}
	switch kind := into.Kind(); {
	case kind == reflect.Struct:
		d.structure(n, into, path)
	case kind == reflect.Slice:
		d.list(n, into, path)
	case kind == reflect.Map:
		d.mapping(n, into, path)
	case n.Kind != yaml.ScalarNode:
		d.fail(n, path, "a single value is expected")
	default:
		d.scalar(n, into, path)
	}
}

func (d *decoder) list(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "a list is expected")
		return
	}
	if into.SetZero(); len(n.Content) == 0 {
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, element := range n.Content {
		if list.Index(i).Kind() == reflect.Struct {
			setDefaults(list.Index(i))
		}
		d.value(element, list.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	into.Set(list)
}

func (d *decoder) mapping(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "values by name are expected")
		return
	}
	if into.SetZero(); len(n.Content) == 0 {
		return
	}
	m := reflect.MakeMap(into.Type())
	d.entries(n, path, func(key, value *yaml.Node, at string) {
		v := reflect.New(into.Type().Elem()).Elem()
		d.value(value, v, at)
		m.SetMapIndex(reflect.ValueOf(key.Value), v)
	})
	into.Set(m)
}

// scalar sets a value from one word. Of YAML's guesses about types only the one that fits is taken, so that a file means the same to every
// reader: a text that looks like something else has to be quoted.
func (d *decoder) scalar(n *yaml.Node, into reflect.Value, path string) {
	var fits bool
	switch t := into.Type(); {
	case t == bytesType:
		fits = n.Tag == "!!int" || n.Tag == "!!str"
	case t == durationType, t.Kind() == reflect.String:
		fits = n.Tag == "!!str"
	case t.Kind() == reflect.Bool:
		fits = n.Tag == "!!bool"
	default:
		fits = n.Tag == "!!int"
	}
	switch {
	case fits:
		if err := parseScalar(n.Value, into); err != nil {
			d.fail(n, path, err.Error())
		}
	case into.Type() == durationType:
		d.fail(n, path, errDuration.Error())
	case into.Kind() == reflect.String:
		d.fail(n, path, "a text is expected; put it into quotes")
	case into.Type() == bytesType:
		d.fail(n, path, errBytes.Error())
	case into.Kind() == reflect.Bool:
		d.fail(n, path, errBool.Error())
	default:
		d.fail(n, path, "a whole number is expected")
	}
}

// setDefaults sets every field of a struct to its default.
func setDefaults(into reflect.Value) {
	for i, f := range fieldsOf(into.Type()) {
		text, given := defaultOf(into.Type(), f)
		switch v := into.Field(i); {
		case f.Type.Kind() == reflect.Struct:
			setDefaults(v)
		case !given:
		case f.Type.Kind() == reflect.Slice:
			v.Set(reflect.ValueOf(strings.Split(text, ",")))
		default:
			if err := parseScalar(text, v); err != nil {
				// A test reads every default.
				continue
			}
		}
	}
}
