package ledger_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/ledger"
)

// twin answers as a ledger does, from all evidence there ever was, one by one, in big integers.
type twin struct {
	options ledger.Options
	tasks   map[string]ledger.Evidence
}

func (t *twin) see(e ledger.Evidence) {
	k := fmt.Sprint(e.Start, " ", e.Task)
	own, known := t.tasks[k]
	if !known {
		t.tasks[k] = e
		return
	}
	own.Seen = max(own.Seen, e.Seen)
	if e.Ended && (!own.Ended || e.End < own.End) {
		own.End, own.Ended = e.End, true
	}
	if triple(&e) < triple(&own) {
		own.Path, own.Owner, own.Amounts = e.Path, e.Owner, e.Amounts
	}
	t.tasks[k] = own
}

// triple is a text that sorts as path, owner and amounts do, for names without characters below '!'.
func triple(e *ledger.Evidence) string {
	text := strings.Join(e.Path, "\x01") + "\x00" + e.Owner + "\x00"
	for _, name := range []string{"cpu", "gpu", "memory"} {
		text += fmt.Sprintf("%020d", e.Amounts[name])
	}
	return text
}

func quantumOf(name string) int64 {
	return map[string]int64{"cpu": 1, "memory": 1 << 20, "gpu": 1000}[name]
}

// usage is the sum over epochs from begin to before end, weighted by 2^-62 · factor.
func (t *twin) usage(begin, end int64, factor func(n int64) *big.Int) map[ledger.Line]map[string]int64 {
	seconds := int64(t.options.Epoch / time.Second)
	raw := map[ledger.Line]map[string]*big.Int{}
	for _, e := range t.tasks {
		until := e.Seen
		if e.Ended {
			until = e.End
		}
		lines := []ledger.Line{{Queue: e.Path[0], Owner: e.Owner, Owned: true}}
		for _, queue := range e.Path {
			lines = append(lines, ledger.Line{Queue: queue})
		}
		for n := begin; n < end; n++ {
			both := min(until, (n+1)*seconds) - max(e.Start, n*seconds)
			if both <= 0 {
				continue
			}
			for _, to := range lines {
				for name, amount := range e.Amounts {
					if raw[to] == nil {
						raw[to] = map[string]*big.Int{}
					}
					if raw[to][name] == nil {
						raw[to][name] = new(big.Int)
					}
					x := new(big.Int).Mul(big.NewInt(amount), big.NewInt(both))
					raw[to][name].Add(raw[to][name], x.Mul(x, factor(n)))
				}
			}
		}
	}
	out := map[ledger.Line]map[string]int64{}
	for to, amounts := range raw {
		for name, x := range amounts {
			if n := new(big.Int).Quo(x.Rsh(x, 62), big.NewInt(quantumOf(name))); n.Sign() > 0 {
				if out[to] == nil {
					out[to] = map[string]int64{}
				}
				out[to][name] = clipped(n)
			}
		}
	}
	return out
}

func clipped(n *big.Int) int64 {
	if !n.IsInt64() {
		return 1<<63 - 1
	}
	return n.Int64()
}

func (t *twin) decayed(epoch int64) map[ledger.Line]map[string]int64 {
	lambda := new(big.Int).SetUint64(ledger.Lambda(t.options.HalfLife))
	d := []*big.Int{new(big.Int).Lsh(big.NewInt(1), 62)}
	for len(d) < t.options.Window {
		next := new(big.Int).Mul(d[len(d)-1], lambda)
		d = append(d, next.Rsh(next, 62))
	}
	return t.usage(epoch-int64(t.options.Window), epoch, func(n int64) *big.Int { return d[epoch-1-n] })
}

func (t *twin) spent(begin, end int64) map[ledger.Line]map[string]int64 {
	whole := new(big.Int).Lsh(big.NewInt(1), 62)
	return t.usage(begin, end, func(int64) *big.Int { return whole })
}

// named returns usage by names, without zeros.
func named(l *ledger.Ledger, usage map[ledger.Line][]int64) map[ledger.Line]map[string]int64 {
	out := map[ledger.Line]map[string]int64{}
	for to, v := range usage {
		for d, amount := range v {
			if amount == 0 {
				continue
			}
			if out[to] == nil {
				out[to] = map[string]int64{}
			}
			out[to][l.Dimensions()[d]] = amount
		}
	}
	return out
}

const clock = 2000

