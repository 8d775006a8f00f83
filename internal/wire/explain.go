package wire

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

const (
	// maxNamed bounds the jobs and tasks that a finding names.
	maxNamed = 10
	// maxConditions bounds the reports of its own scheduler that an explanation quotes.
	maxConditions = 4
)

// evictedTasks is the maximum number of tasks that an explanation removes to find out whether the others leave room.
const evictedTasks = 10_000

var explainQuestion = question[*apportionv1.ExplainStep]{
	of:     (*apportionv1.Step).GetExplain,
	answer: (*Session).explainJobs,
	need:   exceptNodes,
	memory: (*asking).explanations,
	permit: func(s *Session, q *apportionv1.ExplainStep) *decode.Fault {
		return cmp.Or(s.permitJobs(q.GetJobs(), "jobs", true), s.permitQueues(q.GetFilter().GetQueues(), "filter.queues"),
			s.permitJobs(q.GetFilter().GetJobs(), "filter.jobs", false))
	},
	visible: map[string]string{
		"ExplainAnswer":      "jobs groups node_count schedulable_node_count text left_outs other_jobs kinds queues waiting_count",
		"PendingGroup":       "verdict check cause jobs:aJob text free",
		"PendingKind":        "verdict check code groups job_count task_count queues text",
		"PendingQueue":       "queue:aQueue job_count blocked_count task_count kind",
		"LeftOutExplanation": "left_out text",
		"LeftOut":            "cause namespace name queue job scheduler kind detail",
		"Explanation": "job uid name queue verdict blocking findings unjudged_constraints queue_rank phase ready_tasks min_available " +
			"waiting_tasks gated_tasks needed_tasks conditions text kueue",
		"Finding":               "check outcome causes task:aTask amount first_job_count first_jobs:aJob text nodes",
		"KueueNomination":       "mode borrows pod_sets cause partial victims inactive withheld admitted unjudged_parts text",
		"KueuePodSetAssignment": "name count mode flavors attempts lacks",
		"KueueAssignedFlavor":   "resource flavor mode amount tried",
		"KueueLack":             "kind flavor resource used requested limit detail",
		"KueueVictim":           "job name queue:aQueue reason",
	},
}

func (s *Session) explainJobs(q *apportionv1.ExplainStep) (*apportionv1.Answer, error) {
	v, named := s.engine.View(), q.GetJobs() != nil
	answer := &apportionv1.ExplainAnswer{NodeCount: uint32(len(v.NodeOrder)), SchedulableNodeCount: schedulable(v)}
	jobs, out, filter, err := s.askedAbout(q, answer)
	if err != nil {
		return nil, err
	}
	if err := s.out.room(len(jobs), "jobs"); err != nil && !q.GetGroupsOnly() {
		return nil, err
	}
	names := s.names()
	var groups pendingGroups
	each := func(e *explain.Explanation) error {
		if !named && !filter.wants(e) {
			return nil
		}
		explained := s.explanation(names, e)
		answer.Jobs = append(answer.Jobs, explained)
		if !named {
			groups.add(explained)
		}
		return s.out.check("jobs")
	}
	state := s.kueueState()
	switch {
	case state != nil:
		err = s.explainKueue(state, names, jobs, func(e *apportionv1.Explanation) {
			if !named && filter != nil && !filter.matches(blockingCheck(e), -1) {
				return
			}
			if !q.GetGroupsOnly() {
				answer.Jobs = append(answer.Jobs, e)
			}
			if !named {
				groups.add(e)
			}
		})
	case q.GetGroupsOnly():
		err = explain.Causes(s.engine.Session, jobs, func(e *explain.Explanation) error {
			if !filter.wants(e) {
				return nil
			}
			groups.add(s.causeOf(e))
			return s.out.check("groups")
		})
	default:
		// Who could be evicted is a question about jobs of others.
		err = explain.Jobs(s.engine.Session, jobs, named && s.audience == nil, each)
	}
	if err != nil {
		return nil, err
	}
	if err := s.addLeftOut(answer, out); err != nil {
		return nil, err
	}
	if named {
		answer.Text = text.Named(answer)
	} else {
		s.count(answer, &groups, names)
	}
	s.out.left -= len(answer.Text) + len(groups.list)*(messageBytes+reasonBytes+decode.MaxText) + len(jobs)*numberBytes
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Explain{Explain: answer}}, s.out.check("jobs")
}

