package volcano

import (
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	wording "github.com/apportion/apportion/internal/text"
)

// target is an object that is patched.
type target struct {
	objects.Target

	name string
}

// part is a part of an object.
type part = objects.Part

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
func Patches(snapshot *lookup.Snapshot, names wording.Names, cluster *Cluster, job uint32, r *apportionv1.Remedy) []objects.Patch {
	if int(job) >= len(snapshot.GetJobs()) {
		return nil
	}
	p := &patches{parts: map[target]part{}}
	j := snapshot.GetJobs()[job]
	group := target{objects.Target{Resource: kinds.Resource(podGroupKind), Namespace: j.GetNamespace()}, j.GetName()}
	var out []objects.Patch
	var nodes []uint32
	for _, e := range r.GetEdits() {
		queue := target{objects.Target{Resource: kinds.Resource(queueKind)}, names.Queue(e.GetQueue())}
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
			queue.Subresource = "status"
			p.set(queue, "Open", "status", "state")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
			p.set(group, names.Queue(e.GetQueue()), specField, "queue")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
			if e.Role != nil {
				p.set(group, int64(e.GetAfter()), specField, "minTaskMember", e.GetRole())
			}
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
			out = append(out, objects.Patch{
				Why: "A pod's requests cannot be changed: the template of the pods" + ofRole(e.GetRole()) +
					" needs this, for all containers together, and the pods must be created again.",
				YAML: objects.YAML(part{specField: part{
					"containers": []any{part{"resources": part{"requests": part{dimension: amount}}}},
				}}),
			})
		case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
			node := target{objects.Target{Resource: kinds.Resource(nodeKind)}, e.GetNodeName()}
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
		out = append(out, of.Merge(of.name, p.parts[of]))
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
