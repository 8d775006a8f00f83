package policy

import (
	"cmp"
	"encoding/binary"
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
	// pairs is the number of pairs of a class and a tally that concerns it so far.
	pairs int
	// bytes is about what the table takes, and spreads the number of tallies of spreads.
	bytes, spreads int
}

const (
	// maxPodPairs bounds the pairs of a class and a tally that concerns it.
	maxPodPairs = 1 << 22
	// maxPodTallies bounds the tallies that concern one class, and so what it costs to place or move one pod.
	maxPodTallies = 4096

	// ruleCost is what reading a rule costs, pairCost what a pair of a class and a tally costs, cellCost what it costs to change one count,
	// and lookCost to look at one, in units of work.
	ruleCost, pairCost, cellCost, lookCost = 32, 4, 8, 4
)

// newPodTable returns what the rules of a model come to; an error if that is too much. It spends its work before it is done.
func newPodTable(m *model.Model, work *Work) (*podTable, error) {
	if err := work.Spend(rulesOf(m.Pods), ruleCost); err != nil {
		return nil, err
	}
	t := &podTable{
		rules: m.Pods, classes: make([]podClass, 1+len(m.Pods.Classes)), filters: make([]podFilter, 1), at: map[tallyKey]int32{},
		filterAt: map[string]int{}, watchers: map[uint32][]int32{}, keepers: map[uint32][]int32{},
	}
	for i := range m.Pods.Classes {
		t.addRules(m, &m.Pods.Classes[i], &t.classes[i+1])
	}
	for i := range m.Pods.Classes {
		if err := t.concern(i, work); err != nil {
			return nil, err
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
	t.weigh()
	return t, nil
}

// The sizes of types in bytes.
const (
	int32Size     = 4
	podClassSize  = 168
	podFilterSize = 32
	podSpreadSize = 20
	podTableSize  = 136
	tallyKeySize  = 64
	tallySize     = 40
)

// weigh sets bytes and spreads.
func (t *podTable) weigh() {
	t.bytes = podTableSize + podClassSize*len(t.classes) + tallyKeySize*cap(t.keys) + podFilterSize*cap(t.filters)
	for i := range t.classes {
		c := &t.classes[i]
		t.bytes += podSpreadSize * cap(c.spreads)
		for _, list := range [...][]int32{c.counts, c.ports, c.keptAway, c.avoided, c.near} {
			t.bytes += int32Size * cap(list)
		}
	}
	for i := range t.filters {
		t.bytes += int32Size * cap(t.filters[i].topologies)
	}
	for i := range t.keys {
		if t.keys[i].kind == ofSpread {
			t.spreads++
		}
	}
}

// rulesOf returns the number of rules and of selections of all classes.
func rulesOf(rules *model.PodRules) int {
	n := len(rules.Topologies)
	for i := range rules.Classes {
		c := &rules.Classes[i]
		n += 1 + len(c.Selections) + len(c.Affinity) + len(c.AntiAffinities) + len(c.Spreads) + len(c.Ports)
	}
	return n
}

// concern adds the tallies that concern a class because of its selections; an error if these are too many.
func (t *podTable) concern(i int, work *Work) error {
	from, c := &t.rules.Classes[i], &t.classes[i+1]
	own := len(c.counts)
	for _, s := range from.Selections {
		own += len(t.watchers[s]) + len(t.keepers[s])
	}
	e := &model.Error{}
	switch t.pairs += own; {
	case own > maxPodTallies:
		e.Add(fmt.Sprintf("pods.classes[%d].selections", i), "%d rules concern its pods, at most %d are taken", own, maxPodTallies)
		return e
	case t.pairs > maxPodPairs:
		e.Add("pods.classes", "the rules concern more than %d pairs of classes", maxPodPairs)
		return e
	}
	// Lists have up to twice as much room as they need.
	if err := cmp.Or(work.Spend(own, pairCost), work.Hold(2*int32Size*own)); err != nil {
		return err
	}
	t.addCounts(from, c)
	return nil
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

// addCounts adds the tallies in which pods of a class count because of their selections.
func (t *podTable) addCounts(from *model.PodClass, c *podClass) {
	for _, s := range from.Selections {
		c.counts = append(c.counts, t.watchers[s]...)
		c.keptAway = append(c.keptAway, t.keepers[s]...)
	}
	slices.Sort(c.counts)
	c.counts = slices.Compact(c.counts)
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
	var key []byte
	for i := range t.classes {
		c := &t.classes[i]
		if len(c.counts)+len(c.ports)+len(c.keptAway)+len(c.avoided)+len(c.near)+len(c.spreads) == 0 {
			continue
		}
		key = c.key(key[:0])
		kind, known := kinds[string(key)]
		if !known {
			kind = int32(len(kinds) + 1)
			kinds[string(key)] = kind
		}
		c.kind = kind
	}
}

// key appends a text that is the same for classes that are treated alike.
func (c *podClass) key(key []byte) []byte {
	for _, list := range [][]int32{c.counts, c.ports, c.keptAway, c.avoided, c.near} {
		key = binary.AppendUvarint(key, uint64(len(list)))
		for _, at := range list {
			key = binary.AppendUvarint(key, uint64(at))
		}
	}
	first := uint64(0)
	if c.first {
		first = 1
	}
	key = binary.AppendUvarint(key, first)
	key = binary.AppendUvarint(key, uint64(len(c.spreads)))
	for _, s := range c.spreads {
		for _, n := range []uint32{uint32(s.tally), s.topology, uint32(s.maxSkew), uint32(s.minDomains), uint32(s.own)} {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	return key
}

// crowd is the pods of a model, by class, with the number of pairs of a pod and a tally that counts it.
type crowd struct {
	of           []int
	pods, counts int
}

func (t *podTable) crowdOf(m *model.Model) crowd {
	c := crowd{of: make([]int, len(t.classes))}
	for _, j := range m.JobOrder {
		job := m.Jobs.At(j)
		for task := job.FirstTask; task < job.EndTask; task++ {
			c.of[m.PodClassOf(task)]++
		}
	}
	for i := range m.Nodes {
		if of := m.Nodes[i].Pods; of != nil {
			for _, list := range [][]uint32{of.Others, of.Leaving} {
				for _, class := range list {
					c.of[class]++
				}
			}
		}
	}
	for class, n := range c.of {
		c.pods, c.counts = c.pods+n, c.counts+n*len(t.classes[class].counts)
	}
	return c
}

// check returns an error if a crowd takes more counts than are booked.
func (t *podTable) check(c *crowd) error {
	if most := model.PodCells(c.pods); c.counts > most {
		e := &model.Error{}
		e.Add("pods.classes", "the rules concern %d pairs of a pod and a rule, at most %d are taken for %d pods", c.counts, most, c.pods)
		return e
	}
	return nil
}

// work returns the steps of filling the counts of a crowd: those of finding which nodes a filter counts and their domains, and those of
// each tally of each pod.
func (t *podTable) work(m *model.Model, c *crowd) int {
	steps := len(m.Nodes)
	for i := range t.filters[1:] {
		steps += len(m.Nodes) * (2 + (1+cellCost)*len(t.filters[i+1].topologies))
	}
	return steps + cellCost*c.counts
}

// Bytes of counts: a map is allocated for a few cells at once.
const tallyMaps, firstCells, fewCells, cellBytes, spreadBytes = 48, 80, 8, 16, 128

// filledBytes returns about what the counts of a crowd take: each tally has one for each of its pods, or for each domain, whichever are
// fewer.
func (t *podTable) filledBytes(m *model.Model, c *crowd) int {
	counted := make([]int, len(t.keys))
	for class, n := range c.of {
		for _, at := range t.classes[class].counts {
			counted[at] += n
		}
	}
	domains := domainsOf(m)
	bytes := len(m.Nodes)*(len(t.filters)-1) + (tallySize+tallyMaps)*len(t.keys) + spreadBytes*t.spreads
	for i := range t.keys {
		most := len(m.Nodes)
		if key := &t.keys[i]; key.kind != ofPorts {
			most = domains[key.topology]
		}
		if n := min(counted[i], most); n > 0 {
			bytes += firstCells + cellBytes*max(0, n-fewCells)
		}
	}
	return bytes
}

// domainsOf returns the number of domains of each topology in which nodes are.
func domainsOf(m *model.Model) []int {
	domains, seen := make([]int, len(m.Pods.Topologies)), map[[2]uint32]bool{}
	for i := range domains {
		if m.Pods.Topologies[i].Node {
			domains[i] = len(m.Nodes)
		}
	}
	for n := range m.Nodes {
		if m.Nodes[n].Pods == nil {
			continue
		}
		for topology, domain := range m.Nodes[n].Pods.Domains {
			at := [2]uint32{uint32(topology), domain}
			if domain != 0 && topology < len(domains) && !m.Pods.Topologies[topology].Node && !seen[at] {
				seen[at] = true
				domains[topology]++
			}
		}
	}
	return domains
}
