package volcano

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
func eachYAML(doc *document, found *problems, each visit) {
	if list, ok := cutList(doc); ok {
		list.visit(found, each)
		return
	}
	readYAML(doc, found, func(v *value) { each(doc, v) })
}

// readYAML parses the documents in doc and calls each with every object, those of lists one by one.
func readYAML(doc *document, found *problems, each func(*value)) {
	decoder := yaml.NewDecoder(bytes.NewReader(doc.data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, message := yamlFault(err)
			found.addText(doc, doc.first+line, "%s", message)
			return
		}
		t := builder{doc: doc, found: found, once: true}
		t.document(&root, each)
	}
}

// yamlFault returns the line and text of an error of the parser.
func yamlFault(err error) (line int, message string) {
	line, message = tree.Syntax(err)
	return max(line, 1), message
}

// builder turns the nodes of one YAML document into values.
type builder struct {
	doc   *document
	found *problems
	// depth is the nesting of the current node, expanded the number of values from aliases.
	depth, aliases, expanded int
	full                     bool
	// once makes a key that an object has twice a fault. Volcano's configuration may have it, and the last one counts.
	once bool
}

// twice is the fault of a key that is given twice.
const twice = "%q is given twice; objects in one file are separated by ---"

// document calls each with the object at the root, or with the items of the list or array there.
func (t *builder) document(root *yaml.Node, each func(*value)) {
	if len(root.Content) == 0 {
		return
	}
	top := root.Content[0]
	if top.Kind == yaml.SequenceNode {
		for _, item := range top.Content {
			each(t.value(item, objectShape))
		}
		return
	}
	if top.Kind == yaml.MappingNode {
		listed, some := false, false
		for i := 0; i+1 < len(top.Content); i += 2 {
			if top.Content[i].Value != "items" || top.Content[i+1].Kind != yaml.SequenceNode {
				continue
			}
			if listed {
				t.found.addText(t.doc, t.doc.first+top.Content[i].Line, twice, "items")
			}
			listed = true
			for _, item := range top.Content[i+1].Content {
				some = true
				each(t.value(item, objectShape))
			}
		}
		if listed && (some || !ofOneKind(t.value(top, objectShape))) {
			return
		}
	}
	if v := t.value(top, objectShape); v.kind != null {
		each(v)
	}
}

// value builds the selected parts of a node.
func (t *builder) value(n *yaml.Node, sh *shape) *value {
	v := &value{kind: skipped, at: t.doc.first + n.Line}
	if t.aliases > 0 {
		t.expanded++
	}
	if t.depth >= maxDepth || t.expanded > maxExpanded {
		if !t.full {
			t.full = true
			t.found.addText(t.doc, v.at, "nested too deeply, or aliases expand to too many values")
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
		v.kind = object
		t.members(v, n, sh)
	case yaml.SequenceNode:
		v.kind = array
		for _, item := range n.Content {
			v.add(t.value(item, sh))
		}
	default:
		v.kind, v.text = scalar(n)
	}
	return v
}

// members builds the fields of an object. Merged ones (`<<`) come first, because a field written in the object itself wins.
func (t *builder) members(v *value, n *yaml.Node, sh *shape) {
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
			t.found.addText(t.doc, t.doc.first+key.Line, twice, key.Value)
		}
		seen[key.Value] = true
		name := strings.ToValidUTF8(key.Value, "\uFFFD")
		child := &value{kind: skipped, at: t.doc.first + n.Content[i+1].Line}
		if wanted := sh.of(name); wanted != nil {
			child = t.value(n.Content[i+1], wanted)
		} else if !sh.names {
			continue
		}
		child.key, child.keyAt = name, t.doc.first+key.Line
		v.add(child)
	}
}

// merge adds the fields of an object, or of a list of objects of which the first one wins.
func (t *builder) merge(v *value, n *yaml.Node, sh *shape) {
	merged := t.value(n, sh)
	from := []*value{merged}
	if merged.kind == array {
		from = merged.items
	}
	for _, source := range slices.Backward(from) {
		for _, child := range source.items {
			v.add(child)
		}
	}
}

// scalar returns the kind and text of a scalar, by the rules of the YAML parser of Kubernetes and Volcano.
func scalar(n *yaml.Node) (kind, string) {
	content := strings.ToValidUTF8(n.Value, "\uFFFD")
	switch n.ShortTag() {
	case "!!null":
		return null, ""
	case "!!bool":
		return boolean, strings.ToLower(content)
	case "!!int":
		return number, decimal(n, content)
	case "!!float":
		return number, content
	}
	if _, ok := words[content]; ok && n.Style == 0 {
		return word, content
	}
	return text, content
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
