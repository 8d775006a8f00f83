package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/ledger"
)

// hours is an amount of cpu for some hours, as evidence of one task that ran from an hour on.
func hours(task, queue string, cpu, from, until int64) *ledger.Evidence {
	return &ledger.Evidence{
		Task: task, Start: from * 3600, Path: []string{queue, "root"}, Amounts: map[string]int64{"cpu": cpu}, Seen: until * 3600,
		End: until * 3600, Ended: true,
	}
}

func hourly(t *testing.T, evidence ...*ledger.Evidence) *ledger.Ledger {
	t.Helper()
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, HalfLife: 1, Window: 8})
	require.NoError(t, err)
	for _, e := range evidence {
		require.NoError(t, l.Enter(e, 1<<30))
	}
	return l
}

var tree = []ledger.Queue{{Name: "a", Parent: "root", Weight: 3}, {Name: "b", Parent: "root", Weight: 1}, {Name: "root", Weight: 1}}

func TestANewQueueIsAbsentUntilTheNextEpochAndThenStartsWithTheAverage(t *testing.T) {
	l := hourly(t, hours("1", "a", 9000, 0, 10), hours("2", "b", 1000, 0, 10))
	row := l.Row(10*3600, tree, nil)
	require.Len(t, row.Queues, 3)
	u := row.Queues["a"][0] + row.Queues["b"][0]

	with := append(tree[:3:3], ledger.Queue{Name: "new", Parent: "root", Weight: 2, Created: 10*3600 + 1800}) //nolint:gocritic // A copy.
	row = l.Row(10*3600+1800, with, nil)
	require.NotContains(t, row.Queues, "new", "the row of an epoch stays")

	row = l.Row(11*3600, with, nil)
	// A half of what they had, for nothing ran since, is the sum of weight 4.
	half := row.Queues["a"][0] + row.Queues["b"][0]
	require.InDelta(t, u/2, half, float64(u)/256, "one epoch leaves the window")
	require.Equal(t, []int64{2 * half / 4}, row.Queues["new"])
	require.Equal(t, row.Queues["new"], row.Starting["new"])
	before := row.Queues["new"][0]

	row = l.Row(12*3600, with, nil)
	require.Empty(t, row.Starting)
	require.InDelta(t, before/2, row.Queues["new"][0], 1, "starting usage decays, and is given once")
	require.NotContains(t, l.Usage(12), ledger.Line{Queue: "new"}, "nobody is charged for it")
}

// TestDividingTasksChangesNoUsage cuts tasks into several that together have the same amounts for the same time.
func TestDividingTasksChangesNoUsage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		whole, parts := hourly(t), hourly(t)
		for i := range rapid.IntRange(1, 8).Draw(rt, "tasks") {
			start := rapid.Int64Range(0, 20*3600).Draw(rt, "start")
			end := start + rapid.Int64Range(2, 9*3600).Draw(rt, "length")
			cpu := rapid.Int64Range(2, 1<<40).Draw(rt, "cpu")
			cut, share := rapid.Int64Range(start+1, end-1).Draw(rt, "cut"), rapid.Int64Range(1, cpu-1).Draw(rt, "share")
			run := func(l *ledger.Ledger, name string, cpu, from, until int64) {
				require.NoError(rt, l.Enter(&ledger.Evidence{
					Task: fmt.Sprint(name, i), Start: from, Path: []string{[]string{"a", "b"}[i%2], "root"}, Owner: name[:1],
					Amounts: map[string]int64{"cpu": cpu}, Seen: until, End: until, Ended: true,
				}, 1<<30))
			}
			run(whole, "t", cpu, start, end)
			run(parts, "t1", share, start, end)
			run(parts, "t2", cpu-share, start, cut)
			run(parts, "t3", cpu-share, cut, end)
		}
		for _, epoch := range []int64{5, 20, 29, 40} {
			require.Equal(rt, whole.Usage(epoch), parts.Usage(epoch))
		}
	})
}

