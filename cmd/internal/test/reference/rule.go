package reference

import (
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Rule is why a recorded answer is not compared. Rules look at the case alone, never at its name nor at our answers.
type Rule string

// The rules, in the order in which they are tried.
const (
	// Unstable: the answer varied from run to run, because Volcano ranges over a map.
	Unstable Rule = "unstable"
	// Crash: Volcano panicked, or would have overflowed its stack. We give a defined answer.
	Crash Rule = "crash"
	// Text is English.
	Text Rule = "text"
	// RefusedTree: Volcano's accounts of a tree that it refuses are half built, and its simulation on them depends on map order. Compared
	// all the same: all verdicts (they are refusals), victims, orders, and everything that is not an account of queues.
	RefusedTree Rule = "refused tree"
	// ParentCycle: Volcano does not see that parents form a cycle and recurses without end as soon as it walks up, or answers from accounts
	// that no root reaches; for us the tree is refused. Held: that it is refused, and that allocatable, preemptive, enqueue and reclaim are
	// refusals, also where Volcano recorded something else; and everything that is no account or order of queues.
	ParentCycle Rule = "parent cycle"
	// Aliased: lists of ancestors share memory in Volcano, and cousins overwrite each other's, so that usage is booked on a queue beside
	// the right one (alias.go says where). Held: everything but the accounts of those queues and what follows from them.
	Aliased Rule = "aliased ancestors"
)

// For a case whose session did not open, only the reason is recorded.
const (
	opening  = "openSession"
	panicked = "panic: "
)

// root is the name of the queue that is every other queue's ancestor.
const root = "root"

// judge applies the rules to one case.
type judge struct {
	unstable map[string]bool
	// tree is the rule that the tree of queues falls under, if any.
	tree Rule
	// aliasing lists the accounts that Volcano may confuse in any other tree, nil if there are none.
	aliasing *aliasing
	// alone says that no other plugin of the policy admits jobs or chooses victims beside capacity.
	alone bool
	// nodes are those that the manifests declare.
	nodes map[string]bool
	// script returns the simulated step that an answer belongs to.
	script *Script
}

func (c *Case) judge(s *subject) *judge {
	j := &judge{unstable: map[string]bool{}, nodes: map[string]bool{}, script: &c.Script, alone: true}
	for _, pointer := range c.Unstable {
		j.unstable[pointer] = true
	}
	for _, name := range s.nodeNames {
		j.nodes[name] = true
	}
	s.eachPlugin(func(_ int, p *apportionv1.Plugin) { j.alone = j.alone && p.GetCapacity() != nil })
	if s.hasTree() {
		ready, recorded := c.Expect["hierarchyReady"].(bool)
		switch {
		case recorded && !ready:
			j.tree = RefusedTree
		case hasCycle(s.input.GetSnapshot().GetQueues()):
			j.tree = ParentCycle
		default:
			j.aliasing = aliasingOf(s, &c.Script)
		}
	}
	return j
}

// hasCycle reports whether parents form a cycle.
func hasCycle(queues []*apportionv1.Queue) bool {
	parent := make(map[string]string, len(queues))
	for _, q := range queues {
		parent[q.Name] = parentOf(q)
	}
	for _, q := range queues {
		level := 0
		for name := q.Name; name != root; level++ {
			above, exists := parent[name]
			if !exists {
				break
			}
			if level > len(queues) {
				return true
			}
			name = above
		}
	}
	return false
}

// unheld is the rule by which what is recorded is not compared at a pointer and below it, empty if there is none. want is nil where
// nothing is recorded.
func (j *judge) unheld(pointer string, path []string, want any) Rule {
	if j.unstable[pointer] {
		return Unstable
	}
	if text, ok := want.(string); ok && path[0] != opening && (strings.HasPrefix(text, panicked) || strings.HasPrefix(text, "fatal: ")) {
		return Crash
	}
	if len(path) >= 3 && path[len(path)-1] == "message" && path[len(path)-2] == "valid" {
		return Text
	}
	switch j.tree {
	case RefusedTree:
		if j.isAccount(path) {
			return RefusedTree
		}
	case ParentCycle:
		if j.isAccount(path) || isQueueOrder(path) || !j.alone && isCombined(path) {
			return ParentCycle
		}
	default:
		if j.aliasing != nil && j.aliasing.concerns(path, want) {
			return Aliased
		}
	}
	return ""
}

// isAccount reports whether path leads to accounts of queues in the capacity plugin, or to what a simulated change of them said.
func (j *judge) isAccount(path []string) bool {
	if path[0] == afterEvents {
		path = path[1:]
	}
	switch {
	case len(path) < 2:
		return false
	case path[0] == queuesKey, path[0] == "queuesAfterEnqueue":
		return path[1] == capacity
	case path[0] == "events":
		return len(path) == 4 && path[2] == queuesKey && path[3] == capacity
	case path[0] == "simulate":
		return len(path) == 3 && j.operation(path[1], path[2]) != allocatableKey
	}
	return false
}

// operation is the simulated step at a position of the answers.
func (j *judge) operation(i, k string) string {
	simulation, ok := elementAt(j.script.Simulate, i)
	if !ok {
		return ""
	}
	step, _ := elementAt(simulation.Steps, k)
	return step.Op
}

// isQueueOrder reports whether path leads to what the order of queues decides.
func isQueueOrder(path []string) bool {
	if path[0] == afterEvents {
		path = path[1:]
	}
	if len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	return path[0] == "queueOrder" || path[0] == "victimQueueOrder" || last == "victimPopOrder"
}

// isCombined reports whether path leads to what several plugins decide together such that a refusal of one need not be a refusal of all.
func isCombined(path []string) bool {
	switch path[0] {
	case "enqueue", "queuesAfterEnqueue":
		return true
	case "reclaims", "preempts":
		return len(path) == 3 && path[2] == partVictims
	}
	return false
}

// requiredAnswer returns the answer that is required where want is recorded: want itself, except for what is recorded in words, and for the
// refusals of a tree in which parents form a cycle.
func (j *judge) requiredAnswer(path []string, want any) any {
	switch last := path[len(path)-1]; {
	case path[0] == opening:
		if text, ok := want.(string); ok && strings.HasPrefix(text, panicked) {
			return refusedInput
		}
	case last == "nodegroup.predicate":
		return groupVerdict(want)
	case last == nodeKey && len(path) == 3 && path[0] == "tasks":
		if name, ok := want.(string); ok && !j.nodes[name] {
			return ""
		}
	case last == "cmp":
		if number, ok := want.(float64); ok {
			return sign(number)
		}
	case j.tree == ParentCycle:
		return refusal(path, want)
	}
	return want
}

// groupVerdict is the kind of answer that Volcano gave in words.
func groupVerdict(want any) any {
	text, ok := want.(string)
	switch {
	case !ok || text == groupFits:
		return want
	case strings.HasSuffix(text, "node group label not found"):
		return groupMissing
	case strings.HasSuffix(text, "node does not satisfy the node group affinity"),
		strings.HasSuffix(text, "node group affinity not specified"):
		return groupRefused
	}
	return want
}

// admissions are the verdicts by which a refused tree stops everything.
var admissions = []string{allocatableKey, "preemptive", "preemptiveAllPendingOfJob"}

// refusal is the answer about a refused tree in place of the recorded one.
func refusal(path []string, want any) any {
	if path[0] == afterEvents && len(path) > 1 {
		path = path[1:]
	}
	last := path[len(path)-1]
	_, isVerdict := want.(bool)
	switch {
	case path[0] == "hierarchyReady":
		return false
	case isVerdict && path[0] == "verdicts" && slices.Contains(admissions, path[1]):
		return false
	case isVerdict && (path[0] == "enqueue" || path[0] == "simulate"):
		return false
	case path[0] != "reclaims":
	case len(path) == 3 && last == partVictims, len(path) == 5 && path[3] == capacity && last == partVictims:
		return nil
	case len(path) == 5 && path[3] == capacity && last == "vote":
		return -1.0
	}
	return want
}
