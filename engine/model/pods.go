package model

import (
	"fmt"
	"math"
	"slices"
)

// PodClassID is the number of a class of pods: its position in PodRules.Classes plus 1. 0: no class.
type PodClassID uint16

// PodRules are the placement constraints that depend on other pods. A model does not change them.
type PodRules struct {
	Topologies []Topology
	Classes    []PodClass
}

// Bytes returns about what the rules take without their texts.
func (r *PodRules) Bytes() int {
	if r == nil {
		return 0
	}
	const rules, topology, class, antiAffinity, spread, port = 48, 24, 128, 8, 32, 40
	bytes := rules + topology*len(r.Topologies) + class*len(r.Classes)
	for i := range r.Classes {
		c := &r.Classes[i]
		bytes += 4*(len(c.Selections)+len(c.Affinity)) + antiAffinity*len(c.AntiAffinities) + spread*len(c.Spreads) + port*len(c.Ports)
	}
	return bytes
}

// Class returns a class by its number, nil for 0.
func (r *PodRules) Class(id PodClassID) *PodClass {
	if r == nil || id == 0 {
		return nil
	}
	return &r.Classes[id-1]
}

// Topology divides nodes into domains.
type Topology struct {
	Key string
	// Node: every node is a domain of its own.
	Node bool
}

// PodClass is what the rules look at in a pod.
type PodClass struct {
	// Selections in which its pods are, ascending.
	Selections []uint32
	// Affinity is empty if the class has none.
	Affinity          []uint32
	AffinitySelection uint32
	AntiAffinities    []PodAntiAffinity
	Spreads           []PodSpread
	Ports             []HostPort
}

// In reports whether pods of the class are in a selection.
func (c *PodClass) In(selection uint32) bool {
	_, found := slices.BinarySearch(c.Selections, selection)
	return found
}

// PodAntiAffinity keeps pods of a selection and those of a class out of each other's domains.
type PodAntiAffinity struct{ Selection, Topology uint32 }

// PodSpread bounds by how much a domain may have more pods of a selection than the one with fewest. MinDomains is at least 1.
type PodSpread struct {
	Selection, Topology, MaxSkew, MinDomains uint32
	// NodeSet is the name of the set of nodes that count; empty: all.
	NodeSet string
}

// HostPort is a port of the node. Protocol and Address are not empty.
type HostPort struct {
	Port              uint32
	Protocol, Address string
}

// EveryAddress is the address of a port that conflicts with every other address.
const EveryAddress = "0.0.0.0"

// Conflicts reports whether two pods on one node may not have both ports.
func (p HostPort) Conflicts(o HostPort) bool {
	return p.Port == o.Port && p.Protocol == o.Protocol &&
		(p.Address == o.Address || p.Address == EveryAddress || o.Address == EveryAddress)
}

// NodePods is what the rules on other pods need of a node.
type NodePods struct {
	// Domains has the domain of the node by topology; 0, or missing at the end: the node is in none.
	Domains []uint32
	// Others and Leaving are the classes of pods that are no tasks; those of Leaving are being deleted.
	Others, Leaving []uint32
}

// Bytes returns about what it takes.
func (p *NodePods) Bytes() int {
	if p == nil {
		return 0
	}
	const own = 72
	return own + 4*(len(p.Domains)+len(p.Others)+len(p.Leaving))
}

// PodsOfEveryNode returns the classes of pods that are no tasks and that every node has, as those of a DaemonSet: a new node has them too.
func (m *Model) PodsOfEveryNode() []uint32 {
	var classes []uint32
	for i, n := range m.NodeOrder {
		pods := m.Nodes[n].Pods
		switch {
		case pods == nil:
			return nil
		case i == 0:
			classes = slices.Compact(slices.Sorted(slices.Values(pods.Others)))
		}
		there := map[uint32]bool{}
		for _, class := range pods.Others {
			there[class] = true
		}
		if classes = slices.DeleteFunc(classes, func(class uint32) bool { return !there[class] }); len(classes) == 0 {
			return nil
		}
	}
	return classes
}

