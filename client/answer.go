package client

import (
	"slices"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Shares is who deserves what.
type Shares struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.SharesAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
}

// QueueShare is one queue's account, quantities by name.
type QueueShare struct {
	Queue string
	// Plugin divides: proportion or capacity.
	Plugin string
	// Participating is false for a queue without jobs in a flat policy; it has no numbers then.
	Participating bool
	Weight        uint32
	// Guarantee … RealCapability are as the plugin resolved or computed them.
	Guarantee, Deserved, Allocated, Request, Inqueue, Elastic, Capability, RealCapability Resources
	// Share is allocated / deserved in the dominant dimension.
	Share float64
	// Dominant is the name of that dimension, "" if none decides.
	Dominant string
	// Overused queues are not served.
	Overused bool
	// Rank is the position in queue order, 0 first; -1 for a queue without jobs.
	Rank int
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
		Share: q.GetShare(), Rank: -1,
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

// Verdict is what the policy says to a question.
type Verdict struct {
	// Permitted also if no plugin had an opinion.
	Permitted bool
	Vote      apportionv1.Vote
	// Reasons hold codes and numbers, Why says them in words.
	Reasons []*apportionv1.Reason
	Why     string
}

func newVerdict(names text.Names, v *apportionv1.Verdict, by Fallback) Verdict {
	verdict := Verdict{
		Permitted: v.GetVote() != apportionv1.Vote_VOTE_REJECT, Vote: v.GetVote(),
		Reasons: v.GetReasons(), Why: text.Reasons(names, v.GetReasons()),
	}
	if by == FailClosed {
		verdict.Why = noAnswer
	}
	return verdict
}

// noAnswer is why FailClosed says no.
const noAnswer = "the service did not answer"

// Admissions is which jobs may enter.
type Admissions struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.EnqueueAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
	// Jobs in the order of deciding.
	Jobs []Admission
}

// Admission is the verdict about one job.
type Admission struct {
	// Job is its uid, or namespace/name.
	Job string
	Verdict
}

func newAdmissions(in Input, response *apportionv1.CheckEnqueueResponse, from origin) *Admissions {
	names := in.names(response.GetBasis(), from.at)
	a := &Admissions{Basis: response.GetBasis(), Answer: response.GetEnqueue(), Fallback: from.by}
	for _, job := range response.GetEnqueue().GetJobs() {
		a.Jobs = append(a.Jobs, Admission{Job: job.GetUid(), Verdict: newVerdict(names, job.GetVerdict(), from.by)})
	}
	return a
}

// Allowances is which tasks' queues may use that much more.
type Allowances struct {
	Basis    *apportionv1.Basis
	Response *apportionv1.CheckAllocatableResponse
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
	// Allocatable and Preemptive have one entry for each task asked, or one for all of them jointly. Preemptive only if asked.
	Allocatable, Preemptive []Allowance
}

// Permitted says whether all tasks are allocatable. Nil permits nothing.
func (a *Allowances) Permitted() bool {
	return a != nil && !slices.ContainsFunc(a.Allocatable, func(task Allowance) bool { return !task.Permitted })
}

// Why says in words what keeps the first task from being allocatable that is not; "" if there is none.
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
	// Task as it was asked; "" for all jointly.
	Task string
	Verdict
	// Checks are the comparisons made, leaf queue first; Explain only.
	Checks []*apportionv1.AccountCheck
}

func newAllowances(
	in Input, question AllocatableQuestion, response *apportionv1.CheckAllocatableResponse, from origin,
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
	return &Allowances{
		Basis: response.GetBasis(), Response: response, Fallback: from.by,
		Allocatable: read(response.GetAllocatable().GetTasks()), Preemptive: read(response.GetPreemptive().GetTasks()),
	}
}

