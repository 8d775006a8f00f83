package schedulerconf

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The objects in which a cluster has its configuration and its release. Their kinds are listed for this object alone.
var (
	// ConfigMap is what the scheduler reads its configuration from.
	ConfigMap = objects.Resource{Kind: "ConfigMap", Versions: []string{"v1"}, Named: ConfigMapName}
	// Deployment is that of the scheduler.
	Deployment = objects.Resource{Kind: "Deployment", Group: "apps", Versions: []string{"v1"}, Named: DeploymentName}
)

const (
	// SystemNamespace is the namespace of Volcano's scheduler.
	SystemNamespace = "volcano-system"
	// ConfigMapName is the name of ConfigMap.
	ConfigMapName = "volcano-scheduler-configmap"
	// DeploymentName is the name of Deployment.
	DeploymentName = "volcano-scheduler"

	// configurationKey is the name under which the ConfigMap holds the configuration; configurationKeys matches those that it may have.
	configurationKey, configurationKeys = "volcano-scheduler.conf", "volcano-scheduler*.conf"
	// deploymentSuffix ends the names of the scheduler's Deployments.
	deploymentSuffix = "-scheduler"
	// schedulerImage is the last part of the name of the scheduler's image.
	schedulerImage = "vc-scheduler"
	// maxConfigMaps is the size up to which a source is looked through for ConfigMaps. Kubernetes keeps one below 1 MiB.
	maxConfigMaps = 16 << 20
)

