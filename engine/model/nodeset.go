package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// NodeSetID is a position in Model.NodeSets.
type NodeSetID int32

// AllNodes is the set of all nodes, which is the default of a group.
const AllNodes NodeSetID = 0

// NodeSet is a set of nodes to which tasks can be restricted.
type NodeSet struct {
	Name string
	// Rule is a human-readable description of the set, or empty.
	Rule string
	// Nodes are in ascending order. Those of AllNodes are not listed.
	Nodes []NodeID
	// Exclusions are the reasons why other nodes are not in the set, or none.
	Exclusions []Exclusion
	// ToleratesCordon: tasks of the set also use nodes of it that are cordoned.
	ToleratesCordon bool
	// Fixed: the rule goes by what each node has for itself, such as its name. A node that is like one of the set is not in it.
	Fixed bool
	// Preferences are the nodes that tasks of the set would rather use or avoid, or none.
	Preferences []NodePreference
	// Extra is nil for most policies.
	Extra *Extra
}

// NodePreference says how much tasks of a set prefer nodes.
type NodePreference struct {
	// Untolerated counts the taints PreferNoSchedule of the nodes that the tasks do not tolerate.
	Untolerated uint32
	// Affinity is the sum of the weights of the preferred terms that match the nodes.
	Affinity int32
	// Nodes are in ascending order.
	Nodes []NodeID
}

// Preference returns how much tasks of the set prefer a node: both numbers are 0 for most.
func (s *NodeSet) Preference(n NodeID) (untolerated uint32, affinity int32) {
	for i := range s.Preferences {
		p := &s.Preferences[i]
		if _, found := slices.BinarySearch(p.Nodes, n); found {
			return p.Untolerated, p.Affinity
		}
	}
	return 0, 0
}

// Exclusion is one reason why nodes are not in a set.
type Exclusion struct {
	// Rule is a human-readable description.
	Rule string
	// Nodes are in ascending order. Empty: all nodes that are neither in the set nor in another exclusion.
	Nodes []NodeID
	// Firm: no change of a task lets it use the nodes.
	Firm bool
	// OtherRole: the nodes have a role of their own, such as the control plane, and are not meant for tasks of the set.
	OtherRole bool
}

// Exclusion returns why a node is not in the set. Without an exclusion of the node that is the rule or the name of the set.
func (s *NodeSet) Exclusion(n NodeID) Exclusion {
	rest := Exclusion{Rule: cmp.Or(s.Rule, s.Name)}
	for i := range s.Exclusions {
		e := &s.Exclusions[i]
		if len(e.Nodes) == 0 {
			rest = *e
		} else if _, found := slices.BinarySearch(e.Nodes, n); found {
			return *e
		}
	}
	return rest
}

// Cause is the reason why a node takes no new tasks. The values are those of the contract's UnschedulableCause.
type Cause uint8

// The causes.
const (
	OtherCause Cause = iota
	Cordoned
	NotReady
)

// Unschedulable describes why a node takes no new tasks.
type Unschedulable struct {
	Cause Cause
	// Detail is a human-readable text and may be empty.
	Detail string
}

// Short returns a human-readable text without the detail of a known cause.
func (u *Unschedulable) Short() string {
	switch u.Cause {
	case Cordoned:
		return "cordoned"
	case NotReady:
		return "not ready"
	case OtherCause:
	}
	return u.Detail
}

// String returns a human-readable text.
func (u *Unschedulable) String() string {
	text := ""
	if u.Cause != OtherCause {
		text = u.Short()
	}
	switch {
	case text == "":
		return u.Detail
	case u.Detail == "":
		return text
	}
	return text + " (" + u.Detail + ")"
}

// Constraints is a set of placement constraints that a snapshot does not express. The bits are 1 shifted by the values of the contract's
// PlacementConstraint.
type Constraints uint16

// NodeSetSpec is the description of a node set in a snapshot. The builder copies Nodes.
type NodeSetSpec struct {
	Name, Rule string
	Nodes      []uint32
	Exclusions []ExclusionSpec
	// ToleratesCordon: tasks of the set also use nodes of it that are cordoned.
	ToleratesCordon bool
	// Fixed: a node that is like one of the set is not in it.
	Fixed       bool
	Preferences []PreferenceSpec
	Extra       *Extra
}

// PreferenceSpec is the description of a preference in a snapshot. The builder copies Nodes.
type PreferenceSpec struct {
	Untolerated uint32
	Affinity    int32
	Nodes       []uint32
}

