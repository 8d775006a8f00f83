package policy

import (
	"encoding/binary"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// Fits reports whether the rules on other pods let a task on a node, with the pods that are there now; later: once those that are being
// deleted are gone. The first rule that does not is the reason, in the order in which Kubernetes' scheduler asks: ports, spreads, affinity,
// anti-affinity, and that of others. It spends the work of its looks; if too little is left, the task does not fit and the question fails.
func (p *Pods) Fits(t model.TaskID, n model.NodeID, later bool, why *Reasons) bool {
	c := &p.classes[p.view.PodClassOf(t)]
	if c.kind == 0 {
		return true
	}
	if !p.view.Work.Use(c.looks, lookCost) {
		return false
	}
	code, topology := p.against(c, n, later)
	if code == 0 {
		return true
	}
	switch {
	case why == nil:
	case code == TopologySpread || code == TopologyLabelMissing:
		why.Add(p.of(topology, code))
	default:
		why.Add(Because("", code, model.None))
	}
	return false
}

// Excludes reports whether a rule keeps a task off a node whatever other tasks are placed: because of pods that are there, or of a label
// that the node lacks.
func (p *Pods) Excludes(t model.TaskID, n model.NodeID, later bool) bool {
	c := &p.classes[p.view.PodClassOf(t)]
	if !p.view.Work.Use(c.looks, lookCost) {
		return true
	}
	return !p.free(c.ports, n, later) || !p.free(c.avoided, n, later) || !p.free(c.keptAway, n, later) || p.outside(c, n, nil)
}

// Outside reports whether a node lacks a label without which it takes no task like t, whatever pods there are. why gets the label.
func (p *Pods) Outside(t model.TaskID, n model.NodeID, why *Reasons) bool {
	c := &p.classes[p.view.PodClassOf(t)]
	return p.view.Work.Use(c.looks, lookCost) && p.outside(c, n, why)
}

// outside reports whether a node lacks a domain that the class needs.
func (p *Pods) outside(c *podClass, n model.NodeID, why *Reasons) bool {
	for i := range c.spreads {
		if topology := c.spreads[i].topology; p.domain(topology, n) == 0 {
			why.Add(p.of(topology, TopologyLabelMissing))
			return true
		}
	}
	for _, at := range c.near {
		if p.domainOf(at, n) == 0 {
			why.Add(p.of(p.keys[at].topology, PodAffinity))
			return true
		}
	}
	return false
}

// of is a reason that names the label of a topology.
func (p *Pods) of(topology uint32, code Code) Reason {
	reason := Because("", code, model.None)
	reason.Detail = p.rules.Topologies[topology].Key
	return reason
}

// against returns the first rule that keeps pods of a class off a node, and the topology of a spread; 0: none does.
func (p *Pods) against(c *podClass, n model.NodeID, later bool) (code Code, topology uint32) {
	if !p.free(c.ports, n, later) {
		return HostPortTaken, 0
	}
	for i := range c.spreads {
		s := &c.spreads[i]
		switch d := p.domain(s.topology, n); {
		case d == 0:
			return TopologyLabelMissing, s.topology
		case !p.even(s, d):
			return TopologySpread, s.topology
		}
	}
	switch {
	case !p.isNear(c, n, later):
		return PodAffinity, 0
	case !p.free(c.avoided, n, later):
		return PodAntiAffinity, 0
	case !p.free(c.keptAway, n, later):
		return PodAntiAffinityOfOthers, 0
	}
	return 0, 0
}

// even reports whether a domain may have one more pod. Pods on nodes that do not count are not counted there either.
func (p *Pods) even(s *podSpread, d uint32) bool {
	t := &p.tallies[s.tally]
	least := t.least
	if t.domains < s.minDomains {
		least = 0
	}
	return int64(t.pods[d])+int64(s.own)-int64(least) <= int64(s.maxSkew)
}

// free reports whether all tallies are 0 where a node is.
func (p *Pods) free(tallies []int32, n model.NodeID, later bool) bool {
	for _, at := range tallies {
		if d := p.domainOf(at, n); d != 0 && p.count(at, d, later) > 0 {
			return false
		}
	}
	return true
}

// count returns the pods of a tally in a domain.
func (p *Pods) count(at int32, d uint32, later bool) int32 {
	t := &p.tallies[at]
	if later || t.leaving == nil {
		return t.pods[d]
	}
	return t.pods[d] + t.leaving[d]
}

// isNear reports whether a node is in domains with the pods that the class must be near, or may have the first of them.
func (p *Pods) isNear(c *podClass, n model.NodeID, later bool) bool {
	near, some := true, false
	for _, at := range c.near {
		d := p.domainOf(at, n)
		if d == 0 {
			return false
		}
		near = near && p.count(at, d, later) > 0
		t := &p.tallies[at]
		some = some || t.all > 0 || !later && t.allGone > 0
	}
	return near || !some && c.first
}

// AtMost returns how many tasks like t may be on some nodes together at most, as far as pods of the class keep each other away: one in each
// domain. It is limit if they do not, or if that many may be; otherwise why gets the rule.
func (p *Pods) AtMost(t model.TaskID, nodes []model.NodeID, limit int, why *Reasons) int {
	c := &p.classes[p.view.PodClassOf(t)]
	var reason Reason
	for _, list := range [][]int32{c.avoided, c.ports} {
		for _, at := range list {
			if !p.view.Work.Use(len(c.counts)+len(nodes), lookCost) || !slices.Contains(c.counts, at) {
				continue
			}
			most := p.domainsOf(at, nodes, limit)
			if most >= limit {
				continue
			}
			limit, reason = most, Because("", HostPortTaken, model.None)
			if key := &p.keys[at]; key.kind != ofPorts {
				reason = p.of(key.topology, PodAntiAffinity)
			}
		}
	}
	if reason.Code != 0 {
		why.Add(reason)
	}
	return limit
}

// domainsOf counts the domains of nodes up to a limit, which it returns if a node is in none.
func (p *Pods) domainsOf(at int32, nodes []model.NodeID, limit int) int {
	seen := map[uint32]bool{}
	for _, n := range nodes {
		d := p.domainOf(at, n)
		if seen[d] = true; d == 0 || len(seen) >= limit {
			return limit
		}
	}
	return len(seen)
}

// Buckets returns how many domains Bucket looks at.
func (p *Pods) Buckets(t model.TaskID) int {
	c := &p.classes[p.view.PodClassOf(t)]
	return len(c.spreads) + len(c.near)
}

// Bucket returns the same text for nodes that a spread or an affinity of a task treats alike, and whether it treats each node by itself.
func (p *Pods) Bucket(t model.TaskID, n model.NodeID, key []byte) (_ []byte, single bool) {
	c := &p.classes[p.view.PodClassOf(t)]
	add := func(topology uint32) {
		if p.rules.Topologies[topology].Node {
			single = true
			return
		}
		key = binary.AppendUvarint(key, uint64(p.domain(topology, n)))
	}
	for i := range c.spreads {
		add(c.spreads[i].topology)
	}
	for _, at := range c.near {
		add(p.keys[at].topology)
	}
	return key, single
}

// Near reports whether a task must be where other pods are.
func (p *Pods) Near(t model.TaskID) bool { return len(p.classes[p.view.PodClassOf(t)].near) > 0 }
