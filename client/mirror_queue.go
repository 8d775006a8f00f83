package client

import (
	"bytes"
	"errors"
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// SetQueue adds a queue, or replaces the queue with the same name. An error changes nothing.
func (m *Mirror) SetQueue(queue Queue) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	built, err := m.build(func(s *Snapshot) { s.Queue(queue) })
	if err != nil {
		return err
	}
	return m.setQueue(built.message.GetQueues()[0])
}

func (m *Mirror) setQueue(queue *apportionv1.Queue) error {
	if queue.GetName() == "" {
		return errors.New("a queue needs a name")
	}
	data, err := encode(queue)
	if err != nil {
		return err
	}
	of := m.queueOf[queue.GetName()]
	if of == nil {
		of = &mirroredQueue{slot: m.queueSlots.take()}
		m.queueOf[queue.GetName()] = of
		m.live.queues++
	} else {
		before := m.queues.at(of.slot)
		if bytes.Equal(before.data, data) {
			return nil
		}
		m.bytes -= len(before.data)
	}
	m.bytes += len(data)
	m.queues.put(m.writer, of.slot, &queueEntry{name: queue.GetName(), data: data})
	m.changed = true
	return nil
}

// RemoveQueue removes a queue; it must have no jobs.
func (m *Mirror) RemoveQueue(name string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	of := m.queueOf[name]
	if of == nil {
		return fmt.Errorf("no queue %q", name)
	}
	if of.jobs > 0 {
		return fmt.Errorf("queue %q has %d jobs", name, of.jobs)
	}
	m.removeQueue(name, of)
	return nil
}

func (m *Mirror) removeQueue(name string, of *mirroredQueue) {
	m.bytes -= len(m.queues.at(of.slot).data)
	m.queues.put(m.writer, of.slot, nil)
	m.queueSlots.give(of.slot)
	delete(m.queueOf, name)
	m.live.queues--
	m.changed = true
}
