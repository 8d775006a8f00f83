package scenario

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Translator turns steps that name things into steps of the contract. It follows the jobs that steps add and the marks that they set.
type Translator struct {
	source

	snapshot *lookup.Snapshot
	marks    []mark
}

// mark is a state to return to.
type mark struct {
	name     string
	snapshot *lookup.Snapshot
}

// NewTranslator begins with a snapshot. Faults name the file.
func NewTranslator(file string, snapshot *lookup.Snapshot) *Translator {
	return &Translator{source: source{file}, snapshot: snapshot}
}

// Step is a step that was translated.
type Step struct {
	*apportionv1.Step
	// Text is the step as it was written, in one line.
	Text string
	// Snapshot gives names to what the answer refers to.
	Snapshot *lookup.Snapshot
	// Done tells the translator that the step was carried out.
	Done func()
}

// Step translates a step. What it changes counts for later steps once it is Done.
func (t *Translator) Step(n *yaml.Node) (*Step, error) {
	kind, value := n, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}
	if n.Kind == yaml.MappingNode {
		if len(n.Content) != 2 {
			return nil, t.fault(n, "", "a step has one key, its kind")
		}
		kind, value = n.Content[0], n.Content[1]
	}
	translate, ok := kinds[kind.Value]
	if kind.Kind != yaml.ScalarNode || !ok {
		return nil, t.fault(kind, kind.Value, "no such step; there are "+strings.Join(kindNames(), ", "))
	}
	step := &Step{Text: oneLine(n), Snapshot: t.snapshot, Done: func() {}}
	w := work{Translator: t, step: step, path: kind.Value, node: value}
	if translate.short != "" && !isNull(value) && value.Kind != yaml.MappingNode {
		w.node = &yaml.Node{Kind: yaml.MappingNode, Line: value.Line, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: translate.short, Line: value.Line}, value,
		}}
	}
	message, err := translate.read(&w)
	if err != nil {
		return nil, err
	}
	step.Step = message
	return step, nil
}

// oneLine writes a step as it could stand in a session.
func oneLine(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	text := n.Content[0].Value
	value := *n.Content[1]
	flow(&value)
	written, err := yaml.Marshal(&value)
	if err != nil || isNull(&value) {
		return text
	}
	return text + ": " + strings.Join(strings.Fields(string(written)), " ")
}

// flow puts a tree into flow style. Nodes are copied, because faults still need their lines.
func flow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	content := make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		copied := *child
		flow(&copied)
		content[i] = &copied
	}
	n.Content = content
}

// work is the translation of one step.
type work struct {
	*Translator

	step *Step
	path string
	node *yaml.Node
}

func (w *work) read(read readers) error { return w.mapping(w.node, w.path, read) }

// indices resolves one name, or a list of them.
func (w *work) indices(key string, n *yaml.Node, find func(string) (uint32, error)) ([]uint32, error) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	list := make([]uint32, len(items))
	for i, item := range items {
		var name string
		err := w.text(&name)(key, item)
		if err != nil {
			return nil, err
		}
		if list[i], err = find(name); err != nil {
			return nil, w.fault(item, key, err.Error())
		}
	}
	return list, nil
}
