package text

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// ofNodes counts the nodes that do not take a task: `0/12 nodes have room for w-0: 5 too small (insufficient cpu), 4 with taint
// nvidia.com/gpu, 3 cordoned`. Those that have enough left are counted first, because what the others lack does not stop the task: `0/12
// nodes take w-0: 4 with taint nvidia.com/gpu, 1 cordoned, which have enough left; 2 cordoned, 5 too small (insufficient cpu)`.
func ofNodes(names Names, task uint32, counts []*apportionv1.Cause) string {
	nodes, free := 0, 0
	var left, parts []string
	for i := 0; i < len(counts); {
		same := i + 1
		for same < len(counts) && short(counts[i]) && counts[same].GetCode() == counts[i].GetCode() {
			same++
		}
		lacking, what := 0, lack(names, counts[i:same])
		for _, c := range counts[i:same] {
			lacking += int(c.GetCount())
		}
		nodes += lacking
		if enough := int(counts[i].GetFree()); enough > 0 {
			left, free, lacking = append(left, fmt.Sprintf("%d %s", enough, what)), free+enough, lacking-enough
		}
		if lacking > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", lacking, what))
		}
		i = same
	}
	all, list := "0/"+Count(nodes, "node"), strings.Join(parts, ", ")
	if free == 0 {
		return all + Verb(nodes, " has", " have") + " room for " + names.task(task) + ": " + list
	}
	barred := all + Verb(nodes, " takes ", " take ") + names.task(task) + ": " + strings.Join(left, ", ") +
		Verb(free, ", which has", ", which have") + " enough left"
	if list == "" {
		return barred
	}
	return barred + "; " + list
}

// short reports whether nodes lack resources: the nodes that lack different ones are one part of the sentence.
func short(c *apportionv1.Cause) bool {
	return c.GetCode() == apportionv1.CauseCode_CAUSE_CODE_NODE_TOO_SMALL ||
		c.GetCode() == apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE
}

// lack is what nodes lack for a task, in a few words.
func lack(names Names, counts []*apportionv1.Cause) string {
	c := counts[0]
	switch c.GetCode() { //nolint:exhaustive // The others are named by their codes.
	case apportionv1.CauseCode_CAUSE_CODE_NODE_TOO_SMALL:
		return "too small" + insufficient(names, counts)
	case apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE:
		return "too full" + insufficient(names, counts)
	case apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE:
		return "held by tasks that may not all be evicted"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_UNSCHEDULABLE:
		return closed(c.GetDetail())
	case apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET:
		if strings.HasPrefix(c.GetDetail(), "taint ") {
			return "with " + c.GetDetail()
		}
		return "excluded (" + c.GetDetail() + ")"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_MISSING:
		return "without a node group"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_NOT_IN_AFFINITY:
		return "not in the queue's node groups"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_ANTI_AFFINITY:
		return "in a node group that the queue avoids"
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT:
		return "in node group " + c.GetDetail() + ", of which the queue may hold no more"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_LIMITS_INVALID:
		return "refused to a queue whose limits for node groups cannot be read"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_RESERVED:
		what := c.GetHolder()
		switch {
		case what == "":
			what = c.GetDetail()
		case c.GetDetail() != "":
			what += " (" + c.GetDetail() + ")"
		}
		return strings.TrimSpace("reserved "+forWhat(what)) + period(c.GetStartTime(), c.GetEndTime())
	case apportionv1.CauseCode_CAUSE_CODE_HOST_PORT_TAKEN, apportionv1.CauseCode_CAUSE_CODE_POD_AFFINITY,
		apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY, apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY_OF_OTHERS,
		apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_SPREAD, apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_LABEL_MISSING:
		return podRules[c.GetCode()]
	case apportionv1.CauseCode_CAUSE_CODE_UNSPECIFIED:
		return "for other reasons"
	}
	return Enum(c.GetCode(), "CAUSE_CODE_")
}

// closed says why nodes take no new tasks. The words for the causes that the contract names stand alone.
func closed(detail string) string {
	switch {
	case detail == "":
		return "closed to new tasks"
	case strings.HasPrefix(detail, "cordoned"), strings.HasPrefix(detail, "not ready"):
		return detail
	}
	return "closed to new tasks (" + detail + ")"
}

// forWhat is what a reservation is for.
func forWhat(reason string) string {
	if reason == "" {
		return ""
	}
	return "for " + reason
}

// podRules says which rule on other pods excludes a node, in the words of Kubernetes' scheduler.
var podRules = map[apportionv1.CauseCode]string{
	apportionv1.CauseCode_CAUSE_CODE_HOST_PORT_TAKEN:             "didn't have free ports for the requested pod ports",
	apportionv1.CauseCode_CAUSE_CODE_POD_AFFINITY:                "didn't match pod affinity rules",
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY:           "didn't match pod anti-affinity rules",
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY_OF_OTHERS: "didn't satisfy existing pods' anti-affinity rules",
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_SPREAD:             "didn't match pod topology spread constraints",
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_LABEL_MISSING:      "didn't match pod topology spread constraints (missing required label)",
}

// insufficient lists the resources that nodes lack, those of most nodes first: `cpu and memory` if all nodes lack all of them.
func insufficient(names Names, counts []*apportionv1.Cause) string {
	nodes, lacking := 0, map[uint32]int{}
	var list []uint32
	for _, c := range counts {
		nodes += int(c.GetCount())
		for _, d := range c.GetDimensions() {
			if lacking[d] == 0 {
				list = append(list, d)
			}
			lacking[d] += int(c.GetCount())
		}
	}
	slices.SortStableFunc(list, func(l, r uint32) int { return lacking[r] - lacking[l] })
	all := true
	words := make([]string, 0, len(list))
	for _, d := range list {
		words, all = append(words, names.Dimension(d)), all && lacking[d] == nodes
	}
	switch {
	case len(words) == 0:
		return ""
	case all:
		return " (insufficient " + and(words) + ")"
	case len(words) > 1:
		words = append(words[:len(words)-2], words[len(words)-2]+" or "+words[len(words)-1])
	}
	return " (insufficient " + strings.Join(words, ", ") + ")"
}
