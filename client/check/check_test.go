package check_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/recording"
	"github.com/apportion/apportion/internal/wire"
)

// recorded is a case of testdata/fair.
type recorded struct{ *recording.Fair }

// reclaims are the recorded questions about plans.
func (r recorded) reclaims() []*apportionv1.Step {
	var list []*apportionv1.Step
	for _, q := range r.Questions {
		if q.Kind != "reclaim" {
			continue
		}
		step := &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Names: q.Claimant}, Candidates: &apportionv1.Selector{Names: q.Candidates}}
		if node, ok := q.Room.(float64); ok {
			step.Room, step.Node = apportionv1.ClaimRoom_CLAIM_ROOM_NODE, &apportionv1.Selector{Indices: []uint32{uint32(node)}}
		}
		list = append(list, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}})
	}
	return list
}

// request asks for the shares of a case with their certificate, and for plans of its first tasks that wait.
func (r recorded) request(t *testing.T) *apportionv1.SimulateRequest {
	t.Helper()
	snapshot, policy, err := r.Input()
	require.NoError(t, err)
	out := &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy}},
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}},
	}
	out.Steps = append(out.Steps, r.reclaims()...)
	number, plans := uint32(0), 0
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				if task.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING && plans < 3 {
					plans++
					out.Steps = append(out.Steps, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{
						Reclaim: &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Indices: []uint32{number}}},
					}})
				}
				number++
			}
		}
	}
	return out
}

func answered(t require.TestingT, r *apportionv1.SimulateRequest) *apportionv1.SimulateResponse {
	m, err := decode.Compile(r.GetInput().GetSnapshot())
	require.NoError(t, err)
	s, err := wire.Open(m, r.GetInput().GetPolicy(), wire.Options{})
	require.NoError(t, err)
	s.Show(false, r.GetInput().GetOmitNames())
	answers, err := s.DoAll(r.GetSteps())
	require.NoError(t, err)
	return &apportionv1.SimulateResponse{Basis: s.Basis(), Answers: answers}
}

// one asks for the shares of a cluster with one queue.
func one(t *testing.T) *apportionv1.SimulateRequest {
	t.Helper()
	return recorded{&recording.Fair{Snapshot: json.RawMessage(`{"dimensions": ["cpu"], "queues": [{"name": "q"}]}`), Settings: recording.FairSettings{Base: "NONE"}}}.request(t)
}

// eachCase calls f with every n-th recorded case.
func eachCase(t *testing.T, n int, f func(t *testing.T, r *apportionv1.SimulateRequest)) {
	t.Helper()
	i := 0
	for line, err := range recording.Lines("../../testdata/fair/cases.jsonl.gz") {
		require.NoError(t, err)
		c, ok := recording.ReadFair(line)
		if !ok {
			continue
		}
		if i++; (i-1)%n == 0 {
			t.Run(c.ID, func(t *testing.T) { f(t, recorded{c}.request(t)) })
		}
	}
}

func TestEveryNumberOfFairIsTrue(t *testing.T) {
	raced.Skip(t)
	plans := 0
	eachCase(t, 1, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		report, err := check.Response(r, response)
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		for _, a := range response.GetAnswers() {
			if a.GetReclaim().GetPlan().GetMade() {
				plans++
			}
		}
	})
	require.Greater(t, plans, 300, "plans are among what is checked")
}

// TestEachNumberThatIsChangedByOneIsFound changes every number of certificates and plans by one, absent ones too, one at a time.
func TestEachNumberThatIsChangedByOneIsFound(t *testing.T) {
	raced.Skip(t)
	changed := 0
	eachCase(t, 97, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		for _, a := range response.GetAnswers() {
			if plan := a.GetReclaim().GetPlan(); plan.GetMade() {
				plan.Refusal = nil
			}
		}
		truth := plain(response)
		try := func(path string) {
			changed++
			report, err := check.Response(r, response)
			require.NoError(t, err)
			require.True(t, len(report.Faults) > 0 || proto.Equal(truth, plain(response)), "%s", path)
		}
		for _, a := range response.GetAnswers() {
			if plan := a.GetReclaim().GetPlan(); plan.GetMade() {
				tamper(plan.ProtoReflect(), "plan", try)
			}
			for _, p := range a.GetShares().GetPlugins() {
				tamper(p.GetFair().ProtoReflect(), "fair", try)
			}
		}
	})
	require.Greater(t, changed, 3000)
}

// tamper calls try with every number of a message one more, then one less, where that is possible.
func tamper(m protoreflect.Message, path string, try func(string)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := path + "." + string(f.Name())
		switch {
		case f.FullName() == "apportion.v1.FairDerivation.queues", f.FullName() == "apportion.v1.FairDerivation.reservation":
			// Claims and turns are not checked.
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for k := range m.Get(f).List().Len() {
				tamper(m.Get(f).List().Get(k).Message(), at+"["+strconv.Itoa(k)+"]", try)
			}
		case f.IsList():
			list := m.Get(f).List()
			for k := range list.Len() {
				tamperValue(list.Get(k), func(v protoreflect.Value) { list.Set(k, v) }, func() { try(at + "[" + strconv.Itoa(k) + "]") })
			}
		case f.Kind() == protoreflect.MessageKind:
			if m.Has(f) {
				tamper(m.Get(f).Message(), at, try)
			}
		case f.Kind() == protoreflect.BoolKind, f.Name() == "queue" && !m.Has(f), f.Name() == "node", f.Name() == "line":
			// A yes is no number, and the root that is no queue has no index. Where the claimant goes is the engine's choice. A plan may be
			// true of two lines: see "A plan states the line under which it was found" in docs/decisions.md.
		default:
			had := m.Has(f)
			tamperValue(m.Get(f), func(v protoreflect.Value) { m.Set(f, v) }, func() { try(at) })
			if !had {
				m.Clear(f)
			}
		}
	}
}

