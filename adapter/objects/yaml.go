package objects

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/tree"
)

const (
	// maxDepth bounds the nesting of selected values; objects of Kubernetes are far less deep.
	maxDepth = 64
	// maxExpanded bounds the number of values to which the aliases of one document expand.
	maxExpanded = 100_000
)

// eachYAML visits the objects of a document, or the items of the list that it is.
func eachYAML(doc *Document, sh *Shape, found *Problems, each visit) {
	if list, ok := cutList(doc); ok {
		list.visit(sh, found, each)
		return
	}
	readYAML(doc, sh, found, func(v *Value) { each(doc, v) })
}

// readYAML parses the documents in doc and calls each with every object, those of lists one by one.
func readYAML(doc *Document, sh *Shape, found *Problems, each func(*Value)) {
	decoder := yaml.NewDecoder(bytes.NewReader(doc.Data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, message := YAMLFault(err)
			found.AddText(doc, doc.First+line, "%s", message)
			return
		}
		t := builder{doc: doc, found: found, once: true}
		t.document(&root, sh, each)
	}
}

// YAMLFault returns the line and text of an error of the parser.
func YAMLFault(err error) (line int, message string) {
	line, message = tree.Syntax(err)
	return max(line, 1), message
}

// builder turns the nodes of one YAML document into values.
type builder struct {
	doc   *Document
	found *Problems
	// depth is the nesting of the current node, expanded the number of values from aliases.
	depth, aliases, expanded int
	full                     bool
	// once makes a key that an object has twice a fault. Volcano's configuration may have it, and the last one counts.
	once bool
}

// ValueOf builds the parts of a node that a shape selects. A key that is given twice is no fault.
func ValueOf(doc *Document, n *yaml.Node, sh *Shape, found *Problems) *Value {
	t := builder{doc: doc, found: found}
	return t.value(n, sh)
}

// twice is the fault of a key that is given twice.
const twice = "%q is given twice; objects in one file are separated by ---"

// document calls each with the object at the root, or with the items of the list or array there.
func (t *builder) document(root *yaml.Node, sh *Shape, each func(*Value)) {
	if len(root.Content) == 0 {
		return
	}
	top := root.Content[0]
	if top.Kind == yaml.SequenceNode {
		for _, item := range top.Content {
			each(t.value(item, sh))
		}
		return
	}
	if top.Kind == yaml.MappingNode {
		listed, some := false, false
		of := (&builder{doc: t.doc, found: &Problems{}}).value(top, headShape).kindOfItems()
		for i := 0; i+1 < len(top.Content); i += 2 {
			if top.Content[i].Value != itemsField || top.Content[i+1].Kind != yaml.SequenceNode {
				continue
			}
			if listed {
				t.found.AddText(t.doc, t.doc.First+top.Content[i].Line, twice, itemsField)
			}
			listed = true
			for _, item := range top.Content[i+1].Content {
				some = true
				v := t.value(item, sh)
				v.take(of)
				each(v)
			}
		}
		if listed && (some || of.Name == "") {
			return
		}
	}
	if v := t.value(top, sh); v.Type != Null {
		each(v)
	}
}

// value builds the selected parts of a node.
func (t *builder) value(n *yaml.Node, sh *Shape) *Value {
	v := &Value{Type: Skipped, At: t.doc.First + n.Line}
	if t.aliases > 0 {
		t.expanded++
	}
	if t.depth >= maxDepth || t.expanded > maxExpanded {
		if !t.full {
			t.full = true
			t.found.AddText(t.doc, v.At, "nested too deeply, or aliases expand to too many values")
		}
		return v
	}
	t.depth++
	defer func() { t.depth-- }()
	switch n.Kind {
	case yaml.AliasNode:
		t.aliases++
		v = t.value(n.Alias, sh)
		t.aliases--
	case yaml.MappingNode:
		v.Type = Map
		t.members(v, n, sh)
	case yaml.SequenceNode:
		v.Type = List
		for _, item := range n.Content {
			v.Add(t.value(item, sh))
		}
	default:
		v.Type, v.Text = scalar(n)
	}
	return v
}

// members builds the fields of an object. Merged ones (`<<`) come first, because a field written in the object itself wins.
func (t *builder) members(v *Value, n *yaml.Node, sh *Shape) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			t.merge(v, n.Content[i+1], sh)
		}
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Tag == "!!merge" || t.full {
			continue
		}
		if t.once && seen[key.Value] {
			t.found.AddText(t.doc, t.doc.First+key.Line, twice, key.Value)
		}
		seen[key.Value] = true
		name := strings.ToValidUTF8(key.Value, "\uFFFD")
		child := &Value{Type: Skipped, At: t.doc.First + n.Content[i+1].Line}
		if wanted := sh.of(name); wanted != nil {
			child = t.value(n.Content[i+1], wanted)
		} else if !sh.Names {
			continue
		}
		child.Key, child.KeyAt = name, t.doc.First+key.Line
		v.Add(child)
	}
}

// merge adds the fields of an object, or of a list of objects of which the first one wins.
func (t *builder) merge(v *Value, n *yaml.Node, sh *Shape) {
	merged := t.value(n, sh)
	from := []*Value{merged}
	if merged.Type == List {
		from = merged.Items
	}
	for _, source := range slices.Backward(from) {
		for _, child := range source.Items {
			v.Add(child)
		}
	}
}

// scalar returns the kind and text of a scalar, by the rules of the YAML parser of Kubernetes and Volcano.
func scalar(n *yaml.Node) (Type, string) {
	content := strings.ToValidUTF8(n.Value, "\uFFFD")
	switch n.ShortTag() {
	case "!!null":
		return Null, ""
	case "!!bool":
		return Boolean, strings.ToLower(content)
	case "!!int":
		return Number, decimal(n, content)
	case "!!float":
		return Number, content
	}
	if _, ok := words[content]; ok && n.Style == 0 {
		return Word, content
	}
	return Text, content
}

// decimal converts an integer with any base or separators to JSON's form.
func decimal(n *yaml.Node, content string) string {
	digits := strings.TrimPrefix(content, "-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" && (len(digits) == 1 || digits[0] != '0') {
		return content
	}
	var whole int64
	if err := n.Decode(&whole); err != nil {
		return content
	}
	return strconv.FormatInt(whole, 10)
}
