package wire

import (
	"github.com/apportion/apportion/engine/edit"
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
		return s.kueueRemedies(question.Job, q)
	}
	found, err := remedy.Find(s.engine.Session, question)
	if err != nil {
		return nil, err
	}
	answer, err := s.remediesAnswer(found)
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
	question.Kinds = remedyKinds(q, &faults)
	return question, faults.OrNil()
}

// remedyKinds returns the kinds that a question asks for, nil for all.
func remedyKinds(q *apportionv1.RemediesStep, faults *model.Error) []remedy.Kind {
	var kinds []remedy.Kind
	for i, kind := range q.GetKinds() {
		if !knownEdit(kind) {
			faults.Add(indexed("kinds", i), "no kind %d", kind)
		} else if of := remedyOf(edit.Kind(kind)); of != 0 {
			kinds = append(kinds, of)
		}
	}
	for i, means := range q.GetMeans() {
		switch of, other := otherMeans[means]; {
		case other:
			kinds = append(kinds, of)
		case means == apportionv1.RemedyMeans_REMEDY_MEANS_EDITS:
			for kind := remedy.Kind(1); kind <= remedy.LastKind; kind++ {
				if kind.Edits() != 0 {
					kinds = append(kinds, kind)
				}
			}
		default:
			faults.Add(indexed("means", i), "no means %d", means)
		}
	}
	if kinds == nil && len(q.GetKinds()) > 0 {
		return []remedy.Kind{}
	}
	return kinds
}

// knownEdit reports whether a kind of edits is known.
func knownEdit(kind apportionv1.EditKind) bool {
	return kind > apportionv1.EditKind_EDIT_KIND_UNSPECIFIED && int(kind) < len(apportionv1.EditKind_name)
}

// remedyOf returns the kind of remedy that makes edits of a kind; 0: none does.
func remedyOf(kind edit.Kind) remedy.Kind {
	for of := remedy.Kind(1); of <= remedy.LastKind; of++ {
		if of.Edits() == kind {
			return of
		}
	}
	return 0
}

// otherMeans are the kinds of remedies that are not edits of one kind.
var otherMeans = map[apportionv1.RemedyMeans]remedy.Kind{
	apportionv1.RemedyMeans_REMEDY_MEANS_COMBINED: remedy.Combined, apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION: remedy.Eviction,
	apportionv1.RemedyMeans_REMEDY_MEANS_WAIT: remedy.Wait,
}

// meansOf returns the means of a kind of remedy.
func meansOf(kind remedy.Kind) apportionv1.RemedyMeans {
	for means, of := range otherMeans {
		if of == kind {
			return means
		}
	}
	return apportionv1.RemedyMeans_REMEDY_MEANS_EDITS
}

func (s *Session) remediesAnswer(found *remedy.Answer) (*apportionv1.RemediesAnswer, error) {
	v, names := s.engine.View(), s.names()
	answer := &apportionv1.RemediesAnswer{
		Job: uint32(found.Job), Outcome: apportionv1.RemedyOutcome(found.Outcome), Check: apportionv1.CheckKind(found.Check),
		Causes: s.out.reasonList(found.Reasons), Tries: uint32(found.Tries), UnjudgedConstraints: decode.WireConstraints(found.Unjudged),
	}
	if !s.omitNames {
		answer.Uid = v.Jobs.At(found.Job).UID
	}
	s.out.left -= 2*messageBytes + len(answer.GetUid())
	for i := range found.List {
		remedy := s.remedy(&found.List[i])
		remedy.Text = text.Remedy(names, answer.GetJob(), remedy)
		s.out.left -= len(remedy.GetText()) + 2*messageBytes
		answer.Remedies = append(answer.Remedies, remedy)
		if err := s.out.check("job"); err != nil {
			return nil, err
		}
	}
	for _, u := range found.Untried {
		answer.UntriedKinds = append(answer.UntriedKinds, &apportionv1.UntriedRemedy{
			Means: meansOf(u.Kind), Kind: apportionv1.EditKind(u.Kind.Edits()), Cause: apportionv1.UntriedCause(u.Cause),
			Tried: uint32(u.Tried), Of: uint32(u.Of), Bound: apportionv1.UntriedBound(u.Bound),
		})
		s.out.left -= 2 * messageBytes
	}
	answer.Text = text.Remedies(names, answer)
	s.out.left -= len(answer.GetText())
	return answer, s.out.check("job")
}

// remedy encodes one remedy.
func (s *Session) remedy(r *remedy.Remedy) *apportionv1.Remedy {
	v := s.engine.View()
	out := &apportionv1.Remedy{
		Means: meansOf(r.Kind), LosingQueues: uint32(r.Losing), EndedTasks: uint32(r.Ended), Freed: s.out.resource(r.Freed), Time: r.At,
	}
	for i := range r.Edits {
		out.Edits = append(out.Edits, s.edit(&r.Edits[i]))
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

// remedies returns the memory that the remedies of a job take. One changed cluster is open at a time beside the one asked about; each
// leaves a little behind, and what is garbage of it waits to be collected.
func (a *asking) remedies(*apportionv1.RemediesStep) (answer, work int64) {
	const most, open = 64, 3
	row := decode.RowBytes(int(a.Dimensions))
	edits := 4 * decode.BytesOf[apportionv1.Edit](1)
	answer = most * (decode.BytesOf[apportionv1.Remedy](1) + edits + 8*3*a.resource() + 4*decode.MaxText)
	_, planning := a.plan(&apportionv1.PlanStep{})
	return answer, open*a.session() + a.Nodes*(64+6*row) + (16+explainedTask)*a.Tasks + a.Queues*4*row + planning
}
