package client

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// SetNode adds a node, or replaces the node with the same name. An error changes nothing.
func (m *Mirror) SetNode(node Node) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	built, err := m.build(func(s *Snapshot) { s.Node(node) })
	if err != nil {
		return err
	}
	return m.setNode(built.message.GetNodes()[0])
}

func (m *Mirror) setNode(node *apportionv1.Node) error {
	if node.GetName() == "" {
		return errors.New("a node needs a name")
	}
	data, err := encode(node)
	if err != nil {
		return err
	}
	of := m.refer(node.GetName())
	before := m.nodes.at(of.slot)
	if before != nil && bytes.Equal(before.data, data) {
		return nil
	}
	m.changed = true
	m.nodes.put(m.writer, of.slot, &nodeEntry{node: of, data: data})
	m.bytes += len(data)
	if before != nil {
		m.bytes -= len(before.data)
		return nil
	}
	m.live.nodes++
	if of.users > 0 && m.newest != nil {
		m.nodeAdded(of)
	}
	return nil
}

// nodeAdded marks the jobs and node sets that refer to a node which was missing.
func (m *Mirror) nodeAdded(node *mirroredNode) {
	jobs, sets := m.jobs, m.sets
	jobs.all(func(slot int, job *jobEntry) {
		if slices.ContainsFunc(job.places, func(p taskState) bool { return p.node == node }) {
			again := *job
			m.jobs.put(m.writer, slot, &again)
		}
	})
	sets.all(func(slot int, set *setEntry) {
		refers := false
		if set.each(func(n *mirroredNode) { refers = refers || n == node }); refers {
			again := *set
			m.sets.put(m.writer, slot, &again)
		}
	})
}

// refer returns the node of a name, whether or not it exists.
func (m *Mirror) refer(name string) *mirroredNode {
	of := m.nodeOf[name]
	if of == nil {
		of = &mirroredNode{name: name, slot: m.nodeSlots.take()}
		m.nodeOf[name] = of
		if of.slot/tablePage == len(m.nodes.pages) {
			m.nodes.put(m.writer, of.slot, nil)
		}
	}
	return of
}

// use counts a reference to a node; unuse removes one.
func (m *Mirror) use(of *mirroredNode) {
	if of != nil {
		of.users++
	}
}

func (m *Mirror) unuse(of *mirroredNode) {
	if of != nil {
		of.users--
		m.forget(of)
	}
}

// forget frees the slot of a node that neither exists nor is referred to.
func (m *Mirror) forget(of *mirroredNode) {
	if of.users == 0 && m.nodes.at(of.slot) == nil {
		delete(m.nodeOf, of.name)
		m.nodeSlots.give(of.slot)
	}
}

// RemoveNode removes a node. Tasks on it are then on no node.
func (m *Mirror) RemoveNode(name string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	of := m.nodeOf[name]
	if of == nil || m.nodes.at(of.slot) == nil {
		return fmt.Errorf("no node %q", name)
	}
	m.removeNode(of)
	return nil
}

func (m *Mirror) removeNode(of *mirroredNode) {
	m.bytes -= len(m.nodes.at(of.slot).data)
	m.nodes.put(m.writer, of.slot, nil)
	m.live.nodes--
	m.changed = true
	m.forget(of)
}

// SetNodeSet adds a node set, or replaces the node set with the same name. Nodes that do not exist yet join it when they are set.
func (m *Mirror) SetNodeSet(set NodeSet) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	seen := make(map[string]bool, len(set.Nodes))
	for _, node := range set.Nodes {
		if seen[node] {
			return fmt.Errorf("node set %q: node %q is named twice", set.Name, node)
		}
		seen[node] = true
	}
	if err := set.checkPreferences(); err != nil {
		return err
	}
	return m.setNodeSet(&set)
}

func (m *Mirror) setNodeSet(set *NodeSet) error {
	name, nodes := set.Name, set.Nodes
	if name == "" {
		return errors.New("a node set needs a name")
	}
	data, err := encode(&apportionv1.NodeSet{
		Name: name, Rule: set.Rule, ToleratesCordon: set.ToleratesCordon, Fixed: set.Fixed, Flavor: set.Flavor,
	})
	if err != nil {
		return err
	}
	entry := &setEntry{name: name, data: data, nodes: make([]*mirroredNode, len(nodes))}
	for i, node := range nodes {
		entry.nodes[i] = m.refer(node)
	}
	if entry.preferences, err = m.preferred(set.Preferences); err != nil {
		return err
	}
	entry.each(m.use)
	slot, known := m.setOf[name]
	if known {
		before := m.sets.at(slot)
		before.each(m.unuse)
		if before.equal(entry) {
			return nil
		}
		m.bytes -= before.size()
	} else {
		slot = m.setSlots.take()
		m.setOf[name] = slot
		m.live.sets++
	}
	m.bytes += entry.size()
	m.sets.put(m.writer, slot, entry)
	m.changed = true
	return nil
}

// size returns the approximate size of the encoded node set.
func (e *setEntry) size() int {
	size := len(e.data)
	e.each(func(*mirroredNode) { size += 3 })
	return size + 12*len(e.preferences)
}

// RemoveNodeSet removes a node set; no job may refer to it.
func (m *Mirror) RemoveNodeSet(name string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	slot, known := m.setOf[name]
	if !known {
		return fmt.Errorf("no node set %q", name)
	}
	m.removeNodeSet(name, slot)
	return nil
}

func (m *Mirror) removeNodeSet(name string, slot int) {
	before := m.sets.at(slot)
	before.each(m.unuse)
	m.bytes -= before.size()
	m.sets.put(m.writer, slot, nil)
	m.setSlots.give(slot)
	m.live.sets--
	delete(m.setOf, name)
	m.changed = true
}
