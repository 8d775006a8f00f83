package client

import (
	"bytes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Pods sets the placement constraints that depend on other pods. Nodes, groups and tasks refer to their classes by number. Nil: none.
func (s *Snapshot) Pods(rules *apportionv1.PodRules) *Snapshot {
	s.message.Pods = rules
	return s
}

// SetPods sets the placement constraints that depend on other pods. Nil: none.
func (m *Mirror) SetPods(rules *apportionv1.PodRules) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.setPods(rules)
}

func (m *Mirror) setPods(rules *apportionv1.PodRules) error {
	var data []byte
	if rules != nil {
		var err error
		if data, err = encode(rules); err != nil {
			return err
		}
	}
	if !bytes.Equal(m.pods, data) {
		m.pods, m.changed = data, true
	}
	return nil
}
