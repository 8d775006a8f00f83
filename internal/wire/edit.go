package wire

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/event"
)

// Since returns the steps that lead from a snapshot to a state: events, and the one that makes edits, if there are any.
func Since(events []*apportionv1.Event, edits []*apportionv1.Edit) []*apportionv1.Step {
	steps := Happening(events)
	if len(edits) > 0 {
		steps = append(steps, event.Edit(edits))
	}
	return steps
}

// Edit makes the edits of an input, all or none. The paths of a fault begin with a prefix, which leads to the input.
func (s *Session) Edit(edits []*apportionv1.Edit, prefix string) error {
	for _, step := range Since(nil, edits) {
		if _, err := s.Ask(step); err != nil {
			fault := decode.AsFault(err).Without("event.edit.").Within(prefix)
			if fault.Reason == apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP {
				fault.Reason = apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST
			}
			return fault
		}
	}
	return nil
}

// editSnapshot goes on from the present state after edits, or changes nothing.
func (s *Session) editSnapshot(q *apportionv1.Edits) error {
	s.leave()
	return s.engine.Try(func() error {
		if state := s.kueueState(); !s.engine.View().Fresh() || state != nil && state.Booking() {
			if err := s.engine.Change(nil, func(*model.ChangeBuilder) {}); err != nil {
				return err
			}
		}
		m := s.engine.View().Model
		edits, err := decode.Edits(m, q.GetEdits(), s.limits.Nodes)
		if err != nil {
			return err
		}
		if err := s.spendOnEdits(m, edits); err != nil {
			return err
		}
		err = s.engine.ChangeIf(m.Dims.Names(), func(b *model.ChangeBuilder) error {
			edit.Make(b, m, edits, wirekueue.Edits{Dims: m.Dims})
			return nil
		}, s.limits.Accept)
		if violations, faulty := errors.AsType[*model.Error](err); faulty {
			out := &model.Error{}
			for _, v := range violations.Violations {
				out.Add("edits", "the result is not valid: %s: %s", v.Path, v.Detail)
			}
			return out
		}
		return err
	})
}

// spendOnEdits spends what edits cost beside the change that they make: each new node is looked for in each node set, each task of an
// edited job is compared with each edit of it, and node sets that new nodes join, or that take the place of others for a job, are stated
// node by node.
func (s *Session) spendOnEdits(m *model.Model, edits []edit.Edit) error {
	units, copies := 0, false
	of, wider := map[model.JobID]int{}, map[model.JobID]bool{}
	for i := range edits {
		e := &edits[i]
		if copies = copies || e.Kind == edit.NodesLike; e.Kind == edit.NodesLike {
			units += int(e.Amount) * (1 + len(m.NodeSets))
		} else if e.Job != model.None {
			of[e.Job]++
			wider[e.Job] = wider[e.Job] || e.Kind == edit.AllowedNode
		}
	}
	if copies {
		units += len(m.NodeSets) * len(m.Nodes)
	}
	for j, n := range of {
		tasks := int(m.Jobs.At(j).EndTask - m.Jobs.At(j).FirstTask)
		if units += tasks * n; wider[j] {
			units += min(tasks, len(m.NodeSets)) * len(m.Nodes)
		}
	}
	return s.work.Spend(units, 1)
}

// edit returns the memory for making edits: the nodes that they add, and the objects that they state again.
func (a *asking) edit(q *apportionv1.Edits) {
	size := decode.Size{Bytes: 2 * int64(proto.Size(q))}
	for _, e := range q.GetEdits() {
		switch {
		case e.GetKind() == apportionv1.EditKind_EDIT_KIND_NODES_LIKE:
			size.Nodes += int64(max(min(e.GetAmount(), float64(a.Nodes)+1e6), 0))
		case e.GetJob() != nil:
			size.Jobs, size.Groups, size.Tasks = size.Jobs+1, max(size.Groups, 1), a.Tasks
		case e.GetQueue() != nil:
			size.Queues++
		default:
			size.Nodes++
		}
	}
	a.reopen(size)
}

// edit encodes an edit.
func (s *Session) edit(e *edit.Edit) *apportionv1.Edit {
	v := s.engine.View()
	out := &apportionv1.Edit{Kind: apportionv1.EditKind(e.Kind), Dimension: s.out.dimension(e.Dimension), Text: e.Text}
	switch {
	case e.Job != model.None:
		out.Object = &apportionv1.Edit_Job{Job: s.ref(int(e.Job), v.Jobs.At(e.Job).UID)}
	case e.Node != model.None:
		out.Object = &apportionv1.Edit_Node{Node: s.ref(int(e.Node), v.Nodes[e.Node].Name)}
	case e.Queue != model.None:
		out.Object = &apportionv1.Edit_Queue{Queue: s.ref(int(e.Queue), v.Queues[e.Queue].Name)}
	}
	switch {
	case e.Kind == edit.Queue:
		out.To = s.ref(int(e.Queue), v.Queues[e.Queue].Name)
	case e.Kind == edit.AllowedNode:
		out.To = s.ref(int(e.Node), v.Nodes[e.Node].Name)
	case e.Group != model.None:
		out.Role = new(v.Groups.At(e.Group).Role)
	}
	if e.Given {
		out.Before = new(e.Before)
	}
	if decode.EditCounts(e.Kind) {
		out.Amount = new(e.Amount)
		if e.Step != 0 {
			out.Step = new(e.Step)
		}
	}
	s.out.left -= 4*messageBytes + len(out.GetRole())
	return out
}

// ref encodes a reference.
func (s *Session) ref(index int, name string) *apportionv1.Ref {
	if s.omitNames {
		name = ""
	}
	s.out.left -= messageBytes + len(name)
	return &apportionv1.Ref{Index: new(uint32(index)), Name: name}
}