func tamperValue(old protoreflect.Value, set func(protoreflect.Value), try func()) {
	for _, delta := range []int64{1, -1} {
		switch v := old.Interface().(type) {
		case uint32:
			if delta < 0 && v == 0 {
				continue
			}
			set(protoreflect.ValueOfUint32(uint32(int64(v) + delta)))
		case uint64:
			if delta < 0 && v == 0 {
				continue
			}
			set(protoreflect.ValueOfUint64(uint64(int64(v) + delta)))
		case float64:
			set(protoreflect.ValueOfFloat64(v + float64(delta)))
		case protoreflect.EnumNumber:
			set(protoreflect.ValueOfEnum(protoreflect.EnumNumber(int64(v) + delta)))
		case string:
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n == math.MaxInt64 {
				return
			}
			set(protoreflect.ValueOfString(strconv.FormatInt(n+delta, 10)))
		}
		try()
		set(old)
	}
}

func TestASecondDerivationIsThatOfTheFirst(t *testing.T) {
	request := one(t)
	for _, step := range request.GetSteps() {
		if step.GetShares().GetExplain() != nil {
			request.Steps = append(request.Steps, step)
			break
		}
	}
	response := answered(t, request)
	report, err := check.Response(request, response)
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	shares := response.GetAnswers()[len(response.GetAnswers())-1].GetShares()
	shares.Plugins[0].Fair = &apportionv1.FairDerivation{Quanta: []uint64{7}, Total: shares.Plugins[0].Fair.GetTotal()}
	report, err = check.Response(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults)
}

func TestAStepThatFailsLeavesTheStateAsItIs(t *testing.T) {
	request := one(t)
	rollback := &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: 9}}}
	request.Steps = append([]*apportionv1.Step{rollback}, request.GetSteps()...)
	response := answered(t, request)
	require.NotNil(t, response.GetAnswers()[0].GetError())
	for _, a := range response.GetAnswers()[1:] {
		if a.GetShares() != nil {
			a.GetShares().Plugins[0].Queues = nil
		}
	}
	report, err := check.Response(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults)
}

func TestWhatCannotBeCheckedSaysWhy(t *testing.T) {
	whole := one(t)
	response := answered(t, whole)
	for want, change := range map[string]func(*apportionv1.SimulateRequest, *apportionv1.SimulateResponse){
		"no snapshot": func(r *apportionv1.SimulateRequest, _ *apportionv1.SimulateResponse) { r.Input.Source = nil },
		"no policy":   func(r *apportionv1.SimulateRequest, _ *apportionv1.SimulateResponse) { r.Input.Rule = nil },
		"cannot be checked": func(r *apportionv1.SimulateRequest, _ *apportionv1.SimulateResponse) {
			r.GetInput().GetSnapshot().Queues[0].Guarantee = &apportionv1.Resource{Dimensions: []uint32{7}}
		},
	} {
		r, a := proto.CloneOf(whole), proto.CloneOf(response)
		change(r, a)
		_, err := check.Response(r, a)
		require.ErrorContains(t, err, want)
	}
}

// asked requests the shares of a snapshot with their derivation, then some more.
func asked(t require.TestingT, snapshot *apportionv1.Snapshot, policy string, steps ...*apportionv1.Step) *apportionv1.SimulateRequest {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	return &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: p}},
		Steps: append([]*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}}, steps...),
	}
}

func TestAResourceWithTooFewAmountsIsAFault(t *testing.T) {
	request := asked(t, generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1}), preset)
	response := answered(t, request)
	total := response.Answers[0].GetShares().Plugins[0].Fair.Total
	given := proto.CloneOf(total)
	total.Amounts = nil
	report, err := check.Response(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults)

	total.Dimensions, total.Amounts = append(given.GetDimensions(), 99), append(given.GetAmounts(), 0)
	report, err = check.Response(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults, "a dimension that the snapshot does not have")
}

// TestWhatFairDoesNotPromiseIsNotSaidToBeChecked asks what the checker leaves out: it names no answer as checked, and lists each.
func TestWhatFairDoesNotPromiseIsNotSaidToBeChecked(t *testing.T) {
	s := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1})
	for policy, from := range map[string]int{preset: 1, `tiers { plugins { proportion {} } }`: 0, `tiers { plugins { capacity {} } }`: 0} {
		request := asked(t, s, policy, fairQuestions(s, 3)...)
		request.Steps = request.GetSteps()[from:]
		report, err := check.Response(request, answered(t, request))
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		require.Empty(t, report.Checked)
		for i := range request.GetSteps() {
			require.True(t, slices.ContainsFunc(report.Unchecked, func(u check.Unchecked) bool {
				return strings.HasPrefix(u.Field, fmt.Sprintf("answers[%d].", i))
			}), "answer %d is not listed", i)
		}
	}
}
