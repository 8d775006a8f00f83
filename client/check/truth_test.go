package check_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// policies are those under which true answers are checked.
var policies = []string{
	preset,
	`tiers { plugins { fair { base: FAIR_BASE_DESERVED reserve_guarantee: true } } }`,
	`tiers { plugins { gang {} } plugins { conformance {} } plugins { cooldown {} } plugins { drf {} } plugins { fair {} } }`,
	`tiers { plugins { proportion {} disabled_decisions: [DECISION_OVERUSED] } plugins { fair {} } }`,
	`tiers { plugins { gang {} } plugins { fair { base: FAIR_BASE_DESERVED } } plugins { capacity {} } } tiers { plugins { cooldown {} } }`,
	`tiers { plugins { gang {} } } tiers { plugins { fair {} } }`,
	`tiers { plugins { proportion {} } }`,
}

// everyAmount replaces all amounts of a snapshot.
func everyAmount(m protoreflect.Message, f func(float64) float64) {
	if r, ok := m.Interface().(*apportionv1.Resource); ok {
		for i, x := range r.GetAmounts() {
			r.Amounts[i] = f(x)
		}
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				everyAmount(v.List().Get(i).Message(), f)
			}
		default:
			everyAmount(v.Message(), f)
		}
		return true
	})
}

// drawSnapshot draws a snapshot with amounts as a snapshot may have them: whole, in parts, far beyond 2^53, some of them 0 or unlimited.
func drawSnapshot(t *rapid.T) *apportionv1.Snapshot {
	s := generate.Snapshot(generate.Shape{
		Queues: rapid.IntRange(1, 9).Draw(t, "queues"), Jobs: rapid.IntRange(1, 12).Draw(t, "jobs"),
		Tasks: rapid.IntRange(1, 60).Draw(t, "tasks"), Nodes: rapid.IntRange(1, 8).Draw(t, "nodes"),
		Depth: rapid.IntRange(0, 3).Draw(t, "depth"), Dimensions: rapid.IntRange(2, 6).Draw(t, "dimensions"),
		Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"), Counted: rapid.Bool().Draw(t, "counted"), UIDs: rapid.Bool().Draw(t, "uids"),
		NodeSets: rapid.IntRange(0, 2).Draw(t, "sets"),
	})
	amount := rapid.SampledFrom([]func(float64) float64{
		func(x float64) float64 { return x },
		func(x float64) float64 { return x / 3 },
		func(x float64) float64 { return x/1e6 + 0.1 },
		func(x float64) float64 { return math.Floor(math.Pow(max(x, 1), 1.35)) },
		func(x float64) float64 { return max(x, 1) * math.Pow(max(x, 1), 0.3) },
	}).Draw(t, "amounts")
	everyAmount(s.ProtoReflect(), amount)
	none, dims := rapid.IntRange(0, 9), uint32(len(s.GetDimensions()))
	for _, q := range s.GetQueues() {
		for _, to := range []**apportionv1.Resource{&q.Guarantee, &q.Capability, &q.Deserved} {
			if none.Draw(t, "replaced") > 3 {
				continue
			}
			d := rapid.Uint32Range(0, dims-1).Draw(t, "dimension")
			x := rapid.SampledFrom([]float64{0, 1. / 3, 7, 1e3, 1e6, 1e12}).Draw(t, "amount")
			if to == &q.Capability && none.Draw(t, "unlimited") == 0 {
				x = math.Inf(1)
			}
			*to = &apportionv1.Resource{Dimensions: []uint32{d}, Amounts: []float64{x}}
		}
		if none.Draw(t, "weight") == 0 {
			q.Weight = new(uint32(0))
		}
	}
	protect(s, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "protected"), 1)))
	return s
}

// protect gives some tasks what plugins protect them for.
func protect(s *apportionv1.Snapshot, random *rand.Rand) {
	reserve(s, random)
	for _, j := range s.GetJobs() {
		if random.IntN(6) == 0 {
			j.Namespace = "kube-system"
		}
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				switch random.IntN(8) {
				case 0:
					detail(t).PriorityClass = []string{"system-node-critical", "system-cluster-critical", "high"}[random.IntN(3)]
				case 1:
					detail(t).ScheduleTime, detail(t).Cooldown = new(s.GetAsOf()-random.Int64N(10)), new(random.Int64N(12)-1)
				case 2:
					detail(t).ScheduleTime, detail(t).Cooldown = new(int64(math.MinInt64)), new(int64(math.MaxInt64))
				case 3:
					detail(t).Preemptable = new(random.IntN(2) == 0)
				}
			}
		}
	}
}

