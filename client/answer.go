package client

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// Shares is the answer to a SharesQuestion.
type Shares struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.SharesAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// QueueShare is one queue's account, with quantities by name.
type QueueShare struct {
	Queue string
	// Plugin that divides: proportion or capacity.
	Plugin string
	// Participating is false for a queue without jobs in a flat policy; such a queue has no numbers.
	Participating bool
	Weight        uint32
	// Guarantee … RealCapability are as resolved or computed by the plugin.
	Guarantee, Deserved, Allocated, Request, Inqueue, Elastic, Capability, RealCapability Resources
	// WithMemory is the amount up to which the queue is given first what becomes free. Nil: past usage does not count.
	WithMemory Resources
	// Reserved is the room that stands idle because it is kept for a job of the queue. Nil: none is kept.
	Reserved Resources
	// Share is allocated / deserved in the dominant dimension.
	Share float64
	// Dominant is the name of that dimension, "" if there is none.
	Dominant string
	// Overused queues are not served.
	Overused bool
	// Rank is the position in queue order, 0 first; -1 for a queue without jobs.
	Rank int
	// Kueue is the account by flavor and resource. Nil: the plugin is not kueue.
	Kueue *apportionv1.KueueShare
}

// Queue is a queue's account in the first plugin of the policy that divides among queues. False: there is no such plugin, or no such
// queue.
func (s *Shares) Queue(name string) (QueueShare, bool) {
	for _, plugin := range s.Answer.GetPlugins() {
		for _, share := range plugin.GetQueues() {
			if share.GetName() == name {
				return s.queue(plugin.GetPlugin(), share), true
			}
		}
	}
	return QueueShare{}, false
}

func (s *Shares) queue(plugin string, q *apportionv1.QueueShare) QueueShare {
	read := func(resource *apportionv1.Resource) Resources { return Amounts(s.Basis, resource) }
	share := QueueShare{
		Queue: q.GetName(), Plugin: plugin, Participating: q.GetParticipating(), Weight: q.GetWeight(),
		Guarantee: read(q.GetGuarantee()), Deserved: read(q.GetDeserved()), Allocated: read(q.GetAllocated()),
		Request: read(q.GetRequest()), Inqueue: read(q.GetInqueue()), Elastic: read(q.GetElastic()),
		Capability: read(q.GetCapability()), RealCapability: read(q.GetRealCapability()),
		WithMemory: read(q.GetWithMemory()), Reserved: read(q.GetReserved()),
		Share: q.GetShare(), Rank: -1, Kueue: q.GetKueue(),
	}
	if q.Dominant != nil {
		share.Dominant = text.Names{Dimensions: s.Basis.GetDimensions()}.Dimension(q.GetDominant())
	}
	for _, standing := range s.Answer.GetStandings() {
		if standing.GetQueue() != q.GetQueue() {
			continue
		}
		share.Overused = standing.GetOverused()
		if standing.Rank != nil {
			share.Rank = int(standing.GetRank())
		}
	}
	return share
}

// Verdict is the policy's answer to a question.
type Verdict struct {
	// Permitted is also true if no plugin had an opinion. It is false for a vote that this version does not know.
	Permitted bool
	Vote      apportionv1.Vote
	// Causes contain codes and numbers, Why is their text.
	Causes []*apportionv1.Cause
	Why    string
}

func newVerdict(names text.Names, v *apportionv1.Verdict, by Fallback) Verdict {
	verdict := Verdict{
		Permitted: v.GetVote() == apportionv1.Vote_VOTE_PERMIT, Vote: v.GetVote(),
		Causes: v.GetCauses(), Why: text.Reasons(names, v.GetCauses()),
	}
	if by == FailClosed {
		verdict.Why = noAnswer
	}
	return verdict
}

// noAnswer is the reason in the answers of FailClosed.
const noAnswer = "the service did not answer"

// Admissions is the answer to an EnqueueQuestion.
type Admissions struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.EnqueueAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
	// Jobs in the order of the decisions.
	Jobs []Admission
}

// Admission is the verdict about one job.
type Admission struct {
	// Job is its uid, or namespace/name.
	Job string
	Verdict
	// Kueue has its flavors, and the jobs that it would evict. Nil: the policy is not kueue.
	Kueue *apportionv1.KueueNomination
}

