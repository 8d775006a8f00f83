package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/service/history"
)

func fairWith(turns *apportionv1.FairTurns) *apportionv1.Policy {
	return &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Fair{Fair: &apportionv1.Fair{Turns: turns}}},
	}}}}
}

// TestWhatQueuesWereEntitledToBeginsWithWhatTheyUsedAndIsKept takes in versions in which a queue is entitled to 4 cores and then to 2.
func TestWhatQueuesWereEntitledToBeginsWithWhatTheyUsedAndIsKept(t *testing.T) {
	const epoch, used = 3600, 1_000_000
	path := filepath.Join(t.TempDir(), "ledger")
	options := ledger.Options{Epoch: time.Hour}
	begin := int64(1000 * epoch)
	open := func() *Entitled {
		e, err := OpenEntitled(path, options)
		require.NoError(t, err)
		return e
	}
	entitled := func(e *Entitled, after int64) *apportionv1.Usage {
		s := version()
		s.Queues[0].Usage = &apportionv1.Usage{Dimensions: []uint32{0}, QuantumSeconds: []int64{used}}
		e.state(s, begin+after)
		return s.GetQueues()[0].GetEntitled()
	}
	take := func(e *Entitled, after int64, amount float64, turns *apportionv1.FairTurns) {
		require.NoError(t, e.take(&history.Version{
			At: (begin + after) * int64(time.Second), Dimensions: []string{"cpu"},
			Queues: []history.Queue{{Name: "root", Deserved: []float64{9}}, {Name: "q", Deserved: []float64{amount}}},
		}, fairWith(turns)))
	}

	e := open()
	require.Nil(t, entitled(e, 0))
	take(e, 0, 4000, nil)
	_, err := os.Stat(path + entitledSuffix)
	require.ErrorIs(t, err, os.ErrNotExist, "a policy without turns needs no file")
	turns := &apportionv1.FairTurns{}
	take(e, 0, 4000, turns)
	require.Equal(t, []int64{used}, entitled(e, 60).GetQuantumSeconds(), "no queue has credit or debt of before")
	for after := int64(60); after <= 1800; after += 60 {
		take(e, after, 4000, turns)
	}
	take(e, 3660, 2000, turns)
	decayed := entitled(e, 3660).GetQuantumSeconds()[0] - 4000*3600
	require.InDelta(t, used, decayed, used/10)
	require.NoError(t, e.Close())

	e = open()
	require.Equal(t, decayed+4000*3600, entitled(e, 3700).GetQuantumSeconds()[0], "it is the same for the whole epoch, and after a restart")
	take(e, 5400, 2000, turns)
	take(e, 7200, 2000, nil)
	take(e, 9000, 2000, turns)
	stated := entitled(e, 3*3600).GetQuantumSeconds()[0]
	require.InDelta(t, float64(decayed+4000*3600+4000*60+2000*1800), stated, 1_000_000, "what is not seen, or decided without turns, counts nothing")
	require.NoError(t, e.Close())
}

func TestWithoutALedgerNothingIsKept(t *testing.T) {
	var e *Entitled
	require.NoError(t, e.take(&history.Version{}, fairWith(&apportionv1.FairTurns{})))
	e.state(version(), 0)
	require.NoError(t, e.Close())
}

// TestWhatReservationsKeptIdleIsKeptBesideEntitlements takes in versions in which 8 cores stand idle for a gang of a queue that is entitled to 4.
func TestWhatReservationsKeptIdleIsKeptBesideEntitlements(t *testing.T) {
	const epoch = 3600
	e, err := OpenEntitled(filepath.Join(t.TempDir(), "ledger"), ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	begin := int64(1000 * epoch)
	state := func(after int64) *apportionv1.Queue {
		s := version()
		s.Queues[0].Usage = &apportionv1.Usage{}
		e.state(s, begin+after)
		return s.GetQueues()[0]
	}
	take := func(after int64, reserved []float64) {
		require.NoError(t, e.take(&history.Version{
			At: (begin + after) * int64(time.Second), Dimensions: []string{"cpu"},
			Queues: []history.Queue{{Name: "q", Deserved: []float64{4000}, Reserved: reserved}},
		}, fairWith(&apportionv1.FairTurns{})))
	}
	state(0)
	take(0, []float64{8000})
	take(1800, nil)
	take(3660, nil)
	q := state(3660)
	require.Equal(t, []int64{4000 * 3600}, q.GetEntitled().GetQuantumSeconds())
	require.Equal(t, []int64{8000 * 1800}, q.GetReserved().GetQuantumSeconds(), "in quanta of a core's thousandth, as entitlements are")
	require.NoError(t, e.Close())
}