// reserve keeps room of some nodes, and says of some jobs when they end.
func reserve(s *apportionv1.Snapshot, random *rand.Rand) {
	if random.IntN(2) == 0 {
		return
	}
	for _, n := range s.GetNodes() {
		for range max(0, random.IntN(5)-2) {
			r := &apportionv1.NodeReservation{StartUnixNano: max(0, s.GetAsOf()+random.Int64N(40)-20)}
			if random.IntN(3) > 0 {
				r.EndUnixNano = r.GetStartUnixNano() + 1 + random.Int64N(40)
			}
			if random.IntN(2) == 0 {
				r.Request = &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{float64(random.IntN(4000))}}
			}
			if j := s.GetJobs()[random.IntN(len(s.GetJobs()))]; random.IntN(2) == 0 {
				r.Holder = cmp.Or(j.GetUid(), j.GetNamespace()+"/"+j.GetName())
			}
			n.Reservations = append(n.Reservations, r)
		}
	}
	for _, j := range s.GetJobs() {
		switch random.IntN(4) {
		case 0:
			j.ExpectedRuntime = 1 + random.Int64N(30)
		case 1:
			j.ExpectedEnd, j.EndIsDeadline = max(1, s.GetAsOf()+random.Int64N(40)-10), random.IntN(2) == 0
		}
	}
}

func detail(t *apportionv1.Task) *apportionv1.TaskDetail {
	if t.GetDetail() == nil {
		t.Detail = &apportionv1.TaskDetail{}
	}
	return t.GetDetail()
}

// TestTrueAnswersPass asks all questions that are checked about random snapshots under many policies: no true answer is refused.
func TestTrueAnswersPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		request := asked(t, s, rapid.SampledFrom(policies).Draw(t, "policy"), fairQuestions(s, 4)...)
		request.Steps = append(request.Steps, plansOf(s, 3)...)
		request.Steps = append(request.Steps, moreQuestions(s, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "questions"), 1)))...)
		request.Steps = append(request.Steps, request.GetSteps()[0], &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
			Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_SHARE}, Queues: &apportionv1.Selector{Indices: []uint32{0}},
		}}})
		if !rapid.Bool().Draw(t, "explain") {
			request.Steps = request.GetSteps()[1:]
		}
		m, err := decode.Compile(s)
		require.NoError(t, err)
		session, err := wire.Open(m, request.GetInput().GetPolicy(), wire.Options{})
		if err != nil {
			t.Skip("the policy refuses the snapshot")
		}
		answers, err := session.DoAll(request.GetSteps())
		require.NoError(t, err)
		report, err := check.Response(request, &apportionv1.SimulateResponse{Basis: session.Basis(), Answers: answers})
		require.NoError(t, err)
		require.Empty(t, report.Faults)
	})
}

// TestTheAnswersOfTheConformanceVectorsPass checks what is recorded for clients of other languages.
func TestTheAnswersOfTheConformanceVectorsPass(t *testing.T) {
	files, err := filepath.Glob("../../testdata/conformance/*/*/1.request.json")
	require.NoError(t, err)
	read := func(t *testing.T, file string, into interface{ ProtoReflect() protoreflect.Message }) {
		t.Helper()
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, protojson.Unmarshal(data, into))
	}
	checked := 0
	for _, file := range files {
		kind, answer := filepath.Base(filepath.Dir(filepath.Dir(file))), filepath.Join(filepath.Dir(file), "2.response.json")
		if _, err := os.Stat(answer); err != nil {
			continue
		}
		request, response := &apportionv1.SimulateRequest{}, &apportionv1.SimulateResponse{}
		switch kind {
		case "Simulate":
			read(t, file, request)
			read(t, answer, response)
		case "EvaluateShares":
			r, a := &apportionv1.EvaluateSharesRequest{}, &apportionv1.EvaluateSharesResponse{}
			read(t, file, r)
			read(t, answer, a)
			request.Input, request.Steps = r.GetInput(), []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: r.GetShares()}}}
			response.Basis, response.Answers = a.GetBasis(), []*apportionv1.Answer{{Answer: &apportionv1.Answer_Shares{Shares: a.GetShares()}}}
		default:
			continue
		}
		if request.GetInput().GetSnapshot() == nil || request.GetInput().GetPolicy() == nil {
			continue
		}
		report, err := check.Response(request, response)
		require.NoError(t, err, file)
		require.Empty(t, report.Faults, file)
		checked++
	}
	require.Greater(t, checked, 6)
}
