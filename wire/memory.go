package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	// answerFactor is what an answer takes in memory at most for each byte of its estimated size: messages of a few numbers take most.
	answerFactor = 6
	// explainFactor is the same for derivations, which are lists of numbers.
	explainFactor = 4
	// stepBytes is what the answer to a step takes that says next to nothing.
	stepBytes = 256
	// candidateBytes is what the tables take that plugins keep for each candidate while they choose victims.
	candidateBytes = 768
	// evictedTasks is how many tasks an explanation takes away at most to see whether the rest leaves room.
	evictedTasks = 10_000
	// changeBytes is what a change of one task leaves to be undone.
	changeBytes = 8 << 10
	// explainedJob is what the explanation of a job takes, and what finding it out does; each task costs explainedTask beside that.
	explainedJob, explainedTask = 4 << 10, 96
	// plannedTask is what a plan takes for each task that it may place or evict, beside what moving it takes, plannedNode for each node.
	plannedTask, plannedNode = 256, 512
)

// StepMemory estimates, in advance, the memory for answering steps: all answers, plus the work on the most expensive step. Answers are
// limited by AnswerBytes and ExplainBytes, and the memory for rollbacks by UndoBytes. It also returns the extent after the steps.
func StepMemory(steps []*apportionv1.Step, e Extent, o Options) (int64, Extent) {
	o.complete()
	a := asking{Extent: e, explain: explainFactor * int64(o.ExplainBytes)}
	var answers, work, undo, added int64
	marked, reopened := false, false
	for _, step := range steps {
		answer, working := a.step(step)
		answers, work = answers+answer, max(work, working)
		switch q := step.GetStep().(type) {
		case *apportionv1.Step_Mark:
			marked = true
			undo += markBytes
		case *apportionv1.Step_AddJob, *apportionv1.Step_RemoveJob, *apportionv1.Step_Change:
			reopened = true
			size := sizeOfStep(step)
			size.Dimensions = a.add(step.GetChange().GetChange().GetDimensions())
			a.Extent = a.With(&size)
			added += size.Memory()
			undo += a.session() + size.Memory()
		case *apportionv1.Step_SetStatus:
			undo += a.moves(q.SetStatus.GetTasks())
		case *apportionv1.Step_Allocate:
			undo += a.moves(q.Allocate.GetTasks())
		case *apportionv1.Step_Deallocate:
			undo += a.moves(q.Deallocate.GetTasks())
		}
	}
	bytes := stepBytes*int64(len(steps)) + min(answers, answerFactor*int64(o.AnswerBytes)) + work + added
	if reopened {
		bytes += a.session()
	}
	if marked {
		bytes += min(undo, o.UndoBytes)
	}
	return bytes, a.Extent
}

// sizeOfStep counts what a step adds to the model, dimensions apart.
func sizeOfStep(step *apportionv1.Step) Size {
	bytes := 2 * int64(proto.Size(step))
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_AddJob:
		return SizeOf(&apportionv1.Snapshot{Jobs: []*apportionv1.Job{q.AddJob.GetJob()}}, bytes)
	case *apportionv1.Step_Change:
		c := q.Change.GetChange()
		return SizeOf(&apportionv1.Snapshot{
			Nodes: c.GetNodes(), NodeSets: c.GetNodeSets(), Queues: c.GetQueues(), Jobs: c.GetJobs(),
		}, bytes)
	}
	return Size{Bytes: bytes}
}

// Extent returns the extent of the session's model under its policy.
func (s *Session) Extent() Extent { return ExtentOf(s.engine.View().Model, s.policy()) }

// StepMemory estimates, in advance, the memory for answering steps in this session, when its model has this extent. It also returns the
// extent after the steps.
func (s *Session) StepMemory(steps []*apportionv1.Step, e Extent) (int64, Extent) {
	return StepMemory(steps, e, Options{AnswerBytes: s.maximum, ExplainBytes: s.explain, UndoBytes: s.undo.maximum})
}

// asking estimates what steps take.
type asking struct {
	Extent

	// explain bounds what derivations take.
	explain int64
	// added are the dimensions that changes name.
	added map[string]bool
}

