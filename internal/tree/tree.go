package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/spelling"
)

// Node is a part of a document with its place. Its YAML node has kind 0 if the document is empty.
type Node struct {
	*yaml.Node

	Source, Path string
}

// Parse returns the root of the only document of a source.
func Parse(source string, data []byte) (Node, error) {
	roots, err := ParseAll(source, data)
	switch {
	case err != nil:
		return Node{}, err
	case len(roots) == 0:
		return Node{Node: &yaml.Node{}, Source: source}, nil
	case len(roots) > 1:
		return Node{}, roots[1].Fault("a second document; one is expected")
	}
	return roots[0], nil
}

// ParseText returns the root of the only document of a text without lines of its own: all of its nodes are on the given line; 0 for a text
// that is not in a file.
func ParseText(source string, line int, text string) (Node, error) {
	root, err := Parse(source, []byte(text))
	if fault, ok := errors.AsType[*Fault](err); ok {
		fault.Line = line
		return Node{}, fault
	}
	move(root.Node, line)
	return root, nil
}

func move(n *yaml.Node, line int) {
	n.Line = line
	for _, child := range n.Content {
		move(child, line)
	}
}

// FaultOfPacked is the text of a fault of data that gzip compressed.
const FaultOfPacked = "compressed by gzip: unpack it first, as gunzip does"

// Packed reports whether gzip compressed data.
func Packed(data []byte) bool { return bytes.HasPrefix(data, []byte("\x1f\x8b")) }

// ParseAll returns the roots of all documents of a source.
func ParseAll(source string, data []byte) ([]Node, error) {
	if Packed(data) {
		return nil, &Fault{Source: source, Text: FaultOfPacked}
	}
	var roots []Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			line, text := Syntax(err)
			return nil, &Fault{Source: source, Line: line, Text: text}
		}
		for _, root := range document.Content {
			roots = append(roots, Node{Node: root, Source: source})
		}
	}
}

var syntax = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// Syntax returns the line of an error of the YAML library, 0 if it has none, and its text without names of anchors, which may be secret.
func Syntax(err error) (line int, text string) {
	text = err.Error()
	if match := syntax.FindStringSubmatch(text); match != nil {
		text = match[2]
		if n, err := strconv.Atoi(match[1]); err == nil {
			line = n
		}
	}
	if strings.Contains(text, "anchor") {
		text = "an alias without its anchor"
	}
	return line, "not YAML: " + text
}

// Fault returns an error at the node.
func (n Node) Fault(format string, args ...any) error {
	return &Fault{Source: n.Source, Line: n.Line, Path: n.Path, Text: fmt.Sprintf(format, args...)}
}

// FaultAt returns an error at the node about a path below it.
func (n Node) FaultAt(key, format string, args ...any) error {
	return Node{Node: n.Node, Source: n.Source, Path: Join(n.Path, key)}.Fault(format, args...)
}

// Join returns the path of a key.
func Join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}

// Printable shortens and quotes a name for paths and errors.
func Printable(name string) string {
	const longest = 64
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\\' }
	if strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
			return quoted
		}
	}
	return name
}

// IsNull reports whether the node is null or an empty document.
func (n Node) IsNull() bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Field returns the value of a key; ok is false if the node is no mapping or has no such key.
func (n Node) Field(key string) (value Node, ok bool) {
	if n.Node == nil || n.Kind != yaml.MappingNode {
		return Node{}, false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.child(n.Content[i+1], key), true
		}
	}
	return Node{}, false
}

// At returns the node at a path of keys and positions, or the last node of the path that exists.
func (n Node) At(path string) Node {
	for part := range strings.SplitSeq(path, ".") {
		key, position, indexed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		next, ok := n.Field(key)
		if !ok {
			break
		}
		n = next
		if indexed {
			items, err := n.Items()
			i, convErr := strconv.Atoi(position)
			if err != nil || convErr != nil || i >= len(items) {
				break
			}
			n = items[i]
		}
	}
	return n
}