// Find returns the volcano-scheduler.conf that a source is, or that it holds as a dump of one ConfigMap or of several. The
// Deployment of Volcano's scheduler may be in the dump, too, and its image says the release. ok is false if the source is something else.
// Lines are those of the source, except within a text that has other lines there, as in JSON.
func Find(source objects.Source) (found objects.Source, ok bool, err error) {
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
	if textIn(n, objects.KindField) != ConfigMap.Kind {
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

// Held is a configuration that objects of a cluster contain.
type Held struct {
	// Source is the volcano-scheduler.conf. Lines are as in Find.
	Source objects.Source
	// Object names the ConfigMap, and File the source that contains it.
	Object, File string

	namespace, name string
	line            int
}

// Read is the function Read for the configuration; the source of the policy is the object.
func (h *Held) Read() (*apportionv1.Policy, []*apportionv1.Warning, error) {
	policy, warnings, err := Read(h.Source)
	if policy != nil {
		policy.Source = h.Object
	}
	return policy, warnings, err
}

// InCluster returns the configuration in a ConfigMap of a cluster's objects, nil if there is none: in one of any name that has the key
// volcano-scheduler.conf, or in volcano-scheduler-configmap, whose key may be another. Of those of that name the one of namespace
// volcano-system is preferred, and any to one in a background source. Several with different configurations are an error. Its release is
// that of the scheduler's Deployment in the namespace of the ConfigMap, if the objects contain one. Sources that do not contain the names
// are not parsed.
func InCluster(sources []objects.Source) (*Held, error) {
	for _, background := range []bool{false, true} {
		var all []*Held
		for _, source := range sources {
			if source.Background == background {
				all = append(all, heldIn(source)...)
			}
		}
		if slices.ContainsFunc(all, (*Held).preferred) {
			all = slices.DeleteFunc(all, func(h *Held) bool { return h.name == ConfigMapName && !h.preferred() })
		}
		for _, h := range all {
			if first := all[0]; !bytes.Equal(bytes.TrimSpace(h.Source.Data), bytes.TrimSpace(first.Source.Data)) {
				const format = "%s:%d: %s has another configuration than %s at %s:%d: it is unknown which of them the scheduler uses"
				return nil, fmt.Errorf(format, h.File, h.line, h.Object, first.Object, first.File, first.line)
			}
		}
		if len(all) > 0 {
			all[0].Source.Release = releaseIn(sources, all[0].namespace)
			return all[0], nil
		}
	}
	return nil, nil //nolint:nilnil // Most clusters' dumps hold no ConfigMap, which is no error.
}

// preferred reports whether the ConfigMap is that of Volcano's own manifests.
func (h *Held) preferred() bool { return h.name == ConfigMapName && h.namespace == SystemNamespace }

// mayHold reports whether a text may contain a ConfigMap with a configuration. Two words are sought because a pod of the scheduler contains
// the names too.
func mayHold(data []byte) bool {
	named := bytes.Contains(data, []byte(ConfigMapName)) || bytes.Contains(data, []byte(configurationKey))
	return named && bytes.Contains(data, []byte(ConfigMap.Kind))
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
	if textIn(object, objects.KindField) != ConfigMap.Kind {
		return nil
	}
	namespace, name := textIn(about, "namespace"), textIn(about, objects.NameField)
	data := member(object, "data")
	if data == nil || data.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i].Value, data.Content[i+1]
		ok, err := path.Match(configurationKeys, key)
		if !ok || err != nil || value.Kind != yaml.ScalarNode || name != ConfigMapName && key != configurationKey {
			continue
		}
		value.Line += d.First
		h := &Held{
			Source:    embedded(objects.Source{Name: d.Name}, value, key),
			namespace: namespace, name: name, line: value.Line,
			Object: ConfigMap.Kind + " " + (&objects.Metadata{Namespace: namespace, Name: name}).Full(), File: d.Name,
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

// releaseOf returns the release of the contract whose decisions a release of Volcano takes, by its tag; unspecified, which is 1.15, before
// 1.16.
func releaseOf(tag string) apportionv1.VolcanoRelease {
	if major, minor, ok := version(tag); ok && (major > 1 || major == 1 && minor >= 16) {
		return apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_16
	}
	return apportionv1.VolcanoRelease_VOLCANO_RELEASE_UNSPECIFIED
}

// tagForm is the form of a tag that names a release, with its first two numbers.
var tagForm = regexp.MustCompile(`^v?([0-9]{1,4})\.([0-9]{1,4})([.-][0-9A-Za-z.-]{1,100})?$`)

// version returns the first two numbers of a tag such as v1.16.0-alpha.1. ok is false for a tag of another form, such as latest.
func version(tag string) (major, minor int, ok bool) {
	found := tagForm.FindStringSubmatch(tag)
	if found == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(found[1])
	minor, _ = strconv.Atoi(found[2])
	return major, minor, true
}

// mayDeploy reports whether a text may contain the Deployment of Volcano's scheduler.
func mayDeploy(data []byte) bool {
	return bytes.Contains(data, []byte(schedulerImage)) && bytes.Contains(data, []byte(Deployment.Kind))
}

// releaseIn returns the release of Volcano that the first Deployment of its scheduler in a namespace runs, as tagged; empty if there is no
// such Deployment, or its tag is no release.
func releaseIn(sources []objects.Source, namespace string) (tag string) {
	for _, source := range sources {
		objects.EachPart(source, mayDeploy, func(part objects.Document) {
			eachNode(&part, func(object *yaml.Node) {
				if tag == "" && isDeployment(object) && textIn(member(object, objects.MetadataField), "namespace") == namespace {
					tag = imageRelease(object)
				}
			})
		})
	}
	return tag
}

// isDeployment reports whether an object may be the Deployment of Volcano's scheduler, in some namespace: Helm puts the name of its release
// in front.
func isDeployment(object *yaml.Node) bool {
	name := textIn(member(object, objects.MetadataField), objects.NameField)
	return textIn(object, objects.KindField) == Deployment.Kind && strings.HasSuffix(name, deploymentSuffix)
}

// imageRelease returns the tag of the scheduler's image in a Deployment, empty if there is none or it is no release.
func imageRelease(deployment *yaml.Node) string {
	pod := member(member(member(deployment, "spec"), "template"), "spec")
	for _, container := range elements(member(pod, "containers")) {
		name, _, _ := strings.Cut(textIn(container, "image"), "@")
		repository, tag, _ := strings.Cut(path.Base(name), ":")
		if _, _, ok := version(tag); ok && repository == schedulerImage {
			return tag
		}
	}
	return ""
}