// evidences draws evidence about few tasks, so that much of it is about the same.
func evidences(t *rapid.T) []ledger.Evidence {
	paths := [][]string{{"a", "root"}, {"a"}, {"b", "p", "root"}, {"c", "p", "root"}, {"p", "root"}}
	amount := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.SampledFrom([]int64{0, 1 << 40, 1<<63 - 1}))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Evidence {
		start := rapid.Int64Range(-300, clock).Draw(t, "start")
		e := ledger.Evidence{
			Task: rapid.SampledFrom([]string{"t0", "t1", "t2", "t3"}).Draw(t, "task"), Start: start / 200 * 200,
			Path:  rapid.SampledFrom(paths).Draw(t, "path"),
			Owner: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "owner"),
			Amounts: map[string]int64{
				"cpu": amount.Draw(t, "cpu"), "gpu": amount.Draw(t, "gpu"), "memory": amount.Draw(t, "memory"),
			},
			Seen: rapid.Int64Range(-300, clock+3600).Draw(t, "seen"), Ended: rapid.Bool().Draw(t, "ended"),
		}
		if e.Ended {
			e.End = rapid.Int64Range(-300, clock+3600).Draw(t, "end")
		}
		return e
	}), 0, 30).Draw(t, "evidence")
}

func drawOptions(t *rapid.T) ledger.Options {
	return ledger.Options{
		Epoch:    time.Duration(rapid.SampledFrom([]int64{1, 10, 60, 500}).Draw(t, "epoch")) * time.Second,
		HalfLife: rapid.SampledFrom([]int{1, 3, 28, 512}).Draw(t, "half-life"), Window: rapid.IntRange(1, 64).Draw(t, "window"),
	}
}

func taken(t require.TestingT, o ledger.Options, evidence []ledger.Evidence) *ledger.Ledger {
	l, err := ledger.New(o)
	require.NoError(t, err)
	for i := range evidence {
		require.NoError(t, l.Enter(&evidence[i], clock))
	}
	return l
}

func TestALedgerAnswersAsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, evidence := drawOptions(t), evidences(t)
		l := taken(t, o, evidence)
		other := &twin{options: o, tasks: map[string]ledger.Evidence{}}
		for i := range evidence {
			other.see(evidence[i])
		}
		epoch := l.EpochOf(rapid.Int64Range(-100, 3000).Draw(t, "now"))
		require.Equal(t, other.decayed(epoch), named(l, l.Usage(epoch)))
		begin := epoch - rapid.Int64Range(0, 50).Draw(t, "back")
		require.Equal(t, other.spent(begin, epoch), named(l, l.Spent(begin, epoch)))
	})
}

// answers is what a ledger says about several epochs.
func answers(l *ledger.Ledger) []any {
	var out []any
	for _, at := range []int64{0, 500, 1000, 2000, 6000} {
		n := l.EpochOf(at)
		out = append(out, named(l, l.Usage(n)), named(l, l.Spent(n-40, n)))
	}
	return out
}

func TestEvidenceInAnyOrderAndNumberGivesTheSameLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, evidence := drawOptions(t), evidences(t)
		again := append(rapid.Permutation(evidence).Draw(t, "order"), evidence...)
		require.Equal(t, answers(taken(t, o, evidence)), answers(taken(t, o, again)))
	})
}

func TestReplicasMergeToWhatOneWouldHaveSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, evidence := drawOptions(t), evidences(t)
		whole := answers(taken(t, o, evidence))
		var parts [3][]ledger.Evidence
		for i := range evidence {
			n := rapid.IntRange(0, 2).Draw(t, "replica")
			parts[n] = append(parts[n], evidence[i])
			if rapid.Bool().Draw(t, "twice") {
				parts[(n+1)%3] = append(parts[(n+1)%3], evidence[i])
			}
		}
		merged := taken(t, o, parts[2])
		for _, n := range rapid.Permutation([]int{0, 1, 2, 0}).Draw(t, "order") {
			require.NoError(t, merged.Merge(taken(t, o, parts[n])))
		}
		require.Equal(t, whole, answers(merged))
	})
}

func TestSealingChangesNoUsageAndLaterEvidenceOfSealedEpochsIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, evidence := drawOptions(t), evidences(t)
		o.Retain = 6000
		l := taken(t, o, evidence)
		before := answers(l)
		l.Seal()
		require.Equal(t, before, answers(l))
		known := &twin{tasks: map[string]ledger.Evidence{}}
		for i := range evidence {
			known.see(evidence[i])
		}
		for _, e := range known.tasks {
			require.NoError(t, l.Enter(&e, clock))
		}
		require.Equal(t, before, answers(l), "what is known of a task changes nothing")
		other := taken(t, o, evidence)
		require.NoError(t, other.Merge(l))
		require.Equal(t, before, answers(other))
		require.NoError(t, l.Merge(other))
		require.Equal(t, before, answers(l))
	})
}

