package client

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// DisruptionBudget adds disruption budgets, which tasks of the same namespace name.
func (s *Snapshot) DisruptionBudget(budgets ...*apportionv1.DisruptionBudget) *Snapshot {
	s.message.DisruptionBudgets = append(s.message.DisruptionBudgets, budgets...)
	return s
}

// Quota adds quotas of namespaces.
func (s *Snapshot) Quota(quotas ...*apportionv1.NamespaceQuota) *Snapshot {
	s.message.Quotas = append(s.message.Quotas, quotas...)
	return s
}

// SetDisruptionBudget adds a disruption budget, or replaces the one with the same namespace and name.
func (m *Mirror) SetDisruptionBudget(budget *apportionv1.DisruptionBudget) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.setBudget(budget)
}

// RemoveDisruptionBudget removes a disruption budget, given as namespace/name; no task may name it.
func (m *Mirror) RemoveDisruptionBudget(key string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.budgetOf.remove(m, &m.budgets, "disruption budget", key)
}

// SetQuota adds a quota of a namespace, or replaces the one with the same namespace and name.
func (m *Mirror) SetQuota(quota *apportionv1.NamespaceQuota) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.setQuota(quota)
}

// RemoveQuota removes a quota, given as namespace/name.
func (m *Mirror) RemoveQuota(key string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.quotaOf.remove(m, &m.quotas, "quota", key)
}

func (m *Mirror) setBudget(budget *apportionv1.DisruptionBudget) error {
	return m.budgetOf.set(m, &m.budgets, "disruption budget", entryKey(budget), budget.GetName(), budget)
}

func (m *Mirror) setQuota(quota *apportionv1.NamespaceQuota) error {
	return m.quotaOf.set(m, &m.quotas, "quota", entryKey(quota), quota.GetName(), quota)
}

// entryKey identifies an object that has a namespace and a name.
func entryKey[M interface {
	GetNamespace() string
	GetName() string
}](object M) string {
	return qualified(object.GetNamespace(), object.GetName())
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// keyedEntry is an encoded object that is known by namespace and name.
type keyedEntry struct {
	id   string
	data []byte
}

func (e *keyedEntry) key() string { return e.id }

// entrySlots finds the slots of such objects.
type entrySlots struct {
	slots slots
	of    map[string]int
}

func newEntrySlots() entrySlots { return entrySlots{of: map[string]int{}} }

func (s *entrySlots) set(m *Mirror, in *table[keyedEntry], kind, key, name string, object proto.Message) error {
	if name == "" {
		return errors.New("a " + kind + " needs a name")
	}
	data, err := encode(object)
	if err != nil {
		return err
	}
	slot, known := s.of[key]
	if known {
		before := in.at(slot)
		if bytes.Equal(before.data, data) {
			return nil
		}
		m.bytes -= len(before.data)
	} else {
		slot = s.slots.take()
		s.of[key] = slot
	}
	m.bytes += len(data)
	in.put(m.writer, slot, &keyedEntry{key, data})
	m.changed = true
	return nil
}

func (s *entrySlots) remove(m *Mirror, in *table[keyedEntry], kind, key string) error {
	slot, known := s.of[key]
	if !known {
		return fmt.Errorf("no %s %q", kind, key)
	}
	m.bytes -= len(in.at(slot).data)
	in.put(m.writer, slot, nil)
	s.slots.give(slot)
	delete(s.of, key)
	m.changed = true
	return nil
}

// changeEntries encodes the difference of two tables: the removed objects by name, those that were set whole.
func changeEntries(out []byte, was, is *table[keyedEntry], removed, set protowire.Number) []byte {
	gone, changed := difference[keyedEntry](was, is)
	for _, e := range gone {
		out = appendText(out, removed, e.was.id)
	}
	for _, e := range changed {
		out = appendField(out, set, e.is.data)
	}
	return out
}

// NodePreference says how much tasks of a node set prefer nodes.
type NodePreference struct {
	// Untolerated counts the taints PreferNoSchedule of the nodes that the tasks do not tolerate.
	Untolerated uint32
	// Affinity is the sum of the weights of the preferred terms of node affinity that match the nodes.
	Affinity int32
	// Nodes are names of nodes. A node is in one preference of a set at most.
	Nodes []string
}

// preferredNodes is a NodePreference in a mirror.
type preferredNodes struct {
	// data is the preference without its nodes.
	data  []byte
	nodes []*mirroredNode
}

func (e *preferredNodes) equal(o *preferredNodes) bool {
	return bytes.Equal(e.data, o.data) && slices.Equal(e.nodes, o.nodes)
}

// preferred refers to the nodes of preferences.
func (m *Mirror) preferred(list []NodePreference) ([]preferredNodes, error) {
	var out []preferredNodes
	for _, p := range list {
		data, err := encode(&apportionv1.NodePreference{Untolerated: p.Untolerated, Affinity: p.Affinity})
		if err != nil {
			return nil, err
		}
		entry := preferredNodes{data: data}
		for _, node := range p.Nodes {
			entry.nodes = append(entry.nodes, m.refer(node))
		}
		out = append(out, entry)
	}
	return out, nil
}

// checkPreferences returns an error if two preferences of a node set name the same node.
func (s *NodeSet) checkPreferences() error {
	seen := map[string]bool{}
	for _, p := range s.Preferences {
		for _, node := range p.Nodes {
			if seen[node] {
				return fmt.Errorf("node set %q: two preferences name node %q", s.Name, node)
			}
			seen[node] = true
		}
	}
	return nil
}

// namedPreferences are the preferences of a message with the names of their nodes.
func namedPreferences(list []*apportionv1.NodePreference, name func(uint32) string) []NodePreference {
	var out []NodePreference
	for _, p := range list {
		named := NodePreference{Untolerated: p.GetUntolerated(), Affinity: p.GetAffinity()}
		for _, node := range p.GetNodes() {
			named.Nodes = append(named.Nodes, name(node))
		}
		out = append(out, named)
	}
	return out
}
