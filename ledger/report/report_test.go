package report_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/report"
)

const gpu = "nvidia.com/gpu"

// monday is 2026-10-05 00:00 UTC.
const monday = int64(1_791_158_400)

// used returns a ledger in which ann of queue vision used 8 GPUs from Wednesday 00:00 to 06:00, and bob of queue language 1 core from Monday
// until the next one.
func used(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.New(ledger.Options{})
	require.NoError(t, err)
	const hour = 3600
	for _, e := range []ledger.Evidence{
		{
			Task: "train", Start: monday + 48*hour, Path: []string{"vision", "root"}, Owner: "ann", Amounts: map[string]int64{gpu: 8000},
			Seen: monday + 54*hour, End: monday + 54*hour, Ended: true,
		},
		{
			Task: "serve", Start: monday, Path: []string{"language", "root"}, Owner: "bob", Amounts: map[string]int64{"cpu": 1000},
			Seen: monday + 7*24*hour,
		},
	} {
		require.NoError(t, l.Enter(&e, 1<<40))
	}
	return l
}

func answer(t *testing.T, a *report.Asked) *apportionv1alpha1.GetUsageResponse {
	t.Helper()
	out, err := report.Make(used(t), a)
	require.NoError(t, err)
	return out
}

// line writes a period and who used what in it.
func line(out *apportionv1alpha1.GetUsageResponse, x *apportionv1alpha1.UsageInterval) string {
	day := func(nanos int64) string { return time.Unix(0, nanos).UTC().Format("01-02T15") }
	amounts := func(u *apportionv1.Usage) string {
		var all []string
		for i, d := range u.GetDimensions() {
			all = append(all, fmt.Sprint(out.GetDimensions()[d], " ", u.GetQuantumSeconds()[i]))
		}
		return strings.Join(all, ", ")
	}
	parts := []string{day(x.GetStartTime()) + "/" + day(x.GetEndTime())}
	for _, q := range x.GetQueues() {
		name := q.GetQueue()
		if q.Owner != nil {
			name += "/" + q.GetOwner()
		}
		if q.GetUsed() != nil {
			parts = append(parts, name+": "+amounts(q.GetUsed()))
		}
	}
	return strings.Join(parts, "; ")
}

