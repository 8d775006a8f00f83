package submission

import (
	"bytes"
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/tree"
)

// containerLists are the fields of a pod's specification with lists of containers.
var containerLists = []string{"initContainers", "containers"}

// withRequests returns the specification of a pod as the API server completes it: a container with a limit and without a request of a
// resource requests the limit.
func withRequests(spec map[string]any) map[string]any {
	out := maps.Clone(spec)
	for _, list := range containerLists {
		containers, ok := spec[list].([]any)
		if !ok {
			continue
		}
		completed := make([]any, len(containers))
		for i, container := range containers {
			completed[i] = withContainerRequests(container)
		}
		out[list] = completed
	}
	return out
}

func withContainerRequests(container any) any {
	fields, _ := container.(map[string]any)
	resources, _ := fields["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return container
	}
	requests := maps.Clone(limits)
	if given, ok := resources["requests"].(map[string]any); ok {
		maps.Copy(requests, given)
	}
	fields, resources = maps.Clone(fields), maps.Clone(resources)
	resources["requests"], fields["resources"] = requests, resources
	return fields
}

// completed returns a stream of documents whose pods are completed in this way; data itself if nothing is missing.
func completed(data []byte, documents []tree.Node) ([]byte, error) {
	changed := false
	for _, root := range documents {
		if textOf(root, "kind") != "Pod" {
			continue
		}
		for _, list := range containerLists {
			spec, _ := root.Field("spec")
			containers, ok := spec.Field(list)
			if !ok {
				continue
			}
			for _, container := range containers.OneOrMore() {
				changed = completeContainer(container) || changed
			}
		}
	}
	if !changed {
		return data, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, root := range documents {
		if err := encoder.Encode(root.Node); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), encoder.Close()
}

// completeContainer adds the missing requests, and reports whether there were any.
func completeContainer(container tree.Node) bool {
	resources, _ := container.Field("resources")
	limits, _ := resources.Field("limits")
	requests, given := resources.Field("requests")
	if limits.Node == nil || limits.Kind != yaml.MappingNode {
		return false
	}
	if !given {
		requests.Node = &yaml.Node{Kind: yaml.MappingNode}
		resources.Content = append(resources.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "requests"}, requests.Node)
	}
	changed := false
	for i := 0; i+1 < len(limits.Content) && requests.Kind == yaml.MappingNode; i += 2 {
		if _, given := requests.Field(limits.Content[i].Value); !given {
			requests.Content = append(requests.Content, limits.Content[i], limits.Content[i+1])
			changed = true
		}
	}
	return changed
}
