package objects

import (
	"bytes"
	"encoding/json"
	"maps"

	"go.yaml.in/yaml/v3"
)

// Patch is a change of objects of a cluster that makes a part of a remedy.
type Patch struct {
	// Why is a sentence that explains the change. It may be empty.
	Why string `json:"why,omitempty"`
	// YAML is the part of the object that changes, with what names it, or an object to create. Without a Kubectl it may be a part of the
	// template that makes pods. It may be empty beside a Kubectl.
	YAML string `json:"yaml"`
	// Kubectl are the arguments of a command that makes the change; nil if no command can, because pods that exist cannot be changed so.
	Kubectl []string `json:"kubectl,omitempty"`
}

// Part is a part of an object.
type Part = map[string]any

// Target is what is patched: objects of a kind in a namespace.
type Target struct {
	*Resource

	Namespace   string
	Subresource string
}

// Command returns the command that patches objects: merge merges a part into each, json carries out operations.
func (t *Target) Command(kind string, patch any, names ...string) []string {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	list := t.List
	if t.Group != "" {
		list += "." + t.Group
	}
	command := append([]string{"kubectl", "patch", list}, names...)
	if t.Namespace != "" {
		command = append(command, "--namespace="+t.Namespace)
	}
	if t.Subresource != "" {
		command = append(command, "--subresource="+t.Subresource)
	}
	return append(command, "--type="+kind, "--patch="+string(data))
}

// Merge returns the change of an object by a part of it.
func (t *Target) Merge(name string, changed Part) Patch {
	metadata := Part{NameField: name}
	if t.Namespace != "" {
		metadata[namespaceField] = t.Namespace
	}
	whole := Part{VersionField: t.Newest().Version, KindField: t.Kind, MetadataField: metadata}
	maps.Copy(whole, changed)
	return Patch{YAML: YAML(whole), Kubectl: t.Command("merge", changed, name)}
}

// YAML writes a part of an object.
func YAML(changed Part) string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(changed); err != nil {
		return ""
	}
	return out.String()
}