func TestAReportSaysWhoUsedWhatInEachPeriod(t *testing.T) {
	day := func(n int64) *int64 { return new((monday + n*86400) * 1e9) }
	for name, c := range map[string]struct {
		ask   *apportionv1alpha1.GetUsageRequest
		shows func(string) bool
		want  []string
	}{
		"all of it": {
			&apportionv1alpha1.GetUsageRequest{Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_TOTAL}, nil,
			[]string{"10-05T00/10-12T00; language: cpu 604800000; root: nvidia.com/gpu 172800, cpu 604800000; vision: nvidia.com/gpu 172800"},
		},
		"owners of a resource named in short": {
			&apportionv1alpha1.GetUsageRequest{Owners: true, Dimensions: []string{"gpu"}}, nil,
			[]string{"10-05T00/10-12T00; root: nvidia.com/gpu 172800; vision: nvidia.com/gpu 172800; vision/ann: nvidia.com/gpu 172800"},
		},
		"days of a queue": {
			&apportionv1alpha1.GetUsageRequest{
				Queues: []string{"vision"}, Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY, StartTime: day(1), EndTime: day(4),
			}, nil,
			[]string{"10-06T00/10-07T00", "10-07T00/10-08T00; vision: nvidia.com/gpu 172800", "10-08T00/10-09T00"},
		},
		"weeks begin on Monday": {
			&apportionv1alpha1.GetUsageRequest{Queues: []string{"vision"}, StartTime: day(-1), EndTime: day(9)}, nil,
			[]string{"10-04T00/10-05T00", "10-05T00/10-12T00; vision: nvidia.com/gpu 172800", "10-12T00/10-14T00"},
		},
		"months": {
			&apportionv1alpha1.GetUsageRequest{
				Queues: []string{"vision"}, Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_MONTH, StartTime: day(-10), EndTime: day(30),
			}, nil,
			[]string{"09-25T00/10-01T00", "10-01T00/11-01T00; vision: nvidia.com/gpu 172800", "11-01T00/11-04T00"},
		},
		"what the caller may see": {
			&apportionv1alpha1.GetUsageRequest{Owners: true}, func(queue string) bool { return queue == "language" },
			[]string{"10-05T00/10-12T00; language: cpu 604800000; language/bob: cpu 604800000"},
		},
		"a queue that the caller may not see": {
			&apportionv1alpha1.GetUsageRequest{Queues: []string{"vision"}}, func(queue string) bool { return queue == "language" },
			[]string{"10-05T00/10-12T00"},
		},
		"no time": {&apportionv1alpha1.GetUsageRequest{StartTime: day(3), EndTime: day(3)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := answer(t, &report.Asked{GetUsageRequest: c.ask, Shows: c.shows})
			var got []string
			for _, x := range out.GetIntervals() {
				got = append(got, line(out, x))
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestWhatCountsAtTheEndIsWhatASnapshotThenStates(t *testing.T) {
	out := answer(t, &report.Asked{GetUsageRequest: &apportionv1alpha1.GetUsageRequest{Dimensions: []string{gpu}}})
	s := &apportionv1.Snapshot{Dimensions: []string{gpu}, Queues: []*apportionv1.Queue{{Name: "vision"}}}
	used(t).Fill(s, monday+7*86400, nil)
	counts := map[string]int64{}
	for _, q := range out.GetIntervals()[0].GetQueues() {
		if q.GetDecayed() != nil {
			counts[q.GetQueue()] = q.GetDecayed().GetQuantumSeconds()[0]
		}
	}
	require.InDelta(t, s.GetQueues()[0].GetUsage().GetQuantumSeconds()[0], counts["vision"], 1, "it is rounded at each epoch")
	require.Equal(t, counts["vision"], counts["root"])
}

func TestABudgetIsReportedWithThoseWhoSpentIt(t *testing.T) {
	budgets := []ledger.Budget{
		{Queue: "vision", Hard: true, Periods: []ledger.Period{
			{Begin: monday - 86400, Amount: map[string]int64{gpu: 360_000, "cpu": 5}}, {Begin: monday + 7*86400, Amount: map[string]int64{gpu: 360_000}},
		}},
		{Queue: "language", Free: true, Periods: []ledger.Period{{Begin: monday, Amount: map[string]int64{"cpu": 1}}}},
	}
	ask := &apportionv1alpha1.GetUsageRequest{Budgets: true, Owners: true, Dimensions: []string{"gpu"}, EndTime: new((monday + 7*86400 - 1) * 1e9)}
	out := answer(t, &report.Asked{GetUsageRequest: ask, Budgets: budgets})
	require.Len(t, out.GetBudgets(), 1, "the budget of language does not limit GPUs, the next period of vision has not begun")
	b := out.GetBudgets()[0]
	require.Equal(t, "vision", b.GetQueue())
	require.Equal(t, apportionv1.BudgetKind_BUDGET_KIND_HARD, b.GetKind())
	require.True(t, b.GetCarry())
	require.Equal(t, (monday+7*86400)*int64(1e9), b.GetEndTime())
	require.Equal(t, []int64{360_000}, b.GetAmount().GetQuantumSeconds())
	require.Equal(t, []int64{172_800}, b.GetSpent().GetQuantumSeconds())
	var users []string
	for _, u := range b.GetUsers() {
		users = append(users, fmt.Sprint(u.GetQueue(), "/", u.GetOwner(), " ", u.GetUsed().GetQuantumSeconds()))
	}
	require.Equal(t, []string{"vision/ann [172800]"}, users)

	hidden := answer(t, &report.Asked{GetUsageRequest: ask, Budgets: budgets, Shows: func(queue string) bool { return queue == "language" }})
	require.Empty(t, hidden.GetBudgets())
}

func TestAReportSaysWhyThereIsNone(t *testing.T) {
	empty, err := ledger.New(ledger.Options{})
	require.NoError(t, err)
	out, err := report.Make(empty, &report.Asked{GetUsageRequest: &apportionv1alpha1.GetUsageRequest{}})
	require.NoError(t, err)
	require.True(t, proto.Equal(&apportionv1alpha1.GetUsageResponse{}, out), "nothing was used")

	for want, a := range map[string]*report.Asked{
		"until is before from":        {GetUsageRequest: &apportionv1alpha1.GetUsageRequest{StartTime: new(int64(2)), EndTime: new(int64(1))}},
		"more than 4096 periods":      {GetUsageRequest: &apportionv1alpha1.GetUsageRequest{StartTime: new(int64(0)), Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY}},
		report.ErrLarge.Error():       {GetUsageRequest: &apportionv1alpha1.GetUsageRequest{}, Bytes: 60},
		report.ErrLarge.Error() + " ": {GetUsageRequest: &apportionv1alpha1.GetUsageRequest{Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY}, Bytes: 300},
	} {
		_, err := report.Make(used(t), a)
		require.ErrorContains(t, err, strings.TrimSpace(want))
	}
}

// The example of docs/contract.md is an answer about this ledger.
func TestTheExampleOfTheContractIsAnAnswer(t *testing.T) {
	data, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	read := func(name string, into proto.Message) {
		_, after, found := strings.Cut(string(data), "```json "+name+"\n")
		require.True(t, found)
		text, _, _ := strings.Cut(after, "```")
		require.NoError(t, protojson.Unmarshal([]byte(text), into))
	}
	ask, want := &apportionv1alpha1.GetUsageRequest{}, &apportionv1alpha1.GetUsageResponse{}
	read("GetUsageRequest", ask)
	read("GetUsageResponse", want)
	got := answer(t, &report.Asked{GetUsageRequest: ask})
	require.True(t, proto.Equal(want, got), "the answer is\n%s", protojson.Format(got))
}
