package volcano

import (
	"bytes"
	"fmt"
	"path"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
)

const (
	// SystemNamespace is the namespace of Volcano's scheduler.
	SystemNamespace = "volcano-system"
	// ConfigMapName is the name of the ConfigMap from which the scheduler reads its configuration.
	ConfigMapName = "volcano-scheduler-configmap"

	configMapKind = "ConfigMap"
	// configurationKeys matches the names under which the ConfigMap holds a configuration.
	configurationKeys = "volcano-scheduler*.conf"
)

// Held is a configuration that objects of a cluster contain.
type Held struct {
	// Source is the volcano-scheduler.conf. Lines are as in FindConfiguration.
	Source objects.Source
	// Object names the ConfigMap, and File the source that contains it.
	Object, File string

	namespace string
	line      int
	preferred bool
}

// HeldConfiguration returns the configuration in the ConfigMap volcano-scheduler-configmap of a cluster's objects, nil if there is none.
// The ConfigMap of namespace volcano-system is preferred to those of other namespaces, and any to one in a background source. Several
// equally preferred ones with different configurations are an error. Its release is that of the scheduler's Deployment in the namespace of
// the ConfigMap, if the objects contain one. Sources that do not contain the names are not parsed.
func HeldConfiguration(sources []objects.Source) (*Held, error) {
	for _, background := range []bool{false, true} {
		var found *Held
		var conflict error
		for _, source := range sources {
			if source.Background != background {
				continue
			}
			for _, h := range heldIn(source) {
				switch {
				case found == nil || h.preferred && !found.preferred:
					found, conflict = h, nil
				case h.preferred == found.preferred && !bytes.Equal(bytes.TrimSpace(h.Source.Data), bytes.TrimSpace(found.Source.Data)):
					const format = "%s:%d: %s has another configuration than %s at %s:%d: it is unknown which of them the scheduler uses"
					conflict = fmt.Errorf(format, h.File, h.line, h.Object, found.Object, found.File, found.line)
				}
			}
		}
		if conflict != nil {
			return nil, conflict
		}
		if found != nil {
			found.Source.Release = releaseIn(sources, found.namespace)
			return found, nil
		}
	}
	return nil, nil //nolint:nilnil // Most clusters' dumps hold no ConfigMap, which is no error.
}

// mayHold reports whether a text may contain the ConfigMap. Both words are sought because a pod of the scheduler contains the name too.
func mayHold(data []byte) bool {
	return bytes.Contains(data, []byte(ConfigMapName)) && bytes.Contains(data, []byte(configMapKind))
}

// heldIn returns the configurations in a source.
func heldIn(source objects.Source) (held []*Held) {
	objects.EachPart(source, mayHold, func(part objects.Document) {
		eachNode(&part, func(object *yaml.Node) { held = append(held, heldBy(&part, object)...) })
	})
	return held
}

// eachNode visits the objects of a text.
func eachNode(d *objects.Document, visit func(*yaml.Node)) {
	decoder := yaml.NewDecoder(bytes.NewReader(d.Data))
	for {
		var root yaml.Node
		// What cannot be parsed is a fault of whatever it is read as.
		if decoder.Decode(&root) != nil || len(root.Content) == 0 {
			return
		}
		top := root.Content[0]
		objects := []*yaml.Node{top}
		if items := member(top, "items"); items != nil {
			objects = elements(items)
		} else if top.Kind == yaml.SequenceNode {
			objects = top.Content
		}
		for _, object := range objects {
			visit(object)
		}
	}
}

// heldBy returns the configurations in an object: one, unless no name of several is the usual one.
func heldBy(d *objects.Document, object *yaml.Node) (held []*Held) {
	about := member(object, objects.MetadataField)
	if textIn(object, objects.KindField) != configMapKind || textIn(about, objects.NameField) != ConfigMapName {
		return nil
	}
	namespace := textIn(about, "namespace")
	data := member(object, "data")
	if data == nil || data.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i].Value, data.Content[i+1]
		if ok, err := path.Match(configurationKeys, key); !ok || err != nil || value.Kind != yaml.ScalarNode {
			continue
		}
		value.Line += d.First
		h := &Held{
			Source:    embedded(objects.Source{Name: d.Name}, value, key),
			namespace: namespace, line: value.Line, preferred: namespace == SystemNamespace,
			Object: configMapKind + " " + (&objects.Metadata{Namespace: namespace, Name: ConfigMapName}).Full(), File: d.Name,
		}
		if key == configurationKey {
			return []*Held{h}
		}
		held = append(held, h)
	}
	return held
}

// textIn returns the text of a field; empty if it has none.
func textIn(n *yaml.Node, key string) string {
	if field := member(n, key); field != nil && field.Kind == yaml.ScalarNode {
		return field.Value
	}
	return ""
}
