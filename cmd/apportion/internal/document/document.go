// Package document reads messages of the contract from files in YAML, JSON or the binary form. It refuses unknown names, and names faults
// by file, line and key.
package document

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/internal/tree"
)

// Unmarshal reads a message from YAML, JSON, or its binary form.
func Unmarshal(file string, data []byte, message proto.Message) error {
	if isBinary(data) && !tree.Packed(data) {
		if err := proto.Unmarshal(data, message); err != nil {
			return &tree.Fault{Source: file, Text: "neither text nor a message in binary form"}
		}
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	root, err := tree.Parse(file, data)
	if err != nil {
		return err
	}
	if root.Kind == 0 {
		return root.Fault("the document is empty")
	}
	w := writer{line: 1}
	if err := w.value(root, 0); err != nil {
		return err
	}
	if err := protojson.Unmarshal(w.out.Bytes(), message); err != nil {
		return jsonFault(file, err)
	}
	return nil
}

// isBinary reports whether data is not text, because it has control characters other than tabs and line ends.
func isBinary(data []byte) bool {
	for _, b := range data[:min(len(data), 1024)] {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			return true
		}
	}
	return false
}

// positionPattern matches the position in errors of the JSON library.
var positionPattern = regexp.MustCompile(`\(line (\d+):\d+\):\s*(.*)$`)

func jsonFault(file string, err error) error {
	if match := positionPattern.FindStringSubmatch(err.Error()); match != nil {
		line, convErr := strconv.Atoi(match[1])
		if convErr == nil {
			return &tree.Fault{Source: file, Line: line, Text: match[2]}
		}
	}
	// The library writes an ordinary or a wide space after its name, so that programs do not depend on the text.
	message := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	return &tree.Fault{Source: file, Text: message}
}

// maxDepth is the maximum nesting of a document.
const maxDepth = 64

// writer converts a YAML tree to JSON with every token on its line in the YAML, so that errors of the JSON have the lines of the YAML.
type writer struct {
	out  bytes.Buffer
	line int
}

// advance writes line ends up to the given line.
func (w *writer) advance(line int) {
	for w.line < line {
		w.out.WriteByte('\n')
		w.line++
	}
}

func (w *writer) value(n tree.Node, depth int) error {
	w.advance(n.Line)
	switch {
	case depth > maxDepth:
		return &tree.Fault{Source: n.Source, Line: n.Line, Text: "nested too deeply"}
	case n.Kind == yaml.AliasNode:
		return n.Fault("aliases are not read")
	case n.Kind == yaml.SequenceNode:
		items, err := n.Items()
		between := byte('[')
		for _, item := range items {
			w.out.WriteByte(between)
			between = ','
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		w.close('[', between, ']')
		return err
	case n.Kind == yaml.MappingNode:
		between := byte('{')
		err := n.Entries(func(name string, key, value tree.Node) error {
			w.out.WriteByte(between)
			between = ','
			w.advance(key.Line)
			w.text(name)
			w.out.WriteByte(':')
			return w.value(value, depth+1)
		})
		w.close('{', between, '}')
		return err
	}
	return w.scalar(n)
}

// close ends a list or object; it also begins an empty one.
func (w *writer) close(opening, between, closing byte) {
	if between == opening {
		w.out.WriteByte(opening)
	}
	w.out.WriteByte(closing)
}

// scalar writes numbers, booleans and null of YAML as such, and everything else as a text.
func (w *writer) scalar(n tree.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		var flag bool
		if err := n.Decode(&flag); err != nil {
			return n.Fault("true or false is expected, got %s", n.Value)
		}
		w.out.WriteString(strconv.FormatBool(flag))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			w.out.WriteString(n.Value)
			return nil
		}
		w.text(strings.TrimPrefix(strings.NewReplacer(".inf", "Infinity", ".Inf", "Infinity", ".nan", "NaN").Replace(n.Value), "+"))
	default:
		w.text(n.Value)
	}
	return nil
}

func (w *writer) text(content string) {
	quoted, err := json.Marshal(content)
	if err != nil {
		quoted = []byte(`""`)
	}
	w.out.Write(quoted)
}
