package policy

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// What a tally counts.
type tallied uint8

const (
	// ofSelection: pods of a selection.
	ofSelection tallied = iota
	// ofKeepers: pods that keep those of a selection out of their domain.
	ofKeepers
	// ofPorts: pods with a port, of one address or of any.
	ofPorts
	// ofSpread: pods of a selection that are not being deleted, on nodes that count.
	ofSpread
)

// tallyKey is what tells tallies apart.
type tallyKey struct {
	kind                tallied
	selection, topology uint32
	port                model.HostPort
	// filter is a position in podTable.filters, 0: all nodes in a domain count.
	filter int
}

// podFilter is the nodes that count for a spread: those of a set that are in domains of all of some topologies.
type podFilter struct {
	set        model.NodeSetID
	topologies []uint32
}

// podClass is a class of pods with the tallies that concern it.
type podClass struct {
	// counts are the tallies in which its pods count.
	counts []int32
	// ports, keptAway and avoided are the tallies that must be 0 where a pod of the class is placed: of ports that conflict, of pods that
	// keep it away, and of pods that it avoids. near are those that must not be 0; first: a pod may also be the first of them.
	ports, keptAway, avoided, near []int32
	first                          bool
	spreads                        []podSpread
	// looks is how many looks at tallies it costs at most to ask whether a node takes a pod.
	looks int
	// kind is the same for classes that are treated alike; 0: no rule concerns the class.
	kind int32
	// ordered: whether a pod fits may depend on which others were placed before, not only on which are placed.
	ordered bool
}

// podSpread is a spread with the tally that it bounds. self is 1 if a pod of the class counts itself.
type podSpread struct {
	tally                    int32
	topology                 uint32
	maxSkew, minDomains, own int32
}

// podTable is what the rules of a model come to. It holds no counts.
type podTable struct {
	rules   *model.PodRules
	keys    []tallyKey
	filters []podFilter
	// classes are found by their numbers; the first is that of pods without a class.
	classes []podClass

	at       map[tallyKey]int32
	filterAt map[string]int
	// watchers are the tallies of a selection, keepers those of them that count who keeps its pods away.
	watchers, keepers map[uint32][]int32
}

const (
	// maxPodPairs bounds the pairs of a class and a tally that concerns it.
	maxPodPairs = 1 << 22
	// maxPodTallies bounds the tallies that concern one class, and so what it costs to place or move one pod.
	maxPodTallies = 4096
)

// newPodTable returns what the rules of a model come to; an error if that is too much.
func newPodTable(m *model.Model) (*podTable, error) {
	t := &podTable{
		rules: m.Pods, classes: make([]podClass, 1+len(m.Pods.Classes)), filters: make([]podFilter, 1), at: map[tallyKey]int32{},
		filterAt: map[string]int{}, watchers: map[uint32][]int32{}, keepers: map[uint32][]int32{},
	}
	for i := range m.Pods.Classes {
		t.addRules(m, &m.Pods.Classes[i], &t.classes[i+1])
	}
	pairs := 0
	for i := range m.Pods.Classes {
		own := t.addCounts(&m.Pods.Classes[i], &t.classes[i+1])
		pairs += own
		e := &model.Error{}
		switch {
		case own > maxPodTallies:
			e.Add(fmt.Sprintf("pods.classes[%d].selections", i), "%d rules concern its pods, at most %d are taken", own, maxPodTallies)
			return nil, e
		case pairs > maxPodPairs:
			e.Add("pods.classes", "the rules concern more than %d pairs of classes", maxPodPairs)
			return nil, e
		}
	}
	for i := range m.Pods.Classes {
		t.addPorts(&m.Pods.Classes[i], &t.classes[i+1])
	}
	for i := range t.classes {
		c := &t.classes[i]
		c.looks = 1 + len(c.ports) + len(c.keptAway) + len(c.avoided) + len(c.near) + len(c.spreads)
	}
	t.sortKinds()
	t.at, t.filterAt, t.watchers, t.keepers = nil, nil, nil, nil
	return t, nil
}

// tally returns the position of a tally.
func (t *podTable) tally(key tallyKey) int32 {
	at, known := t.at[key]
	if !known {
		at = int32(len(t.keys))
		t.at[key], t.keys = at, append(t.keys, key)
		switch key.kind {
		case ofKeepers:
			t.keepers[key.selection] = append(t.keepers[key.selection], at)
		case ofSelection, ofSpread:
			t.watchers[key.selection] = append(t.watchers[key.selection], at)
		case ofPorts:
		}
	}
	return at
}