func TestUsageFromBeforeALedgerDecaysLikeItsOwn(t *testing.T) {
	l := hourly(t)
	l.Offer(10*3600, map[string]int64{"cpu": 10})
	l.Start(10, map[string]map[string]int64{"a": {"cpu": 1001}, "root": {"cpu": 1001}},
		map[string]map[string]map[string]int64{"a": {"ann": {"cpu": 1001}}})
	row := l.Row(10*3600, tree, nil)
	require.Equal(t, []int64{1001}, row.Owners["a"]["ann"])
	require.Equal(t, []int64{1001}, row.Queues["a"])
	require.NotContains(t, row.Queues, "b", "it is not known")
	require.NoError(t, l.Enter(hours("1", "a", 3, 10, 11), 1<<30))
	row = l.Row(11*3600, tree, nil)
	require.Equal(t, []int64{1001/2 + 3*3600}, row.Queues["a"])
	require.Equal(t, []int64{(1001/2 + 3*3600) / 3}, row.Queues["b"], "a new queue starts with the average: a has three times its weight")
	require.Equal(t, []int64{1001 / 2}, row.Owners["a"]["ann"])

	// It is the same after a restart.
	copied := hourly(t)
	for _, table := range ledger.Tables() {
		for _, e := range stored(l) {
			if e.Table == table {
				require.NoError(t, copied.Load(e))
			}
		}
	}
	for _, l := range []*ledger.Ledger{l, copied} {
		row = l.Row(12*3600, tree, nil)
		require.Equal(t, []int64{(1001/2 + 3*3600) / 2}, row.Queues["a"])
		require.Equal(t, []int64{1001 / 4}, row.Owners["a"]["ann"])
	}
}

func TestAQueueWithoutWeightOrSiblingsStartsWithNothing(t *testing.T) {
	l := hourly(t, hours("1", "a", 9000, 0, 10))
	l.Row(10*3600, tree, nil)
	with := append(tree[:3:3], //nolint:gocritic // A copy.
		ledger.Queue{Name: "none", Parent: "root"}, ledger.Queue{Name: "alone", Parent: "a", Weight: 1})
	l.Row(10*3600+1, with, nil)
	row := l.Row(11*3600, with, nil)
	require.Empty(t, row.Starting)
	require.Equal(t, []int64{0}, row.Queues["b"], "it was there before the ledger")
	require.Equal(t, []int64{0}, row.Queues["none"])
	require.Equal(t, []int64{0}, row.Queues["alone"])
}

func TestAQueueOfTheSameNameHasTheOldHistory(t *testing.T) {
	l := hourly(t, hours("1", "a", 9000, 0, 10), hours("2", "b", 1000, 0, 10))
	l.Row(10*3600, tree, nil)
	l.Row(11*3600, tree[1:], nil)
	row := l.Row(12*3600, tree, nil)
	require.Empty(t, row.Starting)
	require.Positive(t, row.Queues["a"][0])
}

func TestLateEvidenceDoesNotChangeARow(t *testing.T) {
	l := hourly(t, hours("1", "a", 9000, 0, 10))
	before := l.Row(10*3600, tree, nil)
	require.NoError(t, l.Enter(hours("2", "a", 9000, 0, 10), 1<<30))
	require.Equal(t, before, l.Row(10*3600, tree, nil))
	require.Greater(t, l.Row(11*3600, tree, nil).Queues["a"][0], before.Queues["a"][0]/2)
}

func TestReplicasAdoptTheRowWithTheSmallestDigest(t *testing.T) {
	one, other := hourly(t, hours("1", "a", 9000, 0, 10)), hourly(t, hours("2", "b", 500, 0, 10))
	rows := []*ledger.Row{one.Row(10*3600, tree, nil), other.Row(10*3600, tree, nil)}
	require.NotEqual(t, rows[0], rows[1])
	require.NoError(t, one.Merge(other))
	require.NoError(t, other.Merge(one))
	require.Equal(t, one.Row(10*3600, tree, nil), other.Row(10*3600, tree, nil))
	require.Contains(t, rows, one.Row(10*3600, tree, nil))
}

func TestAYoungLedgerAssumesThatTheClusterAlwaysOfferedWhatItOffersNow(t *testing.T) {
	l := hourly(t)
	require.Empty(t, l.Offered(10))
	l.Offer(10*3600, map[string]int64{"cpu": 1000})
	// The window of 8 epochs at a half-life of one: 1 + 1/2 + … + 1/128, each of 3,600 seconds.
	whole := int64(1000 * 3600 * 255 / 128)
	require.InDelta(t, whole, l.Offered(10)[0], 8)
	l.Offer(10*3600+60, map[string]int64{"cpu": 5000})
	require.InDelta(t, whole, l.Offered(11)[0], 8, "the first offer of an epoch counts")
	l.Offer(11*3600, map[string]int64{"cpu": 0})
	require.InDelta(t, whole-1000*3600, l.Offered(12)[0], 8)
	require.InDelta(t, whole-1000*3600*3/2, l.Offered(13)[0], 8, "an epoch without an offer counts as the one before")
}

func TestEvidenceThatIsInvalidIsRefusedWithAllItsFaults(t *testing.T) {
	l := hourly(t)
	err := l.Enter(&ledger.Evidence{
		Start: 5000, Path: []string{"a", "a"}, Amounts: map[string]int64{"gpu": -1, "cpu": 1}, Seen: 3600, End: -1 << 62, Ended: true,
	}, 0)
	require.EqualError(t, err, "start: 5000 is more than an hour after the clock, which is at 0\nend: -4611686018427387904 is too long ago\n"+
		"path: a queue is named twice\namounts: -1 of gpu is below 0")
	require.ErrorContains(t, l.Enter(&ledger.Evidence{}, 0), "path: there is no queue")
	require.Equal(t, ledger.Counts{Refused: 2}, l.Counts())
}

