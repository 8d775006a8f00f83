package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

// crowd is a cluster in which many owners, whose names begin alike, each run a job from a time.
func crowd(name string, owners int, since int64) *apportionv1.Snapshot {
	s, job := cluster(), cluster().GetJobs()[0]
	s.Jobs = nil
	for i := range owners {
		own := proto.CloneOf(job)
		own.Name, own.Owner = fmt.Sprint(name, i), fmt.Sprint(name, i)
		own.Groups[0].Tasks = []*apportionv1.Task{task(own.GetName(), running, since)}
		s.Jobs = append(s.Jobs, own)
	}
	return s
}

// ownersOf returns how many names of owners of queue a begin with a text in what a ledger states at a time.
func ownersOf(l *ledger.Ledger, s *apportionv1.Snapshot, at int64) (named int) {
	l.Fill(s, at, nil)
	for _, o := range s.GetQueues()[1].GetOwners() {
		if o.GetOwner() != "" && len(o.GetUsage().GetQuantumSeconds()) > 0 {
			named++
		}
	}
	return named
}

func TestNamesOfOwnersWithoutUsageMakeRoomForOthers(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, HalfLife: 1, Window: 8, Retain: 24})
	require.NoError(t, err)
	const hour = 3600
	s := crowd("old-", 5000, 1000*hour)
	l.Follow(s, 1001*hour)
	require.Equal(t, 4096, ownersOf(l, s, 1001*hour))
	lines := l.Lines()

	// While the usage of the old names counts, new ones are charged to the queue alone.
	s = crowd("new-", 100, 1001*hour)
	l.Follow(s, 1002*hour)
	require.Equal(t, 4096, ownersOf(l, s, 1002*hour))
	require.Equal(t, lines, l.Lines())

	// Beyond the window they make room, and beyond what is kept for reports they are forgotten.
	for n := int64(1003); n < 1060; n++ {
		l.Follow(crowd("new-", 100, 1001*hour), n*hour)
		if n == 1020 {
			require.Greater(t, l.Lines(), 4000, "reports know the old names")
		}
	}
	s = crowd("new-", 100, 1001*hour)
	s.Jobs = append(s.Jobs, crowd("newer-", 50, 1059*hour).GetJobs()...)
	l.Follow(s, 1060*hour)
	l.Follow(s, 1061*hour)
	require.Equal(t, 50, ownersOf(l, s, 1061*hour), "the first hundred stay charged to the queue: their tasks began without a name")

	// However many names there ever were, those that are kept are bounded.
	for n := int64(1080); n < 1260; n += 60 {
		own := crowd(fmt.Sprint(n, "-"), 5000, n*hour)
		for _, later := range []int64{0, 1, 2, 30} {
			l.Follow(own, (n+later)*hour)
		}
	}
	require.Less(t, l.Lines(), 3*4200)

	// A copy that is read from what was stored is the same, also where numbers of lines are free.
	copied, err := ledger.New(l.Options())
	require.NoError(t, err)
	for _, table := range ledger.Tables() {
		for _, e := range stored(l) {
			if e.Table == table {
				require.NoError(t, copied.Load(e))
			}
		}
	}
	require.Equal(t, l.Usage(1260), copied.Usage(1260))
	require.Equal(t, l.Lines(), copied.Lines())
}

// stored returns what a ledger that was never stored would store.
func stored(l *ledger.Ledger) []ledger.Entry {
	return slices.DeleteFunc(l.Changes(), func(e ledger.Entry) bool { return e.Value == nil })
}

func TestTotalsOfPeriodsAreThoseOfSingleQuestions(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, HalfLife: 4, Window: 32, Retain: 200})
	require.NoError(t, err)
	const hour = 3600
	for i := range int64(300) {
		begin := 1000*hour + i*i%101*hour + i
		e := ledger.Evidence{
			Task: fmt.Sprint(i), Start: begin, Path: [][]string{{"a", "dept", "root"}, {"b", "dept", "root"}, {"c", "root"}}[i%3],
			Owner: fmt.Sprint("o", i%4), Amounts: map[string]int64{"cpu": 1000 + i, "gpu": i % 5 * 1000}, Seen: begin + i*100,
		}
		require.NoError(t, l.Enter(&e, 1<<40))
		if i%50 == 0 {
			l.Seal()
		}
	}
	bounds := []int64{1010, 1011, 1040, 1040, 1100, 1300}
	seen := 0
	l.Totals(bounds, nil, func(p *ledger.Totals) bool {
		require.Equal(t, seen, p.Period)
		seen++
		require.Equal(t, l.Spent(bounds[p.Period], bounds[p.Period+1]), p.Used)
		ever := l.Spent(0, bounds[p.Period+1])
		for line, exact := range l.Usage(bounds[p.Period+1]) {
			if line.Owned {
				continue
			}
			for d := range exact {
				// What is older than the window counts less than 1/256, and it is rounded down for each epoch with use of each line.
				require.InDelta(t, exact[d], p.Decayed[line.Queue][d], float64(ever[line][d])/256+500, "%v", line)
			}
		}
		return true
	})
	require.Equal(t, len(bounds)-1, seen)

	only := map[string]bool{}
	l.Totals([]int64{1000, 1100}, func(q string) bool { return q == "a" }, func(p *ledger.Totals) bool {
		for line := range p.Used {
			only[line.Queue] = true
		}
		for queue := range p.Decayed {
			only[queue] = true
		}
		return true
	})
	require.Equal(t, []string{"a"}, slices.Collect(maps.Keys(only)))
	l.Totals(bounds, nil, func(p *ledger.Totals) bool {
		require.Zero(t, p.Period, "it ends when the caller has enough")
		return false
	})
}

func TestALedgerOfAnotherClusterIsRefused(t *testing.T) {
	one, err := ledger.New(ledger.Options{})
	require.NoError(t, err)
	other, err := ledger.New(ledger.Options{})
	require.NoError(t, err)
	require.NoError(t, one.Identify(""))
	require.NoError(t, one.Merge(other), "a ledger that does not know its cluster is merged as before")
	require.NoError(t, one.Identify("one"))
	require.NoError(t, one.Identify("one"))
	require.NoError(t, other.Identify("other"))
	require.ErrorIs(t, one.Merge(other), ledger.ErrCluster)
	require.ErrorIs(t, one.Identify("other"), ledger.ErrCluster)
	other.Adopt("one")
	require.NoError(t, one.Merge(other))
}