// ExclusionSpec is the description of an exclusion in a snapshot. The builder copies Nodes.
type ExclusionSpec struct {
	Rule            string
	Nodes           []uint32
	Firm, OtherRole bool
}

// NodeSet adds a node set; all nodes must exist already, and the jobs that refer to it follow.
func (b *Builder) NodeSet(s NodeSetSpec) {
	b.takeNodeSets()
	b.allNodes()
	i, at := len(b.m.NodeSets)-1, NodeSetID(len(b.m.NodeSets))
	if b.change != nil {
		i = b.change.nodeSets
		b.change.nodeSets++
	}
	path := func(field string) string { return fmt.Sprintf("node_sets[%d].%s", i, field) }
	if s.Name == "" {
		b.faults.Add(path("name"), "a node set needs a name")
	} else if b.change != nil {
		at = b.nodeSetToSet(s.Name, path("name"))
	} else if first, fresh := b.m.nodeSetIndex.add(s.Name, int32(i+1), b.m.nodeSetName); !fresh {
		b.faults.Add(path("name"), "node set %q is node_sets[%d] already", s.Name, first-1)
	}
	set := NodeSet{
		Name: b.text.keep(s.Name), Rule: b.text.keep(s.Rule), Nodes: b.nodesOf(s.Nodes, path), ToleratesCordon: s.ToleratesCordon,
		Fixed: s.Fixed, Extra: s.Extra,
	}
	rest := -1
	for k, e := range s.Exclusions {
		path := func(field string) string { return path(fmt.Sprintf("exclusions[%d].%s", k, field)) }
		switch {
		case e.Rule == "":
			b.faults.Add(path("rule"), "an exclusion needs a rule")
		case len(e.Nodes) == 0 && rest >= 0:
			b.faults.Add(path("nodes"), "exclusions[%d] is of all other nodes already", rest)
		case len(e.Nodes) == 0:
			rest = k
		}
		set.Exclusions = append(set.Exclusions, Exclusion{b.text.keep(e.Rule), b.nodesOf(e.Nodes, path), e.Firm, e.OtherRole})
	}
	set.Preferences = b.preferences(s.Preferences, path)
	b.m.NodeSets = put(b.m.NodeSets, at, set)
}

// preferences returns the preferences of a set, of which each node is in one at most.
func (b *Builder) preferences(specs []PreferenceSpec, path func(string) string) []NodePreference {
	if len(specs) == 0 {
		return nil
	}
	list, seen := make([]NodePreference, 0, len(specs)), map[NodeID]int{}
	for k, s := range specs {
		path := func(field string) string { return path(fmt.Sprintf("preferences[%d].%s", k, field)) }
		if s.Untolerated > math.MaxInt32 {
			b.faults.Add(path("untolerated"), "%d is above %d", s.Untolerated, math.MaxInt32)
		}
		nodes := b.nodesOf(s.Nodes, path)
		for _, n := range nodes {
			if first, twice := seen[n]; twice && first != k {
				b.faults.Add(path("nodes"), "node %d is in preferences[%d] already", n, first)
			}
			seen[n] = k
		}
		list = append(list, NodePreference{s.Untolerated, s.Affinity, nodes})
	}
	return list
}

// nodesOf returns the nodes at some positions in ascending order.
func (b *Builder) nodesOf(positions []uint32, path func(string) string) []NodeID {
	nodes := make([]NodeID, 0, len(positions))
	ascending := true
	for k, n := range positions {
		if !b.placed(NodeID(min(n, math.MaxInt32))) {
			b.faults.Add(path(fmt.Sprintf("nodes[%d]", k)), "no node %d, there are %d nodes", n, len(b.m.Nodes))
			continue
		}
		ascending = ascending && (len(nodes) == 0 || nodes[len(nodes)-1] < NodeID(n))
		nodes = append(nodes, NodeID(n))
	}
	if !ascending {
		slices.Sort(nodes)
		for k := 1; k < len(nodes); k++ {
			if nodes[k-1] == nodes[k] {
				b.faults.Add(path("nodes"), "node %d is given twice", nodes[k])
			}
		}
	}
	return nodes
}

// allNodes adds the set of all nodes before the first set.
func (b *Builder) allNodes() {
	if len(b.m.NodeSets) == 0 {
		b.m.NodeSets = append(b.m.NodeSets, NodeSet{})
	}
}