func TestATaskSeenAgainAfterAGapUsedTheGap(t *testing.T) {
	l := hourly(t)
	e := hours("1", "a", 1000, 0, 1)
	e.Ended = false
	require.NoError(t, l.Enter(e, 1<<30))
	require.Equal(t, int64(3600*1000), l.Spent(0, 9)[ledger.Line{Queue: "a"}][0])
	e.Seen = 5 * 3600
	require.NoError(t, l.Enter(e, 1<<30))
	require.Equal(t, int64(5*3600*1000), l.Spent(0, 9)[ledger.Line{Queue: "a"}][0])
}

func TestOneTaskAloneSealsNothing(t *testing.T) {
	l := hourly(t, hours("1", "a", 1000, 0, 20))
	l.Seal()
	require.NoError(t, l.Enter(hours("2", "a", 1000, 0, 1), 1<<30))
	require.Zero(t, l.Counts().Late)
	require.NoError(t, l.Enter(hours("3", "a", 1000, 19, 20), 1<<30))
	l.Seal()
	require.Equal(t, 2, l.Records(), "the task that ended long ago is in cells")
	require.NoError(t, l.Enter(hours("4", "a", 1000, 0, 1), 1<<30))
	require.Equal(t, uint64(1), l.Counts().Late)
	require.Equal(t, 2, l.Records())
}

func TestTheNextPeriodPaysForWhatABudgetOverspent(t *testing.T) {
	l := hourly(t, hours("1", "a", 1, 0, 30))
	periods := []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 3600}}, {Begin: 36000, Amount: map[string]int64{"cpu": 7200}}}
	accounts := l.Accounts("a", true, periods, 15)
	require.Equal(t, map[string]int64{"cpu": 36000}, accounts[0].Spent)
	require.Equal(t, int64(7200-(36000-3600)), accounts[1].Granted["cpu"].Int64())
	require.Equal(t, map[string]int64{"cpu": 5 * 3600}, accounts[1].Spent)

	row := l.Row(15*3600, tree, []ledger.Budget{{Queue: "a", Hard: true, Periods: periods}})
	require.Equal(t, &ledger.Allowance{
		Begin: 36000, Amount: map[string]int64{"cpu": 7200}, Granted: map[string]int64{"cpu": 0}, Spent: map[string]int64{"cpu": 5 * 3600},
	}, row.Budgets["a"])
	row = l.Row(15*3600, tree, []ledger.Budget{{Queue: "a", Hard: true, Free: true, Periods: periods}})
	require.Equal(t, map[string]int64{"cpu": 0}, row.Budgets["a"].Granted, "a row stays until the period is another")
	require.Empty(t, l.Row(15*3600, tree, []ledger.Budget{{Queue: "a", Periods: []ledger.Period{{Begin: 1 << 30}}}}).Budgets)
}

// FuzzLoad reads values that no ledger wrote. They are refused, or read without a panic and answered.
func FuzzLoad(f *testing.F) {
	l, err := ledger.New(ledger.Options{Epoch: time.Minute, HalfLife: 3})
	require.NoError(f, err)
	for i, task := range []string{"a", "b", "c"} {
		require.NoError(f, l.Enter(&ledger.Evidence{
			Task: task, Start: 10, Path: []string{"q", "root"}, Owner: "ann", Amounts: map[string]int64{"cpu": 4000}, Seen: 1000 + int64(i),
		}, 2000))
	}
	l.Offer(100, map[string]int64{"cpu": 64000})
	l.Row(1000, []ledger.Queue{{Name: "q", Parent: "root", Weight: 1}}, nil)
	l.Seal()
	for _, e := range l.Changes() {
		f.Add(string(e.Table), e.Key, e.Value)
	}
	f.Fuzz(func(t *testing.T, table string, key, value []byte) {
		l, err := ledger.New(ledger.Options{Epoch: time.Minute, HalfLife: 3})
		require.NoError(t, err)
		head := l.Changes()[0]
		for _, e := range []ledger.Entry{
			head,
			{Table: ledger.TableLine, Key: []byte{0, 0, 0, 0}, Value: []byte{1, 1, 'q', 0}},
			{Table: ledger.Table(table), Key: key, Value: value},
		} {
			_ = l.Load(e)
		}
		l.Seal()
		l.Usage(40)
		l.Row(2400, []ledger.Queue{{Name: "q", Weight: 1}}, nil)
	})
}