func newAdmissions(in Input, response *apportionv1.CheckEnqueueResponse, from origin) *Admissions {
	names := in.names(response.GetBasis(), from.at)
	a := &Admissions{Basis: response.GetBasis(), Answer: response.GetEnqueue(), Fallback: from.by}
	for _, job := range response.GetEnqueue().GetJobs() {
		a.Jobs = append(a.Jobs, Admission{
			Job: job.GetUid(), Verdict: newVerdict(names, job.GetVerdict(), from.by), Kueue: job.GetKueue(),
		})
	}
	return a
}

// Allowances is the answer to an AllocatableQuestion.
type Allowances struct {
	Basis *apportionv1.Basis
	// Answer is about what the queues may use, PreemptiveAnswer about what they may take from others: nil unless requested.
	Answer           *apportionv1.AllocatableAnswer
	PreemptiveAnswer *apportionv1.PreemptiveAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
	// Allocatable and Preemptive have one entry for each requested task, or one for all of them jointly. Preemptive is empty unless
	// requested.
	Allocatable, Preemptive []Allowance
}

// Permitted reports whether all tasks are allocatable. It returns false for nil.
func (a *Allowances) Permitted() bool {
	return a != nil && !slices.ContainsFunc(a.Allocatable, func(task Allowance) bool { return !task.Permitted })
}

// Why explains why the first task that is not allocatable is refused; "" if there is none.
func (a *Allowances) Why() string {
	if a == nil {
		return ""
	}
	for _, task := range a.Allocatable {
		if !task.Permitted {
			return task.Why
		}
	}
	return ""
}

// Allowance is the verdict about one task, or about all jointly.
type Allowance struct {
	// Task as in the question; "" for all jointly.
	Task string
	Verdict
	// Checks are the comparisons, leaf queue first; Explain only.
	Checks []*apportionv1.Cause
}

func newAllowances(
	in Input, question AllocatableQuestion, response *apportionv1.SimulateResponse, from origin,
) *Allowances {
	names := in.names(response.GetBasis(), from.at)
	read := func(verdicts []*apportionv1.TaskVerdict) []Allowance {
		var list []Allowance
		for i, v := range verdicts {
			a := Allowance{Verdict: newVerdict(names, v.GetVerdict(), from.by), Checks: v.GetChecks()}
			if !question.Jointly && i < len(question.Tasks) {
				a.Task = question.Tasks[i]
			}
			list = append(list, a)
		}
		return list
	}
	allowances := &Allowances{Basis: response.GetBasis(), Fallback: from.by}
	for _, answer := range response.GetAnswers() {
		if a := answer.GetAllocatable(); a != nil {
			allowances.Answer, allowances.Allocatable = a, read(a.GetTasks())
		}
		if a := answer.GetPreemptive(); a != nil {
			allowances.PreemptiveAnswer, allowances.Preemptive = a, read(a.GetTasks())
		}
	}
	return allowances
}

// Victims are the tasks that the claimant may evict.
type Victims struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.VictimsAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
	// Decided is false if no plugin had an opinion; true without victims means that no task may be evicted.
	Decided bool
	// Tasks by uid, or namespace/name, in the order returned by the policy.
	Tasks []string
	// Spared are the candidates that are not evicted, with what protects them.
	Spared []Spared
}

// Spared is a candidate that is not evicted.
type Spared struct {
	Task  string
	Cause *apportionv1.Cause
	Why   string
}

func newVictims(in Input, response *apportionv1.SimulateResponse, from origin) *Victims {
	names := in.names(response.GetBasis(), from.at)
	answer := &apportionv1.VictimsAnswer{}
	for _, a := range response.GetAnswers() {
		answer = cmp.Or(a.GetReclaim(), a.GetPreempt())
	}
	v := &Victims{Basis: response.GetBasis(), Answer: answer, Fallback: from.by, Decided: answer.GetDecided()}
	for _, victim := range answer.GetVictims() {
		v.Tasks = append(v.Tasks, victim.GetUid())
	}
	for _, spared := range answer.GetProtections() {
		v.Spared = append(v.Spared, Spared{Task: spared.GetUid(), Cause: spared, Why: text.Reason(names, spared)})
	}
	return v
}

// Scores is the answer to a NodesQuestion.
type Scores struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.NodesAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
	// Tasks in the order of the question.
	Tasks []TaskScores
}

