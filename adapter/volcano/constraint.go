package volcano

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// constraints returns the changes that let the waiting pods of a job use nodes, one for each placement of such a pod: tolerations of the
// nodes' taints, which existing pods can be given, and what the template that makes the pods must not ask for.
func (c *Cluster) constraints(job uint32, nodes []uint32) []Patch {
	if int(job) >= len(c.placed) {
		return nil
	}
	message := c.Snapshot.GetJobs()[job]
	var order []*placement
	pods := map[*placement][]string{}
	for g, group := range c.placed[job] {
		for k, p := range group {
			task := message.GetGroups()[g].GetTasks()[k]
			if task.GetStatus() > apportionv1.TaskStatus_TASK_STATUS_PENDING {
				continue
			}
			if pods[p.placement] == nil {
				order = append(order, p.placement)
			}
			pods[p.placement] = append(pods[p.placement], task.GetName())
		}
	}
	var list []Patch
	for _, p := range order {
		o := obstacle{placement: p}
		for _, n := range nodes {
			if int(n) < len(c.candidates) {
				o.add(c.candidates[n], c.Snapshot.GetNodes()[n].GetUnschedulable() != nil)
			}
		}
		if len(o.names) > 0 {
			list = append(list, o.patch(message.GetNamespace(), pods[p]))
		}
	}
	return list
}

// obstacle is a reason why pods cannot be placed on nodes.
type obstacle struct {
	*placement

	// names are those of the nodes.
	names []string
	// taints are those that the pods do not tolerate, labels those of the node selector that a node does not have.
	taints []corev1.Taint
	labels []string
	// affinity says that a node does not meet the node affinity.
	affinity bool
}

// add adds what keeps the pods from a node.
func (o *obstacle) add(n *corev1.Node, unschedulable bool) {
	kept := false
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
		kept = true
		same := func(t corev1.Taint) bool {
			return t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect
		}
		if !slices.ContainsFunc(o.taints, same) {
			o.taints = append(o.taints, taint)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.pod.Spec.NodeSelector)) {
		if value, has := n.Labels[key]; !has || value != o.pod.Spec.NodeSelector[key] {
			o.labels, kept = appendNew(o.labels, key), true
		}
	}
	if o.pod.Spec.Affinity != nil {
		alone := corev1.Pod{Spec: corev1.PodSpec{Affinity: o.pod.Spec.Affinity}}
		if match, err := nodeaffinity.GetRequiredNodeAffinity(&alone).Match(n); err != nil || !match {
			o.affinity, kept = true, true
		}
	}
	if kept {
		o.names = append(o.names, n.Name)
	}
}

// patch is the change that lets pods use the nodes.
func (o *obstacle) patch(namespace string, pods []string) Patch {
	var why []string
	spec := part{}
	nodes := few(o.names, " and ")
	if len(o.taints) > 0 {
		var taints []string
		var tolerations []any
		for _, t := range o.taints {
			taints = append(taints, t.ToString())
			tolerations = append(tolerations, toleration(t))
		}
		noun := "the taint "
		if len(taints) > 1 {
			noun = "the taints "
		}
		why = append(why, "The pods do not tolerate "+noun+few(taints, " and ")+" of "+nodes+".")
		spec["tolerations"] = tolerations
	}
	if len(o.labels) > 0 {
		var labels []string
		selector := part{}
		for _, key := range o.labels {
			labels = append(labels, key+"="+o.pod.Spec.NodeSelector[key])
			selector[key] = nil
		}
		why = append(why, "Their node selector asks for "+few(labels, " and ")+", which "+nodes+" does not have.")
		spec["nodeSelector"] = selector
	}
	if o.affinity {
		required := requirements(&corev1.PodSpec{Affinity: o.pod.Spec.Affinity})
		why = append(why, "Their "+strings.Join(required, "; ")+" leaves out "+nodes+".")
		spec["affinity"] = part{"nodeAffinity": part{requiredField: nil}}
	}
	out := Patch{YAML: yamlOf(part{specField: spec})}
	if len(o.labels) > 0 || o.affinity {
		why = append(why, "Existing pods cannot be changed so: the template that makes them needs this; "+
			"or label the nodes, if they are what is asked for.")
	} else {
		why = append(why, "The template that makes the pods needs these tolerations too, for pods that it makes later.")
		out.Kubectl = o.kubectl(namespace, pods, spec["tolerations"])
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
	data, err := json.Marshal(operations)
	if err != nil {
		return nil
	}
	arguments := append([]string{"kubectl", "patch", "pods"}, pods...)
	if namespace != "" {
		arguments = append(arguments, "--namespace="+namespace)
	}
	return append(arguments, "--type=json", "--patch="+string(data))
}
