package volcano

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
)

// configurationKey is the name under which Volcano's ConfigMap holds its configuration.
const configurationKey = "volcano-scheduler.conf"

// maxConfigMaps is the size up to which a source is looked through for ConfigMaps. Kubernetes keeps one below 1 MiB.
const maxConfigMaps = 16 << 20

// FindConfiguration returns the volcano-scheduler.conf that a source is, or that it holds as a dump of one ConfigMap or of several. The
// Deployment of Volcano's scheduler may be in the dump, too, and its image says the release. ok is false if the source is something else.
// Lines are those of the source, except within a text that has other lines there, as in JSON.
func FindConfiguration(source objects.Source) (found objects.Source, ok bool, err error) {
	if len(source.Data) > maxConfigMaps {
		return objects.Source{}, false, nil
	}
	var held []*yaml.Node
	some, release := false, ""
	decoder := yaml.NewDecoder(bytes.NewReader(source.Data))
	for {
		var document yaml.Node
		// What cannot be parsed is a fault of whatever it is read as.
		if decoder.Decode(&document) != nil || len(document.Content) == 0 {
			break
		}
		root := document.Content[0]
		if isConfiguration(root) {
			return source, true, nil
		}
		in, ok := configurationsIn(root, &release)
		if !ok {
			return objects.Source{}, false, nil
		}
		held, some = append(held, in...), true
	}
	switch len(held) {
	case 0:
		if some {
			return objects.Source{}, false, fmt.Errorf("%s: no ConfigMap in it holds a %s", source.Name, configurationKey)
		}
		return objects.Source{}, false, nil
	case 1:
		found = embedded(source, held[0], configurationKey)
		found.Release = release
		return found, true, nil
	}
	const format = "%s:%d: a second ConfigMap with a %s: give one of them"
	return objects.Source{}, false, fmt.Errorf(format, source.Name, held[1].Line, configurationKey)
}

// isConfiguration reports whether a document has what only a volcano-scheduler.conf has: plugins with names, or settings of actions.
func isConfiguration(root *yaml.Node) bool {
	if member(root, objects.KindField) != nil {
		return false
	}
	for _, key := range []string{"actions", "configurations", "metrics"} {
		if member(root, key) != nil {
			return true
		}
	}
	for _, tier := range elements(member(root, "tiers")) {
		for _, plugin := range elements(member(tier, "plugins")) {
			if member(plugin, objects.NameField) != nil {
				return true
			}
		}
	}
	return false
}

// configurationsIn returns the configurations in a ConfigMap or a list of these, and sets the release that a Deployment of Volcano's
// scheduler among them has; ok is false if there is any other object.
func configurationsIn(n *yaml.Node, release *string) (held []*yaml.Node, ok bool) {
	if items := member(n, "items"); items != nil {
		for _, item := range items.Content {
			in, ok := configurationsIn(item, release)
			if !ok {
				return nil, false
			}
			held = append(held, in...)
		}
		return held, true
	}
	if isDeployment(n) {
		*release = cmp.Or(*release, imageRelease(n))
		return nil, true
	}
	if textIn(n, objects.KindField) != configMapKind {
		return nil, false
	}
	if text := member(member(n, "data"), configurationKey); text != nil && text.Kind == yaml.ScalarNode {
		held = append(held, text)
	}
	return held, true
}

// embedded returns the text of a scalar under a key as a source of its own. Empty lines above a literal text give it the lines of the
// source.
func embedded(source objects.Source, text *yaml.Node, key string) objects.Source {
	if text.Style == yaml.LiteralStyle {
		return objects.Source{Name: source.Name, Data: []byte(strings.Repeat("\n", text.Line) + text.Value)}
	}
	return objects.Source{Name: source.Name + ": " + key, Data: []byte(text.Value)}
}

// member returns the value of a key of a mapping; nil if there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// elements returns the elements of a list; nothing else has any.
func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}
