package document

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON writes a message as indented JSON, the same bytes every time.
func JSON(message proto.Message) ([]byte, error) {
	raw, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	return Indent(raw)
}

// Indent indents JSON and ends it with a line end.
func Indent(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// YAML writes JSON as YAML, keys in the same order.
func YAML(raw []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	block(&root)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// block converts the flow style of JSON to the block style of YAML, except for short lists of numbers and empty values.
func block(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
		if n.Tag == "!!str" {
			n.SetString(n.Value)
		}
		return
	}
	if len(n.Content) > 0 && !isRow(n) {
		n.Style = 0
	}
	for _, child := range n.Content {
		block(child)
	}
}

// isRow reports whether n is a list of plain numbers, such as amounts.
func isRow(n *yaml.Node) bool {
	if n.Kind != yaml.SequenceNode {
		return false
	}
	for _, child := range n.Content {
		if tag := child.ShortTag(); tag != "!!int" && tag != "!!float" && child.Value != "Infinity" {
			return false
		}
	}
	return true
}

// Line writes a message as one line of JSON, the same bytes every time.
func Line(message proto.Message) ([]byte, error) {
	raw, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
