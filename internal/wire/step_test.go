package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
)

// contested is a cluster of 10 CPUs in which `ml` runs 8 and `web` claims some. train has a minimum of 2 of its 3 tasks.
const contested = `
dimensions: "cpu"
nodes { name: "n0" allocatable { dimensions: 0 amounts: 6000 } group: "a" } nodes { name: "n1" allocatable { dimensions: 0 amounts: 4000 } }
queues { name: "ml" } queues { name: "web" } queues { name: "held" reclaimable: false }
jobs { uid: "train" queue: "ml" phase: JOB_PHASE_RUNNING min_available: 2 groups { role: "w" request { dimensions: 0 amounts: 2000 }
  tasks { uid: "t0" status: TASK_STATUS_RUNNING node: 0 index: 0 } tasks { uid: "t1" status: TASK_STATUS_RUNNING node: 0 index: 1 }
  tasks { uid: "t2" status: TASK_STATUS_RUNNING node: 0 index: 2 } } }
jobs { uid: "single" queue: "ml" phase: JOB_PHASE_RUNNING groups { request { dimensions: 0 amounts: 1000 }
  tasks { uid: "u0" status: TASK_STATUS_RUNNING node: 1 detail { preemptable: false } }
  tasks { uid: "u1" status: TASK_STATUS_RUNNING node: 1 } tasks { uid: "u2" status: TASK_STATUS_RELEASING node: 1 } } }
jobs { uid: "serve" queue: "web" phase: JOB_PHASE_INQUEUE groups { request { dimensions: 0 amounts: 3000 } tasks { uid: "s0" } tasks { uid: "s1" } } }
jobs { uid: "kept" queue: "held" groups { request { dimensions: 0 amounts: 10 } tasks { uid: "k0" status: TASK_STATUS_RUNNING } tasks { uid: "best" detail { request {} } } } }`

func spared(a *apportionv1.VictimsAnswer) map[string]string {
	out := map[string]string{}
	for _, s := range a.GetProtections() {
		out[s.GetUid()] += strings.TrimPrefix(s.GetCode().String(), "CAUSE_CODE_")
	}
	return out
}

func victims(a *apportionv1.VictimsAnswer) []string {
	var out []string
	for _, v := range a.GetVictims() {
		out = append(out, v.GetUid())
	}
	return out
}

func TestEveryCandidateIsAVictimOrSparedForAReason(t *testing.T) {
	for _, c := range []struct {
		name, policy, step string
		victims            []string
		spared             map[string]string
		decided            bool
		tier               *uint32
	}{
		{
			"gang keeps the minimum", `tiers { plugins { gang {} } }`,
			`reclaim { claimant { names: "s0" } candidates { names: ["t0", "t1", "t2"] } }`,
			[]string{"t0"},
			map[string]string{"t1": "GANG_MINIMUM", "t2": "GANG_MINIMUM"},
			true, new(uint32(0)),
		},
		{
			"without candidates those are judged that the action considers, job by job in order of uids", `tiers { plugins { proportion {} } }`,
			`reclaim { claimant { names: "s0" } }`,
			[]string{"u1", "t0", "t1"},
			map[string]string{"t2": "WITHIN_DESERVED"},
			true, new(uint32(0)),
		},
		{
			"what the action does not consider is told", `tiers { plugins { conformance {} } }`,
			`reclaim { claimant { names: "s0" } candidates { names: ["u0", "u1", "u2", "s1", "k0", "u1"] } eligible_only: true }`,
			[]string{"u1"},
			map[string]string{
				"u0": "NOT_PREEMPTABLE", "u2": "NOT_RUNNING", "s1": "NOT_RUNNING", "k0": "QUEUE_NOT_RECLAIMABLE", "u1": "NOT_A_CANDIDATE",
			},
			true, new(uint32(0)),
		},
		{
			"preempt stays in the queue", `tiers { plugins { conformance {} } }`,
			`preempt { claimant { names: "u0" } candidates { names: ["t0", "u1", "s0"] } eligible_only: true }`,
			[]string{"t0"},
			map[string]string{"u1": "SAME_JOB", "s0": "NOT_RUNNING"},
			true, new(uint32(0)),
		},
		{
			"an earlier tier decides", `tiers { plugins { gang {} } } tiers { plugins { conformance {} } }`,
			`reclaim { claimant { names: "s0" } candidates { names: ["t1"] } }`,
			[]string{"t1"},
			map[string]string{},
			true, new(uint32(0)),
		},
		{
			"no plugin has an opinion", ``, `reclaim { claimant { names: "s0" } candidates { names: ["t1"] } }`,
			nil,
			map[string]string{"t1": "NOT_IN_DECIDING_TIER"},
			false, nil,
		},
		{
			"no candidates at all", `tiers { plugins { gang {} } }`, `reclaim { claimant { names: "s0" } candidates {} }`,
			nil,
			map[string]string{},
			true, new(uint32(0)),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := ask(t, open(t, contested, c.policy), c.step)
			require.Nil(t, answer.GetError())
			a := answer.GetReclaim()
			if a == nil {
				a = answer.GetPreempt()
			}
			require.Equal(t, c.victims, victims(a))
			require.Equal(t, c.spared, spared(a))
			require.Equal(t, c.decided, a.GetDecided())
			require.Equal(t, c.tier, a.Tier)
			require.Len(t, a.GetEvictions(), len(c.victims))
		})
	}
}

