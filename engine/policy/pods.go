package policy

import (
	"github.com/apportion/apportion/engine/model"
)

// Pods counts the pods on nodes as the rules on other pods look at them, in the state of a view. Whether a node takes a pod is then a few
// looks at counts, however many pods there are.
type Pods struct {
	*podTable

	view    *View
	tallies []tally
	// nodes are those that count, by filter; the first is nil.
	nodes [][]bool
	undo  func(a, b uint64)
	// none stands for the rules while there is no memory for their counts.
	none *Pods
	// cells is the number of counts in the maps of all tallies, and filled the number of maps that have some; full is about what all
	// counts of the model take.
	cells, filled, full int
}

// tally counts pods by domain.
type tally struct {
	pods map[uint32]int32
	// leaving are those of pods that are being deleted; nil: none.
	leaving map[uint32]int32
	all     int32
	allGone int32
	// of is, for spreads, how many of the domains that count have so many pods, and least the fewest pods of one of them. A domain without
	// pods has no place in the maps.
	of      map[int32]int32
	least   int32
	domains int32
}

// OpenPods prepares the rules on other pods, if the model has any, before the view is asked about them.
func (v *View) OpenPods() error {
	v.pods = nil
	if v.Pods == nil {
		return nil
	}
	if err := v.Work.Spend(v.Tasks.Len(), 2); err != nil {
		return err
	}
	table, err := newPodTable(v.Model, v.Work)
	if err != nil {
		return err
	}
	crowd := table.crowdOf(v.Model)
	if err := table.check(&crowd); err != nil {
		return err
	}
	if err := v.Work.Spend(table.work(v.Model, &crowd), 1); err != nil {
		return err
	}
	v.pods = &Pods{podTable: table, view: v, full: table.filledBytes(v.Model, &crowd)}
	v.pods.undo = v.pods.moveBack
	return nil
}

// CountPods returns the pods on nodes as the rules count them in the present state; nil if there are no rules. They are counted when it is
// asked first. Without memory for that no rule keeps a pod off any node, and the question fails.
func (v *View) CountPods() *Pods {
	p := v.pods
	if p == nil || p.fill() {
		return p
	}
	return p.withoutRules()
}

// withoutRules returns counts of nothing, by no rules.
func (p *Pods) withoutRules() *Pods {
	if p.none == nil {
		p.none = &Pods{podTable: &podTable{rules: p.rules, classes: make([]podClass, len(p.classes))}, view: p.view, tallies: []tally{}}
	}
	return p.none
}

// PodKind returns the same number for tasks that the rules on other pods treat alike, and 0 for those that no rule concerns.
func (v *View) PodKind(t model.TaskID) int32 {
	if v.pods == nil {
		return 0
	}
	return v.pods.classes[v.PodClassOf(t)].kind
}

// Ordered reports whether a task may fit on a node because of tasks that are placed before it, or not because of the order of placing.
func (v *View) Ordered(t model.TaskID) bool {
	return v.pods != nil && v.pods.classes[v.PodClassOf(t)].ordered
}

// fill counts all pods that are on nodes, once. It returns false if there is no memory for that.
func (p *Pods) fill() bool {
	if p.tallies != nil {
		return true
	}
	v := p.view
	if !v.Work.Keep(p.full) {
		return false
	}
	p.none = nil
	p.tallies = make([]tally, len(p.keys))
	p.nodes = make([][]bool, len(p.filters))
	for f := range p.filters {
		if f > 0 {
			p.nodes[f] = p.counted(&p.filters[f])
		}
	}
	domains := map[podDomains]int32{}
	for i := range p.tallies {
		key, t := &p.keys[i], &p.tallies[i]
		if t.pods = map[uint32]int32{}; key.kind != ofSpread {
			continue
		}
		in := podDomains{key.filter, key.topology}
		n, known := domains[in]
		if !known {
			n = p.domainsOfFilter(in)
			domains[in] = n
		}
		t.domains, t.of = n, map[int32]int32{0: n}
	}
	for n := range v.Nodes {
		if of := v.Nodes[n].Pods; of != nil && v.HasNode(model.NodeID(n)) {
			for _, class := range of.Others {
				p.add(&p.classes[class], model.NodeID(n), 1)
			}
			for _, class := range of.Leaving {
				p.leave(&p.classes[class], model.NodeID(n), 1)
			}
		}
	}
	for i, j := range v.JobOrder {
		v.Yield(i)
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if n := v.NodeOf(t); n != model.None {
				p.put(t, v.Status(t), n, 1)
			}
		}
	}
	return true
}

// counted says which nodes a filter counts.
func (p *Pods) counted(f *podFilter) []bool {
	v := p.view
	list := make([]bool, len(v.Nodes))
	for n := range list {
		v.Yield(n)
		id := model.NodeID(n)
		list[n] = v.HasNode(id) && v.InSet(f.set, id)
		for _, topology := range f.topologies {
			list[n] = list[n] && p.domain(topology, id) != 0
		}
	}
	return list
}

// podDomains are the domains of a topology in which nodes are that a filter counts.
type podDomains struct {
	filter   int
	topology uint32
}

// domainsOfFilter returns how many such domains there are.
func (p *Pods) domainsOfFilter(in podDomains) int32 {
	seen, n := map[uint32]bool{}, int32(0)
	for id, counts := range p.nodes[in.filter] {
		p.view.Yield(id)
		switch d := p.domain(in.topology, model.NodeID(id)); {
		case !counts:
		case p.rules.Topologies[in.topology].Node:
			n++
		case !seen[d]:
			seen[d] = true
			n++
		}
	}
	return n
}