// nodeSet returns the set of a name, AllNodes for no name, and records a name that no set has.
func (b *Builder) nodeSet(name string, path func(string) string) NodeSetID {
	if name == "" {
		return AllNodes
	}
	i, ok := b.m.nodeSetIndex.find(name, b.m.nodeSetName)
	if !ok {
		b.faults.Add(path("node_set"), "no node set %q", name)
		return AllNodes
	}
	return NodeSetID(i)
}

// checkNodeSets records the node sets that were removed though jobs are restricted to them.
func (b *Builder) checkNodeSets(r *result) {
	if len(b.change.nodeSetsGone) == 0 {
		return
	}
	left := r.restrictedToNone()
	for _, g := range b.change.nodeSetsGone {
		if jobs := left[g.id]; jobs.n > 0 {
			b.faults.Add(g.path, "job %q is restricted to the node set, and %d in all", r.Jobs.At(jobs.first).UID, jobs.n)
		}
	}
}

// restricted counts the jobs that refer to a node set.
type restricted struct {
	first, last JobID
	n           int
}

// restrictedToNone returns, for each removed node set, the jobs with a group or a task that is restricted to it.
func (m *Model) restrictedToNone() map[NodeSetID]restricted {
	jobs := map[NodeSetID]restricted{}
	add := func(s NodeSetID, j JobID) {
		if s == AllNodes || m.NodeSets[s].Name != "" {
			return
		}
		r, found := jobs[s]
		switch {
		case !found:
			r = restricted{j, j, 1}
		case r.last != j:
			r.last, r.n = j, r.n+1
		}
		jobs[s] = r
	}
	byTask := m.taskIsRestrictedToNone()
	for _, j := range m.JobOrder {
		job := m.Jobs.At(j)
		for g := job.FirstGroup; g < job.EndGroup; g++ {
			add(m.Groups.At(g).NodeSet, j)
		}
		for t := job.FirstTask; byTask && t < job.EndTask; t++ {
			if task := m.Tasks.At(t); task.Detail != None {
				add(m.Details.At(task.Detail).NodeSet, j)
			}
		}
	}
	return jobs
}

// taskIsRestrictedToNone reports whether any task, including those of removed jobs, has itself a removed node set. It avoids a walk over
// all tasks.
func (m *Model) taskIsRestrictedToNone() bool {
	for d := range int32(m.Details.Len()) {
		if s := m.Details.At(d).NodeSet; s != AllNodes && m.NodeSets[s].Name == "" {
			return true
		}
	}
	return false
}

func (m *Model) nodeSetName(i int32) string { return m.NodeSets[i].Name }

// NodeSetOf returns the node set that a task may use.
func (m *Model) NodeSetOf(t TaskID) NodeSetID {
	task := m.Tasks.At(t)
	if task.Detail != None {
		if own := m.Details.At(task.Detail).NodeSet; own != AllNodes {
			return own
		}
	}
	return m.Groups.At(task.Group).NodeSet
}

// Unjudged returns the placement constraints of a task that the snapshot does not express: those of its group and its own.
func (m *Model) Unjudged(t TaskID) Constraints {
	task := m.Tasks.At(t)
	c := m.Groups.At(task.Group).Unjudged
	if task.Detail != None {
		c |= m.Details.At(task.Detail).Unjudged
	}
	return c
}

// InSet reports whether a node is in a set. It takes time logarithmic in the size of the set.
func (m *Model) InSet(s NodeSetID, n NodeID) bool {
	if s == AllNodes {
		return true
	}
	_, found := slices.BinarySearch(m.NodeSets[s].Nodes, n)
	return found
}

// OtherRole reports whether a node is excluded for a role of its own in the cluster. That it has enough left is not why a task waits,
// because it is not meant for the task.
func (m *Model) OtherRole(t TaskID, n NodeID) bool {
	s := m.NodeSetOf(t)
	return !m.InSet(s, n) && m.NodeSets[s].Exclusion(n).OtherRole
}

// Closed returns why a node takes no new tasks that are restricted to a set, nil if it takes them.
func (m *Model) Closed(n NodeID, s NodeSetID) *Unschedulable {
	u := m.Nodes[n].Unschedulable
	if u != nil && u.Cause == Cordoned && s != AllNodes && m.NodeSets[s].ToleratesCordon {
		return nil
	}
	return u
}

// Takes reports whether a node takes new tasks that are restricted to a set: it exists, is in the set and is not closed.
func (m *Model) Takes(n NodeID, s NodeSetID) bool {
	return m.HasNode(n) && m.Closed(n, s) == nil && m.InSet(s, n)
}