// addLeftOut explains jobs and pods that the scheduler does not consider.
func (s *Session) addLeftOut(answer *apportionv1.ExplainAnswer, out []*model.LeftOut) error {
	for _, l := range out {
		answer.LeftOuts = append(answer.LeftOuts, s.leftOutExplanation(l))
		if err := s.out.check("jobs"); err != nil {
			return err
		}
	}
	return nil
}

// schedulable returns the number of nodes that accept new tasks.
func schedulable(v *policy.View) uint32 {
	count := uint32(0)
	for _, n := range v.NodeOrder {
		if v.Nodes[n].Unschedulable == nil {
			count++
		}
	}
	return count
}

// askedAbout returns the jobs that a question is about, what is left out of them, and the filter of the waiting ones. It counts in the
// answer how many wait.
func (s *Session) askedAbout(q *apportionv1.ExplainStep, answer *apportionv1.ExplainAnswer) (
	jobs []model.JobID, out []*model.LeftOut, filter *pendingFilter, err error,
) {
	var faults model.Error
	v, named := s.engine.View(), q.GetJobs() != nil
	filter = s.pendingFilter(q.GetFilter(), &faults)
	if named {
		jobs, out = s.selectExplained(q.GetJobs(), &faults)
	} else {
		waiting := s.waiting()
		jobs, out = s.audience.jobs(v, waiting), filter.leftOut(s.audience.leftOut(v))
		answer.OtherJobs, answer.WaitingCount = uint32(len(waiting)-len(jobs)), uint32(len(jobs))
		jobs = filter.jobs(v, jobs)
	}
	if named && q.GetGroupsOnly() {
		faults.Add("groups_only", "groups and named jobs exclude each other")
	}
	if named && filter != nil {
		faults.Add("filter", "a filter and named jobs exclude each other")
	}
	return jobs, out, filter, faults.OrNil()
}

// explanation encodes why one job waits, and puts it into words.
func (s *Session) explanation(names text.Names, e *explain.Explanation) *apportionv1.Explanation {
	v := s.engine.View()
	job, account := v.Jobs.At(e.Job), v.Account(e.Job)
	out := &apportionv1.Explanation{
		Job: uint32(e.Job), Uid: job.UID, Name: JobName(job), Queue: uint32(job.Queue),
		Verdict: apportionv1.PendingVerdict(e.Verdict), Blocking: s.out.optional(e.Blocking), QueueRank: s.out.optional(e.Rank),
		Phase: decode.WirePhase(v.Phase(e.Job)), ReadyTasks: uint32(account.Ready()), MinAvailable: uint32(job.MinAvailable),
		WaitingTasks: uint32(e.Waiting), GatedTasks: uint32(e.Gated), NeededTasks: uint32(e.Needed),
		UnjudgedConstraints: decode.WireConstraints(e.Unjudged), Conditions: s.conditions(e.Job),
	}
	for i := range e.Findings {
		out.Findings = append(out.Findings, s.finding(e, &e.Findings[i]))
	}
	if e.Verdict != explain.Complete {
		out.Memory = s.memoryStanding(e.Job)
		out.Reservation = s.reservationFor(e)
	}
	if e.Forecast != nil {
		out.Forecast = s.forecast(e.Forecast)
	}
	text.Explain(names, out)
	for _, finding := range out.GetFindings() {
		s.out.left -= len(finding.GetText())
	}
	s.out.left -= len(out.GetForecast().GetText())
	s.out.left -= 4*messageBytes + len(out.Uid) + len(out.Name) + len(out.Text)
	return out
}