// add adds dimensions to those that changes name, and returns how many of them none has named before.
func (a *asking) add(dimensions []string) int64 {
	before := len(a.added)
	for _, name := range dimensions {
		if a.added == nil {
			a.added = map[string]bool{}
		}
		a.added[name] = true
	}
	return int64(len(a.added) - before)
}

func (a *asking) resource() int64 { return sizeOf[apportionv1.Resource](1) + 8 + 16*a.Dimensions }

func (a *asking) reason() int64 { return sizeOf[apportionv1.Reason](1) + 32 }

// verdict is what a verdict takes with two reasons.
func (a *asking) verdict() int64 { return sizeOf[apportionv1.Verdict](1) + 8 + 2*a.reason() }

// session is what opening a session anew on a changed model takes.
func (a *asking) session() int64 {
	row := rowBytes(int(a.Dimensions))
	return (40*a.Queues+10*a.Jobs+2*a.Nodes)*row + sizeOf[model.Queue](int(a.Queues)) + sizeOf[model.Node](int(a.Nodes)) +
		(sizeOf[model.Job](1)+sizeOf[model.Account](1)+256)*a.Jobs + 16*a.Tasks
}

// moves is what changing tasks leaves to be undone.
func (a *asking) moves(tasks *apportionv1.Tasks) int64 {
	return changeBytes + int64(selected(tasks, 0))*(64+2*rowBytes(int(a.Dimensions)))
}

// step returns what the answer to a step takes, and what working on it takes beside that.
func (a *asking) step(step *apportionv1.Step) (answer, work int64) {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		return a.shares(q.Shares)
	case *apportionv1.Step_Jobs:
		n := a.jobs(q.Jobs.GetJobs())
		return n * (sizeOf[apportionv1.JobStanding](1) + 8 + 4*a.verdict()), 8 * n
	case *apportionv1.Step_Enqueue:
		n := a.jobs(q.Enqueue.GetJobs())
		return n * (sizeOf[apportionv1.EnqueueVerdict](1) + 8 + a.verdict()), 16*n + a.moved(n)
	case *apportionv1.Step_Allocatable:
		return a.tasks(q.Allocatable.GetTasks(), q.Allocatable.GetExplain())
	case *apportionv1.Step_Preemptive:
		return a.tasks(q.Preemptive.GetTasks(), q.Preemptive.GetExplain())
	case *apportionv1.Step_Reclaim:
		return a.victims(q.Reclaim)
	case *apportionv1.Step_Preempt:
		return a.victims(q.Preempt)
	case *apportionv1.Step_Order:
		return a.order(q.Order)
	case *apportionv1.Step_Nodes:
		return a.nodes(q.Nodes)
	case *apportionv1.Step_Inspect:
		return a.inspect(q.Inspect)
	case *apportionv1.Step_Explain:
		return a.explanations(q.Explain)
	case *apportionv1.Step_Plan:
		return a.plan(q.Plan)
	case *apportionv1.Step_Remedies:
		return a.remedies()
	case *apportionv1.Step_SetStatus:
		return 0, a.changed(q.SetStatus.GetTasks())
	case *apportionv1.Step_Allocate:
		return 0, a.changed(q.Allocate.GetTasks())
	case *apportionv1.Step_Deallocate:
		return 0, a.changed(q.Deallocate.GetTasks())
	case *apportionv1.Step_Change:
		c := q.Change.GetChange()
		return 16 * int64(len(c.GetNodes())+len(c.GetQueues())+len(c.GetJobs())), 0
	}
	return 0, 0
}

