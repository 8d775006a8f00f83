package wire

import (
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// edit encodes an edit.
func (s *Session) edit(e *edit.Edit, omit bool) *apportionv1.Edit {
	v := s.engine.View()
	out := &apportionv1.Edit{Kind: apportionv1.EditKind(e.Kind), Dimension: s.out.dimension(e.Dimension), Text: e.Text}
	switch {
	case e.Job != model.None:
		out.Object = &apportionv1.Edit_Job{Job: s.ref(int(e.Job), v.Jobs.At(e.Job).UID, omit)}
	case e.Node != model.None:
		out.Object = &apportionv1.Edit_Node{Node: s.ref(int(e.Node), v.Nodes[e.Node].Name, omit)}
	case e.Queue != model.None:
		out.Object = &apportionv1.Edit_Queue{Queue: s.ref(int(e.Queue), v.Queues[e.Queue].Name, omit)}
	}
	switch {
	case e.Kind == edit.Queue:
		out.To = s.ref(int(e.Queue), v.Queues[e.Queue].Name, omit)
	case e.Kind == edit.AllowedNode:
		out.To = s.ref(int(e.Node), v.Nodes[e.Node].Name, omit)
	case e.Group != model.None:
		out.Role = new(v.Groups.At(e.Group).Role)
	}
	if e.Given {
		out.Before = new(e.Before)
	}
	if e.Kind.Counted() {
		out.Amount = new(e.Amount)
		if e.Step != 0 {
			out.Step = new(e.Step)
		}
	}
	s.out.left -= 4*messageBytes + len(out.GetRole())
	return out
}

// ref encodes a reference.
func (s *Session) ref(index int, name string, omit bool) *apportionv1.Ref {
	if omit {
		name = ""
	}
	s.out.left -= messageBytes + len(name)
	return &apportionv1.Ref{Index: new(uint32(index)), Name: name}
}