// reread returns a ledger that was read from what another one stores.
func reread(t require.TestingT, o ledger.Options, l *ledger.Ledger) *ledger.Ledger {
	out, err := ledger.New(o)
	require.NoError(t, err)
	byTable := map[ledger.Table][]ledger.Entry{}
	for _, e := range l.Changes() {
		byTable[e.Table] = append(byTable[e.Table], e)
	}
	for _, table := range ledger.Tables() {
		for _, e := range byTable[table] {
			if e.Value != nil {
				require.NoError(t, out.Load(e))
			}
		}
	}
	return out
}

func TestAStoredLedgerIsReadAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, evidence := drawOptions(t), evidences(t)
		l := taken(t, o, evidence)
		if rapid.Bool().Draw(t, "sealed") {
			l.Seal()
		}
		l.Offer(rapid.Int64Range(-300, clock).Draw(t, "offered"), map[string]int64{"cpu": 8000, "gpu": 8000})
		row := l.Row(clock, []ledger.Queue{{Name: "root", Weight: 1}, {Name: "p", Parent: "root", Weight: 2}, {Name: "a", Parent: "root", Weight: 1}},
			[]ledger.Budget{{Queue: "a", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 5}}}}})
		again := reread(t, o, l)
		require.Equal(t, answers(l), answers(again))
		require.Equal(t, l.Counts(), again.Counts())
		require.Equal(t, row, again.Row(clock, nil, []ledger.Budget{{Queue: "a", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 5}}}}}))
	})
}

func TestUsageOfTheNextEpochIsTheDecayedUsagePlusTheNewBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evidence := evidences(t)
		for i := range evidence {
			for name := range evidence[i].Amounts {
				evidence[i].Amounts[name] %= 1 << 30
			}
		}
		o := ledger.Options{Epoch: 10 * time.Second, HalfLife: rapid.SampledFrom([]int{1, 28, 512}).Draw(t, "h"), Window: 5000}
		l := taken(t, o, evidence)
		lambda := new(big.Int).SetUint64(ledger.Lambda(o.HalfLife))
		epoch := rapid.Int64Range(0, 500).Draw(t, "epoch")
		before, after, bucket := named(l, l.Usage(epoch)), named(l, l.Usage(epoch+1)), named(l, l.Spent(epoch, epoch+1))
		for to, amounts := range after {
			for name, u := range amounts {
				aged := new(big.Int).Mul(big.NewInt(before[to][name]), lambda)
				require.InDelta(t, u, aged.Rsh(aged, 62).Int64()+bucket[to][name], 2)
			}
		}
	})
}

func TestAParentUsedWhatItsChildrenAndOwnersUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evidence := evidences(t)
		// Every task is in a leaf of one tree: what is below p, and a.
		evidence = slices.DeleteFunc(evidence, func(e ledger.Evidence) bool { return len(e.Path) < 2 || e.Path[0] == "p" })
		l := taken(t, ledger.Options{Epoch: 10 * time.Second, Quanta: map[string]uint64{"cpu": 1, "gpu": 1, "memory": 1}}, evidence)
		used := named(l, l.Spent(-100, 600))
		add := func(lines ...ledger.Line) map[string]int64 {
			total := map[string]*big.Int{}
			for _, to := range lines {
				for name, n := range used[to] {
					if total[name] == nil {
						total[name] = new(big.Int)
					}
					total[name].Add(total[name], big.NewInt(n))
				}
			}
			out := map[string]int64{}
			for name, n := range total {
				out[name] = clipped(n)
			}
			return out
		}
		whole := func(to ledger.Line) map[string]int64 {
			if used[to] == nil {
				return map[string]int64{}
			}
			return maps.Clone(used[to])
		}
		require.Equal(t, whole(ledger.Line{Queue: "root"}), add(ledger.Line{Queue: "a"}, ledger.Line{Queue: "p"}))
		require.Equal(t, whole(ledger.Line{Queue: "p"}), add(ledger.Line{Queue: "b"}, ledger.Line{Queue: "c"}))
		var owners []ledger.Line
		for to := range used {
			if to.Owned && to.Queue == "a" {
				owners = append(owners, to)
			}
		}
		require.Equal(t, whole(ledger.Line{Queue: "a"}), add(owners...))
	})
}

func TestLambdaIsTheLargestFactorThatHalves(t *testing.T) {
	for h := 1; h <= ledger.MaxHalfLife; h++ {
		bound := new(big.Int).Lsh(big.NewInt(1), uint(62*h))
		twice := func(x uint64) *big.Int {
			n := new(big.Int).SetUint64(x)
			n.Exp(n, big.NewInt(int64(h)), nil)
			return n.Lsh(n, 1)
		}
		require.LessOrEqual(t, twice(ledger.Lambda(h)).Cmp(bound), 0, h)
		require.Positive(t, twice(ledger.Lambda(h)+1).Cmp(bound), h)
	}
	require.Equal(t, uint64(4498924032849676379), ledger.Lambda(28))
}
