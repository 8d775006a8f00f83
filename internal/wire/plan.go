package wire

import (
	"math"

	"github.com/apportion/apportion/engine/cycle/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

// plannedTask is the memory of a plan for each task that it may place or evict, beside the memory for moving it; plannedNode is the memory
// for each node.
const plannedTask, plannedNode = 256, 512

var planQuestion = question[*apportionv1.PlanStep]{
	of:     (*apportionv1.Step).GetPlan,
	answer: (*Session).planFor,
	need:   exceptNodes,
	work:   func(s *Session, _ *apportionv1.PlanStep) error { return plan.Spend(s.engine) },
	memory: (*asking).plan,
}

func (s *Session) planFor(q *apportionv1.PlanStep) (*apportionv1.Answer, error) {
	question, err := s.planQuestion(q)
	if err != nil {
		return nil, err
	}
	if s.byKueue(question.Job) != nil {
		return s.kueuePlan(question)
	}
	plan, err := volcano.Plan(s.engine, question)
	if err != nil {
		return nil, err
	}
	answer, err := s.planAnswer(plan)
	if err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Plan{Plan: answer}}, nil
}

// planQuestion reads which tasks are to be placed, and by which means.
func (s *Session) planQuestion(q *apportionv1.PlanStep) (*plan.Question, error) {
	var faults model.Error
	v := s.engine.View()
	question := &plan.Question{Means: plan.ByAny, MaxVictims: int(min(q.GetMaxVictims(), math.MaxInt32))}
	jobs, tasks := s.jobsNamed(q.GetJob(), "job", &faults), s.selectTasks(q.GetTasks(), "tasks", &faults)
	switch means := q.GetMeans(); {
	case means > apportionv1.PlanMeans_PLAN_MEANS_ANY, means < 0:
		faults.Add("means", "no means %d", means)
	case means != apportionv1.PlanMeans_PLAN_MEANS_UNSPECIFIED:
		question.Means = plan.Means(means)
	}
	switch {
	case faults.Total > 0:
	case (q.GetJob() == nil) == (q.GetTasks() == nil):
		faults.Add("job", "name a job or tasks")
	case q.GetJob() != nil && len(jobs) != 1:
		faults.Add("job", "exactly one job is to be placed, not %d", len(jobs))
	case q.GetJob() != nil:
		question.Job = jobs[0]
	default:
		question.Tasks = tasks
		s.checkClaimants("claimant", tasks, true, &faults)
		for i, t := range tasks {
			if v.Status(t) != model.Pending {
				faults.Add(indexed("tasks", i), "task %d is not pending", t)
			}
		}
		if len(tasks) > 0 {
			question.Job = v.Tasks.At(tasks[0]).Job
		}
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return question, s.out.room(len(question.Tasks), "tasks")
}

func (s *Session) planAnswer(p *plan.Plan) (*apportionv1.PlanAnswer, error) {
	job := s.engine.View().Jobs.At(p.Job)
	answer := &apportionv1.PlanAnswer{
		Job: uint32(p.Job), Outcome: apportionv1.PlanOutcome(p.Outcome), Least: p.Least, CutShort: p.CutShort, Enters: p.Enters,
		Ready: p.Ready, Looked: uint32(p.Looked), Miss: s.planMiss(p), UnjudgedConstraints: decode.WireConstraints(p.Unjudged),
	}
	if !s.omitNames {
		answer.Uid = job.UID
	}
	s.out.left -= 2*messageBytes + len(answer.GetUid())
	for i, n := range p.Nodes {
		placed := &apportionv1.PlannedPlacement{
			Task: uint32(p.Tasks[i]), Uid: s.taskName(p.Tasks[i]), Node: uint32(n), NodeName: s.nodeName(n),
			AfterRelease: p.Released[i],
		}
		answer.Placements = append(answer.Placements, placed)
		if s.out.left -= messageBytes; s.out.left < 0 {
			return nil, s.out.tooLarge("tasks")
		}
	}
	if err := s.planVictims(answer, p); err != nil {
		return nil, err
	}
	if p.Fall != nil {
		for i := range p.Fall {
			answer.Falls, answer.Rises = append(answer.Falls, s.out.fraction(p.Fall[i])), append(answer.Rises, s.out.fraction(p.Rise[i]))
		}
	}
	answer.ByChance = p.ByChance(s.engine.View())
	answer.Text = text.Plan(s.names(), answer)
	s.out.left -= len(answer.GetText())
	return answer, s.out.check("tasks")
}

func (s *Session) planVictims(answer *apportionv1.PlanAnswer, p *plan.Plan) error {
	v := s.engine.View()
	if len(p.Victims) == 0 {
		return nil
	}
	freed := resource.NewRow(v.Dims.Len())
	for i := range p.Victims {
		e := &p.Victims[i]
		freed.Add(v.Request(e.Task))
		answer.Victims = append(answer.Victims, &apportionv1.PlannedEviction{
			Task: uint32(e.Task), Uid: s.taskName(e.Task), Queue: uint32(v.QueueOf(e.Task)), Node: s.out.optional(int(e.Node)),
			NodeName: s.nodeName(e.Node), Freed: s.out.resource(v.Request(e.Task)), Claimant: uint32(e.For), OwnQueue: e.Own,
			ForLimit: e.Limit, Tier: uint32(max(e.Tier, 0)), Plugins: e.Plugins, Returns: apportionv1.VictimReturn(e.Returns),
		})
		if s.out.left -= 2*messageBytes + len(e.Plugins)*messageBytes; s.out.left < 0 {
			return s.out.tooLarge("tasks")
		}
	}
	answer.Freed = s.out.resource(freed)
	return nil
}

func (s *Session) planMiss(p *plan.Plan) *apportionv1.PlanMiss {
	m := p.Miss
	if m == nil {
		return nil
	}
	out := &apportionv1.PlanMiss{
		Check: apportionv1.CheckKind(m.Check), Causes: s.out.reasonList(m.Reasons), Placed: uint32(m.Placed), Tasks: uint32(len(p.Tasks)),
		Task: s.out.optional(int(m.Task)), Node: s.out.optional(int(m.Node)), Protections: s.out.counted(m.Protected, m.Counts),
		Victims: uint32(m.Victims), Nodes: s.out.nodeCounts(m.NodeCounts),
	}
	if m.Short.Has != 0 {
		out.Missing = s.out.resource(m.Short)
	}
	s.out.left -= messageBytes
	return out
}

// nodeName is the name of a node, unless names are left out or it is none.
func (s *Session) nodeName(n model.NodeID) string {
	if s.omitNames || n == model.None {
		return ""
	}
	name := s.engine.View().Nodes[n].Name
	s.out.left -= len(name)
	return name
}

// plan returns the memory of a plan: the candidates by node and one offer of each node, the choice among all candidates in other queues and
// in the job's own, and what is moved to try the plan. The tasks of a job that is named are not known here, nor how many victims they need.
func (a *asking) plan(q *apportionv1.PlanStep) (answer, work int64) {
	tasks := a.Tasks
	if n := int64(selected(q.GetTasks(), 0)); n > 0 {
		tasks = n
	}
	victims := a.Tasks
	if most := int64(q.GetMaxVictims()); most > 0 {
		victims = min(victims, most)
	}
	answer = explainedJob + tasks*(decode.BytesOf[apportionv1.PlannedPlacement](1)+64) +
		victims*(decode.BytesOf[apportionv1.PlannedEviction](1)+64+16*a.Voters+a.resource())
	_, evicting := a.victims(&apportionv1.ReclaimStep{})
	row := decode.RowBytes(int(a.Dimensions))
	work = a.session() + a.nomination() + 2*evicting + a.Tasks*(plannedTask+4*row) + tasks*(plannedTask+4*row) + a.Nodes*(plannedNode+2*row)
	return answer, work
}
