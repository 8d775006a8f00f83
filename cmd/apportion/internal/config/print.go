package config

import (
	"bytes"
	"cmp"
	"io"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/setting"
)

// hidden stands for a secret.
const hidden = "(hidden)"

// Print writes every setting as a configuration file would have it, each with where its value came from. Secrets are hidden; without
// secrets, the output is a configuration file that means the same.
func (e *Effective) Print(w io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range Settings() {
		at, name := sectionOf(root, s.Path)
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
		value := node(s.in(&e.Config), isSecret(s.field))
		if value.Kind == yaml.ScalarNode || len(value.Content) == 0 {
			value.LineComment = e.Origin(s.Path)
		} else {
			key.LineComment = e.Origin(s.Path)
		}
		at.Content = append(at.Content, key, value)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// sectionOf returns the mapping that a path leads into, made where there is none, and the last name of the path.
func sectionOf(root *yaml.Node, path string) (section *yaml.Node, name string) {
	parent := parentOf(path)
	if parent == "" {
		return root, path
	}
	above, last := sectionOf(root, parent)
	for i := 0; i < len(above.Content); i += 2 {
		if above.Content[i].Value == last {
			return above.Content[i+1], path[len(parent)+1:]
		}
	}
	made := &yaml.Node{Kind: yaml.MappingNode}
	above.Content = append(above.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: last}, made)
	return made, path[len(parent)+1:]
}

func isSecret(f reflect.StructField) bool { return f.Tag.Get("secret") != "" }

// node is a value as YAML has it. What is secret is hidden, wherever it lies.
func node(v reflect.Value, secret bool) *yaml.Node {
	switch v.Kind() {
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for f, field := range v.Fields() {
			n.Content = append(n.Content, text(keyOf(f)), node(field, isSecret(f)))
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, node(v.Index(i), secret))
		}
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			n.Content = append(n.Content, text(key.String()), node(v.MapIndex(key), secret))
		}
		if len(keys) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.String:
		if secret {
			return text(hidden)
		}
		return text(v.String())
	default:
		form := setting.FormOf(v.Type())
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: form.Tags[len(form.Tags)-1], Value: form.String(v)}
	}
}

// text is a string, in quotes where YAML would take it for something else.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
