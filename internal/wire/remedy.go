package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/remedy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

var remediesQuestion = question[*apportionv1.RemediesStep]{
	of:     (*apportionv1.Step).GetRemedies,
	answer: (*Session).remedies,
	need:   exceptNodes,
	// The rest is spent try by try.
	work: func(s *Session, _ *apportionv1.RemediesStep) error {
		v := s.engine.View()
		return s.work.Spend(v.Tasks.Len()+len(v.Nodes), v.Dims.Len()*s.plugins)
	},
	memory: (*asking).remedies,
}

func (s *Session) remedies(q *apportionv1.RemediesStep) (*apportionv1.Answer, error) {
	question, err := s.remedyQuestion(q)
	if err != nil {
		return nil, err
	}
	if s.byKueue(question.Job) != nil {
		return s.kueueRemedies(question, q.GetOmitNames())
	}
	found, err := remedy.Find(s.engine.Session, question)
	if err != nil {
		return nil, err
	}
	answer, err := s.remediesAnswer(found, q.GetOmitNames())
	if err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Remedies{Remedies: answer}}, nil
}

func (s *Session) remedyQuestion(q *apportionv1.RemediesStep) (*remedy.Question, error) {
	var faults model.Error
	question := &remedy.Question{}
	jobs := s.jobsNamed(q.GetJob(), "job", &faults)
	switch {
	case faults.Total > 0:
	case len(jobs) != 1:
		faults.Add("job", "exactly one job is needed, not %d", len(jobs))
	default:
		question.Job = jobs[0]
	}
	for i, kind := range q.GetKinds() {
		if kind <= apportionv1.RemedyKind_REMEDY_KIND_UNSPECIFIED || kind > apportionv1.RemedyKind_REMEDY_KIND_PRIORITY {
			faults.Add(indexed("kinds", i), "no kind %d", kind)
			continue
		}
		question.Kinds = append(question.Kinds, remedy.Kind(kind))
	}
	return question, faults.OrNil()
}

func (s *Session) remediesAnswer(found *remedy.Answer, omit bool) (*apportionv1.RemediesAnswer, error) {
	v, names := s.engine.View(), s.names()
	answer := &apportionv1.RemediesAnswer{
		Job: uint32(found.Job), Outcome: apportionv1.RemedyOutcome(found.Outcome), Check: apportionv1.CheckKind(found.Check),
		Reasons: s.out.reasonList(found.Reasons), Tries: uint32(found.Tries), UnjudgedConstraints: decode.WireConstraints(found.Unjudged),
	}
	if !omit {
		answer.Uid = v.Jobs.At(found.Job).UID
	}
	s.out.left -= 2*messageBytes + len(answer.GetUid())
	for i := range found.List {
		remedy := s.remedy(&found.List[i], v.Jobs.At(found.Job).MinAvailable, omit)
		remedy.Text = text.Remedy(names, answer.GetJob(), remedy)
		remedy.WhatifArguments = text.WhatIf(names, answer.GetJob(), remedy)
		s.out.left -= len(remedy.GetText()) + 2*messageBytes
		for _, argument := range remedy.GetWhatifArguments() {
			s.out.left -= len(argument) + textBytes
		}
		answer.Remedies = append(answer.Remedies, remedy)
		if err := s.out.check("job"); err != nil {
			return nil, err
		}
	}
	for _, u := range found.Untried {
		answer.UntriedKinds = append(answer.UntriedKinds, &apportionv1.UntriedRemedy{
			Kind: apportionv1.RemedyKind(u.Kind), Cause: apportionv1.UntriedCause(u.Cause), Tried: uint32(u.Tried), Of: uint32(u.Of),
			Bound: apportionv1.UntriedBound(u.Bound),
		})
		s.out.left -= 2 * messageBytes
	}
	answer.Text = text.Remedies(names, answer)
	s.out.left -= len(answer.GetText())
	return answer, s.out.check("job")
}

// remedy encodes one remedy of a job that has a minimum.
func (s *Session) remedy(r *remedy.Remedy, minimum int32, omit bool) *apportionv1.Remedy {
	v := s.engine.View()
	out := &apportionv1.Remedy{
		Kind: apportionv1.RemedyKind(r.Kind), MinResources: s.out.resource(r.MinResources), LosingQueues: uint32(r.Losing),
		EndedTasks: uint32(r.Ended), Freed: s.out.resource(r.Freed), Time: r.At,
	}
	if len(r.Edits) > 0 && r.MinAvailable != minimum {
		out.MinAvailable = s.out.optional(int(r.MinAvailable))
	}
	for i := range r.Edits {
		out.Edits = append(out.Edits, s.remedyEdit(&r.Edits[i], omit))
	}
	for i := range r.Loses {
		loss := &r.Loses[i]
		out.Losses = append(out.Losses, &apportionv1.QueueLoss{
			Queue: uint32(loss.Queue), Plugin: loss.Plugin, Before: s.out.resource(loss.Before), After: s.out.resource(loss.After),
			Allocated: s.out.resource(loss.Allocated),
		})
		s.out.left -= messageBytes + len(loss.Plugin)
	}
	if r.Plan != nil {
		freed := resource.NewRow(v.Dims.Len())
		for i := range r.Plan.Victims {
			task := r.Plan.Victims[i].Task
			freed.Add(v.Request(task))
			out.Victims = append(out.Victims, uint32(task))
		}
		out.Freed = s.out.resource(freed)
		s.out.left -= len(out.GetVictims()) * numberBytes
	}
	return out
}

func (s *Session) remedyEdit(e *remedy.Edit, omit bool) *apportionv1.RemedyEdit {
	v := s.engine.View()
	out := &apportionv1.RemedyEdit{
		Field: apportionv1.RemedyField(e.Field), Queue: s.out.optional(int(e.Queue)), Job: s.out.optional(int(e.Job)),
		Node: s.out.optional(int(e.Node)), NodeName: s.nodeName(e.Node, omit), Dimension: s.out.dimension(e.Dimension),
	}
	if e.Queue != model.None && !omit {
		out.QueueName = v.Queues[e.Queue].Name
	}
	if e.Job != model.None && !omit {
		out.Uid = v.Jobs.At(e.Job).UID
	}
	if e.Group != model.None {
		out.Role = new(v.Groups.At(e.Group).Role)
	}
	if e.Given {
		out.Before = new(e.Before)
	}
	switch e.Field {
	case remedy.QueueOpen, remedy.JobQueue, remedy.NodeUncordoned, remedy.JobEnded, remedy.TaskNode:
	default:
		out.After, out.Step = new(e.After), new(e.Step)
	}
	s.out.left -= 4*messageBytes + len(out.GetQueueName()) + len(out.GetUid()) + len(out.GetRole())
	return out
}

// remedies returns the memory that the remedies of a job take. One changed cluster is open at a time beside the one asked about; each
// leaves a little behind, and what is garbage of it waits to be collected.
func (a *asking) remedies(*apportionv1.RemediesStep) (answer, work int64) {
	const most, open = 64, 3
	row := decode.RowBytes(int(a.Dimensions))
	edits := 4 * decode.BytesOf[apportionv1.RemedyEdit](1)
	answer = most * (decode.BytesOf[apportionv1.Remedy](1) + edits + 8*3*a.resource() + 4*decode.MaxText)
	_, planning := a.plan(&apportionv1.PlanStep{})
	return answer, open*a.session() + a.Nodes*(64+6*row) + (16+explainedTask)*a.Tasks + a.Queues*4*row + planning
}