// memoryStanding tells where the queue of a job has used more than its part; nil if nowhere. Callers who may not see all queues are told
// nothing of their usage.
func (s *Session) memoryStanding(j model.JobID) *apportionv1.MemoryStanding {
	v := s.engine.View()
	if v.Memory == nil || s.audience != nil {
		return nil
	}
	dims := v.Account(j).Pending.Positive()
	for _, d := range s.engine.Dividers() {
		r, ok := d.State.(policy.Rememberer)
		if !ok {
			continue
		}
		standing, ok := r.Standing(v.Jobs.At(j).Queue, dims)
		if !ok {
			return nil
		}
		s.out.left -= messageBytes
		return &apportionv1.MemoryStanding{
			Queue: uint32(standing.Queue), Dimension: s.out.dimension(standing.Dimension), Used: standing.Used, Part: standing.Part,
			FirstQueues: indices(&s.out, standing.First[:min(len(standing.First), maxNamed)]), Until: standing.Until,
		}
	}
	return nil
}

// reservationFor returns the reservation that a job holds, or that keeps it from starting; nil if there is none that the caller may see.
func (s *Session) reservationFor(e *explain.Explanation) *apportionv1.Reservation {
	holder := e.Job
	if e.Blocking >= 0 {
		for _, reason := range e.Findings[e.Blocking].Reasons {
			if j, ok := s.engine.View().Job(reason.Detail); ok && reason.Code == policy.Reserved {
				holder = j
				break
			}
		}
	}
	if kept, ok := s.engine.ReservationOf(holder); ok {
		return derivation{s}.Reservation(kept)
	}
	return nil
}

// causeOf encodes what of an explanation its group depends on.
func (s *Session) causeOf(e *explain.Explanation) *apportionv1.Explanation {
	out := &apportionv1.Explanation{
		Job: uint32(e.Job), Queue: uint32(s.engine.View().Jobs.At(e.Job).Queue), WaitingTasks: uint32(e.Waiting),
		Verdict: apportionv1.PendingVerdict(e.Verdict), UnjudgedConstraints: decode.WireConstraints(e.Unjudged),
	}
	if e.Blocking < 0 {
		for i := range e.Findings {
			if f := &e.Findings[i]; f.Outcome == judge.NotKnown {
				out.Findings = append(out.Findings, &apportionv1.Finding{
					Check: apportionv1.CheckKind(f.Check), Causes: s.out.reasonList(f.Reasons),
				})
			}
		}
		return out
	}
	f := &e.Findings[e.Blocking]
	out.Blocking = new(uint32(0))
	out.Findings = []*apportionv1.Finding{{
		Check: apportionv1.CheckKind(f.Check), Causes: s.out.reasonList(f.Reasons[:min(len(f.Reasons), 1)]),
		Nodes: s.out.nodeCounts(f.NodeCounts[:min(len(f.NodeCounts), 1)]),
	}}
	return out
}

func (s *Session) finding(e *explain.Explanation, f *judge.Finding) *apportionv1.Finding {
	out := &apportionv1.Finding{
		Check: apportionv1.CheckKind(f.Check), Outcome: apportionv1.CheckOutcome(f.Outcome), Causes: s.out.counted(f.Reasons, f.Counts),
		Task: s.out.optional(int(f.Task)), Amount: s.out.resource(f.Amount), FirstJobCount: uint32(len(f.Jobs)),
		FirstJobs: indices(&s.out, f.Jobs[:min(len(f.Jobs), maxNamed)]), Nodes: s.out.nodeCounts(f.NodeCounts),
	}
	if s.audience != nil {
		for _, reason := range out.GetCauses() {
			if reason.GetCode() == apportionv1.CauseCode_CAUSE_CODE_BEING_RELEASED {
				// It names a node.
				reason.Detail = ""
			}
		}
	}
	s.out.left -= 2 * messageBytes
	var plan *plan.Plan
	if f.Check == judge.CheckEviction {
		plan = e.Plan
	}
	if plan != nil {
		out.Miss = s.planMiss(plan)
	}
	out.Evictable = s.evictable(f, plan)
	return out
}

