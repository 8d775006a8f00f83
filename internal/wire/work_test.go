package wire_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// within opens a session whose questions may cost so much.
func within(t require.TestingT, shape generate.Shape, policy string, work int64) *wire.Session {
	m, err := decode.Compile(generate.Snapshot(shape))
	require.NoError(t, err)
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	s, err := wire.Open(m, p, wire.Options{Work: work})
	require.NoError(t, err)
	return s
}

// requireTooMuchWork requires the fault of a question that costs more than is allowed, with its numbers.
func requireTooMuchWork(t *testing.T, a *apportionv1.Answer, maximum string) {
	t.Helper()
	st := a.GetError()
	require.Equal(t, int32(codes.OutOfRange), st.GetCode(), "%v", a)
	info := errorInfo(t, st)
	require.Equal(t, "LIMIT_EXCEEDED", info.GetReason())
	require.Equal(t, "work", info.GetMetadata()["limit"])
	require.Equal(t, maximum, info.GetMetadata()["maximum"])
	value, err := strconv.ParseInt(info.GetMetadata()["value"], 10, 64)
	require.NoError(t, err)
	limit, err := strconv.ParseInt(maximum, 10, 64)
	require.NoError(t, err)
	require.Greater(t, value, limit)
}

// TestWhatCostsMoreThanItMayIsRefusedBeforeItIsDone asks each kind of question so often, or about so many objects, that the sum exceeds the
// bound although each part is cheap.
func TestWhatCostsMoreThanItMayIsRefusedBeforeItIsDone(t *testing.T) {
	const work = 200_000
	many := func(field string, n int) string {
		var list strings.Builder
		for i := range n {
			list.WriteString(field + `: ` + strconv.Itoa(i) + ` `)
		}
		return list.String()
	}
	repeated := func(n int) string { return strings.Repeat(`indices: 0 `, n) }
	for name, step := range map[string]string{
		"a claimant with one candidate many times": `reclaim { claimant { indices: 0 } candidates { ` + repeated(100_000) + `} }`,
		"a table of tasks and nodes":               `nodes { tasks { ` + many("indices", 1000) + `} top: 1 }`,
		"the order of many tasks":                  `order { tasks { ` + many("indices", 1200) + `} }`,
		"the statuses of many tasks":               `event { status { status: TASK_STATUS_RUNNING tasks { ` + repeated(100_000) + `} } }`,
		"verdicts on many tasks":                   `allocatable { tasks { ` + repeated(100_000) + `} }`,
		"the standing of many jobs":                `jobs { jobs { ` + repeated(110_000) + `} }`,
		"the shares of many queues":                `shares { queues { ` + repeated(100_000) + `} }`,
	} {
		t.Run(name, func(t *testing.T) {
			s := within(t, generate.Shape{Queues: 10, Jobs: 100, Tasks: 2000, Nodes: 200}, policies["proportion"], work)
			requireTooMuchWork(t, ask(t, s, step), "200000")
			require.NotNil(t, ask(t, s, `shares {}`).GetShares(), "the next question has its own work")
		})
	}
}

func TestStepsOfOneCallShareItsWork(t *testing.T) {
	s := within(t, generate.Shape{Queues: 1000, Jobs: 2000, Tasks: 4000, Nodes: 10}, policies["proportion"], 10_000_000)
	var steps []*apportionv1.Step
	for range 1000 {
		steps = append(steps,
			parse(t, &apportionv1.Step{}, `event { status { tasks { indices: 0 } status: TASK_STATUS_PIPELINED } }`),
			parse(t, &apportionv1.Step{}, `shares { queues { indices: 0 } }`),
			parse(t, &apportionv1.Step{}, `event { status { tasks { indices: 0 } status: TASK_STATUS_PENDING } }`))
	}
	answers, err := s.DoAll(steps)
	require.NoError(t, err)
	require.NotNil(t, answers[1].GetShares())
	requireTooMuchWork(t, answers[len(answers)-2], "10000000")
}

