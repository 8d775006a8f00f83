package volcano

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

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
		queue := target{objects.Target{Resource: kinds.Resource(queueKind)}, names.Queue(e.GetQueue().GetIndex())}
		dimension := names.Dimension(e.GetDimension())
		amount := quantity.Format(dimension, e.GetAmount())
		switch e.GetKind() { //nolint:exhaustive // The others change no object.
		case apportionv1.EditKind_EDIT_KIND_CAPABILITY:
			p.set(queue, amount, specField, "capability", dimension)
		case apportionv1.EditKind_EDIT_KIND_GUARANTEE:
			p.set(queue, amount, specField, "guarantee", "resource", dimension)
		case apportionv1.EditKind_EDIT_KIND_DESERVED:
			p.set(queue, amount, specField, "deserved", dimension)
		case apportionv1.EditKind_EDIT_KIND_WEIGHT:
			p.set(queue, int64(e.GetAmount()), specField, "weight")
		case apportionv1.EditKind_EDIT_KIND_OPEN:
			queue.Subresource = "status"
			p.set(queue, "Open", "status", "state")
		case apportionv1.EditKind_EDIT_KIND_QUEUE:
			p.set(group, names.Queue(e.GetTo().GetIndex()), specField, "queue")
		case apportionv1.EditKind_EDIT_KIND_MINIMUM:
			if e.Role != nil {
				p.set(group, int64(e.GetAmount()), specField, "minTaskMember", e.GetRole())
			} else {
				p.set(group, int64(e.GetAmount()), specField, "minMember")
			}
		case apportionv1.EditKind_EDIT_KIND_MIN_RESOURCES:
			p.set(group, amount, specField, "minResources", dimension)
		case apportionv1.EditKind_EDIT_KIND_REQUEST:
			out = append(out, objects.Patch{
				Why: "A pod's requests cannot be changed: the template of the pods" + ofRole(e.GetRole()) +
					" needs this, for all containers together, and the pods must be created again.",
				YAML: objects.YAML(part{specField: part{
					"containers": []any{part{"resources": part{"requests": part{dimension: amount}}}},
				}}),
			})
		case apportionv1.EditKind_EDIT_KIND_UNCORDON:
			node := target{objects.Target{Resource: kinds.Resource(nodeKind)}, e.GetNode().GetName()}
			p.set(node, false, specField, "unschedulable")
		case apportionv1.EditKind_EDIT_KIND_ALLOWED_NODE:
			nodes = append(nodes, e.GetTo().GetIndex())
		}
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

// constraints returns the changes that let the waiting pods of a job use nodes, one for each placement of such a pod: tolerations of the
// nodes' taints, which existing pods can be given, and what the template that makes the pods must not ask for.
func (c *Cluster) constraints(job uint32, nodes []uint32) []objects.Patch {
	if int(job) >= len(c.placed) {
		return nil
	}
	message := c.Snapshot.GetJobs()[job]
	var order []*placement
	pods := map[*placement]*excluded{}
	for g, group := range c.placed[job] {
		for k, p := range group {
			task := message.GetGroups()[g].GetTasks()[k]
			if task.GetStatus() > apportionv1.TaskStatus_TASK_STATUS_PENDING {
				continue
			}
			if pods[p.placement] == nil {
				order, pods[p.placement] = append(order, p.placement), &excluded{}
			}
			pods[p.placement].add(task.GetName(), message.GetGroups()[g].GetRole())
		}
	}
	var list []objects.Patch
	for _, p := range order {
		o := obstacle{placement: p}
		for _, n := range nodes {
			if int(n) < len(c.candidates) {
				o.add(c.candidates[n], c.Snapshot.GetNodes()[n].GetUnschedulable() != nil)
				if text := p.volumes.without(int(n)); text != "" {
					o.volumes, o.unreached = appendNew(o.volumes, text), append(o.unreached, c.candidates[n].Name)
				}
			}
		}
		if len(o.tainted)+len(o.unselected)+len(o.unfit)+len(o.unreached) > 0 {
			list = append(list, o.patch(message.GetNamespace(), pods[p]))
		}
	}
	return list
}

// excluded are pods that something keeps from nodes, and their roles.
type excluded struct {
	names, roles []string
}

func (e *excluded) add(name, role string) {
	e.names = append(e.names, name)
	if role != "" {
		e.roles = appendNew(e.roles, role)
	}
}

// text names the pods at the start of a sentence: `Pods w-0 and w-1 of role worker`.
func (e *excluded) text() string {
	text := wording.Verb(len(e.names), "Pod ", "Pods ") + wording.Few(e.names)
	if len(e.roles) == 0 {
		return text
	}
	return text + " of " + wording.Verb(len(e.roles), "role ", "roles ") + wording.Few(e.roles)
}

// obstacle is a reason why pods cannot be placed on nodes.
type obstacle struct {
	*placement

	// taints are the taints that the pods do not tolerate, labels the labels of the node selector that a node does not have.
	taints []corev1.Taint
	labels []string
	// tainted, unselected and unfit name the nodes with such taints, without such labels, and those that do not meet the node affinity.
	tainted, unselected, unfit []string
	// volumes say what the pods' volumes ask for, which the nodes unreached lack.
	volumes, unreached []string
}