func TestExplainedVictimsTellEveryCheck(t *testing.T) {
	s := open(t, contested, `tiers { plugins { gang {} } plugins { proportion {} } }`)
	const step = `reclaim { claimant { names: "s0" } candidates { names: ["t0", "t1"] } `
	plain, explained := ask(t, s, step+`}`).GetReclaim(), ask(t, s, step+`explain: true }`).GetReclaim()
	require.Empty(t, plain.GetChecks())
	require.Len(t, explained.GetChecks(), 4)
	explained.Checks = nil
	require.True(t, proto.Equal(plain, explained), "explaining changes nothing")
	s.Show(false, true)
	require.Empty(t, ask(t, s, step+`}`).GetReclaim().GetVictims()[0].GetUid())
	require.Equal(t, "gang", plain.GetPlugins()[0].GetPlugin())
	require.Equal(t, apportionv1.Vote_VOTE_PERMIT, plain.GetPlugins()[0].GetVote())
}

func TestOrders(t *testing.T) {
	for _, c := range []struct{ name, step, want string }{
		{
			"queues with jobs", `order { queues {} pairs: true }`,
			`order { items: [1, 2, 0] ties: [1, 1, 1] pairs { left: 2 right: 0 compare: -1 less: true } pairs { left: 2 right: 1 compare: 1 }
			  pairs { left: 0 right: 1 compare: 1 } }`,
		},
		{"queues by name", `order { queues { names: ["ml", "web"] } }`, `order { items: [1, 0] ties: [1, 1] }`},
		{
			"the queues that lose first", `order { queues {} claimant_queue_name: "web" pairs: true }`,
			`order { items: [0, 2, 1] ties: [3] pairs { left: 2 right: 0 } pairs { left: 2 right: 1 less: true }
			  pairs { left: 0 right: 1 less: true } }`,
		},
		{"jobs, by uid where no plugin tells them apart", `order { jobs {} }`, `order { items: [3, 2, 1, 0] ties: [4] }`},
		{"tasks by index", `order { tasks { names: ["t2", "t0", "t1"] } }`, `order { items: [0, 1, 2] ties: [3] }`},
		{
			"victims, the last in service first", `order { tasks { names: ["t0", "t1", "k0"] } claimant_task_uid: "s0" }`,
			`order { items: [1, 0, 8] ties: [2, 1] }`,
		},
		{"victims for a task by number", `order { tasks { indices: [0, 1] } claimant_task: 6 }`, `order { items: [1, 0] ties: [2] }`},
		{"nothing", `order { tasks {} pairs: true }`, `order {}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireAnswer(t, c.want, ask(t, open(t, contested, `tiers { plugins { proportion {} } }`), c.step))
		})
	}
}

func TestAComparisonThatIsNoOrderIsFlagged(t *testing.T) {
	// By index a comes before c, by age b before a, and c before b.
	s := open(t, `queues { name: "q" } jobs { uid: "j" queue: "q" groups {
	  tasks { uid: "a" index: 1 create_time: 20 } tasks { uid: "b" create_time: 10 } tasks { uid: "c" index: 2 create_time: 5 } } }`, ``)
	first := ask(t, s, `order { tasks { names: ["a", "b", "c"] } }`).GetOrder()
	require.True(t, first.GetIntransitive())
	second := ask(t, s, `order { tasks { names: ["c", "b", "a"] } }`).GetOrder()
	require.Equal(t, first.GetItems(), second.GetItems(), "it is one defined order all the same")
	require.False(t, ask(t, s, `order { tasks { names: ["a", "c"] } }`).GetOrder().GetIntransitive())
}

func TestNodesAreScoredAndSaidWhyNot(t *testing.T) {
	s := open(t, contested, `tiers { plugins { binpack {} } plugins { node_group { strict: false } } }`)
	row := ask(t, s, `nodes { tasks { names: "best" } by_plugin: true explain: true }`).GetNodes().GetTasks()[0]
	require.Equal(t, []uint32{0, 1}, row.GetNodes())
	require.Equal(t, "binpack", row.GetPlugins()[0].GetPlugin())
	require.Len(t, row.GetPlugins()[1].GetScores(), 2)

	requireAnswer(t, `nodes { tasks { task: 6 nodes: [0, 1] fits: [false, false] scores: [0, 0]
	  causes { plugin: "nodegroup" code: CAUSE_CODE_NODE_GROUP_NOT_IN_AFFINITY queue: 1 node: 0 }
	  causes { code: CAUSE_CODE_INSUFFICIENT_RESOURCE dimensions: 0 have: 3000 need: 3000 limit: 4000 node: 1 } } }`,
		ask(t, s, `nodes { tasks { names: "s0" } explain: true }`))
	requireAnswer(t, `nodes { tasks { task: 9 nodes: 1 fits: true scores: 0 } }`, ask(t, s, `nodes { tasks { names: "best" } top: 1 }`))
	requireAnswer(t, `nodes { tasks { task: 6 } }`, ask(t, s, `nodes { tasks { names: "s0" } top: 2 }`))
	requireAnswer(t, `nodes { tasks { task: 9 nodes: 1 fits: true scores: 0 } }`, ask(t, s, `nodes { tasks { names: "best" } nodes { names: "n1" } }`))
}

func TestAnEventOfSeveralTasksHappensWhollyOrNotAtAll(t *testing.T) {
	s := open(t, contested, `tiers { plugins { proportion {} } }`)
	const question = `shares { fields: SHARE_FIELD_ALLOCATED queues { names: "web" } }`
	before := ask(t, s, question)
	for _, step := range []string{`event { place { tasks { names: ["s0", "t0"] } } }`, `event { place { tasks { names: ["s0", "s0"] } } }`, `event { evict { tasks { names: ["t0", "s0"] } } }`} {
		st := ask(t, s, step).GetError()
		require.Equal(t, int32(codes.FailedPrecondition), st.GetCode(), step)
		require.Equal(t, "WRONG_STATUS", errorInfo(t, st).GetReason())
		require.True(t, proto.Equal(before, ask(t, s, question)))
	}
	requireAnswer(t, `event {} changed: true`, ask(t, s, `event { place { tasks { names: ["s0", "s1"] } nodes { indices: [0, 1] } } }`))
	after := ask(t, s, question).GetShares().GetPlugins()[0].GetQueues()[0]
	require.Equal(t, []float64{6000, 0}, after.GetAllocated().GetAmounts())
	requireAnswer(t, `event {} changed: true`, ask(t, s, `event { evict { tasks { names: ["s0", "s1"] } } }`))
	tasks := ask(t, s, `inspect { tasks: true }`).GetInspect().GetTasks()
	require.Equal(t, apportionv1.TaskStatus_TASK_STATUS_RELEASING, tasks[6].GetStatus(), "that is the status afterwards unless another is given")
	require.True(t, proto.Equal(before, ask(t, s, question)))
}

func TestAStatusAloneLeavesTheAccountsAsTheyAre(t *testing.T) {
	s := open(t, contested, `tiers { plugins { proportion {} } plugins { gang {} } }`)
	before := ask(t, s, `shares {}`)
	requireAnswer(t, `event {} changed: true`, ask(t, s, `event { status { tasks { names: "t0" } status: TASK_STATUS_FAILED } }`))
	require.True(t, proto.Equal(before, ask(t, s, `shares {}`)))
	require.Equal(t, uint32(2), ask(t, s, `jobs { jobs { names: "train" } }`).GetJobs().GetJobs()[0].GetReadyTasks())
}

func TestAJobIsAddedAndRemoved(t *testing.T) {
	s := open(t, contested, `tiers { plugins { proportion {} } }`)
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `mark {}`))
	requireAnswer(t, `event { jobs: 4 first_task: 10 } changed: true`, ask(t, s, `event { change { dimensions: ["memory", "cpu"]
	  jobs { name: "new" namespace: "a" queue: "web" groups { request { dimensions: 1 amounts: 500 } tasks { name: "p" } tasks { name: "q" } counts { count: 2 } } } } }`))
	require.Equal(t, []float64{500, 0}, ask(t, s, `inspect { tasks: true }`).GetInspect().GetTasks()[11].GetRequest().GetAmounts())
	require.Nil(t, ask(t, s, `allocatable { tasks { names: "a/q" } }`).GetError())
	requireAnswer(t, `event { first_task: 12 } changed: true`, ask(t, s, `event { change { remove_jobs: ["a/new", "train"] } }`))

	for step, want := range map[string]string{
		`jobs { jobs { names: "a/new" } }`:                     `jobs.jobs.names[0]: no job "a/new"`,
		`jobs { jobs { indices: 0 } }`:                         `jobs.jobs.indices[0]: job 0 was removed`,
		`allocatable { tasks { names: "t0" } }`:                `allocatable.tasks.names[0]: no task "t0"`,
		`allocatable { tasks { names: "a/q" } }`:               `allocatable.tasks.names[0]: no task "a/q"`,
		`reclaim { claimant { indices: 11 } }`:                 `reclaim.claimant.indices[0]: task 11 was removed`,
		`event {}`:                                             `event.event: no event is given, or none that this version supports`,
		`event { change { jobs { uid: "x" queue: "nope" } } }`: `event.change.jobs[0].queue: no queue "nope"`,
		`event { change { jobs { uid: "x" queue: "web" groups { tasks { node: 7 } } } } }`: `event.change.jobs[0].groups[0].tasks[0].node: no node 7, there are 2 nodes`,
	} {
		st := ask(t, s, step).GetError()
		require.Equal(t, int32(codes.InvalidArgument), st.GetCode(), step)
		require.Equal(t, want, fields(t, st)[0], step)
	}
	require.Equal(t, uint32(3), ask(t, s, `inspect {}`).GetInspect().GetJobCount())
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `rollback {}`))
	require.Equal(t, uint32(4), ask(t, s, `inspect {}`).GetInspect().GetJobCount())
	require.Nil(t, ask(t, s, `allocatable { tasks { names: "t0" } }`).GetError())
}

func TestAMarkThatIsNotThere(t *testing.T) {
	s := open(t, contested, ``)
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `mark {}`))
	requireAnswer(t, `mark { mark: 1 } changed: true`, ask(t, s, `mark {}`))
	requireAnswer(t, `mark {} changed: true`, ask(t, s, `rollback { mark: 0 }`))
	for _, mark := range []string{"1", "4294967295"} {
		st := ask(t, s, `rollback { mark: `+mark+` }`).GetError()
		require.Equal(t, int32(codes.NotFound), st.GetCode())
		require.Equal(t, "MARK_NOT_FOUND", errorInfo(t, st).GetReason())
		require.Equal(t, "rollback.mark", errorInfo(t, st).GetMetadata()["field"])
	}
}

func TestTheEnqueueActionAdmitsInItsOwnOrder(t *testing.T) {
	s := open(t, `dimensions: "cpu" nodes { name: "n" allocatable { dimensions: 0 amounts: 1000 } } queues { name: "q" }
	  jobs { uid: "large" queue: "q" min_resources { dimensions: 0 amounts: 900 } } jobs { uid: "small" queue: "q" min_resources { dimensions: 0 amounts: 200 } }
	  jobs { uid: "running" queue: "q" phase: JOB_PHASE_RUNNING } jobs { uid: "urgent" queue: "q" priority: 9 }`,
		`tiers { plugins { priority {} } plugins { proportion {} } }`)
	requireAnswer(t, `enqueue { jobs { job: 3 uid: "urgent" verdict { vote: VOTE_PERMIT
	    causes { code: CAUSE_CODE_NO_MIN_RESOURCES } } } jobs { job: 0 uid: "large" verdict { vote: VOTE_PERMIT } }
	  jobs { job: 1 uid: "small" verdict { vote: VOTE_REJECT
	    causes { plugin: "proportion" code: CAUSE_CODE_ABOVE_REAL_CAPABILITY queue: 0 dimensions: 0 have: 900 need: 200 limit: 1000 } } } } changed: true`,
		ask(t, s, `enqueue { mode: ENQUEUE_MODE_ACTION }`))
	require.Equal(t, apportionv1.CauseCode_CAUSE_CODE_JOB_NOT_PENDING,
		ask(t, s, `enqueue { jobs { names: "large" } mode: ENQUEUE_MODE_ACTION }`).GetEnqueue().GetJobs()[0].GetVerdict().GetCauses()[0].GetCode())
	for _, jobs := range []string{`"large"`, `["small", "large"]`, `["small", "small"]`} {
		failed := ask(t, s, `event { admit { jobs { names: `+jobs+` } } }`).GetError()
		require.Equal(t, int32(codes.FailedPrecondition), failed.GetCode(), jobs)
		require.Equal(t, "WRONG_STATUS", errorInfo(t, failed).GetReason())
		require.Equal(t, "event.admit.jobs", errorInfo(t, failed).GetMetadata()["field"])
	}
	require.Equal(t, apportionv1.JobPhase_JOB_PHASE_PENDING, ask(t, s, `inspect { jobs: true }`).GetInspect().GetJobs()[1].GetPhase(), "none is admitted")
	s.Show(false, true)
	all := ask(t, s, `enqueue {}`).GetEnqueue().GetJobs()
	require.Len(t, all, 4)
	require.Empty(t, all[0].GetUid())
}

func TestAJobThatTheSchedulerAdmitsIsBookedWithoutAVote(t *testing.T) {
	s := open(t, `dimensions: "cpu" nodes { name: "n" allocatable { dimensions: 0 amounts: 1000 } } queues { name: "q" }
	  jobs { uid: "large" queue: "q" min_resources { dimensions: 0 amounts: 9000 } } jobs { uid: "small" queue: "q" min_resources { dimensions: 0 amounts: 200 } }`,
		`tiers { plugins { overcommit {} } }`)
	requireAnswer(t, `event {} changed: true`, ask(t, s, `event { admit { jobs { names: "large" } } }`))
	requireAnswer(t, `enqueue { jobs { job: 1 uid: "small" verdict { vote: VOTE_REJECT
	    causes { plugin: "overcommit" code: CAUSE_CODE_ABOVE_OVERCOMMIT queue: 0 dimensions: 0 have: 9000 need: 200 limit: 1200 } } } } changed: true`,
		ask(t, s, `enqueue { jobs { names: "small" } }`))
}

func TestEveryFaultyStepNamesItsFields(t *testing.T) {
	for step, want := range map[string]string{
		`shares { fields: [1, 99] }`:                                 `shares.fields[1]: no field 99`,
		`shares { explain { queues { names: "x" } } }`:               `shares.explain.queues.names[0]: no queue "x"`,
		`shares { jobs { indices: 9 } }`:                             `shares.jobs.indices[0]: no job 9, there are 4`,
		`enqueue { mode: 7 }`:                                        `enqueue.mode: no mode 7`,
		`allocatable { mode: 7 }`:                                    `allocatable.mode: no mode 7`,
		`allocatable { jointly: true }`:                              `allocatable.tasks: no task is named to be asked about jointly`,
		`preemptive { tasks { names: ["t0", "s0"] } jointly: true }`: `preemptive.tasks: tasks asked jointly belong to one queue, but task 0 is of "ml" and task 6 of "web"`,
		`reclaim { claimant { names: ["t0", "t1"] } }`:               `reclaim.claimant: exactly one task claims, not 2`,
		`order {}`:                                                              `order.subject: no queues, jobs or tasks to order`,
		`order { jobs {} claimant_task: 0 }`:                                    `order.claimant: jobs have no order as victims`,
		`order { queues {} claimant_task: 0 }`:                                  `order.claimant: queues are ordered for a queue, not for a task`,
		`order { tasks {} claimant_queue: 0 }`:                                  `order.claimant: tasks are ordered for a task, not for a queue`,
		`order { tasks {} claimant_task_uid: "x" }`:                             `order.claimant_task_uid: no task "x"`,
		`order { tasks { indices: [1, 2, 1] } }`:                                `order.tasks: 1 is named twice`,
		`nodes { nodes { indices: 2 names: "x" } }`:                             `nodes.nodes.indices[0]: no node 2, there are 2`,
		`event { status { tasks { names: "t0" } } }`:                            `event.status.status: no status 0`,
		`event { status { tasks { names: "t0" } status: 77 } }`:                 `event.status.status: no status 77`,
		`event { place { tasks { names: "s0" } nodes { indices: [0, 1] } } }`:   `event.place.nodes: 2 nodes for 1 tasks`,
		`event { place { tasks { names: "s0" } nodes { indices: 9 } } }`:        `event.place.nodes.indices[0]: no node 9, there are 2`,
		`event { evict { tasks { names: "t0" } status: TASK_STATUS_BOUND } }`:   `event.evict.status: TASK_STATUS_BOUND is a status that holds resources`,
		`event { change { remove_jobs: "` + strings.Repeat("x", 1000) + `" } }`: `event.change.remove_jobs[0]: no job "` + strings.Repeat("x", 253-len(`no job "`)) + `…`,
	} {
		t.Run(step[:min(len(step), 60)], func(t *testing.T) {
			st := ask(t, open(t, contested, `tiers { plugins { proportion {} } }`), step).GetError()
			require.Equal(t, int32(codes.InvalidArgument), st.GetCode())
			require.Equal(t, "INVALID_STEP", errorInfo(t, st).GetReason())
			require.NotEmpty(t, fields(t, st))
			require.Equal(t, want, fields(t, st)[0])
		})
	}
}

func TestPairsOfTooManyThingsAreNotListed(t *testing.T) {
	var snapshot strings.Builder
	snapshot.WriteString(`queues { name: "q" } jobs { uid: "j" queue: "q" groups {`)
	for range 1001 {
		snapshot.WriteString(`tasks {} `)
	}
	snapshot.WriteString(`} }`)
	s := open(t, snapshot.String(), ``)
	every := &apportionv1.Selector{}
	for i := range uint32(1001) {
		every.Indices = append(every.Indices, i)
	}
	order := &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Tasks{Tasks: every}, Pairs: true}
	st := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: order}}).GetError()
	require.Equal(t, []string{"order.pairs: pairs are listed for at most 1000 entries, not 1001"}, fields(t, st))
	order.Pairs = false
	require.Len(t, s.Do(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: order}}).GetOrder().GetItems(), 1001)
}

func TestStepsAltogetherAreNumberedInErrors(t *testing.T) {
	s := open(t, contested, ``)
	answers, err := s.DoAll([]*apportionv1.Step{
		parse(t, &apportionv1.Step{}, `mark {}`), nil, {}, parse(t, &apportionv1.Step{}, `nodes { tasks { indices: 99 } }`),
	})
	require.NoError(t, err)
	require.NotNil(t, answers[0].GetMark())
	require.Equal(t, int32(codes.InvalidArgument), answers[1].GetError().GetCode())
	require.Equal(t, "the step has no kind that this version supports", answers[2].GetError().GetMessage())
	require.Equal(t, []string{"steps[3].nodes.tasks.indices[0]: no task 99, there are 10"}, fields(t, answers[3].GetError()))
}

func TestAnAnswerTooLargeFailsItsStepAlone(t *testing.T) {
	s := open(t, contested, `tiers { plugins { proportion {} } }`, wire.Options{AnswerBytes: 2000})
	answers, err := s.DoAll([]*apportionv1.Step{
		parse(t, &apportionv1.Step{}, `inspect { nodes: true jobs: true tasks: true }`), parse(t, &apportionv1.Step{}, `mark {}`),
	})
	require.NoError(t, err)
	info := errorInfo(t, answers[0].GetError())
	require.Equal(t, "ANSWER_TOO_LARGE", info.GetReason())
	require.Equal(t, map[string]string{"narrow": "steps[0].inspect.tasks", "limit": "answer_bytes", "maximum": "2000"}, info.GetMetadata())
	require.NotNil(t, answers[1].GetMark())
}

func TestEveryKindOfStepAndOfAnswerHasItsQuestion(t *testing.T) {
	fields := (&apportionv1.Step{}).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()
	for i := range fields.Len() {
		step, name := &apportionv1.Step{}, string(fields.Get(i).Name())
		step.ProtoReflect().Set(fields.Get(i), step.ProtoReflect().NewField(fields.Get(i)))
		q := wire.QuestionOf(step)
		require.NotNil(t, q, "no question answers the step %s", name)
		require.Equal(t, name, q.Name)
		require.Contains(t, wire.Questions, q)
	}
	require.Len(t, wire.Questions, fields.Len())
	require.Nil(t, wire.QuestionOf(nil))
	require.Nil(t, wire.QuestionOf(&apportionv1.Step{}))

	// Any step may fail, and steps without a result are answered with done.
	shared := []string{"error", "done"}
	kinds := (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().ByName("answer").Fields()
	for i := range kinds.Len() {
		name := string(kinds.Get(i).Name())
		named := func(q *wire.Question) bool { return q.Name == name }
		require.NotEqual(t, slices.Contains(shared, name), slices.ContainsFunc(wire.Questions, named), "the answer %s", name)
	}
}
