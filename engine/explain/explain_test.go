package explain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// pendingJob is a job of a queue with tasks of so many cpu each that wait.
type pendingJob struct {
	name     string
	priority int32
	phase    model.Phase
	// minimum is the job's minimum of cpu; 0: none.
	minimum float64
	members uint32
	tasks   []float64
}

// pendingCluster is a session on nodes of so many cpu, with one queue and these jobs, by Volcano's default plugins.
func pendingCluster(t require.TestingT, nodes []float64, jobs ...pendingJob) *engine.Session {
	cpu := func(x float64) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * x}}
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	for i, x := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprintf("n%d", i), Allocatable: cpu(x)})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	for _, job := range jobs {
		spec := model.JobSpec{UID: job.name, Queue: "q", Priority: job.priority, Phase: job.phase, MinAvailable: job.members}
		if job.minimum > 0 {
			spec.MinResources = cpu(job.minimum)
		}
		b.Job(spec)
		for i, x := range job.tasks {
			b.Group(model.GroupSpec{Role: fmt.Sprint(i), Request: cpu(x)})
			b.Task(&model.TaskSpec{UID: fmt.Sprintf("%s-%d", job.name, i), Node: model.None, Index: -1})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}},
		{{Plugin: overcommit.Default()}, {Plugin: proportion.Plugin{}}},
	}}, nil)
	require.NoError(t, err)
	return s
}

func explainAll(t require.TestingT, s *engine.Session, jobs ...model.JobID) []*explain.Explanation {
	var list []*explain.Explanation
	require.NoError(t, explain.Jobs(s, jobs, true, func(e *explain.Explanation) error {
		list = append(list, e)
		return nil
	}))
	return list
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name    string
		nodes   []float64
		jobs    []pendingJob
		verdict explain.Verdict
		check   judge.CheckKind
		code    policy.Code
		// never is why it can never run, which comes first; 0: it may run.
		never policy.Code
	}{
		{
			"nothing holds it back",
			[]float64{4},
			[]pendingJob{{name: "a", phase: model.PhaseInqueue, members: 1, tasks: []float64{4}}},
			explain.InTurn, 0, 0, 0,
		},
		{
			"its minimum is more than the cluster admits",
			[]float64{4},
			[]pendingJob{{name: "a", minimum: 9, members: 1, tasks: []float64{4}}},
			explain.Blocked, judge.CheckAdmission, policy.AboveOvercommit, policy.AboveLimit,
		},
		{
			"it may enter by itself, but another one enters first",
			[]float64{4},
			[]pendingJob{{name: "a", minimum: 4, tasks: []float64{4}}, {name: "b", priority: 1, minimum: 4, tasks: []float64{4}}},
			explain.Blocked, judge.CheckOrder, policy.AboveOvercommit, 0,
		},
		{
			"its gang lacks tasks",
			[]float64{4},
			[]pendingJob{{name: "a", phase: model.PhaseInqueue, members: 2, tasks: []float64{1}}},
			explain.Blocked, judge.CheckTasks, policy.NotEnoughTasks, 0,
		},
		{
			"before it is admitted it may have no tasks yet",
			[]float64{4},
			[]pendingJob{{name: "a", minimum: 2, members: 2}},
			explain.InTurn, 0, 0, 0,
		},
		{
			"a task is larger than any node",
			[]float64{4, 4},
			[]pendingJob{{name: "a", phase: model.PhaseInqueue, members: 1, tasks: []float64{6}}},
			explain.Blocked, judge.CheckNodes, policy.LargerThanAnyNode, policy.NodeTooSmall,
		},
		{
			"the gang has room task by task, but not at the same time",
			[]float64{5, 4},
			[]pendingJob{{name: "a", phase: model.PhaseInqueue, members: 3, tasks: []float64{3, 3, 3}}},
			explain.Blocked, judge.CheckNodes, policy.NoJointPlacement, policy.NeverFits,
		},
		{
			"a gang of 4 and 5 fits nodes of 5 and 4",
			[]float64{5, 4},
			[]pendingJob{{name: "a", phase: model.PhaseInqueue, members: 2, tasks: []float64{4, 5}}},
			explain.InTurn, 0, 0, 0,
		},
		{
			"a job of higher priority takes the room first",
			[]float64{4, 1},
			[]pendingJob{
				{name: "a", phase: model.PhaseInqueue, members: 1, tasks: []float64{3}},
				{name: "b", priority: 1, phase: model.PhaseInqueue, members: 1, tasks: []float64{2}},
			},
			explain.Blocked, judge.CheckOrder, policy.NoJointPlacement, 0,
		},
		{
			"a job of higher priority that has no room takes none",
			[]float64{4},
			[]pendingJob{
				{name: "a", phase: model.PhaseInqueue, members: 1, tasks: []float64{3}},
				{name: "b", priority: 1, phase: model.PhaseInqueue, members: 1, tasks: []float64{9}},
			},
			explain.InTurn, 0, 0, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := pendingCluster(t, test.nodes, test.jobs...)
			e := explainAll(t, s, 0)[0]
			require.Equal(t, test.verdict, e.Verdict)
			if test.verdict != explain.Blocked {
				require.Equal(t, -1, e.Blocking)
				return
			}
			findings := e.Findings[e.Blocking:]
			if test.never != 0 {
				require.Equal(t, judge.CheckFeasibility, findings[0].Check)
				require.Equal(t, test.never, findings[0].Reasons[0].Code)
				findings = findings[1:]
			}
			at := slices.IndexFunc(findings, func(f judge.Finding) bool { return f.Outcome == judge.Failed })
			require.Equal(t, test.check, findings[at].Check)
			require.Equal(t, test.code, findings[at].Reasons[0].Code)
		})
	}
}