// TestASessionThatMayNotBeReopenedStaysAsItWas adds a job to a division that takes all the work there is.
func TestASessionThatMayNotBeReopenedStaysAsItWas(t *testing.T) {
	shape := generate.Shape{Queues: 100, Jobs: 200, Tasks: 400, Nodes: 10}
	least := int64(1000)
	for ; ; least += 1000 {
		m, err := decode.Compile(generate.Snapshot(shape))
		require.NoError(t, err)
		if _, err = wire.Open(m, parse(t, &apportionv1.Policy{}, policies["proportion"]), wire.Options{Work: least}); err == nil {
			break
		}
		fault := decode.AsFault(err)
		require.Equal(t, codes.OutOfRange, fault.Code)
		require.Equal(t, "work", fault.Metadata["limit"])
	}
	s := within(t, shape, policies["proportion"], least)
	before := ask(t, s, `shares {}`)
	require.NotNil(t, before.GetShares())
	add := func(name string) *apportionv1.Step {
		return parse(t, &apportionv1.Step{}, `event { change { jobs { name: "`+name+`" queue: "`+s.Engine().View().Queues[0].Name+`" } } }`)
	}
	answers, err := s.DoAll([]*apportionv1.Step{add("one"), add("two"), add("three")})
	require.NoError(t, err)
	requireTooMuchWork(t, answers[2], strconv.FormatInt(least, 10))
	for i, name := range []string{"one", "two", "three"} {
		_, added := s.Engine().View().Job(name)
		require.Equal(t, answers[i].GetError() == nil, added, "a step that fails changes nothing")
	}
}

// aQuestionWithinItsWorkIsAnsweredAsWithoutBound opens a session that may cost so much and one that may cost anything: whatever the first
// answers, the second does to the last bit.
func aQuestionWithinItsWorkIsAnsweredAsWithoutBound(t *rapid.T, policy string) {
	snapshot := drawSnapshot(t, false)
	if !strings.Contains(policy, "fair {") { // which refuses sums above 2^60
		roughen(snapshot, rapid.Uint64().Draw(t, "roughness"))
	}
	if strings.Contains(policy, "turns {") && len(snapshot.GetQueues()) > 0 {
		snapshot.Memory = &apportionv1.Memory{EpochSeconds: 1, HalfLifeEpochs: 1}
		snapshot.Queues[0].Usage, snapshot.Queues[0].Entitled = &apportionv1.Usage{}, &apportionv1.Usage{}
	}
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	work := int64(1) << rapid.IntRange(4, 20).Draw(t, "work")
	bounded, err := wire.Open(m, p, wire.Options{Work: work})
	if err != nil {
		require.Equal(t, "work", decode.AsFault(err).Metadata["limit"])
		return
	}
	free := opened(t, snapshot, policy)
	for _, step := range everything(snapshot) {
		answer := bounded.Do(step)
		if st := answer.GetError(); st != nil {
			require.Equal(t, int32(codes.OutOfRange), st.GetCode(), "%v", st)
			continue
		}
		require.True(t, proto.Equal(free.Do(step), answer), "%v", step)
	}
}

func TestAQuestionWithinItsWorkIsAnsweredAsWithoutBound(t *testing.T) {
	everyPolicy(t, aQuestionWithinItsWorkIsAnsweredAsWithoutBound)
}

func FuzzAQuestionWithinItsWorkIsAnsweredAsWithoutBound(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		aQuestionWithinItsWorkIsAnsweredAsWithoutBound(t, policies[rapid.SampledFrom(policyNames).Draw(t, "policy")])
	}))
}

// TestADivisionMadeWhenAskedSpendsWork lets statuses change between questions, so that each question divides, or adds up the tree, anew.
func TestADivisionMadeWhenAskedSpendsWork(t *testing.T) {
	raced.Skip(t)
	for name, policy := range map[string]string{
		"fair": `tiers { plugins { fair {} } }`, "hdrf": `tiers { plugins { hierarchical_drf {} } }`,
	} {
		t.Run(name, func(t *testing.T) {
			const work = 20_000_000
			s := within(t, generate.Shape{Queues: 1000, Jobs: 2000, Tasks: 4000, Nodes: 10, Dimensions: 8}, policy, work)
			var steps []*apportionv1.Step
			for range 1000 {
				var tasks strings.Builder
				for i := range 100 {
					tasks.WriteString("indices: " + strconv.Itoa(40*i) + " ")
				}
				for _, status := range []string{"PIPELINED", "PENDING"} {
					steps = append(steps, parse(t, &apportionv1.Step{}, `event { status { tasks { `+tasks.String()+` } status: TASK_STATUS_`+status+` } }`),
						parse(t, &apportionv1.Step{}, `order { queues {} }`))
				}
			}
			answers, err := s.DoAll(steps)
			require.NoError(t, err)
			require.NotNil(t, answers[1].GetOrder())
			requireTooMuchWork(t, answers[len(answers)-1], strconv.Itoa(work))
			require.NotNil(t, ask(t, s, `order { queues {} }`).GetOrder(), "the next question has its own work")
		})
	}
}