// addRules adds the rules of a class, and the tallies that they look at.
func (t *podTable) addRules(m *model.Model, from *model.PodClass, c *podClass) {
	for _, topology := range from.Affinity {
		c.near = append(c.near, t.tally(tallyKey{kind: ofSelection, selection: from.AffinitySelection, topology: topology}))
	}
	c.first = from.In(from.AffinitySelection)
	for _, a := range from.AntiAffinities {
		c.avoided = append(c.avoided, t.tally(tallyKey{kind: ofSelection, selection: a.Selection, topology: a.Topology}))
		c.counts = append(c.counts, t.tally(tallyKey{kind: ofKeepers, selection: a.Selection, topology: a.Topology}))
	}
	var topologies []uint32
	for _, s := range from.Spreads {
		topologies = append(topologies, s.Topology)
	}
	slices.Sort(topologies)
	topologies = slices.Compact(topologies)
	for _, s := range from.Spreads {
		set, _ := m.NodeSetNamed(s.NodeSet)
		spread := podSpread{
			tally: t.tally(tallyKey{
				kind: ofSpread, selection: s.Selection, topology: s.Topology, filter: t.filter(podFilter{set, topologies}),
			}),
			topology: s.Topology, maxSkew: int32(s.MaxSkew), minDomains: int32(min(s.MinDomains, 1<<30)),
		}
		if from.In(s.Selection) {
			spread.own = 1
		}
		c.spreads = append(c.spreads, spread)
	}
	c.ordered = len(c.near)+len(c.spreads) > 0
}

// filter returns the position of a filter.
func (t *podTable) filter(f podFilter) int {
	key := fmt.Sprint(f.set, f.topologies)
	at, known := t.filterAt[key]
	if !known {
		at = len(t.filters)
		t.filterAt[key], t.filters = at, append(t.filters, f)
	}
	return at
}

// addCounts adds the tallies in which pods of a class count because of their selections, and returns how many concern the class.
func (t *podTable) addCounts(from *model.PodClass, c *podClass) int {
	for _, s := range from.Selections {
		c.counts = append(c.counts, t.watchers[s]...)
		c.keptAway = append(c.keptAway, t.keepers[s]...)
	}
	slices.Sort(c.counts)
	c.counts = slices.Compact(c.counts)
	return len(c.counts) + len(c.keptAway)
}

// addPorts adds the tallies of ports. A pod counts in two for each of its ports: that of its address, and that of all addresses, in which
// only pods of the same port and protocol count. A port of every address conflicts with all of these, another one with its own address and
// with every address.
func (t *podTable) addPorts(from *model.PodClass, c *podClass) {
	own := len(c.counts)
	for _, p := range from.Ports {
		all, every := p, p
		all.Address, every.Address = anyAddress, model.EveryAddress
		at := t.tally(tallyKey{kind: ofPorts, port: all})
		c.counts = append(c.counts, at, t.tally(tallyKey{kind: ofPorts, port: p}))
		if p.Address == model.EveryAddress {
			c.ports = append(c.ports, at)
		} else {
			c.ports = append(c.ports, t.tally(tallyKey{kind: ofPorts, port: p}), t.tally(tallyKey{kind: ofPorts, port: every}))
		}
	}
	added := c.counts[own:]
	slices.Sort(added)
	c.counts = c.counts[:own+len(slices.Compact(added))]
}

// anyAddress is the address in the key of the tally of all addresses. No port has it.
const anyAddress = ""

// sortKinds numbers the classes that are treated alike.
func (t *podTable) sortKinds() {
	kinds := map[string]int32{}
	for i := range t.classes {
		c := &t.classes[i]
		if len(c.counts)+len(c.ports)+len(c.keptAway)+len(c.avoided)+len(c.near)+len(c.spreads) == 0 {
			continue
		}
		key := fmt.Sprint(c.counts, c.ports, c.keptAway, c.avoided, c.near, c.first, c.spreads)
		kind, known := kinds[key]
		if !known {
			kind = int32(len(kinds) + 1)
			kinds[key] = kind
		}
		c.kind = kind
	}
}

// work returns the steps of filling the counts: one for each node of a filter and of a spread, and for each tally of each pod.
func (t *podTable) work(m *model.Model) int {
	steps := len(m.Nodes) * len(t.filters)
	for _, key := range t.keys {
		if key.kind == ofSpread {
			steps += len(m.Nodes)
		}
	}
	for _, j := range m.JobOrder {
		job := m.Jobs.At(j)
		for task := job.FirstTask; task < job.EndTask; task++ {
			steps += len(t.classes[m.PodClassOf(task)].counts)
		}
	}
	for i := range m.Nodes {
		if of := m.Nodes[i].Pods; of != nil {
			for _, list := range [][]uint32{of.Others, of.Leaving} {
				for _, class := range list {
					steps += len(t.classes[class].counts)
				}
			}
		}
	}
	return steps
}
