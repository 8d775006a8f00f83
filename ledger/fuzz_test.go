package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
)

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
