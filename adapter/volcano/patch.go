package volcano

import (
	"bytes"
	"encoding/json"
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	wording "github.com/apportion/apportion/internal/text"
)

// Patch is a change of objects of a cluster that makes a part of a remedy.
type Patch struct {
	// Why is a sentence that explains the change. It may be empty.
	Why string `json:"why,omitempty"`
	// YAML is the part of the object that changes, with what names it. Without a Kubectl it is a part of the template that makes pods.
	YAML string `json:"yaml"`
	// Kubectl are the arguments of a command that makes the change; nil if no command can, because pods that exist cannot be changed so.
	Kubectl []string `json:"kubectl,omitempty"`
}

// target is an object that is patched.
type target struct {
	resource, version, kind, namespace, name, subresource string
}

// part is a part of an object.
type part = map[string]any

// patches are the parts of objects that change, in the order of their first edit.
type patches struct {
	order []target
	parts map[target]part
}

// set sets a field of an object by its path.
func (p *patches) set(of target, value any, path ...string) {
	at, known := p.parts[of]
	if !known {
		at = part{}
		p.parts[of] = at
		p.order = append(p.order, of)
	}
	for _, key := range path[:len(path)-1] {
		inner, ok := at[key].(part)
		if !ok {
			inner = part{}
			at[key] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = value
}

// Patches returns the changes of objects that make a remedy of a job of a snapshot. cluster is the source of the snapshot. If it is nil,
// the reasons why tasks may not run on nodes are not known. Changes without an object in the cluster, such as added nodes, have no patch.
func Patches(snapshot *lookup.Snapshot, names wording.Names, cluster *Cluster, job uint32, r *apportionv1.Remedy) []Patch {
	if int(job) >= len(snapshot.GetJobs()) {
		return nil
	}
	p := &patches{parts: map[target]part{}}
	j := snapshot.GetJobs()[job]
	group := target{
		resource: "podgroups." + volcanoGroup, version: volcanoVersion, kind: "PodGroup", namespace: j.GetNamespace(), name: j.GetName(),
	}
	var out []Patch
	var nodes []uint32
	for _, e := range r.GetEdits() {
		queue := target{resource: "queues." + volcanoGroup, version: volcanoVersion, kind: queueKind, name: names.Queue(e.GetQueue())}
		dimension := names.Dimension(e.GetDimension())
		amount := quantity.Format(dimension, e.GetAfter())
		switch e.GetField() { //nolint:exhaustive // The others change no object.
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_CAPABILITY:
			p.set(queue, amount, specField, "capability", dimension)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_GUARANTEE:
			p.set(queue, amount, specField, "guarantee", "resource", dimension)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_DESERVED:
			p.set(queue, amount, specField, "deserved", dimension)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_WEIGHT:
			p.set(queue, int64(e.GetAfter()), specField, "weight")
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			queue.subresource = "status"
			p.set(queue, "Open", "status", "state")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
			p.set(group, names.Queue(e.GetQueue()), specField, "queue")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
			if e.Role != nil {
				p.set(group, int64(e.GetAfter()), specField, "minTaskMember", e.GetRole())
			}
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
			out = append(out, Patch{
				Why: "A pod's requests cannot be changed: the template of the pods" + ofRole(e.GetRole()) +
					" needs this, for all containers together, and the pods must be created again.",
				YAML: yamlOf(part{specField: part{"containers": []any{part{"resources": part{"requests": part{dimension: amount}}}}}}),
			})
		case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
			node := target{resource: "nodes", version: coreVersion, kind: nodeKind, name: e.GetNodeName()}
			p.set(node, false, specField, "unschedulable")
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_NODE:
			nodes = append(nodes, e.GetNode())
		}
	}
	if r.MinAvailable != nil {
		p.set(group, int64(r.GetMinAvailable()), specField, "minMember")
	}
	for i, d := range r.GetMinResources().GetDimension() {
		name := names.Dimension(d)
		p.set(group, quantity.Format(name, r.GetMinResources().GetAmount()[i]), specField, "minResources", name)
	}
	for _, of := range p.order {
		out = append(out, of.patch(p.parts[of]))
	}
	if len(nodes) > 0 && cluster != nil {
		out = append(out, cluster.constraints(job, nodes)...)
	}
	return out
}

func ofRole(role string) string {
	if role == "" {
		return ""
	}
	return " of role " + role
}

// patch is the change of an object by a part of it.
func (of target) patch(changed part) Patch {
	data, err := json.Marshal(changed)
	if err != nil {
		return Patch{}
	}
	kubectl := append([]string{"kubectl", "patch", of.resource, of.name}, of.namespaced()...)
	if of.subresource != "" {
		kubectl = append(kubectl, "--subresource="+of.subresource)
	}
	metadata := part{objects.NameField: of.name}
	if of.namespace != "" {
		metadata["namespace"] = of.namespace
	}
	whole := part{objects.VersionField: of.version, objects.KindField: of.kind, objects.MetadataField: metadata}
	maps.Copy(whole, changed)
	return Patch{YAML: yamlOf(whole), Kubectl: append(kubectl, "--type=merge", "--patch="+string(data))}
}

func (of target) namespaced() []string {
	if of.namespace == "" {
		return nil
	}
	return []string{"--namespace=" + of.namespace}
}

// yamlOf writes a part of an object.
func yamlOf(changed part) string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(changed); err != nil {
		return ""
	}
	return out.String()
}