// TestCandidatesThatUseADimensionUpSpendWork asks about candidates without which a dimension is used up, or not, in turns: each then adds up the
// whole tree anew, which took 60 times as long for 1,000 candidates as what was spent.
func TestCandidatesThatUseADimensionUpSpendWork(t *testing.T) {
	raced.Skip(t)
	const jobs = 2000
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Queues:     []*apportionv1.Queue{{Name: "root"}, {Name: "claims"}, {Name: "holds"}},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: amounts(2, jobs*1000)}},
	}
	for _, q := range s.Queues[1:] {
		q.Reclaimable = new(true)
		q.FairShareHierarchy = &apportionv1.FairShareHierarchy{Path: "root/" + q.Name, Weights: "1/1"}
	}
	s.Jobs = []*apportionv1.Job{{Name: "claims", Queue: "claims", Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, Groups: []*apportionv1.TaskGroup{
		{Request: amounts(2, 1000), Tasks: []*apportionv1.Task{{Status: apportionv1.TaskStatus_TASK_STATUS_PENDING}}},
	}}}
	for i := range jobs {
		s.Jobs = append(s.Jobs, &apportionv1.Job{
			Name: strconv.Itoa(i), Queue: "holds", Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
			Groups: []*apportionv1.TaskGroup{{Request: amounts(2, 500+1000*float64(i%2)), Tasks: []*apportionv1.Task{
				{Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: proto.Uint32(0)},
			}}},
		})
	}
	m, err := decode.Compile(s)
	require.NoError(t, err)
	p := parse(t, &apportionv1.Policy{}, `tiers { plugins { hierarchical_drf {} } }`)
	const enough, tooLittle = 50_000_000, 2_000_000
	session, err := wire.Open(m, p, wire.Options{Work: enough})
	require.NoError(t, err)
	require.NotNil(t, ask(t, session, `reclaim { claimant { indices: 0 } }`).GetReclaim())
	session, err = wire.Open(m, p, wire.Options{Work: tooLittle})
	require.NoError(t, err)
	requireTooMuchWork(t, ask(t, session, `reclaim { claimant { indices: 0 } }`), strconv.Itoa(tooLittle))
}

// TestAnExplanationSpendsItsWork asks why all jobs of a snapshot wait, each of which has a kind of task of its own: every node is examined
// for each.
func TestAnExplanationSpendsItsWork(t *testing.T) {
	shape := generate.Shape{Queues: 10, Jobs: 400, Tasks: 2000, Nodes: 500, Seed: 1}
	s := within(t, shape, policies["proportion"], 0)
	require.Empty(t, ask(t, s, `explain {}`).GetError().GetMessage())
	s = within(t, shape, policies["proportion"], 50_000)
	requireTooMuchWork(t, ask(t, s, `explain {}`), "50000")
	requireTooMuchWork(t, ask(t, s, `explain { jobs { indices: 4 indices: 6 indices: 17 } }`), "50000")
	require.NotNil(t, ask(t, s, `jobs { jobs { indices: 0 } }`).GetJobs(), "the next question has its own work")
}