// explanations is what explaining why jobs wait takes.
func (a *asking) explanations(q *apportionv1.ExplainStep) (answer, work int64) {
	n := a.jobs(q.GetJobs())
	work = explainedTask*a.Tasks + a.session()
	if q.GetJobs() != nil {
		// Each job asks twice which tasks could be evicted: in other queues and in its own.
		_, evicting := a.victims(&apportionv1.ReclaimStep{})
		work += 2*evicting + min(a.Tasks, evictedTasks)*(1<<10+8*rowBytes(int(a.Dimensions)))
		if n <= engine.PlannedJobs {
			// A plan is searched, and a forecast opens a session on a changed model.
			_, planning := a.plan(&apportionv1.PlanStep{})
			work += planning + a.session()
		}
	}
	if q.GetGroupsOnly() {
		return n * (explainedJob / 4), work
	}
	return n * explainedJob, work
}

// plan is what a plan takes: the candidates by node and one offer of each node, the choice among all candidates in other queues and in the
// job's own, and what is moved to try the plan. The tasks of a job that is named are not known here, nor how many victims they need.
func (a *asking) plan(q *apportionv1.PlanStep) (answer, work int64) {
	tasks := a.Tasks
	if n := int64(selected(q.GetTasks(), 0)); n > 0 {
		tasks = n
	}
	victims := a.Tasks
	if most := int64(q.GetMaxVictims()); most > 0 {
		victims = min(victims, most)
	}
	answer = explainedJob + tasks*(sizeOf[apportionv1.PlannedPlacement](1)+64) +
		victims*(sizeOf[apportionv1.PlannedEviction](1)+64+16*a.Voters+a.resource())
	_, evicting := a.victims(&apportionv1.ReclaimStep{})
	row := rowBytes(int(a.Dimensions))
	work = a.session() + 2*evicting + a.Tasks*(plannedTask+4*row) + tasks*(plannedTask+4*row) + a.Nodes*(plannedNode+2*row)
	return answer, work
}

// remedies is what the remedies of a job take. One changed cluster is open at a time beside the one asked about; each leaves a little
// behind, and what is garbage of it waits to be collected.
func (a *asking) remedies() (answer, work int64) {
	const most, open = 64, 3
	row := rowBytes(int(a.Dimensions))
	answer = most * (sizeOf[apportionv1.Remedy](1) + 4*sizeOf[apportionv1.RemedyEdit](1) + 8*3*a.resource() + 4*maxText)
	_, planning := a.plan(&apportionv1.PlanStep{})
	return answer, open*a.session() + a.Nodes*(64+6*row) + (16+explainedTask)*a.Tasks + a.Queues*4*row + planning
}

// jobs is how many jobs a selection names, which are all if it is absent or empty.
func (a *asking) jobs(selection *apportionv1.Jobs) int64 {
	if n := selected(selection, 0); n > 0 {
		return int64(n)
	}
	return a.Jobs
}

// changed is what changing tasks takes: their list, and the pages of the model that they are on.
func (a *asking) changed(tasks *apportionv1.Tasks) int64 { return a.moved(int64(selected(tasks, 0))) }

func (a *asking) moved(n int64) int64 { return n*(128+4*rowBytes(int(a.Dimensions))) + 16*a.Jobs }

func (a *asking) shares(q *apportionv1.SharesStep) (answer, work int64) {
	// Three plugins at most divide among queues, two among jobs.
	const ofQueues, ofJobs = 3, 2
	queues, fields := a.Queues, int64(len(apportionv1.ShareField_name))
	if wanted := q.GetQueues(); wanted != nil {
		queues = int64(len(wanted.GetIndex()) + len(wanted.GetName()))
	}
	if n := len(q.GetFields()); n > 0 {
		fields = min(fields, int64(n))
	}
	answer = queues * (min(a.Plugins, ofQueues)*(sizeOf[apportionv1.QueueShare](1)+16+fields*a.resource()) +
		sizeOf[apportionv1.QueueStanding](1) + 32 + a.verdict())
	if q.GetJobs() != nil {
		answer += a.jobs(q.GetJobs()) * min(a.Plugins, ofJobs) * (sizeOf[apportionv1.JobShare](1) + 16 + 2*a.resource())
	}
	if q.GetTree() {
		answer += (a.Jobs + a.Queues) * (sizeOf[apportionv1.TreeNode](1) + 64 + 2*a.resource())
	}
	work = a.session() + 16*queues
	if q.GetExplain() != nil {
		rounds := a.Queues*a.Dimensions + 2
		answer += min(a.explain, rounds*a.Queues*(explainFactor*a.resource()))
	}
	return answer, work
}

