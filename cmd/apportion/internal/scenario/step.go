package scenario

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/tree"
)

// Translator turns steps that name things into steps of the contract. It follows the jobs that steps add and the marks that they set.
type Translator struct {
	snapshot *lookup.Snapshot
	marks    []mark
}

// mark is a state to return to.
type mark struct {
	name     string
	snapshot *lookup.Snapshot
}

// NewTranslator begins with a snapshot.
func NewTranslator(snapshot *lookup.Snapshot) *Translator { return &Translator{snapshot: snapshot} }

// Step is a step that was translated.
type Step struct {
	*apportionv1.Step
	// Text is the step as it was written, in one line.
	Text string
	// Snapshot gives names to what the answer refers to.
	Snapshot *lookup.Snapshot
	// Done records in the translator that the step was carried out.
	Done func()
}

// Step translates a step. Its changes apply to later steps once it is Done.
func (t *Translator) Step(n tree.Node) (*Step, error) {
	n.Path = ""
	name, value := n.Value, tree.Node{Node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}, Source: n.Source, Path: n.Value}
	if n.Kind == yaml.MappingNode {
		if len(n.Content) != 2 {
			return nil, n.Fault("a step has one key, its kind")
		}
		name = n.Content[0].Value
		value, _ = n.Field(name)
	}
	translate, ok := kinds[name]
	if !ok {
		like := spelling.Suggestion(name, maps.Keys(kinds))
		return nil, n.FaultAt(name, "no such step%s", spelling.Then(like, "there are "+strings.Join(kindNames(), ", ")))
	}
	step := &Step{Text: oneLine(n.Node), Snapshot: t.snapshot, Done: func() {}}
	w := work{Translator: t, step: step, node: value}
	if translate.short != "" && !value.IsNull() && value.Kind != yaml.MappingNode {
		w.node.Node = &yaml.Node{Kind: yaml.MappingNode, Line: value.Line, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: translate.short, Line: value.Line}, value.Node,
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
	if err != nil || value.ShortTag() == "!!null" {
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
	node tree.Node
}

// indices resolves one name, or a list of them.
func indices(n tree.Node, find func(string) (uint32, error)) ([]uint32, error) {
	var list []uint32
	for _, item := range n.OneOrMore() {
		var name string
		if err := tree.Text(&name)(item); err != nil {
			return nil, err
		}
		index, err := find(name)
		if err != nil {
			return nil, item.Fault("%v", err)
		}
		list = append(list, index)
	}
	return list, nil
}
