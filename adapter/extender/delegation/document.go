package delegation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
)

// document is a configuration as it is written.
type document struct {
	name  string
	root  *yaml.Node
	tiers *yaml.Node
}

// maxNodes bounds what the aliases of a document may stand for.
const maxNodes = 100_000

// parse reads the first document of a configuration that is known to be valid.
func parse(source objects.Source) (*document, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(source.Data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", source.Name, err)
	}
	d := &document{name: source.Name}
	if len(file.Content) == 0 {
		return nil, fmt.Errorf("%s: nothing is configured", source.Name)
	}
	left := maxNodes
	d.root = expanded(file.Content[0], &left)
	d.root.HeadComment, d.root.FootComment = file.HeadComment, file.FootComment
	if left <= 0 {
		return nil, fmt.Errorf("%s: aliases expand to too many values", source.Name)
	}
	d.tiers = member(d.root, "tiers")
	if d.tiers == nil {
		return nil, fmt.Errorf("%s: there are no tiers", source.Name)
	}
	for i := range d.tiers.Content {
		for k := range d.pluginsOf(i).Content {
			if member(d.plugin(i, k), "name").Value == extenderName {
				return nil, fmt.Errorf("%s:%d: tiers[%d].plugins[%d]: an extender is already configured, and Volcano supports only one",
					source.Name, d.plugin(i, k).Line, i, k)
			}
		}
	}
	return d, nil
}

// expanded is a copy of a node, with copies in place of its aliases and merged members in their places.
func expanded(n *yaml.Node, left *int) *yaml.Node {
	if *left--; *left <= 0 {
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	if n.Kind == yaml.AliasNode {
		return expanded(n.Alias, left)
	}
	out := *n
	out.Anchor, out.Content = "", nil
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.ShortTag() == "!!merge" {
			out.Content = append(out.Content, merged(n, expanded(n.Content[i+1], left))...)
		} else if n.Kind != yaml.MappingNode || i%2 == 0 || n.Content[i-1].ShortTag() != "!!merge" {
			out.Content = append(out.Content, expanded(child, left))
		}
	}
	return &out
}

// merged are the members that an object takes over from another one, or from a list of them: the members that it does not have itself, from
// the first object that has them.
func merged(into, from *yaml.Node) []*yaml.Node {
	sources := []*yaml.Node{from}
	if from.Kind == yaml.SequenceNode {
		sources = from.Content
	}
	taken := &yaml.Node{Kind: yaml.MappingNode}
	for _, source := range sources {
		for i := 0; i+1 < len(source.Content); i += 2 {
			if key := source.Content[i].Value; member(into, key) == nil && member(taken, key) == nil {
				taken.Content = append(taken.Content, source.Content[i], source.Content[i+1])
			}
		}
	}
	return taken.Content
}

// member is the value of a key; nil if there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// pluginsOf is the list of a tier's plugins; one without elements if the tier has none.
func (d *document) pluginsOf(tier int) *yaml.Node {
	if list := member(d.tiers.Content[tier], "plugins"); list != nil && list.Kind == yaml.SequenceNode {
		return list
	}
	return &yaml.Node{Kind: yaml.SequenceNode}
}

func (d *document) plugin(tier, place int) *yaml.Node { return d.pluginsOf(tier).Content[place] }

// switchOff disables the voters that Apportion implements for one function.
func (d *document) switchOff(f *function, list []voter) {
	for _, v := range list {
		if !v.decided {
			continue
		}
		plugin, off := d.plugin(v.tier, v.place), truth("false")
		if value := member(plugin, f.flag); value != nil {
			off.LineComment = value.LineComment
			*value = *off
			continue
		}
		name := member(plugin, "name")
		plugin.Content = slices.Insert(plugin.Content, slices.Index(plugin.Content, name)+1, text(f.flag), off)
	}
}

const extenderName = "extender"

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func truth(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: value}
}

// extender returns the entry of the extender plugin that asks about functions.
func extender(asked []*function, options *Options, ignorable string) *yaml.Node {
	arguments := &yaml.Node{Kind: yaml.MappingNode}
	set := func(key string, value *yaml.Node) {
		arguments.Content = append(arguments.Content, text("extender."+key), value)
	}
	set("urlPrefix", text(options.URL))
	// Volcano reads it, which knows no days.
	set("httpTimeout", text(options.Timeout.String()))
	set("ignorable", truth(ignorable))
	set("onSessionOpenVerb", text("onSessionOpen"))
	set("onSessionCloseVerb", text("onSessionClose"))
	for _, f := range asked {
		set(f.verb+"Verb", text(f.verb))
		if f.event != "" {
			set(f.event+"Verb", text(f.event))
		}
	}
	set("allocateFuncVerb", text("allocate"))
	set("deallocateFuncVerb", text("deallocate"))
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("name"), text(extenderName), text("arguments"), arguments}}
}

// shadow is the configuration with the extender in a first tier of its own. A failure of jobEnqueueable would admit the job, so it is left
// out.
func (d *document) shadow(asked []*function, options *Options) ([]byte, error) {
	harmless := slices.DeleteFunc(slices.Clone(asked), func(f *function) bool { return f.decision == jobEnqueued })
	plugins := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{extender(harmless, options, "true")}}
	first := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("plugins"), plugins}}
	all := d.tiers.Content
	d.tiers.Content = slices.Concat([]*yaml.Node{first}, all)
	out, err := d.encoded("# Volcano asks " + options.URL +
		", which only observes (--extender-shadow); Volcano decides by its own plugins.\n")
	d.tiers.Content = all
	return out, err
}

// delegating is the configuration with the extender in a slot, once its functions are switched off elsewhere.
func (d *document) delegating(taken []*function, where slot, forms *Forms, options *Options) ([]byte, error) {
	list := d.pluginsOf(where.tier)
	list.Content = slices.Insert(list.Content, where.place, extender(taken, options, "false"))
	var head strings.Builder
	fmt.Fprintf(&head, "# Volcano asks %s, whose policy is the unchanged %s, and decides as it does with that file.\n", options.URL, d.name)
	fmt.Fprintf(&head, "# Delegated: %s.\n", strings.Join(forms.Delegated, ", "))
	if len(forms.Kept) > 0 {
		head.WriteString("# Not delegated, because decisions would differ:\n")
	}
	for _, k := range forms.Kept {
		fmt.Fprintf(&head, "# - %s: %s (%s:%d)\n", k.Verb, k.Reason, d.name, k.Line)
	}
	head.WriteString("# The plugins below decide everything else: Volcano asks no extender about it, or once for each task and node.\n")
	return d.encoded(head.String())
}

// encoded is the document as a text, behind a comment.
func (d *document) encoded(head string) ([]byte, error) {
	out := bytes.NewBufferString(head)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(d.root); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return out.Bytes(), encoder.Close()
}