func (a *asking) tasks(tasks *apportionv1.Tasks, explain bool) (answer, work int64) {
	n := int64(selected(tasks, 0))
	answer = n * (sizeOf[apportionv1.TaskVerdict](1) + 24 + a.verdict())
	if explain {
		answer += min(a.explain, n*a.Plugins*(a.Dimensions+1)*a.Queues*(sizeOf[policy.Check](1)+a.reason()))
	}
	return answer, 8 * n
}

func (a *asking) victims(q victimsStep) (answer, work int64) {
	n := int64(selected(q.GetCandidates(), int(a.Tasks)))
	// A list of checks that grows is there twice for a while.
	checks := n * a.Voters * 3 * sizeOf[policy.Check](1) / 2
	answer = n * (sizeOf[apportionv1.Spared](1) + 24 + a.reason() + 4*a.Voters + 16)
	work = n*(candidateBytes+8*a.Voters) + checks
	if q.GetExplain() {
		answer += n * a.Voters * (sizeOf[apportionv1.VictimCheck](1) + 16 + a.reason())
		work += checks
	}
	return answer, work + a.Queues*4*rowBytes(int(a.Dimensions))
}

func (a *asking) order(q *apportionv1.OrderStep) (answer, work int64) {
	n := int64(0)
	switch subject := q.GetSubject().(type) {
	case *apportionv1.OrderStep_Queues:
		if n = int64(len(subject.Queues.GetIndex()) + len(subject.Queues.GetName())); n == 0 {
			n = a.Queues
		}
	case *apportionv1.OrderStep_Jobs:
		n = a.jobs(subject.Jobs)
	case *apportionv1.OrderStep_Tasks:
		n = int64(selected(subject.Tasks, 0))
	}
	answer = 16 * n
	if q.GetPairs() {
		answer += min(n, maxPairs) * min(n, maxPairs) / 2 * (sizeOf[apportionv1.Pair](1) + 64)
	}
	return answer, 128 * n
}

func (a *asking) nodes(q *apportionv1.NodesStep) (answer, work int64) {
	tasks, nodes := int64(selected(q.GetTasks(), 0)), a.Nodes
	if wanted := q.GetNodes(); wanted != nil {
		nodes = int64(len(wanted.GetIndex()) + len(wanted.GetName()))
	}
	listed := nodes
	if top := int64(q.GetTop()); top > 0 {
		listed = min(listed, top)
	}
	const perNode = 16
	columns := int64(1)
	if q.GetByPlugin() {
		columns += a.Plugins
	}
	answer = tasks * (sizeOf[apportionv1.TaskNodes](1) + 24 + columns*perNode*listed)
	if q.GetExplain() {
		answer += min(a.explain, tasks*nodes*2*(sizeOf[apportionv1.Unfit](1)+24+a.reason()))
	}
	work = 8*tasks + nodes*(64+8*a.Plugins)
	if q.GetJointly() {
		work += tasks*(256+2*rowBytes(int(a.Dimensions))) + nodes*(64+2*rowBytes(int(a.Dimensions)))
	}
	return answer, work
}

func (a *asking) inspect(q *apportionv1.InspectStep) (answer, work int64) {
	if q.GetNodes() {
		answer += a.Nodes * (sizeOf[apportionv1.InspectedNode](1) + 24 + 3*a.resource())
	}
	if q.GetJobs() {
		answer += a.Jobs * (sizeOf[apportionv1.InspectedJob](1) + 24 + 4*a.resource())
	}
	if q.GetQueues() {
		answer += a.Queues * (sizeOf[apportionv1.InspectedQueue](1) + sizeOf[apportionv1.Queue](1) + 64 + 3*a.resource())
	}
	if q.GetTasks() {
		answer += a.Tasks * (sizeOf[apportionv1.InspectedTask](1) + 64 + a.resource())
	}
	return answer, 8 * (a.Jobs + a.Tasks)
}
