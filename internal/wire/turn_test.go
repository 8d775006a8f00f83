package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// keptForAGang is a cluster of three nodes, each with one device, on 2025-11-24 at 17:00. The gang of queue b wants two of them and can start
// when the short job of queue a ends, at 18:00, because it has used less than it was entitled to. A job of queue c, which would run for two hours, could have the free one.
const keptForAGang = `as_of: 1764003600000000000 dimensions: "gpu"
	queues { name: "a" } queues { name: "b" usage {} entitled { dimensions: 0 quantum_seconds: 10 } } queues { name: "c" }
	nodes { name: "n0" allocatable { dimensions: 0 amounts: 1000 } }
	nodes { name: "n1" allocatable { dimensions: 0 amounts: 1000 } }
	nodes { name: "n2" allocatable { dimensions: 0 amounts: 1000 } }
	jobs { name: "long" queue: "a" phase: JOB_PHASE_RUNNING groups { request { dimensions: 0 amounts: 1000 } tasks { status: TASK_STATUS_RUNNING node: 0 } } }
	jobs { name: "short" queue: "a" phase: JOB_PHASE_RUNNING expected_end: 1764007200000000000
		groups { request { dimensions: 0 amounts: 1000 } tasks { status: TASK_STATUS_RUNNING node: 1 } } }
	jobs { name: "gang" queue: "b" phase: JOB_PHASE_INQUEUE min_available: 2 create_time: 1 expected_runtime: 1800000000000
		groups { request { dimensions: 0 amounts: 1000 } tasks { status: TASK_STATUS_PENDING } tasks { status: TASK_STATUS_PENDING } } }
	jobs { name: "other" queue: "c" phase: JOB_PHASE_INQUEUE expected_runtime: 7200000000000
		groups { request { dimensions: 0 amounts: 1000 } tasks { status: TASK_STATUS_PENDING } } }
	memory { epoch: 489834 epoch_seconds: 3600 half_life_epochs: 24 offered { dimensions: 0 quantum_seconds: 100000 } }`

func TestAReservationIsPartOfTheAnswersAboutIt(t *testing.T) {
	s := open(t, keptForAGang, `tiers { plugins { gang {} } plugins { fair { turns {} } } }`)
	requireKept := func(r *apportionv1.Reservation) {
		t.Helper()
		require.Equal(t, prototext.Format(parse(t, &apportionv1.Reservation{}, `job: 2 queue: 1 start_time: 1764007200000000000 end_time: 1764009000000000000
			tasks: 2 tasks: 3 nodes: 1 nodes: 2`)), prototext.Format(r))
	}
	jobs := ask(t, s, `explain { jobs { indices: 2 indices: 3 } }`).GetExplain().GetJobs()
	require.Len(t, jobs, 2)
	requireKept(jobs[0].GetReservation())
	require.Contains(t, jobs[0].GetText(), "It holds 2 nodes from 2025-11-24 18:00:00 UTC on.")
	requireKept(jobs[1].GetReservation())
	require.Contains(t, jobs[1].GetText(), "2 nodes are kept free for gang from 2025-11-24 18:00:00 UTC on.")
	requireKept(fairOf(ask(t, s, `shares { explain {} }`)).GetReservation())
	require.Nil(t, fairOf(ask(t, s, `shares { explain { queues { indices: 0 } } }`)).GetReservation(), "its queue was not requested")

	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, keptForAGang))
	require.NoError(t, err)
	s.Restrict(wire.NewAudience(m, func(name string) bool { return name == "c" }))
	other := ask(t, s, `explain { jobs { indices: 3 } }`).GetExplain().GetJobs()[0]
	require.Nil(t, other.GetReservation(), "the reader may not see whose room it is")
	require.NotContains(t, other.GetText(), "for gang")
	require.Contains(t, other.GetText(), "room is kept free for another job of another queue")

	s = open(t, keptForAGang, `tiers { plugins { gang {} } plugins { fair {} } }`)
	require.Nil(t, ask(t, s, `explain { jobs { indices: 2 } }`).GetExplain().GetJobs()[0].GetReservation(), "without turns there is none")
}

// TestSharesSayWhatAReservationKeepsIdle: one of the two nodes of the gang is free, and a job of queue c could use it.
func TestSharesSayWhatAReservationKeepsIdle(t *testing.T) {
	const policy = `tiers { plugins { gang {} } plugins { fair { turns {} } } }`
	reserved := func(a *apportionv1.Answer) (out []string) {
		for _, q := range a.GetShares().GetPlugins()[0].GetQueues() {
			if q.GetReserved() != nil {
				out = append(out, q.GetName()+" "+fmt.Sprint(q.GetReserved().GetAmounts()))
			}
		}
		return out
	}
	s := open(t, keptForAGang, policy)
	require.Equal(t, []string{"b [1000 0 0]"}, reserved(ask(t, s, `shares {}`)))
	require.Equal(t, []string{"b [1000 0 0]"}, reserved(ask(t, s, `shares { fields: SHARE_FIELD_RESERVED }`)))
	require.Empty(t, reserved(ask(t, s, `shares { fields: SHARE_FIELD_DESERVED }`)))

	// What was kept idle is charged: the queue has no turn any more, and is above its line.
	charged := strings.Replace(keptForAGang, `name: "b" usage {}`, `name: "b" usage {} reserved { dimensions: 0 quantum_seconds: 90000 }`, 1)
	charged = strings.Replace(charged, `queues { name: "c" }`, `queues { name: "c" usage {} }`, 1)
	require.Empty(t, reserved(ask(t, open(t, charged, policy), `shares {}`)))
}

func fairOf(a *apportionv1.Answer) *apportionv1.FairDerivation {
	for _, plugin := range a.GetShares().GetPlugins() {
		if plugin.GetFair() != nil {
			return plugin.GetFair()
		}
	}
	return nil
}