// domain returns the domain of a node, 0 for none.
func (p *Pods) domain(topology uint32, n model.NodeID) uint32 {
	if p.rules.Topologies[topology].Node {
		return uint32(n) + 1
	}
	of := p.view.Nodes[n].Pods
	if of == nil || int(topology) >= len(of.Domains) {
		return 0
	}
	return of.Domains[topology]
}

// domainOf returns the domain of a node in which a tally counts, 0 if it does not count there.
func (p *Pods) domainOf(at int32, n model.NodeID) uint32 {
	key := &p.keys[at]
	switch {
	case key.kind == ofPorts:
		return uint32(n) + 1
	case key.filter > 0 && !p.nodes[key.filter][n]:
		return 0
	}
	return p.domain(key.topology, n)
}

// moved follows a change of a task's status or node.
func (p *Pods) moved(t model.TaskID, from model.Status, was model.NodeID, to model.Status, n model.NodeID) {
	counts := len(p.classes[p.view.PodClassOf(t)].counts)
	if counts == 0 || from == to && was == n || p.tallies == nil {
		return
	}
	// The counts are kept right also if too little work is left; the question fails then.
	p.view.Work.Use(counts, 2*cellCost)
	p.move(t, from, was, to, n)
	p.view.Journal.UndoWith(p.undo, uint64(uint32(t))|uint64(uint32(was))<<32, uint64(uint32(n))|uint64(from)<<32|uint64(to)<<40)
}

func (p *Pods) move(t model.TaskID, from model.Status, was model.NodeID, to model.Status, n model.NodeID) {
	if was != model.None {
		p.put(t, from, was, -1)
	}
	if n != model.None {
		p.put(t, to, n, 1)
	}
}

// moveBack undoes moved.
func (p *Pods) moveBack(a, b uint64) {
	t, was, n := model.TaskID(int32(a)), model.NodeID(int32(a>>32)), model.NodeID(int32(b))
	p.move(t, model.Status(uint8(b>>40)), n, model.Status(uint8(b>>32)), was)
}

// put adds a task of a status to a node, or takes it off. Finished tasks count for nothing.
func (p *Pods) put(t model.TaskID, status model.Status, n model.NodeID, by int32) {
	c := &p.classes[p.view.PodClassOf(t)]
	switch status {
	case model.Succeeded, model.Failed:
	case model.Releasing:
		p.leave(c, n, by)
	default:
		p.add(c, n, by)
	}
}

// Place counts a task on a node without changing the view, and Remove takes it off again. The counts are right also if too little work is
// left.
func (p *Pods) Place(t model.TaskID, n model.NodeID) { p.shift(t, n, 1) }

// Remove takes back what Place did.
func (p *Pods) Remove(t model.TaskID, n model.NodeID) { p.shift(t, n, -1) }

func (p *Pods) shift(t model.TaskID, n model.NodeID, by int32) {
	c := &p.classes[p.view.PodClassOf(t)]
	p.view.Work.Use(len(c.counts), cellCost)
	p.add(c, n, by)
}

// add counts a pod on a node.
func (p *Pods) add(c *podClass, n model.NodeID, by int32) {
	for _, at := range c.counts {
		d := p.domainOf(at, n)
		if d == 0 {
			continue
		}
		t := &p.tallies[at]
		had := t.pods[d]
		p.set(t.pods, d, had, had+by)
		t.all += by
		if t.of != nil {
			t.move(had, had+by)
		}
	}
}

// set sets a count, which takes no place where it is 0.
func (p *Pods) set(counts map[uint32]int32, d uint32, had, n int32) {
	if n == 0 {
		delete(counts, d)
	} else {
		counts[d] = n
	}
	switch {
	case had == 0 && n != 0:
		if p.cells++; len(counts) == 1 {
			p.filled++
		}
	case had != 0 && n == 0:
		if p.cells--; len(counts) == 0 {
			p.filled--
		}
	}
}

// PodBytes returns about what the rules on other pods take in the view, in addition to the model.
func (v *View) PodBytes() int {
	p := v.pods
	if p == nil {
		return 0
	}
	if p.tallies == nil {
		return p.bytes
	}
	return p.bytes + len(v.Nodes)*(len(p.nodes)-1) + (tallySize+tallyMaps)*len(p.keys) + spreadBytes*p.spreads + firstCells*p.filled +
		cellBytes*max(0, p.cells-fewCells*p.filled)
}

// move moves a domain from a number of pods to the one above or below.
func (t *tally) move(from, to int32) {
	if t.of[from]--; t.of[from] == 0 {
		delete(t.of, from)
	}
	t.of[to]++
	switch {
	case to < t.least:
		t.least = to
	case from == t.least && t.of[from] == 0:
		t.least = to
	}
}

// leave counts a pod on a node that is being deleted. Spreads do not count it.
func (p *Pods) leave(c *podClass, n model.NodeID, by int32) {
	for _, at := range c.counts {
		t := &p.tallies[at]
		d := p.domainOf(at, n)
		if d == 0 || t.of != nil {
			continue
		}
		if t.leaving == nil {
			t.leaving = map[uint32]int32{}
		}
		had := t.leaving[d]
		p.set(t.leaving, d, had, had+by)
		t.allGone += by
	}
}