// TaskScores are the nodes for one task, as requested, or the best first.
type TaskScores struct {
	Task  string
	Nodes []NodeScore
}

// NodeScore is the score of a node for a task.
type NodeScore struct {
	Node  string
	Fits  bool
	Score float64
	// ByPlugin is each plugin's part, if requested.
	ByPlugin map[string]float64
	// Why the node does not fit; Explain only.
	Why string
}

func newScores(in Input, question NodesQuestion, response *apportionv1.SimulateResponse, from origin) *Scores {
	names, nodes := in.names(response.GetBasis(), from.at), in.nodes(from.at)
	scores := &Scores{Basis: response.GetBasis(), Fallback: from.by}
	for _, answer := range response.GetAnswers() {
		scores.Answer = answer.GetNodes()
	}
	for i, row := range scores.Answer.GetTasks() {
		why := make(map[uint32]string, len(row.GetCauses()))
		for _, unfit := range row.GetCauses() {
			why[unfit.GetNode()] = text.Reason(names, unfit)
		}
		var task TaskScores
		if i < len(question.Tasks) {
			task.Task = question.Tasks[i]
		}
		for k, index := range row.GetNodes() {
			if int(index) >= len(nodes) || k >= len(row.GetFits()) || k >= len(row.GetScores()) {
				continue
			}
			node := NodeScore{Node: nodes[index], Fits: row.GetFits()[k], Score: row.GetScores()[k], Why: why[index]}
			for _, part := range row.GetPlugins() {
				if node.ByPlugin == nil {
					node.ByPlugin = make(map[string]float64, len(row.GetPlugins()))
				}
				if k < len(part.GetScores()) {
					node.ByPlugin[part.GetPlugin()] = part.GetScores()[k]
				}
			}
			task.Nodes = append(task.Nodes, node)
		}
		scores.Tasks = append(scores.Tasks, task)
	}
	return scores
}

// Explanations explain why jobs wait. The answer contains complete sentences. If few jobs are named in the question, Explanation.forecast
// says of those that wait for running jobs or reservations to end when they could start at the earliest, and on which nodes.
type Explanations struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.ExplainAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// Plan contains the placement of the tasks of a job, and the tasks that must be evicted for it. The answer contains a complete text.
type Plan struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.PlanAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// Remedies contain the smallest changes that would make a job run. The answer contains complete sentences.
type Remedies struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.RemediesAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// Found reports whether there is a remedy, or none is needed; see Judged.
func (r *Remedies) Found() bool {
	switch r.Answer.GetOutcome() {
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_FOUND, apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW,
		apportionv1.RemedyOutcome_REMEDY_OUTCOME_WAITS_FOR_NOTHING:
		return true
	default:
		return false
	}
}

// Judged reports whether all is evaluated on which the placement of the job depends.
func (r *Remedies) Judged() bool { return len(r.Answer.GetUnjudgedConstraints()) == 0 }

// Judged reports whether all is evaluated on which the placement of the job depends.
func (p *Plan) Judged() bool { return len(p.Answer.GetUnjudgedConstraints()) == 0 }

// Made reports whether there is a plan; see Judged.
func (p *Plan) Made() bool { return p.Answer.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_MADE }

// Odds say when a job starts, by chance. The times of the answer are in seconds after that of the snapshot, and absent if they are not
// before the horizon. It contains complete sentences.
type Odds struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.ForecastAnswer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// Simulation contains the answers to steps.
type Simulation struct {
	Basis *apportionv1.Basis
	// Answers holds one answer for each step, at the step's position.
	Answers []*apportionv1.Answer
	// Fallback that answered instead of the service; "": none.
	Fallback Fallback
}

// Err returns the error of the step at a position, nil if it succeeded. A step that the response does not answer has an error.
func (s *Simulation) Err(step int) error {
	if step < 0 || step >= len(s.Answers) {
		return fmt.Errorf("the response has no answer to step %d: it has %d", step, len(s.Answers))
	}
	if fault := s.Answers[step].GetError(); fault != nil {
		return status.FromProto(fault).Err()
	}
	return nil
}

// origin is the source of an answer.
type origin struct {
	// by is the fallback that answered; "": the service did.
	by Fallback
	// at describes the State of the input as it was held, nil for other inputs.
	at *held
}
