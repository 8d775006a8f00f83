package extender

import (
	"slices"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

// node reads a NodeInfo. Most of its tasks are tasks of jobs and already known; the others count as usage by others.
func (p *push) node(d *jx.Decoder, _ []byte) error {
	n := nodeRecord{}
	at := int32(len(p.nodes))
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case nameField:
			return setText(d, &n.name)
		case "Node":
			return member(d, metadataField, func(d *jx.Decoder) error {
				return member(d, "labels", func(d *jx.Decoder) error { return textUnder(d, volcano.NodeGroupKey, &n.group, &n.labelled) })
			})
		case "Allocatable":
			read, err := p.vectors.resource(d)
			n.allocatable = slices.Clone(read)
			return err
		case tasksField:
			return object(d, func(d *jx.Decoder, _ []byte) error { return p.taskOfNode(d, at) })
		}
		return d.Skip()
	})
	p.nodes = append(p.nodes, n)
	if err == nil {
		err = p.held(n.name, n.group)
	}
	return within(n.name, err)
}

// taskOfNode reads a task on a node, unless it belongs to a job. Pipelined tasks do not use the node yet.
func (p *push) taskOfNode(d *jx.Decoder, node int32) error {
	stray := strayRecord{node: node}
	known, status := false, model.Unknown
	err := object(d, func(d *jx.Decoder, name []byte) (err error) {
		if known {
			return d.Skip()
		}
		switch string(name) {
		case "UID":
			err = setText(d, &stray.uid)
			_, known = p.known[stray.uid]
			return err
		case requestField:
			stray.request, err = p.vectors.request(d)
			return err
		case statusField:
			return setStatus(d, &status)
		}
		return d.Skip()
	})
	if err == nil && !known && status != model.Pipelined {
		p.strays = append(p.strays, stray)
		err = p.held(stray.uid)
	}
	return within(stray.uid, err)
}

// queue reads a QueueInfo.
func (p *push) queue(d *jx.Decoder, _ []byte) error {
	q := queueRecord{state: model.StateUnknown}
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case nameField:
			return setText(d, &q.name)
		case "Weight":
			return setWhole(d, &q.weight)
		case "Hierarchy":
			return setText(d, &q.path)
		case "Weights":
			return setText(d, &q.weights)
		case "Queue":
			return object(d, func(d *jx.Decoder, name []byte) error {
				switch string(name) {
				case metadataField:
					return member(d, "creationTimestamp", func(d *jx.Decoder) error { return setMoment(d, &q.created) })
				case specField:
					return object(d, func(d *jx.Decoder, name []byte) error { return p.queueSpec(d, name, &q) })
				case stateField:
					return member(d, "state", func(d *jx.Decoder) error {
						state, err := text(d)
						q.state, _ = decode.QueueStateOf(volcano.QueueState(state))
						return err
					})
				}
				return d.Skip()
			})
		}
		return d.Skip()
	})
	p.queues = append(p.queues, q)
	if err == nil {
		err = p.held(q.name, q.parent, q.path)
	}
	return within(q.name, err)
}

func (p *push) queueSpec(d *jx.Decoder, name []byte, q *queueRecord) (err error) {
	switch string(name) {
	case "capability":
		q.capability, err = p.vectors.quantities(d)
	case "deserved":
		q.deserved, err = p.vectors.quantities(d)
	case "guarantee":
		err = member(d, "resource", func(d *jx.Decoder) (err error) {
			q.guarantee, err = p.vectors.quantities(d)
			return err
		})
	case "reclaimable":
		reclaimable := true
		err = setFlag(d, &reclaimable)
		q.unreclaimable = !reclaimable
	case "parent":
		err = setText(d, &q.parent)
	case "priority":
		err = setWhole(d, &q.priority)
	case "affinity":
		q.affinity, err = affinity(d)
	default:
		err = d.Skip()
	}
	return err
}

// affinity reads the groups of nodes that a queue is bound to. Present and empty stays present: it stops inheritance.
func affinity(d *jx.Decoder) (*model.NodeAffinity, error) {
	if d.Next() == jx.Null {
		return nil, d.Null()
	}
	a := &model.NodeAffinity{}
	return a, object(d, func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "nodeGroupAffinity":
			a.Affinity, err = terms(d)
		case "nodeGroupAntiAffinity":
			a.AntiAffinity, err = terms(d)
		default:
			err = d.Skip()
		}
		return err
	})
}

func terms(d *jx.Decoder) (*model.Terms, error) {
	if d.Next() == jx.Null {
		return nil, d.Null()
	}
	t := &model.Terms{}
	return t, object(d, func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "requiredDuringSchedulingIgnoredDuringExecution":
			t.Required, err = texts(d)
		case "preferredDuringSchedulingIgnoredDuringExecution":
			t.Preferred, err = texts(d)
		default:
			err = d.Skip()
		}
		return err
	})
}