// Victims are the tasks that the claimant may evict.
type Victims struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.VictimsAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
	// Decided is false if no plugin had an opinion; true without victims means that no task is to be evicted.
	Decided bool
	// Tasks by uid, or namespace/name, in the order in which the policy named them.
	Tasks []string
	// Spared are the candidates left alone, and why.
	Spared []Spared
}

// Spared is a candidate that was left alone.
type Spared struct {
	Task    string
	Reasons []*apportionv1.Reason
	Why     string
}

func newVictims(in Input, response *apportionv1.SelectVictimsResponse, from origin) *Victims {
	names := in.names(response.GetBasis(), from.at)
	answer := response.GetVictims()
	v := &Victims{Basis: response.GetBasis(), Answer: answer, Fallback: from.by, Decided: answer.GetDecided()}
	for _, victim := range answer.GetVictims() {
		v.Tasks = append(v.Tasks, victim.GetUid())
	}
	for _, spared := range answer.GetSpared() {
		v.Spared = append(v.Spared, Spared{
			Task: spared.GetUid(), Reasons: spared.GetReasons(), Why: text.Reasons(names, spared.GetReasons()),
		})
	}
	return v
}

// Scores is where tasks fit.
type Scores struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.NodesAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
	// Tasks in the order asked.
	Tasks []TaskScores
}

// TaskScores are the nodes for one task, as asked, or the best first.
type TaskScores struct {
	Task  string
	Nodes []NodeScore
}

// NodeScore is how good a node is for a task.
type NodeScore struct {
	Node  string
	Fits  bool
	Score float64
	// ByPlugin is each plugin's part, if asked.
	ByPlugin map[string]float64
	// Why the node does not fit; Explain only.
	Why string
}

func newScores(in Input, question NodesQuestion, response *apportionv1.ScoreNodesResponse, from origin) *Scores {
	names, nodes := in.names(response.GetBasis(), from.at), in.nodes(from.at)
	scores := &Scores{Basis: response.GetBasis(), Answer: response.GetNodes(), Fallback: from.by}
	for i, row := range response.GetNodes().GetTasks() {
		why := make(map[uint32]string, len(row.GetUnfit()))
		for _, unfit := range row.GetUnfit() {
			why[unfit.GetNode()] = text.Reason(names, unfit.GetReason())
		}
		var task TaskScores
		if i < len(question.Tasks) {
			task.Task = question.Tasks[i]
		}
		for k, index := range row.GetNode() {
			if int(index) >= len(nodes) || k >= len(row.GetFits()) || k >= len(row.GetScore()) {
				continue
			}
			node := NodeScore{Node: nodes[index], Fits: row.GetFits()[k], Score: row.GetScore()[k], Why: why[index]}
			for _, part := range row.GetByPlugin() {
				if node.ByPlugin == nil {
					node.ByPlugin = make(map[string]float64, len(row.GetByPlugin()))
				}
				if k < len(part.GetScore()) {
					node.ByPlugin[part.GetPlugin()] = part.GetScore()[k]
				}
			}
			task.Nodes = append(task.Nodes, node)
		}
		scores.Tasks = append(scores.Tasks, task)
	}
	return scores
}

// Explanations say why jobs wait. The answer holds finished sentences.
type Explanations struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.ExplainAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
}

// Plan says where the tasks of a job go, and which tasks must be evicted for that. The answer holds a finished text.
type Plan struct {
	Basis  *apportionv1.Basis
	Answer *apportionv1.PlanAnswer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
}

// Made reports whether there is a plan.
func (p *Plan) Made() bool { return p.Answer.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_MADE }

// Simulation is the answers to steps.
type Simulation struct {
	Basis *apportionv1.Basis
	// Answers, one for each step, at its position.
	Answers []*apportionv1.Answer
	// Fallback that answered in place of the service; "": none did.
	Fallback Fallback
}

// Err is the error of the step at a position, nil if it was answered.
func (s *Simulation) Err(step int) error {
	if fault := s.Answers[step].GetError(); fault != nil {
		return status.FromProto(fault).Err()
	}
	return nil
}