// ownPods returns the memory of the rules on other pods, and of what nodes say of them, that a model does not share with the base.
func ownPods(m, base *Model) int {
	bytes := 0
	if m.Pods != base.Pods {
		bytes = m.Pods.Bytes()
	}
	for n := range m.Nodes {
		if p := m.Nodes[n].Pods; n >= len(base.Nodes) || p != base.Nodes[n].Pods {
			bytes += p.Bytes()
		}
	}
	return bytes
}

const (
	maxPodClasses = math.MaxUint16
	// maxPodRules bounds the rules of one class, and so what it costs to ask whether a node takes a pod.
	maxPodRules = 64
)

// Pods sets the rules on other pods, before the nodes and jobs that refer to them. The builder keeps them.
func (b *Builder) Pods(rules *PodRules) {
	b.m.Pods, b.podsGiven = rules, true
	keys := map[string]int{}
	for i, t := range rules.Topologies {
		path := fmt.Sprintf("pods.topologies[%d].key", i)
		first, twice := keys[t.Key]
		switch {
		case t.Key == "":
			b.faults.Add(path, "a topology needs a key")
		case twice:
			b.faults.Add(path, "topology %q is topologies[%d] already", t.Key, first)
		}
		keys[t.Key] = i
	}
	if n := len(rules.Classes); n > maxPodClasses {
		b.faults.Add("pods.classes", "%d classes, at most %d are taken", n, maxPodClasses)
		rules.Classes = rules.Classes[:maxPodClasses]
	}
	for i := range rules.Classes {
		b.checkPodClass(&rules.Classes[i], i)
	}
}

// checkPodClass records the violations of a class.
func (b *Builder) checkPodClass(c *PodClass, i int) {
	at := func(list string, k int, field string) string {
		return fmt.Sprintf("pods.classes[%d].%s[%d]%s", i, list, k, field)
	}
	if n := len(c.Affinity) + len(c.AntiAffinities) + len(c.Spreads) + len(c.Ports); n > maxPodRules {
		b.faults.Add(fmt.Sprintf("pods.classes[%d]", i), "%d rules, at most %d are taken", n, maxPodRules)
		return
	}
	for k := 1; k < len(c.Selections); k++ {
		if c.Selections[k-1] >= c.Selections[k] {
			b.faults.Add(at("selections", k, ""), "%d is not above the one before", c.Selections[k])
		}
	}
	for k, t := range c.Affinity {
		b.checkTopology(t, at, "affinity_topologies", k, "")
		if slices.Contains(c.Affinity[:k], t) {
			b.faults.Add(at("affinity_topologies", k, ""), "topology %d is given twice", t)
		}
	}
	for k, a := range c.AntiAffinities {
		b.checkTopology(a.Topology, at, "anti_affinities", k, ".topology")
	}
	for k := range c.Spreads {
		s := &c.Spreads[k]
		if b.checkTopology(s.Topology, at, "spreads", k, ".topology"); s.MaxSkew == 0 || s.MaxSkew > math.MaxInt32 {
			b.faults.Add(at("spreads", k, ".max_skew"), "%d is not between 1 and %d", s.MaxSkew, math.MaxInt32)
		}
		s.MinDomains = max(s.MinDomains, 1)
	}
	for k, p := range c.Ports {
		if p.Port == 0 || p.Port > math.MaxUint16 {
			b.faults.Add(at("ports", k, ".port"), "%d is not between 1 and %d", p.Port, math.MaxUint16)
		}
		if slices.Contains(c.Ports[:k], p) {
			b.faults.Add(at("ports", k, ""), "port %d is given twice", p.Port)
		}
	}
}

func (b *Builder) checkTopology(t uint32, at func(list string, k int, field string) string, list string, k int, field string) {
	if n := len(b.m.Pods.Topologies); int64(t) >= int64(n) {
		b.faults.Add(at(list, k, field), "no topology %d, there are %d", t, n)
	}
}