func (n Node) child(node *yaml.Node, key string) Node {
	return Node{Node: node, Source: n.Source, Path: Join(n.Path, key)}
}

// Items returns the items of a list.
func (n Node) Items() ([]Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, n.Fault("a list is expected")
	}
	items := make([]Node, len(n.Content))
	for i, item := range n.Content {
		items[i] = Node{Node: item, Source: n.Source, Path: n.Path + "[" + strconv.Itoa(i) + "]"}
	}
	return items, nil
}

// OneOrMore returns the items of a list, or the node itself. All have the path of the node.
func (n Node) OneOrMore() []Node {
	if n.Kind != yaml.SequenceNode {
		return []Node{n}
	}
	items := make([]Node, len(n.Content))
	for i, item := range n.Content {
		items[i] = n.child(item, "")
	}
	return items
}

// Entries calls read for each entry of a mapping. Keys that are no names, or that occur twice, are faults. It returns all faults.
func (n Node) Entries(read func(name string, key, value Node) error) error {
	if n.Kind != yaml.MappingNode {
		return n.Fault("values by name are expected")
	}
	var faults Faults
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		key, value := n.child(n.Content[i], Printable(name)), n.child(n.Content[i+1], Printable(name))
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			faults.Add(Node{Node: key.Node, Source: n.Source, Path: n.Path}.Fault("a name is expected"))
		case seen[name]:
			faults.Add(key.Fault("is given twice"))
		default:
			seen[name] = true
			faults.Add(read(name, key, value))
		}
	}
	return faults.Err()
}

// Unknown returns the error about a key that is not among the known ones.
func (n Node) Unknown(name string, known []string) error {
	if suggestion := spelling.Suggestion(name, slices.Values(known)); suggestion != "" {
		return n.Fault("no such key%s", suggestion)
	}
	return n.Fault("no such key; there are %s", strings.Join(known, ", "))
}

// Reader reads a value into a place that it knows.
type Reader func(Node) error

// Fields are the readers of the values of a mapping by key.
type Fields map[string]Reader

// Read reads the values of a mapping; null has none. Unknown keys are faults.
func (n Node) Read(fields Fields) error {
	known := slices.Sorted(maps.Keys(fields))
	switch {
	case n.IsNull():
		return nil
	case n.Kind != yaml.MappingNode:
		return n.Fault("keys are expected: %s", strings.Join(known, ", "))
	}
	return n.Entries(func(name string, key, value Node) error {
		read, ok := fields[name]
		if !ok {
			return key.Unknown(name, known)
		}
		return read(value)
	})
}

// Keys returns the values of a mapping by key. Keys other than the known ones are faults.
func (n Node) Keys(known ...string) (map[string]Node, error) {
	values := map[string]Node{}
	fields := Fields{}
	for _, key := range known {
		fields[key] = func(value Node) error {
			values[key] = value
			return nil
		}
	}
	return values, n.Read(fields)
}

// Text returns a reader of a text.
func Text(place *string) Reader {
	return func(n Node) error {
		if n.Kind != yaml.ScalarNode || n.IsNull() {
			return n.Fault("a text is expected")
		}
		*place = n.Value
		return nil
	}
}

// Texts returns a reader of a text, or a list of texts.
func Texts(place *[]string) Reader {
	return func(n Node) error {
		items := n.OneOrMore()
		*place = make([]string, len(items))
		for i, item := range items {
			if err := Text(&(*place)[i])(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// Flag returns a reader of true or false.
func Flag(place *bool) Reader {
	return func(n Node) error {
		if n.ShortTag() != "!!bool" || n.Decode(place) != nil {
			return n.Fault("neither true nor false")
		}
		return nil
	}
}

// Whole returns a reader of a whole number that fits into its place.
func Whole[N int32 | uint32](place *N) Reader {
	return func(n Node) error {
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if n.ShortTag() != "!!int" || err != nil || int64(N(number)) != number {
			return n.Fault("not a whole number that is possible here: %s", n.Value)
		}
		*place = N(number)
		return nil
	}
}
