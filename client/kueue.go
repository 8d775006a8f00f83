package client

import (
	"bytes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Kueue sets what the policy `kueue` reads of the whole cluster: flavors, cohorts, checks and local queues. The message is not copied.
func (s *Snapshot) Kueue(cluster *apportionv1.KueueSnapshot) *Snapshot {
	s.message.Kueue = cluster
	return s
}

// SetKueue sets what the policy `kueue` reads of the whole cluster; nil: nothing. Queues and jobs have their own parts.
func (m *Mirror) SetKueue(cluster *apportionv1.KueueSnapshot) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.setKueue(cluster)
}

// setKueue keeps an encoding. An empty message means the same as none, and has none.
func (m *Mirror) setKueue(cluster *apportionv1.KueueSnapshot) error {
	var data []byte
	if cluster != nil {
		var err error
		if data, err = encode(cluster); err != nil {
			return err
		}
	}
	if bytes.Equal(m.kueue, data) {
		return nil
	}
	m.bytes += len(data) - len(m.kueue)
	m.kueue, m.changed = data, true
	return nil
}
