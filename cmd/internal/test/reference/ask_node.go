package reference

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// nodes asks where tasks fit, and how well.
func (p *plan) nodes(names []string) {
	names = p.known(names)
	if len(names) == 0 {
		return
	}
	step := &apportionv1.NodesStep{Tasks: p.taskRefs(names...), ByPlugin: true, Explain: true}
	groups := p.hasNodeGroups()
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: step}}, at("nodes"), noTask, func(f *form, a *apportionv1.Answer) any {
		tasks := object{}
		for _, row := range a.GetNodes().GetTasks() {
			tasks[f.task(row.Task)] = nodesOf(f, row, groups)
		}
		return tasks
	})
}

// nodesOf is one task's row: of each node the scores of the plugins that give scores, and whether the node's group fits.
func nodesOf(f *form, row *apportionv1.TaskNodes, groups bool) object {
	nodes := object{}
	answers := make([]object, len(row.Nodes))
	for i, n := range row.Nodes {
		answers[i] = object{}
		nodes[f.node(n)] = answers[i]
		if groups {
			answers[i]["nodegroup.predicate"] = groupFits
		}
	}
	for _, plugin := range row.Plugins {
		for i, score := range plugin.Scores {
			// What nodeorder says of a node was not recorded.
			if i < len(answers) && plugin.Plugin != "nodeorder" {
				answers[i][plugin.Plugin+".score"] = score
			}
		}
	}
	for _, unfit := range row.Causes {
		node, ok := nodes[f.node(unfit.GetNode())].(object)
		if ok && groups && unfit.GetPlugin() == "nodegroup" {
			node["nodegroup.predicate"] = misfit(unfit)
		}
	}
	return nodes
}

// Whether a node's group fits, and if not, for which kind of reason.
const (
	groupFits    = "ok"
	groupMissing = "the node has no group"
	groupRefused = "the node's group is not one that the queue may use"
)

func misfit(reason *apportionv1.Cause) string {
	switch reason.Code {
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_MISSING:
		return groupMissing
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_NOT_IN_AFFINITY, apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_ANTI_AFFINITY:
		return groupRefused
	default:
		return reason.Code.String()
	}
}
