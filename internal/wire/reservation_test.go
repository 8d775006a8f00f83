package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

const reservedNodes = `
	as_of: 1000 dimensions: ["gpu", "cpu"]
	nodes {
		name: "n" allocatable { dimensions: [0, 1] amounts: [8, 9000] }
		reservations { start_unix_nano: 2000 end_unix_nano: 3000 reason: "maintenance" }
		reservations { start_unix_nano: 4000 holder: "ns/j" request { dimensions: [1, 0] amounts: [3000, 4] } }
		reservations { end_unix_nano: 5 request {} }
	}
	queues { name: "q" }
	jobs { name: "j" namespace: "ns" queue: "q" groups { request { dimensions: 1 amounts: 2000 } tasks { uid: "t" } } }
	jobs { name: "k" namespace: "ns" queue: "q" expected_runtime: 1000 groups { request { dimensions: 1 amounts: 2000 } tasks { uid: "u" } } }`

// TestReservationsComeBackAsTheyWereGiven reads a snapshot in both forms, describes it, and reads it again.
func TestReservationsComeBackAsTheyWereGiven(t *testing.T) {
	given := parse(t, &apportionv1.Snapshot{}, reservedNodes)
	decoded, err := decode.Compile(given)
	require.NoError(t, err)
	data, err := proto.Marshal(given)
	require.NoError(t, err)
	read, err := new(decode.Decoder).CompileWithin(data, decode.Guard{})
	require.NoError(t, err)
	for range 2 {
		for _, s := range []*apportionv1.Snapshot{decode.SnapshotOf(decoded), decode.SnapshotOf(read)} {
			list := s.GetNodes()[0].GetReservations()
			require.Len(t, list, 3)
			require.True(t, proto.Equal(given.GetNodes()[0].GetReservations()[0], list[0]), list[0])
			require.Equal(t, "ns/j", list[1].GetHolder())
			amounts := map[string]float64{}
			for i, d := range list[1].GetRequest().GetDimensions() {
				amounts[s.GetDimensions()[d]] = list[1].GetRequest().GetAmounts()[i]
			}
			require.Equal(t, map[string]float64{"gpu": 4, "cpu": 3000}, amounts)
			require.NotNil(t, list[2].GetRequest(), "a part of nothing is not the whole node")
		}
		decoded, err = decode.Compile(decode.SnapshotOf(decoded))
		require.NoError(t, err)
	}
}

func TestEveryWrongFieldOfAReservationIsNamed(t *testing.T) {
	s := parse(t, &apportionv1.Snapshot{}, `
		dimensions: "cpu"
		nodes { name: "n" reservations { start_unix_nano: -1 } reservations { start_unix_nano: 5 end_unix_nano: 5 } reservations { end_unix_nano: -1 request { dimensions: 3 amounts: 1 } } }
		nodes { name: "m" reservations { request { dimensions: 0 amounts: -1 } } }
		nodes { name: "o" }`)
	for range 17 {
		s.Nodes[2].Reservations = append(s.Nodes[2].Reservations, &apportionv1.NodeReservation{})
	}
	_, err := decode.Compile(s)
	for _, path := range []string{
		"nodes[0].reservations[0].from", "nodes[0].reservations[1].until", "nodes[0].reservations[2].until", "nodes[0].reservations[2].request",
		"nodes[1].reservations[0].request", "nodes[2].reservations",
	} {
		require.ErrorContains(t, err, "snapshot."+path)
	}
}

// TestAChangeCarriesReservations moves the time, replaces a node, and adds a dimension.
func TestAChangeCarriesReservations(t *testing.T) {
	s := open(t, reservedNodes, `tiers { plugins { gang {} } }`)
	fits := func(uid string) bool {
		return ask(t, s, `nodes { tasks { names: "`+uid+`" } explain: true }`).GetNodes().GetTasks()[0].GetFits()[0]
	}
	require.False(t, fits("t"), "it may still run as the downtime begins")
	require.True(t, fits("u"), "it ends as the downtime begins")
	ask(t, s, `event { change { dimensions: "fpga" nodes { name: "m" allocatable { dimensions: 0 amounts: 1 } } } }`)
	require.False(t, fits("t"), "a change of something else keeps reservations")
	ask(t, s, `event { change { as_of: 3000 } }`)
	require.True(t, fits("t"), "the downtime is over, and the rest is kept for this job")
	ask(t, s, `event { change { dimensions: "cpu" nodes { name: "n" allocatable { dimensions: 0 amounts: 9000 } } } }`)
	require.True(t, fits("u"))
}

func TestInspectShowsReservationsAndTheirHoldersToThoseAloneWhoSeeThem(t *testing.T) {
	for name, c := range map[string]struct {
		own  func(queue string) bool
		want []string
	}{
		"everybody sees all":      {nil, []string{"", "ns/j", ""}},
		"the owner of the queue":  {func(queue string) bool { return queue == "q" }, []string{"", "ns/j", ""}},
		"an owner of another one": {func(queue string) bool { return queue == "r" }, []string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, reservedNodes+` queues { name: "r" }`))
			require.NoError(t, err)
			s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } }`), wire.Options{})
			require.NoError(t, err)
			if c.own != nil {
				s.Restrict(wire.NewAudience(m, c.own))
			}
			list := ask(t, s, `inspect { nodes: true }`).GetInspect().GetNodes()[0].GetReservations()
			require.Len(t, list, 3)
			for i, holder := range c.want {
				require.Equal(t, holder, list[i].GetHolder())
			}
			require.Equal(t, "maintenance", list[0].GetReason())
			require.Equal(t, []int64{2000, 3000}, []int64{list[0].GetStartUnixNano(), list[0].GetEndUnixNano()})
			require.Nil(t, list[0].GetRequest(), "the whole node")
			require.ElementsMatch(t, []float64{4, 3000}, list[1].GetRequest().GetAmounts())
			require.NotNil(t, list[2].GetRequest(), "a part of nothing")
		})
	}
}