// gatedGang is a session with a gang of so many tasks at least that has two tasks and one more which a gate holds back, and another job
// that runs a task which may not be evicted.
func gatedGang(t require.TestingT, minimum uint32, runs int) *engine.Session {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Amounts(4, 0)})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "gang", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: minimum})
	for i, gate := range []model.Gate{model.GateNone, model.GateNone, model.GateOther} {
		b.Group(model.GroupSpec{Role: fmt.Sprint(i), Request: enginetest.Amounts(1+i, 0)})
		b.Task(&model.TaskSpec{UID: fmt.Sprint("gang-", i), Node: model.None, Index: -1, Gate: gate})
	}
	b.Job(model.JobSpec{UID: "runs", Queue: "q", Phase: model.PhaseRunning, MinAvailable: 1})
	b.Group(model.GroupSpec{Request: enginetest.Amounts(runs, 0)})
	b.Task(&model.TaskSpec{UID: "runs", Status: model.Running, Index: -1})
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(t, err)
	return s
}

func TestAGangThatLacksATaskWithAGateIsBlockedAsItsPlanSays(t *testing.T) {
	s := gatedGang(t, 3, 1)
	e := explainAll(t, s, 0)[0]
	require.Equal(t, explain.Blocked, e.Verdict)
	finding := e.Findings[e.Blocking]
	made, err := plan.For(s, &plan.Question{Job: 0, Means: plan.ByAny})
	require.NoError(t, err)
	require.Equal(t, judge.CheckTasks, finding.Check)
	require.Equal(t, policy.NotReady, finding.Reasons[0].Code)
	require.Equal(t, plan.None, made.Outcome)
	require.Equal(t, finding.Check, made.Miss.Check)
	require.Equal(t, finding.Reasons, made.Miss.Reasons)

	require.Equal(t, explain.InTurn, explainAll(t, gatedGang(t, 2, 1), 0)[0].Verdict, "a gang that does without it waits for its turn")
}

func TestATaskThatIsProtectedFromSeveralKindsIsCountedOnce(t *testing.T) {
	e := explainAll(t, gatedGang(t, 2, 4), 0)[0]
	eviction := e.Findings[len(e.Findings)-1]
	require.Equal(t, judge.CheckEviction, eviction.Check)
	counted := 0
	for i, reason := range eviction.Reasons {
		if reason.Code == policy.NotPreemptable {
			counted = eviction.Counts[i]
		}
	}
	require.Equal(t, 1, counted)
}

// TestExplainChangesNothing asks a question before and after everything is explained, and everything twice.
func TestExplainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.Float64Range(1, 8), 1, 4).Draw(t, "nodes")
		jobs := make([]pendingJob, rapid.IntRange(1, 6).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = pendingJob{
				name: fmt.Sprint("j", i), priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")),
				phase:   model.Phase(rapid.IntRange(0, 2).Draw(t, "phase")),
				minimum: float64(rapid.IntRange(0, 4).Draw(t, "minimum")), members: uint32(rapid.IntRange(0, 3).Draw(t, "members")),
				tasks: rapid.SliceOfN(rapid.Float64Range(0, 5), 0, 4).Draw(t, "tasks"),
			}
		}
		s := pendingCluster(t, nodes, jobs...)
		asked, untouched := s.Waiting(), pendingCluster(t, nodes, jobs...)
		once := explainAll(t, s, asked...)
		require.Equal(t, once, explainAll(t, s, asked...))
		for j := range jobs {
			require.Equal(t, s.Job(model.JobID(j)).Enqueue(nil), untouched.Job(model.JobID(j)).Enqueue(nil))
			require.Equal(t, s.View().Account(model.JobID(j)), untouched.View().Account(model.JobID(j)))
		}
		share, _ := s.Dividers()[0].Queues.Share(0)
		want, _ := untouched.Dividers()[0].Queues.Share(0)
		require.Equal(t, want, share)
	})
}
