package model

import "github.com/apportion/apportion/engine/resource"

// SmallNodes are the nodes that offer some cpu, but less than one core.
type SmallNodes struct {
	// First is the first of them in NodeOrder, and None if N is 0.
	First NodeID
	N     int
}

// SmallNodes returns the nodes that offer some cpu, but less than one core. They are found when the model is built, because every session
// asks for them.
func (m *Model) SmallNodes() SmallNodes { return m.small }

func (m *Model) findSmallNodes() {
	const core = 1000
	m.small = SmallNodes{First: None}
	for _, n := range m.NodeOrder {
		if cpu := m.Nodes[n].Allocatable.V[resource.CPU]; cpu > 0 && cpu < core {
			if m.small.N++; m.small.N == 1 {
				m.small.First = n
			}
		}
	}
}