// evictable encodes who must be evicted, or could be; nil if that is not stated, or if no task could be placed.
func (s *Session) evictable(f *judge.Finding, answer *plan.Plan) *apportionv1.Evictable {
	planned := answer != nil && answer.Miss == nil
	if len(f.Tasks) == 0 && !planned {
		return nil
	}
	out := &apportionv1.Evictable{
		Count: uint32(len(f.Tasks)), Tasks: indices(&s.out, f.Tasks[:min(len(f.Tasks), maxNamed)]), Enough: f.Enough, OwnQueue: f.Preempt,
		Planned: planned,
	}
	if planned {
		out.Least = answer.Least
		for i := range answer.Victims {
			if answer.Victims[i].Returns != plan.NoReturn {
				out.Returning++
			}
		}
	}
	v := s.engine.View()
	var queues []model.QueueID
	for _, t := range f.Tasks {
		if q := v.QueueOf(t); len(queues) < maxNamed && !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	out.Queues = indices(&s.out, queues)
	s.out.left -= messageBytes
	return out
}

// forecast encodes when a job could start, without its text.
func (s *Session) forecast(f *forecast.Forecast) *apportionv1.Forecast {
	few := func(jobs []model.JobID) []uint32 { return indices(&s.out, jobs[:min(len(jobs), maxNamed)]) }
	out := &apportionv1.Forecast{
		Outcome: apportionv1.ForecastOutcome(f.Outcome), Time: f.At, EndCount: uint32(len(f.Ends)),
		Minimal: f.Minimal, Earliest: f.Earliest,
		UnknownCount: uint32(len(f.Unknown)), UnknownJobs: few(f.Unknown),
		OverdueCount: uint32(len(f.Overdue)), OverdueJobs: few(f.Overdue),
		AheadCount: uint32(len(f.Ahead)), AheadJobs: few(f.Ahead), CutShort: f.CutShort, ReleasedNodes: uint32(f.Released),
		Unkept: f.Unkept,
	}
	for _, j := range f.Ends[:min(len(f.Ends), maxNamed)] {
		job := s.engine.View().Jobs.At(j)
		out.Ends = append(out.Ends, &apportionv1.ExpectedEnd{Job: uint32(j), Time: job.ExpectedEnd, Deadline: job.EndIsDeadline})
	}
	if s.audience == nil {
		out.Tasks, out.Nodes = indices(&s.out, f.Tasks), indices(&s.out, f.Nodes)
	}
	s.out.left -= (2 + len(out.GetEnds())) * messageBytes
	return out
}

// conditions lists what its own scheduler last reported about a job and its pending tasks, each text once.
func (s *Session) conditions(j model.JobID) []string {
	v := s.engine.View()
	job := v.Jobs.At(j)
	var list []string
	add := func(condition string) {
		if condition != "" && len(list) < maxConditions && !slices.Contains(list, condition) {
			condition = decode.Cut(condition, 4*decode.MaxText)
			list = append(list, condition)
			s.out.left -= messageBytes + len(condition)
		}
	}
	add(job.Condition)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if detail := v.Tasks.At(t).Detail; detail != model.None && v.Status(t) == model.Pending {
			add(v.Details.At(detail).Condition)
		}
	}
	return list
}

// explanations returns the memory for explaining why jobs wait.
func (a *asking) explanations(q *apportionv1.ExplainStep) (answer, work int64) {
	n := a.jobs(q.GetJobs())
	work = explainedTask*a.Tasks + a.session() + a.nomination() + judge.OrderBytes(a.Nodes, a.Tasks)
	if q.GetJobs() != nil {
		// Each job asks twice which tasks could be evicted: in other queues and in its own.
		_, evicting := a.victims(&apportionv1.ReclaimStep{})
		work += 2*evicting + min(a.Tasks, evictedTasks)*(1<<10+8*decode.RowBytes(int(a.Dimensions)))
		if n <= explain.PlannedJobs {
			// A plan is searched, and a forecast opens a session on a changed model.
			_, planning := a.plan(&apportionv1.PlanStep{})
			work += planning + a.session()
		}
	}
	each := int64(explainedJob)
	if a.Flavors > 0 {
		each = explainedWorkload
	}
	if q.GetGroupsOnly() {
		each /= 4
	}
	return n * each, work
}