// TestRequestsThatFitNowhereSpendWork opens `fair` on jobs whose requests all differ and exceed every node, so that each is held against
// each node: the kinds on all nodes, and the kinds on node sets.
func TestRequestsThatFitNowhereSpendWork(t *testing.T) {
	const many = 300
	for name, set := range map[string]string{"all nodes": "", "a node set": "s"} {
		t.Run(name, func(t *testing.T) {
			snapshot := &apportionv1.Snapshot{
				Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}, NodeSets: []*apportionv1.NodeSet{{Name: "s"}},
			}
			amount := func(n int) *apportionv1.Resource {
				return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{float64(n)}}
			}
			for i := range many {
				snapshot.Nodes = append(snapshot.Nodes, &apportionv1.Node{Name: strconv.Itoa(i), Allocatable: amount(1)})
				snapshot.NodeSets[0].Nodes = append(snapshot.NodeSets[0].Nodes, uint32(i))
				snapshot.Jobs = append(snapshot.Jobs, &apportionv1.Job{Name: strconv.Itoa(i), Queue: "q", Groups: []*apportionv1.TaskGroup{{
					Request: amount(1000 + i), NodeSet: set, Tasks: []*apportionv1.Task{{}},
				}}})
			}
			m, err := decode.Compile(snapshot)
			require.NoError(t, err)
			p := parse(t, &apportionv1.Policy{}, `tiers { plugins { fair {} } }`)
			_, err = wire.Open(m, p, wire.Options{Work: many * many / 2})
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, decode.AsFault(err).Reason)
			_, err = wire.Open(m, p, wire.Options{Work: 3 * many * many})
			require.NoError(t, err)
		})
	}
}

// TestReservationsSpendWork asks under turns about a gang that waits while jobs end one after the other, so that a reservation visits each
// end, each task and each node, and asks about many states, each of which has its own.
func TestReservationsSpendWork(t *testing.T) {
	raced.Skip(t)
	const many, work = 400, 1_000_000
	s := &apportionv1.Snapshot{
		AsOf: 1_000_000_000, Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "a"}, {Name: "b", Entitled: &apportionv1.Usage{}}},
		Memory: &apportionv1.Memory{EpochSeconds: 1, HalfLifeEpochs: 1, Epoch: 1},
	}
	for i := range many {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: strconv.Itoa(i), Allocatable: amounts(1, 100)})
		s.Jobs = append(s.Jobs, &apportionv1.Job{
			Name: strconv.Itoa(i), Queue: "a", Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING, ExpectedEnd: s.AsOf + int64(i+1)*1_000_000_000,
			Groups: []*apportionv1.TaskGroup{{Request: amounts(1, 100), Tasks: []*apportionv1.Task{
				{Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: new(uint32(i))},
			}}},
		})
	}
	const kinds, ofKind = 20, 10
	var waiting []*apportionv1.TaskGroup
	for i := range kinds {
		group := &apportionv1.TaskGroup{Role: strconv.Itoa(i), Request: amounts(1, float64(100-i))}
		for range ofKind {
			group.Tasks = append(group.Tasks, &apportionv1.Task{Status: apportionv1.TaskStatus_TASK_STATUS_PENDING})
		}
		waiting = append(waiting, group)
	}
	s.Jobs = append(s.Jobs, &apportionv1.Job{
		Name: "gang", Queue: "b", Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, MinAvailable: kinds * ofKind,
		CreateTime: 1, Groups: waiting,
	})
	m, err := decode.Compile(s)
	require.NoError(t, err)
	session, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { fair { turns {} } } }`), wire.Options{Work: work})
	require.NoError(t, err)
	question := `allocatable { tasks { indices: 400 } }`
	require.NotNil(t, ask(t, session, question).GetAllocatable())
	var steps []*apportionv1.Step
	for range 1000 {
		for _, status := range []string{"RELEASING", "RUNNING"} {
			steps = append(steps, parse(t, &apportionv1.Step{}, `event { status { tasks { indices: 0 } status: TASK_STATUS_`+status+` } }`),
				parse(t, &apportionv1.Step{}, question))
		}
	}
	answers, err := session.DoAll(steps)
	require.NoError(t, err)
	require.NotNil(t, answers[1].GetAllocatable())
	requireTooMuchWork(t, answers[len(answers)-1], strconv.Itoa(work))
	require.NotNil(t, ask(t, session, question).GetAllocatable(), "the next question has its own work")
	small, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { fair { turns {} } } }`), wire.Options{Work: 20_000})
	require.NoError(t, err)
	requireTooMuchWork(t, ask(t, small, question), "20000")
	require.NotNil(t, ask(t, small, `jobs { jobs { indices: 0 } }`).GetJobs(), "which needs no reservation")
}

func TestAQuestionUnderTurnsWithinItsWorkIsAnsweredAsWithoutBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		aQuestionWithinItsWorkIsAnsweredAsWithoutBound(t, `tiers { plugins { gang {} } plugins { fair { turns {} } } }`)
	})
}
