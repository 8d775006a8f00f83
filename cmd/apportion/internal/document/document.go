// Package document reads messages of the contract from the files that people write: YAML or JSON, with unknown names refused and faults
// named by file, line and key, or the binary form.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// FaultError is a fault of a file.
type FaultError struct {
	File string
	// Line counts from 1; 0: the file as a whole.
	Line int
	// Key within the document, "" if it is not known.
	Key     string
	Message string
}

// Error gives the fault as file:line: key: message.
func (f *FaultError) Error() string {
	text := f.File
	if f.Line > 0 {
		text += ":" + strconv.Itoa(f.Line)
	}
	if f.Key != "" {
		text += ": " + f.Key
	}
	return text + ": " + f.Message
}

// Parse is the root of the only document of a YAML or JSON file.
func Parse(file string, data []byte) (*yaml.Node, error) {
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&root); err != nil {
		return nil, yamlFault(file, err)
	}
	var more yaml.Node
	if decoder.Decode(&more) == nil {
		return nil, &FaultError{File: file, Line: more.Line, Message: "a second document; one is expected"}
	}
	if len(root.Content) != 1 {
		return nil, &FaultError{File: file, Message: "nothing is in it"}
	}
	return root.Content[0], nil
}

// linePattern finds the line in what the YAML library says.
var linePattern = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

func yamlFault(file string, err error) error {
	if err.Error() == "EOF" {
		return &FaultError{File: file, Message: "nothing is in it"}
	}
	if match := linePattern.FindStringSubmatch(err.Error()); match != nil {
		line, convErr := strconv.Atoi(match[1])
		if convErr == nil {
			return &FaultError{File: file, Line: line, Message: "not YAML: " + match[2]}
		}
	}
	return &FaultError{File: file, Message: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

// Unmarshal reads a message from YAML, JSON, or its binary form.
func Unmarshal(file string, data []byte, message proto.Message) error {
	if isBinary(data) {
		if err := proto.Unmarshal(data, message); err != nil {
			return &FaultError{File: file, Message: "neither text nor a message in binary form"}
		}
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	root, err := Parse(file, data)
	if err != nil {
		return err
	}
	w := writer{file: file, line: 1}
	if err := w.value(root, 0); err != nil {
		return err
	}
	if err := protojson.Unmarshal(w.out.Bytes(), message); err != nil {
		return jsonFault(file, err)
	}
	return nil
}

// isBinary says whether data cannot be text: text holds no control characters but tabs and line ends.
func isBinary(data []byte) bool {
	for _, b := range data[:min(len(data), 1024)] {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			return true
		}
	}
	return false
}

// positionPattern finds the position in what the JSON library says.
var positionPattern = regexp.MustCompile(`\(line (\d+):\d+\):\s*(.*)$`)

func jsonFault(file string, err error) error {
	if match := positionPattern.FindStringSubmatch(err.Error()); match != nil {
		line, convErr := strconv.Atoi(match[1])
		if convErr == nil {
			return &FaultError{File: file, Line: line, Message: match[2]}
		}
	}
	// The library puts a space of either width behind its name, so that programs do not rely on the text.
	message := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	return &FaultError{File: file, Message: message}
}

// maxDepth bounds how deep a document may nest.
const maxDepth = 64

// writer writes a YAML tree as JSON whose every token is on the line on which YAML has it, so that the faults of the JSON have the
// lines of the YAML.
type writer struct {
	file string
	out  bytes.Buffer
	line int
}

// advance ends lines until the given one.
func (w *writer) advance(line int) {
	for w.line < line {
		w.out.WriteByte('\n')
		w.line++
	}
}

func (w *writer) value(n *yaml.Node, depth int) error {
	w.advance(n.Line)
	switch {
	case depth > maxDepth:
		return &FaultError{File: w.file, Line: n.Line, Message: "nested too deeply"}
	case n.Kind == yaml.AliasNode:
		return &FaultError{File: w.file, Line: n.Line, Message: "aliases are not read"}
	case n.Kind == yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		return nil
	case n.Kind == yaml.MappingNode:
		return w.mapping(n, depth)
	}
	return w.scalar(n)
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	w.out.WriteByte('{')
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return &FaultError{File: w.file, Line: key.Line, Key: key.Value, Message: "named twice"}
		}
		seen[key.Value] = true
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.advance(key.Line)
		w.text(key.Value)
		w.out.WriteByte(':')
		if err := w.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

// scalar writes what YAML takes for a number, a truth value or null as such, everything else as a text.
func (w *writer) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		var flag bool
		if err := n.Decode(&flag); err != nil {
			return &FaultError{File: w.file, Line: n.Line, Message: fmt.Sprintf("neither true nor false: %s", n.Value)}
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
