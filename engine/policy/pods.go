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
}

// tally counts pods by domain.
type tally struct {
	pods map[uint32]int32
	// leaving are those of pods that are being deleted; nil: none.
	leaving map[uint32]int32
	all     int32
	allGone int32
	// of is, for spreads, how many of the domains that count have so many pods, and least the fewest pods of one of them.
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
	table, err := newPodTable(v.Model)
	if err != nil {
		return err
	}
	if err := v.Work.Spend(v.Tasks.Len(), 1); err != nil {
		return err
	}
	if err := v.Work.Spend(table.work(v.Model), 1); err != nil {
		return err
	}
	v.pods = &Pods{podTable: table, view: v}
	v.pods.undo = v.pods.moveBack
	return nil
}

// Rules returns the rules on other pods with their counts in the present state; nil if there are none.
func (v *View) Rules() *Pods {
	if v.pods == nil {
		return nil
	}
	v.pods.fill()
	return v.pods
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

// fill counts all pods that are on nodes, once.
func (p *Pods) fill() {
	if p.tallies != nil {
		return
	}
	v := p.view
	p.tallies = make([]tally, len(p.keys))
	p.nodes = make([][]bool, len(p.filters))
	for f := range p.filters {
		if f > 0 {
			p.nodes[f] = p.counted(&p.filters[f])
		}
	}
	for i := range p.tallies {
		p.tallies[i].pods = map[uint32]int32{}
		if p.keys[i].kind == ofSpread {
			p.findDomains(i)
		}
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

// findDomains counts the domains of a spread.
func (p *Pods) findDomains(at int) {
	key, t := &p.keys[at], &p.tallies[at]
	for n, counts := range p.nodes[key.filter] {
		if !counts {
			continue
		}
		if d := p.domain(key.topology, model.NodeID(n)); t.pods[d] == 0 {
			// 1 marks that the domain was seen; it is taken back below.
			t.pods[d] = 1
			t.domains++
		}
	}
	for d := range t.pods {
		t.pods[d] = 0
	}
	t.of = map[int32]int32{0: t.domains}
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
	if counts == 0 || from == to && was == n {
		return
	}
	// The counts are kept right also if too little work is left; the question fails then.
	p.view.Work.Use(counts, 1)
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

// Place counts a task on a node without changing the view, and Remove takes it off again.
func (p *Pods) Place(t model.TaskID, n model.NodeID) { p.add(&p.classes[p.view.PodClassOf(t)], n, 1) }

// Remove takes back what Place did.
func (p *Pods) Remove(t model.TaskID, n model.NodeID) { p.add(&p.classes[p.view.PodClassOf(t)], n, -1) }

// add counts a pod on a node.
func (p *Pods) add(c *podClass, n model.NodeID, by int32) {
	for _, at := range c.counts {
		d := p.domainOf(at, n)
		if d == 0 {
			continue
		}
		t := &p.tallies[at]
		had := t.pods[d]
		t.pods[d] = had + by
		t.all += by
		if t.of != nil {
			t.shift(had, had+by)
		}
	}
}

// shift moves a domain from a number of pods to the one above or below.
func (t *tally) shift(from, to int32) {
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
		t.leaving[d] += by
		t.allGone += by
	}
}