// add adds what keeps the pods from a node.
func (o *obstacle) add(n *corev1.Node, unschedulable bool) {
	for i := range n.Spec.Taints {
		taint := n.Spec.Taints[i]
		if !keepsOff(&taint, unschedulable) {
			continue
		}
		_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(
			klog.Logger{}, []corev1.Taint{taint}, o.pod.Spec.Tolerations, nil, false)
		if !untolerated {
			continue
		}
		o.tainted = appendNew(o.tainted, n.Name)
		same := func(t corev1.Taint) bool {
			return t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect
		}
		if !slices.ContainsFunc(o.taints, same) {
			o.taints = append(o.taints, taint)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.pod.Spec.NodeSelector)) {
		if value, has := n.Labels[key]; !has || value != o.pod.Spec.NodeSelector[key] {
			o.labels = appendNew(o.labels, key)
			o.unselected = appendNew(o.unselected, n.Name)
		}
	}
	if o.pod.Spec.Affinity != nil {
		alone := corev1.Pod{Spec: corev1.PodSpec{Affinity: o.pod.Spec.Affinity}}
		if match, err := nodeaffinity.GetRequiredNodeAffinity(&alone).Match(n); err != nil || !match {
			o.unfit = append(o.unfit, n.Name)
		}
	}
}

// patch is the change that lets pods use the nodes.
func (o *obstacle) patch(namespace string, pods *excluded) objects.Patch {
	var clauses []string
	spec := part{}
	if len(o.taints) > 0 {
		var taints []string
		var tolerations []any
		for _, t := range o.taints {
			taints = append(taints, t.ToString())
			tolerations = append(tolerations, toleration(t))
		}
		clauses = append(clauses, wording.Verb(len(taints), "the taint ", "the taints ")+wording.Few(taints)+" of "+wording.Few(o.tainted)+
			wording.Verb(len(taints), " is", " are")+" not tolerated")
		spec["tolerations"] = tolerations
	}
	if len(o.labels) > 0 {
		var labels []string
		selector := part{}
		for _, key := range slices.Sorted(slices.Values(o.labels)) {
			labels = append(labels, key+"="+o.pod.Spec.NodeSelector[key])
			selector[key] = nil
		}
		clauses = append(clauses, "the node selector "+wording.Few(labels)+" leaves out "+wording.Few(o.unselected))
		spec["nodeSelector"] = selector
	}
	if len(o.unfit) > 0 {
		required := requirements(&corev1.PodSpec{Affinity: o.pod.Spec.Affinity})
		clauses = append(clauses, "the "+strings.Join(required, "; ")+" leaves out "+wording.Few(o.unfit))
		spec["affinity"] = part{"nodeAffinity": part{requiredField: nil}}
	}
	if len(o.unreached) > 0 {
		clauses = append(clauses, "what their volumes need, "+wording.Few(o.volumes)+", leaves out "+wording.Few(o.unreached))
	}
	why := []string{pods.text() + ": " + strings.Join(clauses, "; ") + "."}
	out := objects.Patch{}
	if len(spec) > 0 {
		out.YAML = objects.YAML(part{specField: spec})
	}
	if len(o.unreached) > 0 {
		why = append(why, "No change of a pod moves a volume: provide it where the nodes reach it, or use another claim.")
	}
	switch {
	case len(o.labels) > 0 || len(o.unfit) > 0:
		why = append(why, "Existing pods cannot be changed so: the template that makes them needs this; "+
			"or label the nodes, if they are what is asked for.")
	case len(o.taints) > 0:
		why = append(why, "The template that makes the pods needs these tolerations too, for pods that it makes later.")
		out.Kubectl = o.kubectl(namespace, pods.names, spec["tolerations"])
	}
	out.Why = strings.Join(why, " ")
	return out
}

// toleration is one of a taint.
func toleration(t corev1.Taint) part {
	out := part{"key": t.Key, "operator": string(corev1.TolerationOpEqual), "value": t.Value, "effect": string(t.Effect)}
	if t.Value == "" {
		out["operator"] = string(corev1.TolerationOpExists)
		delete(out, "value")
	}
	return out
}

// kubectl gives tolerations to pods, which is the one thing that may be added to an existing pod's constraints.
func (o *obstacle) kubectl(namespace string, pods []string, tolerations any) []string {
	list, _ := tolerations.([]any)
	operations := []part{{"op": "add", "path": "/spec/tolerations", "value": list}}
	if len(o.pod.Spec.Tolerations) > 0 {
		operations = nil
		for _, toleration := range list {
			operations = append(operations, part{"op": "add", "path": "/spec/tolerations/-", "value": toleration})
		}
	}
	of := objects.Target{Resource: kinds.Resource(podKind), Namespace: namespace}
	return of.Command("json", operations, pods...)
}