// podClass returns the class of a number, and records a number that no class has.
func (b *Builder) podClass(n uint32, path func(string) string) PodClassID {
	if n == 0 {
		return 0
	}
	if !b.m.hasPodClass(n) {
		b.faults.Add(path("pod_class"), "no class %d, there are %d", n, b.m.podClasses())
		return 0
	}
	return PodClassID(n)
}

func (m *Model) podClasses() int {
	if m.Pods == nil {
		return 0
	}
	return len(m.Pods.Classes)
}

func (m *Model) hasPodClass(n uint32) bool { return int64(n) <= int64(m.podClasses()) }

// nodePods returns a copy of what the rules need of a node, nil for nil.
func (b *Builder) nodePods(p *NodePods, path func(string) string) *NodePods {
	if p == nil {
		return nil
	}
	out := &NodePods{Domains: slices.Clone(p.Domains), Others: slices.Clone(p.Others), Leaving: slices.Clone(p.Leaving)}
	b.checkNodePods(out, path)
	return out
}

func (b *Builder) checkNodePods(p *NodePods, path func(string) string) {
	topologies := 0
	if b.m.Pods != nil {
		topologies = len(b.m.Pods.Topologies)
	}
	if n := len(p.Domains); n > topologies {
		b.faults.Add(path("domains"), "%d domains, but there are %d topologies", n, topologies)
	}
	classes := func(field string, list []uint32) {
		for k, n := range list {
			if n == 0 || !b.m.hasPodClass(n) {
				b.faults.Add(path(fmt.Sprintf("%s[%d]", field, k)), "no class %d, there are %d", n, b.m.podClasses())
			}
		}
	}
	classes("other_pods", p.Others)
	classes("leaving_pods", p.Leaving)
}

// checkPodSets records the spreads whose node set does not exist.
func (b *Builder) checkPodSets() {
	if b.m.Pods == nil {
		return
	}
	for i := range b.m.Pods.Classes {
		for k, s := range b.m.Pods.Classes[i].Spreads {
			if _, ok := b.m.NodeSetNamed(s.NodeSet); !ok {
				b.faults.Add(fmt.Sprintf("pods.classes[%d].spreads[%d].node_set", i, k), "no node set %q", s.NodeSet)
			}
		}
	}
}

// NodeSetNamed returns the node set of a name; AllNodes for no name.
func (m *Model) NodeSetNamed(name string) (NodeSetID, bool) {
	if name == "" {
		return AllNodes, true
	}
	i, ok := m.nodeSetIndex.find(name, m.nodeSetName)
	return NodeSetID(i), ok && m.NodeSets[i].Name == name
}

// checkPodRefs records what entities that a change does not set say of classes and topologies that the new rules do not have.
func (b *Builder) checkPodRefs(r *result) {
	if !b.podsGiven {
		return
	}
	for i, n := range r.NodeOrder {
		if p := r.Nodes[n].Pods; p != nil && !b.faults.full() {
			b.checkNodePods(p, func(field string) string { return fmt.Sprintf("pods: base.nodes[%d].%s", i, field) })
		}
	}
	for _, j := range r.JobOrder {
		job := r.Jobs.At(j)
		path := func(string) string { return fmt.Sprintf("pods: job %q", job.UID) }
		for g := job.FirstGroup; g < job.EndGroup; g++ {
			b.podClass(uint32(r.Groups.At(g).PodClass), path)
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if task := r.Tasks.At(t); task.Detail != None {
				b.podClass(uint32(r.Details.At(task.Detail).PodClass), path)
			}
		}
	}
}

// PodClassOf returns the class of a task in Pods.
func (m *Model) PodClassOf(t TaskID) PodClassID {
	task := m.Tasks.At(t)
	if task.Detail != None {
		if own := m.Details.At(task.Detail).PodClass; own != 0 {
			return own
		}
	}
	return m.Groups.At(task.Group).PodClass
}

// PodCells returns how many counts so many pods may take in the rules on other pods: more than rules of real clusters need, and few enough
// to be booked.
func PodCells(pods int) int {
	const ofPod, few = 32, 1 << 20
	return few + ofPod*pods
}
